//! Makes the world match the objects, one object at a time.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use crate::api::{Api, Resource};
use crate::watcher::{Event, Watcher, doubled};
use crate::{Error, sleep, spawn};

/// Names an object. The namespace of a cluster-scoped object is empty.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// Names this object.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        let metadata = object.metadata();
        Key {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            formatter.write_str(&self.namespace)?;
            formatter.write_str("/")?;
        }
        formatter.write_str(&self.name)
    }
}

/// What follows a successful reconcile.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Nothing, until something changes.
    #[must_use]
    pub const fn await_change() -> Self {
        Action { requeue_after: None }
    }

    /// Another reconcile after a while, or earlier when something changes.
    #[must_use]
    pub const fn requeue_after(delay: Duration) -> Self {
        Action {
            requeue_after: Some(delay),
        }
    }
}

/// Calls a function with every object that exists or has changed, until that succeeds.
///
/// Of one object at most one reconcile runs at a time; changes meanwhile cause one more. After an error the
/// controller retries, after a time that doubles with each error in a row. It does not reconcile objects that
/// a renewed list shows unchanged. It keeps the last state of every object, so a type with fewer fields needs
/// less memory.
pub struct Controller<K> {
    watcher: Watcher<K>,
    shared: Rc<Shared<K>>,
    related: Vec<Pin<Box<dyn Future<Output = ()>>>>,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Limits {
    concurrency: usize,
    retry_first: Duration,
    retry_max: Duration,
}

/// Starts the reconcile of a key.
type Start<K> = Rc<dyn Fn(Key, Option<Rc<K>>)>;

struct Shared<K> {
    state: RefCell<Keys<K>>,
    /// Set by run().
    start: RefCell<Option<Start<K>>>,
}

struct Keys<K> {
    entries: BTreeMap<Key, Entry<K>>,
    queue: VecDeque<Key>,
    running: usize,
    concurrency: usize,
    /// The number of the current list; entries with another one have not been seen in it.
    round: u32,
    is_listed: bool,
}

struct Entry<K> {
    object: Option<Rc<K>>,
    round: u32,
    is_queued: bool,
    is_running: bool,
    /// Errors in a row.
    failures: u32,
    /// The timer that counts; one that a change has overtaken does not.
    timer: u32,
    has_timer: bool,
}

impl<K> Entry<K> {
    const fn new() -> Self {
        Entry {
            object: None,
            round: 0,
            is_queued: false,
            is_running: false,
            failures: 0,
            timer: 0,
            has_timer: false,
        }
    }
}

impl<K: Resource> Controller<K> {
    /// A controller of all of `api`'s objects.
    #[must_use]
    pub fn new(api: Api<K>) -> Self {
        Self::of(Watcher::new(api))
    }

    /// A controller of the objects that a watcher watches.
    #[must_use]
    pub fn of(watcher: Watcher<K>) -> Self {
        Controller {
            watcher,
            shared: Rc::new(Shared {
                state: RefCell::new(Keys {
                    entries: BTreeMap::new(),
                    queue: VecDeque::new(),
                    running: 0,
                    concurrency: 0,
                    round: 0,
                    is_listed: false,
                }),
                start: RefCell::new(None),
            }),
            related: Vec::new(),
            limits: Limits {
                concurrency: 4,
                retry_first: Duration::from_millis(200),
                retry_max: Duration::from_secs(300),
            },
        }
    }

    /// How many objects are reconciled at a time (default: 4).
    #[must_use]
    pub fn concurrency(mut self, count: usize) -> Self {
        self.limits.concurrency = count.max(1);
        self
    }

    /// The first and the longest wait after errors (default: 200 ms and 5 minutes).
    #[must_use]
    pub fn retry(mut self, first: Duration, max: Duration) -> Self {
        self.limits.retry_first = first;
        self.limits.retry_max = max;
        self
    }

    /// On each change of another kind's object, reconciles the objects that `keys` returns.
    #[must_use]
    pub fn watches<C: Resource>(
        mut self,
        mut watcher: Watcher<C>,
        keys: impl Fn(&C) -> Vec<Key> + 'static,
    ) -> Self {
        let shared = self.shared.clone();
        self.related.push(Box::pin(async move {
            loop {
                match watcher.next().await {
                    Ok(Event::InitApply(object) | Event::Apply(object) | Event::Delete(object)) => {
                        for key in keys(&object) {
                            shared.add(&key);
                        }
                        shared.pump();
                    }
                    Ok(Event::Init | Event::InitDone) => {}
                    Err(error) => complain(C::PLURAL, &error),
                }
            }
        }));
        self
    }

