//! Changes to the objects of one kind, from a list on and without a gap.

use std::borrow::Cow;
use std::time::Duration;
use std::vec;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::{Api, ListParams, Query, Resource};
use crate::error::{Error, Status};
use crate::http::{Request, Streaming};
use crate::sleep;

/// One event.
#[derive(Debug, PartialEq)]
pub enum Event<K> {
    /// A list begins, for the first time or again: objects that do not follow are gone.
    Init,
    /// One of the existing objects.
    InitApply(K),
    /// The list is complete.
    InitDone,
    /// The object was created or changed.
    Apply(K),
    /// The object was deleted; this was its last state.
    Delete(K),
}

/// Lists the objects, then watches them: it continues from its last version when the server ends the watch,
/// and lists again when that version is too old. It does not keep the objects.
///
/// It sends no time limit with a watch, so the server chooses how long one lasts, half an hour at least.
/// Each end would wake the module for nothing.
pub struct Watcher<K> {
    api: Api<K>,
    params: ListParams,
    state: State<K>,
    /// Failures in a row; they decide how long to wait before the next attempt.
    failures: u32,
    /// Whether no event has arrived since the last list.
    is_fresh: bool,
}

enum State<K> {
    Start,
    /// A page has to be fetched, the first one or that of the token.
    List {
        continue_token: String,
    },
    /// A page is being returned, object by object.
    Page {
        items: vec::IntoIter<K>,
        continue_token: String,
        resource_version: String,
    },
    /// A watch has to be started.
    Listed {
        resource_version: String,
    },
    Watching {
        stream: Streaming,
        resource_version: String,
        /// Whether this watch has delivered a line.
        has_lines: bool,
    },
}

/// A line of a watch. The object is parsed once its type is known.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The only field of a bookmark that is set.
#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
}

/// Objects per request of the initial list: bounds the memory for the list, which the module keeps.
const PAGE: u32 = 250;

impl<K: Resource> Watcher<K> {
    /// Watches all of `api`'s objects.
    #[must_use]
    pub fn new(api: Api<K>) -> Self {
        Watcher {
            api,
            params: ListParams {
                limit: PAGE,
                ..ListParams::default()
            },
            state: State::Start,
            failures: 0,
            is_fresh: true,
        }
    }

