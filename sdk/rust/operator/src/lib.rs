//! Kubernetes controllers as WebAssembly modules.
//!
//! Such a module has no sockets and no threads: its HTTP requests and its delays are calls of the host, and
//! the host answers by waking it. Between two wakes it holds no stack, so the host can suspend it to disk
//! without the module noticing. This crate turns those calls into futures, runs them, and adds the parts of a
//! controller: [`Api`], [`Watcher`] and [`Controller`].
//!
//! ```no_run
//! use hangar_operator::{Action, Api, Controller, Error, ObjectMeta, Resource};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct ConfigMap {
//!     metadata: ObjectMeta,
//! }
//!
//! impl Resource for ConfigMap {
//!     const API_VERSION: &'static str = "v1";
//!     const KIND: &'static str = "ConfigMap";
//!     const PLURAL: &'static str = "configmaps";
//!     fn metadata(&self) -> &ObjectMeta {
//!         &self.metadata
//!     }
//! }
//!
//! fn main() {
//!     hangar_operator::run(async {
//!         let config_maps = Api::<ConfigMap>::namespaced("default");
//!         Controller::new(config_maps)
//!             .run(|key, config_map| async move {
//!                 println!("{key} {}", if config_map.is_some() { "is there" } else { "is gone" });
//!                 Ok::<_, Error>(Action::await_change())
//!             })
//!             .await
//!     });
//! }
//! ```
//!
//! Requests are made under the operator's own identity, which the host adds; a module holds no credential.
//! The contract is described in `docs/abi/kube-runtime.md`. All of it belongs to one thread. Outside of
//! WebAssembly there is no host, and `testing` replaces it.

mod abi;
mod api;
mod call;
mod codec;
mod controller;
mod error;
mod executor;
pub mod http;
mod metadata;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod time;
mod watcher;

pub use api::{Api, List, ListParams, Patch, Resource};
pub use call::sleep;
pub use controller::{Action, Controller, Key};
pub use error::{Error, Status};
pub use executor::{run, spawn};
pub use metadata::{ObjectMeta, OwnerReference};
pub use time::now;
pub use watcher::{Event, Watcher};
