//! Typed verbs on one kind of object.

use std::borrow::Cow;
use std::fmt::Write;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::http::Request;
use crate::metadata::ObjectMeta;

/// A kind of object, with the fields that the controller uses. Fields that the type does not have take no
/// memory; but [`Api::replace`] would lose them, so a type for that verb is complete (see [`ObjectMeta`] for
/// the fields that need not be there). `apiVersion` and `kind` are not among the fields: they are added.
pub trait Resource: Serialize + DeserializeOwned + 'static {
    /// Group and version, such as `apps/v1`; `v1` for the core group.
    const API_VERSION: &'static str;
    /// Its name, such as `Deployment`.
    const KIND: &'static str;
    /// Its name in the server's paths, such as `deployments`.
    const PLURAL: &'static str;

    /// The object's metadata.
    fn metadata(&self) -> &ObjectMeta;
}

/// Some objects, and how to fetch the ones after them.
#[derive(Deserialize)]
#[serde(bound = "K: Resource")]
pub struct List<K> {
    /// The list's own metadata.
    #[serde(default)]
    pub metadata: ListMeta,
    /// The objects.
    #[serde(default = "Vec::new")]
    pub items: Vec<K>,
}

/// A list's metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListMeta {
    /// Where a watch starts.
    pub resource_version: String,
    /// Not empty: where the list continues.
    #[serde(rename = "continue")]
    pub continue_token: String,
}

/// Which objects to list.
#[derive(Clone, Debug, Default)]
pub struct ListParams {
    /// As kubectl's `-l`; empty for all.
    pub label_selector: String,
    /// As kubectl's `--field-selector`; empty for all.
    pub field_selector: String,
    /// The most objects at once; 0 for all.
    pub limit: u32,
    /// [`ListMeta::continue_token`] of the previous list.
    pub continue_token: String,
}

/// A change to an object.
#[derive(Debug)]
pub enum Patch<'a, T> {
    /// Fields to set, and null for those to remove.
    Merge(&'a T),
    /// The same, with lists merged by their keys; for kinds that are not custom.
    Strategic(&'a T),
    /// A list of operations.
    Json(&'a T),
    /// The fields that the manager wants to own, and no others; `force` takes them away from other managers.
    Apply {
        /// The owner of the fields.
        manager: &'a str,
        /// Whether to take over fields that others own.
        force: bool,
        /// An object with `apiVersion` and `kind`.
        object: &'a T,
    },
}

// If derived, these would require the same of T.
impl<T> Clone for Patch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Patch<'_, T> {}

/// One kind of object, in one namespace or in all.
#[derive(Debug)]
pub struct Api<K> {
    path: String,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Api {
            path: self.path.clone(),
            kind: PhantomData,
        }
    }
}

impl<K: Resource> Api<K> {
    /// Objects in one namespace.
    #[must_use]
    pub fn namespaced(namespace: &str) -> Self {
        Self::at(&["namespaces/", namespace, "/"])
    }

    /// Objects in all namespaces, or of a cluster-scoped kind.
    #[must_use]
    pub fn all() -> Self {
        Self::at(&[])
    }

    fn at(middle: &[&str]) -> Self {
        let root = if K::API_VERSION.contains('/') {
            "/apis/"
        } else {
            "/api/"
        };
        let mut path = [root, K::API_VERSION, "/"].concat();
        middle.iter().for_each(|part| path.push_str(part));
        path.push_str(K::PLURAL);
        Api {
            path,
            kind: PhantomData,
        }
    }

    /// The path of the collection at the API server.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The object, as it is now.
    ///
    /// # Errors
    /// See [`Error`]; `is_not_found` if it does not exist.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        decode(&self.send(Request::new("GET", self.path_of(name))).await?)
    }

    /// The objects that `params` selects.
    ///
    /// # Errors
    /// See [`Error`]; `is_expired` if the continue token is too old.
    pub async fn list(&self, params: &ListParams) -> Result<List<K>, Error> {
        let mut query = Query::new(&self.path);
        query.add("labelSelector", &params.label_selector);
        query.add("fieldSelector", &params.field_selector);
        if params.limit > 0 {
            query.add_number("limit", params.limit);
        }
        query.add("continue", &params.continue_token);
        decode(&self.send(Request::new("GET", query.uri)).await?)
    }

    /// Creates the object.
    ///
    /// # Errors
    /// See [`Error`]; `is_conflict` if one of that name exists.
    pub async fn create(&self, object: &K) -> Result<K, Error> {
        let request = Request::new("POST", self.path.as_str()).with_body(JSON, encode(object)?);
        decode(&self.send(request).await?)
    }

    /// Replaces the object of the same name, if that still has the object's `resourceVersion`, or any if the
    /// object has none.
    ///
    /// # Errors
    /// See [`Error`]; `is_conflict` if it has changed.
    pub async fn replace(&self, object: &K) -> Result<K, Error> {
        let path = self.path_of(&object.metadata().name);
        let request = Request::new("PUT", path).with_body(JSON, encode(object)?);
        decode(&self.send(request).await?)
    }

    /// As [`replace`](Api::replace), but of the status only.
    ///
    /// # Errors
    /// As [`replace`](Api::replace).
    pub async fn replace_status(&self, object: &K) -> Result<K, Error> {
        let path = self.path_of(&object.metadata().name) + "/status";
        let request = Request::new("PUT", path).with_body(JSON, encode(object)?);
        decode(&self.send(request).await?)
    }

    /// Changes the object, or with [`Patch::Apply`] creates it.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn patch<T: Serialize>(&self, name: &str, patch: Patch<'_, T>) -> Result<K, Error> {
        decode(&self.send(patch_request(self.path_of(name), patch)?).await?)
    }

    /// As [`patch`](Api::patch), but of the status only.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn patch_status<T: Serialize>(&self, name: &str, patch: Patch<'_, T>) -> Result<K, Error> {
        decode(
            &self
                .send(patch_request(self.path_of(name) + "/status", patch)?)
                .await?,
        )
    }

    /// Applies the object: its fields become `manager`'s, whoever owned them, and fields that the manager had
    /// before and the object no longer has are removed.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn apply(&self, manager: &str, object: &K) -> Result<K, Error> {
        let object_with_kind = WithKind::of(object);
        let patch = Patch::Apply {
            manager,
            force: true,
            object: &object_with_kind,
        };
        self.patch(&object.metadata().name, patch).await
    }

    /// Deletes the object; with finalizers, requests its deletion.
    ///
    /// # Errors
    /// See [`Error`]; `is_not_found` if it does not exist.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        let answer = self.send(Request::new("DELETE", self.path_of(name))).await?;
        decode::<IgnoredAny>(&answer).map(|_| ())
    }

    fn path_of(&self, name: &str) -> String {
        [&self.path, "/", name].concat()
    }

    async fn send(&self, request: Request) -> Result<Vec<u8>, Error> {
        send(request).await
    }
}

