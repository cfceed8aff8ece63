//! The host's interface for a flight.
//!
//! A flight is a program: it reads a custom resource from standard input and writes the resources that
//! should exist to standard output. [`read`] and [`write`] do these two, [`k8s`] looks at the cluster,
//! and the functions here return the release that the flight is evaluated for.
//!
//! The contract is described in `docs/abi/flight.md`.

use std::env;
use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

mod buffer;
pub mod k8s;

/// Reads the instance, or the part of it that the Airway's `objectPath` names.
///
/// # Errors
/// If standard input is not JSON of the form that `T` has.
pub fn read<T: DeserializeOwned>() -> Result<T, serde_json::Error> {
    serde_json::from_reader(io::stdin().lock())
}

/// Writes the flight's answer: an object, a list of objects, or a list of such lists (stages). Call it
/// once; two documents are not an answer.
///
/// # Errors
/// If the answer has no JSON form, or writing to standard output fails.
pub fn write<T: Serialize + ?Sized>(answer: &T) -> Result<(), serde_json::Error> {
    serde_json::to_writer(io::stdout().lock(), answer)
}

/// The name of the release: `group.Kind.namespace.name` for an instance of an Airway.
#[must_use]
pub fn release() -> String {
    env::var("YOKE_RELEASE")
        .ok()
        .or_else(|| env::args().next())
        .unwrap_or_default()
}

/// The namespace of the release: where the host puts resources that name no namespace.
#[must_use]
pub fn namespace() -> String {
    env::var("YOKE_NAMESPACE")
        .or_else(|_| env::var("NAMESPACE"))
        .unwrap_or_default()
}

/// The release of yoke whose contract the host keeps, such as `v0.20.12`; empty where there is no host.
#[must_use]
pub fn yoke_version() -> String {
    env::var("YOKE_VERSION").unwrap_or_default()
}

/// The version of hangar, such as `0.1.0`; empty under other hosts.
#[must_use]
pub fn hangar_version() -> String {
    env::var("HANGAR_VERSION").unwrap_or_default()
}
