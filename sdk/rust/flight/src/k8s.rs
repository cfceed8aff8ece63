//! Lookups in the cluster through the host.
//!
//! The host remembers the lookups, even if the object does not exist; in the modes `dynamic` and
//! `subscription` a later change to it evaluates the flight again. A flight never waits.
//!
//! Outside of WebAssembly there is no host, and every call returns [`Error::FeatureNotGranted`].

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Names one object. An empty namespace means `default` for kinds that are namespaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceIdentifier<'a> {
    /// Name of the object.
    pub name: &'a str,
    /// Its namespace; empty for kinds that are cluster scoped.
    pub namespace: &'a str,
    /// Its kind, such as `Secret`.
    pub kind: &'a str,
    /// Its group and version, such as `v1` or `apps/v1`.
    pub api_version: &'a str,
}

/// How the API server serves a kind.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase")]
pub struct RestMapping {
    /// Group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Resource, as in the server's URLs.
    pub resource: String,
    /// Whether objects of the kind are in namespaces.
    pub namespaced: bool,
}

/// Why a call has no answer. The texts are the host's own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The flight runs without access to the cluster.
    FeatureNotGranted(String),
    /// The object does not exist. A kind that does not exist is [`Error::Other`].
    NotFound(String),
    /// The cluster does not accept the host's credentials.
    Unauthenticated(String),
    /// The object is neither owned by the release nor covered by the Airway's matchers.
    Forbidden(String),
    /// Any other error, including an answer that does not fit the question.
    Other(String),
}

impl Error {
    /// Whether the object does not exist (yet).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound(_))
    }

    fn from_state(state: u32, message: &[u8]) -> Self {
        let message = String::from_utf8_lossy(message).into_owned();
        match state {
            1 if message.is_empty() => Error::FeatureNotGranted(NOT_GRANTED.into()),
            1 => Error::FeatureNotGranted(message),
            2 => Error::Other(message),
            3 => Error::NotFound(message),
            4 => Error::Unauthenticated(message),
            5 => Error::Forbidden(message),
            unknown => Error::Other(format!("unknown state {unknown}: {message}")),
        }
    }
}

const NOT_GRANTED: &str = "access to the cluster has not been granted for this flight invocation";

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::FeatureNotGranted(message)
        | Error::NotFound(message)
        | Error::Unauthenticated(message)
        | Error::Forbidden(message)
        | Error::Other(message)) = self;
        formatter.write_str(message)
    }
}

impl std::error::Error for Error {}

/// Fetches an object as it is in the cluster now.
///
/// # Errors
/// See [`Error`].
pub fn lookup<T: DeserializeOwned>(identifier: ResourceIdentifier<'_>) -> Result<T, Error> {
    decode(&host::lookup(identifier)?)
}

/// Asks whether, and how, the cluster serves a kind, by group (`apps`) or group and version
/// (`apps/v1`). The core group is `""` or `"/v1"`.
///
/// # Errors
/// See [`Error`].
pub fn rest_mapping(group_or_api_version: &str, kind: &str) -> Result<RestMapping, Error> {
    decode(&host::rest_mapping(group_or_api_version, kind)?)
}

fn decode<T: DeserializeOwned>(document: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(document).map_err(|error| Error::Other(format!("decode the answer: {error}")))
}

#[cfg(target_family = "wasm")]
mod host {
    use super::{Error, ResourceIdentifier};
    use crate::buffer;

    mod import {
        #[link(wasm_import_module = "host")]
        unsafe extern "C" {
            pub(super) fn k8s_lookup(
                state: *mut u32,
                name: u64,
                namespace: u64,
                kind: u64,
                api_version: u64,
            ) -> u64;
            pub(super) fn k8s_rest_mapping(state: *mut u32, group_or_api_version: u64, kind: u64) -> u64;
        }
    }

    pub(super) fn lookup(identifier: ResourceIdentifier<'_>) -> Result<Vec<u8>, Error> {
        let mut state = 0;
        // SAFETY: the host reads the four strings and writes the state during the call only; all of
        // them outlive it.
        let answer = unsafe {
            import::k8s_lookup(
                &raw mut state,
                buffer::of(identifier.name.as_bytes()),
                buffer::of(identifier.namespace.as_bytes()),
                buffer::of(identifier.kind.as_bytes()),
                buffer::of(identifier.api_version.as_bytes()),
            )
        };
        receive(state, answer)
    }

    pub(super) fn rest_mapping(group_or_api_version: &str, kind: &str) -> Result<Vec<u8>, Error> {
        let mut state = 0;
        // SAFETY: as in lookup.
        let answer = unsafe {
            import::k8s_rest_mapping(
                &raw mut state,
                buffer::of(group_or_api_version.as_bytes()),
                buffer::of(kind.as_bytes()),
            )
        };
        receive(state, answer)
    }

    fn receive(state: u32, answer: u64) -> Result<Vec<u8>, Error> {
        let document = buffer::take(answer)
            .ok_or_else(|| Error::Other("host returned a buffer that was not allocated for it".into()))?;
        if state == 0 {
            Ok(document)
        } else {
            Err(Error::from_state(state, &document))
        }
    }
}

#[cfg(not(target_family = "wasm"))]
mod host {
    use super::{Error, ResourceIdentifier};

    pub(super) fn lookup(_: ResourceIdentifier<'_>) -> Result<Vec<u8>, Error> {
        Err(Error::from_state(1, b""))
    }

    pub(super) fn rest_mapping(_: &str, _: &str) -> Result<Vec<u8>, Error> {
        Err(Error::from_state(1, b""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_its_own_error_and_keeps_the_hosts_words() {
        let words = || "words".to_string();
        assert_eq!(Error::from_state(1, b"words"), Error::FeatureNotGranted(words()));
        assert_eq!(Error::from_state(2, b"words"), Error::Other(words()));
        assert_eq!(Error::from_state(3, b"words"), Error::NotFound(words()));
        assert_eq!(Error::from_state(4, b"words"), Error::Unauthenticated(words()));
        assert_eq!(Error::from_state(5, b"words"), Error::Forbidden(words()));
        assert_eq!(
            Error::from_state(9, b"words"),
            Error::Other("unknown state 9: words".into())
        );
    }

    #[test]
    fn a_mapping_has_the_hosts_field_names() {
        let document = br#"{"Group":"apps","Version":"v1","Kind":"Deployment","Resource":"deployments","Namespaced":true}"#;
        let mapping: RestMapping = decode(document).unwrap();
        assert_eq!(mapping.resource, "deployments");
        assert!(mapping.namespaced);
    }

    #[test]
    fn an_answer_that_is_not_json_is_an_error() {
        let error = decode::<RestMapping>(b"{").unwrap_err();
        assert!(error.to_string().starts_with("decode the answer: "), "{error}");
    }

    #[test]
    fn without_a_host_nothing_is_granted() {
        let refused = lookup::<RestMapping>(ResourceIdentifier::default()).unwrap_err();
        assert_eq!(refused, Error::FeatureNotGranted(NOT_GRANTED.into()));
    }
}