const JSON: &str = "application/json";

/// Sends the request; a status that means failure is an error.
async fn send(request: Request) -> Result<Vec<u8>, Error> {
    let response = request.send().await?;
    match response.head.status() {
        200..=299 => Ok(response.body),
        code => Err(Error::from_answer(code, &response.body)),
    }
}

fn patch_request<T: Serialize>(path: String, patch: Patch<'_, T>) -> Result<Request, Error> {
    let (content_type, body, path) = match patch {
        Patch::Merge(body) => ("application/merge-patch+json", body, path),
        Patch::Strategic(body) => ("application/strategic-merge-patch+json", body, path),
        Patch::Json(body) => ("application/json-patch+json", body, path),
        Patch::Apply {
            manager,
            force,
            object,
        } => {
            let mut query = Query::new(&path);
            query.add("fieldManager", manager);
            query.add("force", if force { "true" } else { "" });
            ("application/apply-patch+yaml", object, query.uri)
        }
    };
    Ok(Request::new("PATCH", path).with_body(content_type, serde_json::to_vec(body)?))
}

fn decode<T: DeserializeOwned>(document: &[u8]) -> Result<T, Error> {
    Ok(serde_json::from_slice(document)?)
}

fn encode<K: Resource>(object: &K) -> Result<Vec<u8>, Error> {
    Ok(serde_json::to_vec(&WithKind::of(object))?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WithKind<'a, K> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    object: &'a K,
}

impl<'a, K: Resource> WithKind<'a, K> {
    fn of(object: &'a K) -> Self {
        WithKind {
            api_version: K::API_VERSION,
            kind: K::KIND,
            object,
        }
    }
}

/// A path to which a query is added.
pub(crate) struct Query {
    pub(crate) uri: String,
    separator: char,
}

impl Query {
    pub(crate) fn new(path: &str) -> Self {
        Query {
            uri: path.into(),
            separator: '?',
        }
    }

    /// Adds a parameter, unless it is empty.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.uri.push(self.separator);
        self.separator = '&';
        self.uri.push_str(name);
        self.uri.push('=');
        self.uri.push_str(&escaped(value));
    }

    fn add_number(&mut self, name: &str, value: u32) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{value}");
        self.add(name, &text);
    }
}