    /// Watches only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.params.label_selector = selector.into();
        self
    }

    /// Watches only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.params.field_selector = selector.into();
        self
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// An error is reported too, and is not the end: the next call waits for a while, longer after each
    /// error in a row, and retries.
    pub async fn next(&mut self) -> Result<Event<K>, Error> {
        loop {
            // Each arm leaves the state that is right if it fails.
            match std::mem::replace(&mut self.state, State::Start) {
                State::Start => {
                    self.back_off().await;
                    self.state = State::List {
                        continue_token: String::new(),
                    };
                    return Ok(Event::Init);
                }
                State::List { continue_token } => self.list(continue_token).await?,
                State::Page {
                    mut items,
                    continue_token,
                    resource_version,
                } => {
                    if let Some(item) = items.next() {
                        self.state = State::Page {
                            items,
                            continue_token,
                            resource_version,
                        };
                        return Ok(Event::InitApply(item));
                    }
                    if continue_token.is_empty() {
                        self.state = State::Listed { resource_version };
                        return Ok(Event::InitDone);
                    }
                    self.state = State::List { continue_token };
                }
                State::Listed { resource_version } => self.watch(resource_version).await?,
                State::Watching {
                    mut stream,
                    resource_version,
                    has_lines,
                } => {
                    let Some(line) = stream.line().await else {
                        self.failures = if has_lines { 0 } else { self.failures + 1 };
                        self.state = State::Listed { resource_version };
                        continue;
                    };
                    self.state = State::Watching {
                        stream,
                        resource_version,
                        has_lines: true,
                    };
                    if let Some(event) = self.take(&line)? {
                        return Ok(event);
                    }
                }
            }
        }
    }

    async fn list(&mut self, continue_token: String) -> Result<(), Error> {
        self.params.continue_token = continue_token;
        match self.api.list(&self.params).await {
            Ok(list) => {
                self.failures = 0;
                self.is_fresh = true;
                self.state = State::Page {
                    items: list.items.into_iter(),
                    continue_token: list.metadata.continue_token,
                    resource_version: list.metadata.resource_version,
                };
                Ok(())
            }
            // Reading the list took too long; it starts again.
            Err(error) if error.is_expired() && !self.params.continue_token.is_empty() => {
                self.failures += 1;
                Ok(())
            }
            Err(error) => {
                self.failures += 1;
                Err(error)
            }
        }
    }

    async fn watch(&mut self, resource_version: String) -> Result<(), Error> {
        self.state = State::Listed { resource_version };
        self.back_off().await;
        let State::Listed { resource_version } = &mut self.state else {
            unreachable!("nothing else runs meanwhile");
        };
        let mut query = Query::new(self.api.path());
        query.add("watch", "true");
        query.add("allowWatchBookmarks", "true");
        query.add("resourceVersion", resource_version);
        query.add("labelSelector", &self.params.label_selector);
        query.add("fieldSelector", &self.params.field_selector);
        let outcome = Request::new("GET", query.uri).stream().await;
        let error = match outcome {
            Ok(stream) if stream.head.status() == 200 => {
                self.state = State::Watching {
                    stream,
                    resource_version: std::mem::take(resource_version),
                    has_lines: false,
                };
                return Ok(());
            }
            Ok(stream) => {
                let code = stream.head.status();
                Error::from_answer(code, &stream.body().await)
            }
            Err(error) => error,
        };
        self.failed(error)
    }

    /// The event of a line, if it has one.
    fn take(&mut self, line: &[u8]) -> Result<Option<Event<K>>, Error> {
        let event = match self.read(line) {
            Ok(event) => event,
            Err(error) => {
                // The stream cannot be trusted any more; earlier lines count.
                if let State::Watching { resource_version, .. } = &mut self.state {
                    let resource_version = std::mem::take(resource_version);
                    self.state = State::Listed { resource_version };
                }
                return self.failed(error).map(|()| None);
            }
        };
        self.failures = 0;
        self.is_fresh = false;
        Ok(event)
    }

    fn read(&mut self, line: &[u8]) -> Result<Option<Event<K>>, Error> {
        let line: Line = serde_json::from_slice(line)?;
        let object = line.object.get();
        let (event, now) = match &*line.r#type {
            "ADDED" | "MODIFIED" => {
                let object: K = serde_json::from_str(object)?;
                let now = object.metadata().resource_version.clone();
                (Some(Event::Apply(object)), now)
            }
            "DELETED" => {
                let object: K = serde_json::from_str(object)?;
                let now = object.metadata().resource_version.clone();
                (Some(Event::Delete(object)), now)
            }
            "BOOKMARK" => {
                let bookmark: Bookmark = serde_json::from_str(object)?;
                (None, bookmark.metadata.resource_version)
            }
            "ERROR" => return Err(Error::Api(serde_json::from_str::<Status>(object)?)),
            _ => return Ok(None),
        };
        if let State::Watching { resource_version, .. } = &mut self.state {
            *resource_version = now;
        }
        Ok(event)
    }

    /// After an error of the watch: a version that is too old only means to list again, which is not an
    /// error, unless that version is the list's own.
    fn failed(&mut self, error: Error) -> Result<(), Error> {
        if error.is_expired() {
            self.failures += u32::from(self.is_fresh);
            self.state = State::Start;
            return Ok(());
        }
        self.failures += 1;
        Err(error)
    }

    async fn back_off(&self) {
        const FIRST: Duration = Duration::from_millis(500);
        const MAX: Duration = Duration::from_secs(60);
        if self.failures > 0 {
            sleep(doubled(FIRST, self.failures - 1, MAX)).await;
        }
    }
}