    /// On each change of another kind's object, reconciles the object that owns it as its controller.
    #[must_use]
    pub fn owns<C: Resource>(self, watcher: Watcher<C>) -> Self {
        self.watches(watcher, |child| {
            let metadata = child.metadata();
            let is_ours = |owner: &&crate::OwnerReference| {
                owner.controller && owner.api_version == K::API_VERSION && owner.kind == K::KIND
            };
            let owner = metadata.owner_references.iter().find(is_ours);
            owner.map_or_else(Vec::new, |owner| {
                vec![Key {
                    namespace: metadata.namespace.clone(),
                    name: owner.name.clone(),
                }]
            })
        })
    }

    /// Reconciles, for ever. The function receives the object's name and its last known state; none if it is
    /// gone. Its error is printed to standard error, and the object is reconciled again.
    ///
    /// # Errors
    /// None, for now: the controller retries after errors.
    pub async fn run<F, R, E>(mut self, reconcile: F) -> Result<(), Error>
    where
        F: Fn(Key, Option<Rc<K>>) -> R + 'static,
        R: Future<Output = Result<Action, E>> + 'static,
        E: fmt::Display,
    {
        self.shared.state.borrow_mut().concurrency = self.limits.concurrency;
        let shared = self.shared.clone();
        let limits = self.limits;
        *self.shared.start.borrow_mut() = Some(Rc::new(move |key, object| {
            let work = reconcile(key.clone(), object);
            let shared = shared.clone();
            spawn(async move {
                let outcome = work.await.map_err(|error| complain(&key, &error));
                shared.done(&key, outcome.ok(), limits);
                shared.pump();
            });
        }));
        for related in self.related.drain(..) {
            spawn(related);
        }
        loop {
            match self.watcher.next().await {
                Ok(event) => {
                    self.shared.take(event);
                    self.shared.pump();
                }
                Err(error) => complain(K::PLURAL, &error),
            }
        }
    }
}

fn complain(what: impl fmt::Display, error: &dyn fmt::Display) {
    eprintln!("{what}: {error}");
}

impl<K: Resource> Shared<K> {
    /// Applies an event of the watch.
    fn take(&self, event: Event<K>) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        match event {
            Event::Init => state.round = state.round.wrapping_add(1),
            Event::InitApply(object) => {
                let round = state.round;
                let entry = state.entries.entry(Key::of(&object)).or_insert(Entry::new());
                entry.round = round;
                let is_known = entry.object.as_ref().is_some_and(|known| {
                    known.metadata().resource_version == object.metadata().resource_version
                        && known.metadata().uid == object.metadata().uid
                });
                if !is_known {
                    let key = Key::of(&object);
                    entry.object = Some(Rc::new(object));
                    state.add(&key);
                }
            }
            Event::InitDone => {
                state.is_listed = true;
                let mut gone = Vec::new();
                for (key, entry) in &mut state.entries {
                    if entry.round != state.round && entry.object.take().is_some() {
                        gone.push(key.clone());
                    }
                }
                for key in gone {
                    state.add(&key);
                }
            }
            Event::Apply(object) => {
                let (key, round) = (Key::of(&object), state.round);
                let entry = state.entries.entry(key.clone()).or_insert(Entry::new());
                entry.object = Some(Rc::new(object));
                entry.round = round;
                state.add(&key);
            }
            Event::Delete(object) => {
                let key = Key::of(&object);
                if let Some(entry) = state.entries.get_mut(&key) {
                    entry.object = None;
                    state.add(&key);
                }
            }
        }
    }

    fn add(&self, key: &Key) {
        self.state.borrow_mut().add(key);
    }

    /// Starts as many reconciles as may run.
    fn pump(&self) {
        let Some(start) = self.start.borrow().clone() else {
            return;
        };
        while let Some((key, object)) = self.state.borrow_mut().next() {
            start(key, object);
        }
    }

    /// Applies the outcome of a reconcile: none if it failed.
    fn done(self: &Rc<Self>, key: &Key, outcome: Option<Action>, limits: Limits) {
        let mut state = self.state.borrow_mut();
        state.running -= 1;
        let Some(entry) = state.entries.get_mut(key) else {
            return;
        };
        entry.is_running = false;
        let delay = match outcome {
            Some(action) => {
                entry.failures = 0;
                action.requeue_after
            }
            None => {
                entry.failures += 1;
                Some(doubled(limits.retry_first, entry.failures - 1, limits.retry_max))
            }
        };
        if entry.is_queued {
            // A change came meanwhile, so another run follows, whatever this one asked for.
            state.queue.push_back(key.clone());
        } else if let Some(delay) = delay {
            entry.timer = entry.timer.wrapping_add(1);
            entry.has_timer = true;
            let (shared, key, timer) = (self.clone(), key.clone(), entry.timer);
            spawn(async move {
                sleep(delay).await;
                shared.elapsed(&key, timer);
            });
        } else if entry.object.is_none() {
            state.entries.remove(key);
        }
    }