fn escaped(value: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if value.bytes().all(is_plain) {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len() + 16);
    for byte in value.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::spawn;
    use crate::testing::Host;

    #[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
    pub(crate) struct Widget {
        pub(crate) metadata: ObjectMeta,
        #[serde(default)]
        pub(crate) size: u32,
    }

    impl Resource for Widget {
        const API_VERSION: &'static str = "example.com/v1";
        const KIND: &'static str = "Widget";
        const PLURAL: &'static str = "widgets";
        fn metadata(&self) -> &ObjectMeta {
            &self.metadata
        }
    }

    impl Widget {
        pub(crate) fn new(name: &str, resource_version: &str, size: u32) -> Self {
            let mut widget = Widget {
                metadata: ObjectMeta::named(name),
                size,
            };
            widget.metadata.resource_version = resource_version.into();
            widget
        }
    }

    /// The result of `future`, once the host has answered.
    fn outcome<T: 'static>(future: impl Future<Output = T> + 'static) -> Rc<RefCell<Option<T>>> {
        let outcome = Rc::new(RefCell::new(None));
        let inside = outcome.clone();
        spawn(async move { *inside.borrow_mut() = Some(future.await) });
        outcome
    }

    #[test]
    fn paths_are_those_of_the_api_server() {
        assert_eq!(Api::<Widget>::all().path(), "/apis/example.com/v1/widgets");
        let namespaced = Api::<Widget>::namespaced("ns");
        assert_eq!(namespaced.path(), "/apis/example.com/v1/namespaces/ns/widgets");
        assert_eq!(
            namespaced.path_of("a"),
            "/apis/example.com/v1/namespaces/ns/widgets/a"
        );
    }

    #[test]
    fn queries_leave_out_what_is_empty_and_escape_the_rest() {
        let mut query = Query::new("/x");
        query.add("a", "");
        query.add("labelSelector", "app in (web,db)");
        query.add_number("limit", 500);
        assert_eq!(query.uri, "/x?labelSelector=app%20in%20%28web%2Cdb%29&limit=500");
    }

    #[test]
    fn replace_sends_the_object_with_its_kind_and_returns_the_servers() {
        let host = Host::new();
        let replaced = outcome(async {
            Api::namespaced("ns")
                .replace(&Widget::new("a", "7", 3))
                .await
                .unwrap()
        });
        host.settle();

        let request = host.request().unwrap();
        assert_eq!(request.method(), "PUT");
        assert_eq!(request.uri(), "/apis/example.com/v1/namespaces/ns/widgets/a");
        assert_eq!(
            request.body(),
            br#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"7"},"size":3}"#
        );
        request.answer(
            200,
            &[],
            br#"{"kind":"Widget","metadata":{"name":"a","resourceVersion":"8"},"size":3}"#,
        );
        assert_eq!(replaced.take().unwrap(), Widget::new("a", "8", 3));
    }

    #[test]
    fn apply_names_the_manager_and_takes_fields_over() {
        let host = Host::new();
        let _applied = outcome(async { Api::all().apply("me", &Widget::new("a", "", 1)).await });
        host.settle();
        let request = host.request().unwrap();
        assert_eq!(request.method(), "PATCH");
        assert_eq!(
            request.uri(),
            "/apis/example.com/v1/widgets/a?fieldManager=me&force=true"
        );
        assert!(
            request
                .body()
                .starts_with(br#"{"apiVersion":"example.com/v1","kind":"Widget""#)
        );
    }

    #[test]
    fn a_refusal_is_an_error_with_the_servers_words() {
        let host = Host::new();
        let got = outcome(async { Api::<Widget>::all().get("a").await });
        host.settle();
        host.request().unwrap().answer(
            403,
            &[],
            br#"{"kind":"Status","reason":"Forbidden","message":"no","code":403}"#,
        );
        let error = got.take().unwrap().unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (Some(403), "no"));
    }

    #[test]
    fn deleting_looks_at_the_outcome_only() {
        let host = Host::new();
        let deleted = outcome(async { Api::<Widget>::all().delete("a").await });
        host.settle();
        host.request()
            .unwrap()
            .answer(200, &[], br#"{"kind":"Status","status":"Success"}"#);
        assert!(deleted.take().unwrap().is_ok());
    }
}