/// `first`, doubled `times` times, but at most `max`.
pub(crate) fn doubled(first: Duration, times: u32, max: Duration) -> Duration {
    first.saturating_mul(2u32.saturating_pow(times)).min(max)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::api::tests::Widget;
    use crate::spawn;
    use crate::testing::{Body, Host};

    type News = Rc<RefCell<Vec<String>>>;

    /// Watches, and records the events.
    fn watch() -> (Host, News) {
        let host = Host::new();
        let news = News::default();
        let inside = news.clone();
        spawn(async move {
            let mut watcher = Watcher::new(Api::<Widget>::namespaced("ns")).labels("a=b");
            loop {
                let line = match watcher.next().await {
                    Ok(Event::Init) => "init".into(),
                    Ok(Event::InitApply(widget)) => format!("there {}", widget.metadata.name),
                    Ok(Event::InitDone) => "done".into(),
                    Ok(Event::Apply(widget)) => format!("apply {}", widget.metadata.name),
                    Ok(Event::Delete(widget)) => format!("delete {}", widget.metadata.name),
                    Err(error) => format!("error {error}"),
                };
                inside.borrow_mut().push(line);
            }
        });
        host.settle();
        (host, news)
    }

    fn heard(news: &News) -> String {
        std::mem::take(&mut *news.borrow_mut()).join(", ")
    }

    const PATH: &str = "/apis/example.com/v1/namespaces/ns/widgets";

    fn listed(host: &Host) {
        host.request().unwrap().answer(
            200,
            &[],
            br#"{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a","resourceVersion":"3"}}]}"#,
        );
    }

    fn watching(host: &Host, from: &str) -> Body {
        let request = host.request().unwrap();
        assert_eq!(
            request.uri(),
            format!("{PATH}?watch=true&allowWatchBookmarks=true&resourceVersion={from}&labelSelector=a%3Db")
        );
        assert!(request.is_stream());
        request.begin(200, &[])
    }

    fn line(kind: &str, name: &str, resource_version: &str) -> Vec<u8> {
        format!(
            "{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"{resource_version}\"}}}}}}\n"
        )
        .into_bytes()
    }

    #[test]
    fn lists_then_watches_from_there_and_goes_on_from_the_last_event() {
        let (host, news) = watch();
        listed(&host);
        assert_eq!(heard(&news), "init, there a, done");
        let body = watching(&host, "5");
        body.piece(&line("MODIFIED", "a", "6"));
        body.piece(&line("DELETED", "a", "7"));
        assert_eq!(heard(&news), "apply a, delete a");
        body.piece(&line("BOOKMARK", "", "9"));
        body.end();
        assert_eq!(heard(&news), "");
        watching(&host, "9");
    }

    #[test]
    fn pages_are_one_list() {
        let (host, news) = watch();
        let first = host.request().unwrap();
        assert_eq!(first.uri(), format!("{PATH}?labelSelector=a%3Db&limit=250"));
        first.answer(
            200,
            &[],
            br#"{"metadata":{"resourceVersion":"5","continue":"t/1"},"items":[{"metadata":{"name":"a"}}]}"#,
        );
        let second = host.request().unwrap();
        assert_eq!(
            second.uri(),
            format!("{PATH}?labelSelector=a%3Db&limit=250&continue=t%2F1")
        );
        second.answer(
            200,
            &[],
            br#"{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"b"}}]}"#,
        );
        assert_eq!(heard(&news), "init, there a, there b, done");
    }

    const EXPIRED: &[u8] =
        b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"old\"}}\n";

    #[test]
    fn lists_again_at_once_when_the_place_is_too_far_back() {
        for in_stream in [true, false] {
            let (host, news) = watch();
            listed(&host);
            let body = watching(&host, "5");
            body.piece(&line("ADDED", "b", "6"));
            heard(&news);
            if in_stream {
                body.piece(EXPIRED);
            } else {
                body.end();
                host.request().unwrap().answer(410, &[], br#"{"message":"old"}"#);
            }
            assert_eq!(heard(&news), "init", "in the stream: {in_stream}");
            assert!(host.delay().is_none());
            listed(&host);
            watching(&host, "5");
        }
    }

    #[test]
    fn waits_when_the_place_of_a_new_list_is_too_far_back() {
        let (host, news) = watch();
        listed(&host);
        watching(&host, "5").piece(EXPIRED);
        assert!(host.request().is_none());
        host.delay().unwrap().elapse();
        listed(&host);
        watching(&host, "5");
        assert_eq!(heard(&news), "init, there a, done, init, there a, done");
    }

    #[test]
    fn waits_longer_after_each_failure_in_a_row() {
        let (host, news) = watch();
        for milliseconds in [500, 1000, 2000] {
            host.request().unwrap().answer(503, &[], b"away");
            let delay = host.delay().unwrap();
            assert_eq!(delay.milliseconds(), milliseconds);
            assert!(host.request().is_none());
            delay.elapse();
        }
        listed(&host);
        assert_eq!(
            heard(&news),
            "init, error away, init, error away, init, error away, init, there a, done"
        );
        watching(&host, "5").end();
        assert_eq!(host.delay().unwrap().milliseconds(), 500);
    }

    #[test]
    fn a_line_that_makes_no_sense_ends_the_watch_but_not_the_watcher() {
        let (host, news) = watch();
        listed(&host);
        heard(&news);
        let body = watching(&host, "5");
        body.piece(&line("ADDED", "b", "6"));
        body.piece(b"nonsense\n");
        assert!(heard(&news).starts_with("apply b, error "));
        body.piece(&line("ADDED", "c", "7"));
        host.delay().unwrap().elapse();
        watching(&host, "6");
        assert_eq!(heard(&news), "");
    }
}