    fn elapsed(&self, key: &Key, timer: u32) {
        let is_due = |entry: &Entry<K>| entry.has_timer && entry.timer == timer;
        if self.state.borrow().entries.get(key).is_some_and(is_due) {
            self.add(key);
            self.pump();
        }
    }
}

impl<K> Keys<K> {
    /// Queues the key. If it is being reconciled, it runs once more afterwards.
    fn add(&mut self, key: &Key) {
        let entry = self.entries.entry(key.clone()).or_insert(Entry::new());
        entry.has_timer = false;
        if entry.is_queued {
            return;
        }
        entry.is_queued = true;
        if !entry.is_running {
            self.queue.push_back(key.clone());
        }
    }

    /// The next key to reconcile, if one may start. None before the first list is complete.
    fn next(&mut self) -> Option<(Key, Option<Rc<K>>)> {
        if !self.is_listed || self.running >= self.concurrency {
            return None;
        }
        let key = self.queue.pop_front()?;
        let entry = self.entries.get_mut(&key)?;
        entry.is_queued = false;
        entry.is_running = true;
        self.running += 1;
        let object = entry.object.clone();
        Some((key, object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::tests::Widget;
    use crate::http::Request;
    use crate::testing::{Body, Host};

    type Log = Rc<RefCell<Vec<String>>>;

    fn said(log: &Log) -> String {
        std::mem::take(&mut *log.borrow_mut()).join(", ")
    }

    /// A controller that records its calls, sends `GET /<name>`, and obeys the status: 200 is success, 202
    /// success and another run after a second, anything else an error.
    fn controller(concurrency: usize) -> (Host, Log) {
        let host = Host::new();
        let log = Log::default();
        let inside = log.clone();
        spawn(async move {
            let controller = Controller::new(Api::<Widget>::namespaced("ns")).concurrency(concurrency);
            let _ = controller
                .run(move |key, widget| {
                    let size = widget.map_or("gone".to_string(), |widget| widget.size.to_string());
                    inside.borrow_mut().push(format!("{} {size}", key.name));
                    async move {
                        match Request::new("GET", format!("/{}", key.name))
                            .send()
                            .await?
                            .head
                            .status()
                        {
                            200 => Ok(Action::await_change()),
                            202 => Ok(Action::requeue_after(Duration::from_secs(1))),
                            code => Err(Error::from_answer(code, b"on purpose")),
                        }
                    }
                })
                .await;
        });
        host.settle();
        (host, log)
    }

    fn document(name: &str, resource_version: u32, size: u32) -> String {
        format!(
            r#"{{"metadata":{{"namespace":"ns","name":"{name}","resourceVersion":"{resource_version}"}},"size":{size}}}"#
        )
    }

    fn list(host: &Host, items: &[String]) {
        let items = items.join(",");
        let list = format!(r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#);
        host.request().unwrap().answer(200, &[], list.as_bytes());
    }

    fn event(body: &Body, kind: &str, object: &str) {
        body.piece(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").as_bytes());
    }

    /// Takes the oldest request, which is for `uri` or a watch.
    fn asked(host: &Host, uri: &str) -> crate::testing::PendingRequest {
        let request = host.request().unwrap();
        assert!(request.uri().starts_with(uri), "{} is not {uri}", request.uri());
        request
    }

    #[test]
    fn every_listed_object_has_its_turn_and_so_has_every_change() {
        let (host, log) = controller(4);
        list(&host, &[document("a", 1, 10), document("b", 2, 20)]);
        assert_eq!(said(&log), "a 10, b 20");
        let body = asked(&host, "/apis").begin(200, &[]);
        asked(&host, "/a").answer(200, &[], b"");
        asked(&host, "/b").answer(200, &[], b"");
        event(&body, "MODIFIED", &document("b", 10, 21));
        event(&body, "DELETED", &document("a", 11, 10));
        assert_eq!(said(&log), "b 21, a gone");
        assert!(host.delay().is_none());
    }

    #[test]
    fn changes_during_a_turn_lead_to_one_more_with_the_last_state() {
        let (host, log) = controller(4);
        list(&host, &[document("a", 1, 10)]);
        let body = asked(&host, "/apis").begin(200, &[]);
        event(&body, "MODIFIED", &document("a", 10, 11));
        event(&body, "MODIFIED", &document("a", 11, 12));
        assert_eq!(said(&log), "a 10");
        asked(&host, "/a").answer(200, &[], b"");
        assert_eq!(said(&log), "a 12");
        asked(&host, "/a").answer(200, &[], b"");
        assert_eq!(said(&log), "");
    }

    #[test]
    fn no_more_turns_at_a_time_than_allowed() {
        let (host, log) = controller(1);
        list(&host, &[document("a", 1, 10), document("b", 2, 20)]);
        assert_eq!(said(&log), "a 10");
        let _body = asked(&host, "/apis").begin(200, &[]);
        asked(&host, "/a").answer(200, &[], b"");
        assert_eq!(said(&log), "b 20");
    }

    #[test]
    fn waits_twice_as_long_after_each_error_and_begins_anew_after_success() {
        let (host, log) = controller(1);
        list(&host, &[document("a", 1, 10)]);
        let body = asked(&host, "/apis").begin(200, &[]);
        for milliseconds in [200, 400, 800] {
            asked(&host, "/a").answer(500, &[], b"");
            let delay = host.delay().unwrap();
            assert_eq!(delay.milliseconds(), milliseconds);
            delay.elapse();
        }
        asked(&host, "/a").answer(200, &[], b"");
        assert_eq!(said(&log), "a 10, a 10, a 10, a 10");
        event(&body, "MODIFIED", &document("a", 10, 11));
        asked(&host, "/a").answer(500, &[], b"");
        assert_eq!(host.delay().unwrap().milliseconds(), 200);
    }

    #[test]
    fn a_change_overtakes_the_timer() {
        let (host, log) = controller(1);
        list(&host, &[document("a", 1, 10)]);
        let body = asked(&host, "/apis").begin(200, &[]);
        asked(&host, "/a").answer(202, &[], b"");
        let overtaken = host.delay().unwrap();
        assert_eq!(overtaken.milliseconds(), 1000);
        event(&body, "MODIFIED", &document("a", 10, 11));
        asked(&host, "/a").answer(200, &[], b"");
        assert_eq!(said(&log), "a 10, a 11");
        overtaken.elapse();
        assert_eq!(said(&log), "");
    }

    #[test]
    fn a_renewed_list_is_news_only_where_it_differs() {
        let (host, log) = controller(4);
        list(
            &host,
            &[document("a", 1, 10), document("b", 2, 20), document("c", 3, 30)],
        );
        let body = asked(&host, "/apis").begin(200, &[]);
        for name in ["/a", "/b", "/c"] {
            asked(&host, name).answer(200, &[], b"");
        }
        said(&log);
        event(&body, "BOOKMARK", r#"{"metadata":{"resourceVersion":"11"}}"#);
        body.piece(b"{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n");
        list(&host, &[document("a", 1, 10), document("b", 12, 21)]);
        assert_eq!(said(&log), "b 21, c gone");
    }

    #[test]
    fn an_object_that_is_gone_is_forgotten() {
        let (host, log) = controller(4);
        list(&host, &[document("a", 1, 10)]);
        let body = asked(&host, "/apis").begin(200, &[]);
        asked(&host, "/a").answer(200, &[], b"");
        event(&body, "DELETED", &document("a", 2, 10));
        asked(&host, "/a").answer(200, &[], b"");
        assert_eq!(said(&log), "a 10, a gone");
        event(&body, "DELETED", &document("a", 2, 10));
        assert_eq!(said(&log), "");
        event(&body, "ADDED", &document("a", 3, 11));
        assert_eq!(said(&log), "a 11");
    }

    #[test]
    fn a_child_that_changes_is_a_turn_for_its_owner() {
        let host = Host::new();
        let log = Log::default();
        let inside = log.clone();
        spawn(async move {
            let owned = Watcher::new(Api::<Widget>::namespaced("children"));
            let _ = Controller::new(Api::<Widget>::namespaced("ns"))
                .owns(owned)
                .run(move |key, _| {
                    inside.borrow_mut().push(key.to_string());
                    async { Ok::<_, Error>(Action::await_change()) }
                })
                .await;
        });
        host.settle();
        list(&host, &[]);
        let child =
            br#"{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"namespace":"ns","name":"child",
            "ownerReferences":[{"apiVersion":"example.com/v1","kind":"Widget","name":"other","uid":"1"},
            {"apiVersion":"example.com/v1","kind":"Widget","name":"a","uid":"2","controller":true}]}}]}"#;
        asked(&host, "/apis/example.com/v1/namespaces/children").answer(200, &[], child);
        assert_eq!(said(&log), "ns/a");
    }
}
