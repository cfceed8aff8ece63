//! A peer of the ring benchmark: the controllers of examples/ring with kube, as the published Rust controller
//! has them.
//!
//!     ring_rust --in NAMESPACE --out NAMESPACE    one controller
//!     ring_rust --count N [--prefix ring]         N controllers in this process: from namespace <prefix>0 to
//!                                                 <prefix>1, and so on, the last one to <prefix>0
//!
//! Prints "ready" to standard output when every controller has its first list, and runs until it is ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use futures::StreamExt;
use futures::future;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, Config, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

#[derive(Clone, CustomResource, Debug, Default, Deserialize, Serialize)]
#[kube(
    kind = "TestResource",
    group = "amurant.io",
    version = "v1",
    namespaced,
    schema = "disabled"
)]
struct TestResourceSpec {
    nonce: i64,
    updated_at: Option<MicroTime>,
}

/// A peer of the ring benchmark.
#[derive(Parser)]
struct Arguments {
    /// The cluster.
    #[arg(long, env = "KUBECONFIG")]
    kubeconfig: PathBuf,
    /// Namespace to watch.
    #[arg(long = "in", env = "IN_NAMESPACE", required_unless_present = "count")]
    in_namespace: Option<String>,
    /// Namespace to copy to.
    #[arg(long = "out", env = "OUT_NAMESPACE", required_unless_present = "count")]
    out_namespace: Option<String>,
    /// Controllers in this process, instead of --in and --out.
    #[arg(long)]
    count: Option<usize>,
    /// Of the namespaces' names, with --count.
    #[arg(long, default_value = "ring")]
    prefix: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let options = KubeConfigOptions::default();
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let client = Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &options).await?)?;

    let namespace = |index: usize| format!("{}{index}", arguments.prefix);
    let hops: Vec<(String, String)> = match (arguments.count, arguments.in_namespace, arguments.out_namespace)
    {
        (Some(count), ..) => (0..count)
            .map(|index| (namespace(index), namespace((index + 1) % count)))
            .collect(),
        (None, Some(from), Some(to)) => vec![(from, to)],
        (None, ..) => unreachable!("the arguments were checked"),
    };

    let mut listed = Vec::new();
    let mut controllers = Vec::new();
    for (from, to) in &hops {
        let source = Api::<TestResource>::namespaced(client.clone(), from);
        let target = Api::<TestResource>::namespaced(client.clone(), to);
        let controller = Controller::new(source, watcher::Config::default());
        let store = controller.store();
        listed.push(async move { store.wait_until_ready().await });
        controllers.push(
            controller
                .run(reconcile, on_error, Arc::new(target))
                .for_each(|_| future::ready(())),
        );
    }
    let ready = async {
        future::join_all(listed).await;
        println!("ready");
    };
    future::join(ready, future::join_all(controllers)).await;
    Ok(())
}

fn on_error(_: Arc<TestResource>, error: &kube::Error, _: Arc<Api<TestResource>>) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(1))
}

/// Copies the nonce to the object of the same name in the next namespace, if it is larger there.
async fn reconcile(source: Arc<TestResource>, next: Arc<Api<TestResource>>) -> Result<Action, kube::Error> {
    let name = source.name_any();
    let nonce = source.spec.nonce;
    let updated_at = Some(MicroTime(jiff::Timestamp::now()));
    match next.get_opt(&name).await? {
        Some(mut existing) => {
            if nonce > existing.spec.nonce {
                existing.spec.nonce = nonce;
                existing.spec.updated_at = updated_at;
                next.replace(&name, &PostParams::default(), &existing).await?;
            }
        }
        None => {
            let object = TestResource::new(&name, TestResourceSpec { nonce, updated_at });
            next.create(&PostParams::default(), &object).await?;
        }
    }
    Ok(Action::await_change())
}
