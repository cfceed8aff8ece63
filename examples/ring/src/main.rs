//! Copies the nonce of every TestResource in one namespace to the object of the same name in another,
//! unless it is larger there already. N of these, each with the next one's namespace, form a ring.
//!
//!     IN_NAMESPACE    where to watch; "default" if not set
//!     OUT_NAMESPACE   where to copy to; "default" if not set
//!     HEAP_MEM_SIZE   bytes of memory to hold besides, for measurements; 0 if not set

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::rc::Rc;

use hangar_operator::{Action, Api, Controller, Error, ObjectMeta, Resource, now};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
struct TestResource {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize, Serialize)]
struct Spec {
    #[serde(default)]
    nonce: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
}

impl Resource for TestResource {
    const API_VERSION: &'static str = "amurant.io/v1";
    const KIND: &'static str = "TestResource";
    const PLURAL: &'static str = "testresources";
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

struct Ring {
    next: Api<TestResource>,
    /// The nonce, by name, that the next namespace is known to have had: a change to any other field needs
    /// no request.
    copied: RefCell<BTreeMap<String, i64>>,
    /// Memory that a larger controller would need, to measure what that costs.
    _ballast: Vec<u8>,
}

fn main() {
    let namespace = |variable| env::var(variable).unwrap_or_else(|_| "default".into());
    let ring = Rc::new(Ring {
        next: Api::namespaced(&namespace("OUT_NAMESPACE")),
        copied: RefCell::default(),
        _ballast: ballast(),
    });
    let controller = Controller::new(Api::<TestResource>::namespaced(&namespace("IN_NAMESPACE")));
    hangar_operator::run(controller.run(move |key, object| {
        let ring = ring.clone();
        async move {
            match object {
                Some(object) => ring.copy(&key.name, object.spec.nonce).await?,
                None => {
                    ring.copied.borrow_mut().remove(&key.name);
                }
            }
            Ok::<_, Error>(Action::await_change())
        }
    }));
}

impl Ring {
    async fn copy(&self, name: &str, nonce: i64) -> Result<(), Error> {
        if self.copied.borrow().get(name) == Some(&nonce) {
            return Ok(());
        }
        match self.next.get(name).await {
            Ok(mut existing) => {
                if nonce > existing.spec.nonce {
                    existing.spec.nonce = nonce;
                    existing.spec.updated_at = Some(now());
                    self.next.replace(&existing).await?;
                }
            }
            Err(error) if error.is_not_found() => {
                let spec = Spec {
                    nonce,
                    updated_at: Some(now()),
                };
                let metadata = ObjectMeta::named(name);
                self.next.create(&TestResource { metadata, spec }).await?;
            }
            Err(error) => return Err(error),
        }
        self.copied.borrow_mut().insert(name.into(), nonce);
        Ok(())
    }
}

fn ballast() -> Vec<u8> {
    let size_bytes = env::var("HEAP_MEM_SIZE").ok().and_then(|size| size.parse().ok());
    // Different bytes, so that the pages can be neither shared nor compressed away.
    (0..size_bytes.unwrap_or(0))
        .map(|index: usize| (index * 31 + (index >> 8) * 17) as u8)
        .collect()
}
