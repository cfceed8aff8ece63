//! A flight: a ConfigMap with a text, which may come from another ConfigMap that need not exist yet.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;

use hangar_flight::k8s::{self, ResourceIdentifier};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    text: String,
    /// Name of a ConfigMap whose key `text` is used instead.
    #[serde(default)]
    from: String,
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut greeting: Value =
        hangar_flight::read().map_err(|error| format!("failed to decode stdin into a greeting: {error}"))?;
    let spec = Spec::deserialize(&greeting["spec"])?;

    let mut text = spec.text;
    if !spec.from.is_empty() {
        let source = k8s::lookup::<ConfigMap>(ResourceIdentifier {
            name: &spec.from,
            namespace: &hangar_flight::namespace(),
            kind: "ConfigMap",
            api_version: "v1",
        });
        match source {
            Ok(source) => text = source.data.get("text").cloned().unwrap_or_default(),
            Err(error) if error.is_not_found() => {
                // The host remembers the lookup: the ConfigMap's creation evaluates the flight again.
                greeting["status"] = json!({"msg": format!("waiting for configmap {}", spec.from)});
                return Ok(hangar_flight::write(&[greeting])?);
            }
            Err(error) => {
                return Err(format!("failed to lookup configmap {}: {error}", spec.from).into());
            }
        }
    }

    let config_map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": greeting["metadata"]["name"]},
        "data": {"text": text},
    });
    greeting["status"] = json!({"msg": "greeting"});
    Ok(hangar_flight::write(&[greeting, config_map])?)
}
