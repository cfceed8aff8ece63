//! A host for tests: the test takes the module's calls here, and answers them.
//!
//! ```
//! use hangar_operator::{http::Request, spawn, testing::Host};
//!
//! let host = Host::new();
//! spawn(async {
//!     let response = Request::new("GET", "/version").send().await.unwrap();
//!     assert_eq!(response.head.status(), 200);
//! });
//! host.settle();
//! host.request().unwrap().answer(200, &[], b"{}");
//! ```
//!
//! Like the rest of the crate it belongs to one thread, and each test has a thread of its own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::marker::PhantomData;

use crate::codec::Reader;
use crate::{call, executor};

thread_local! {
    static STATE: RefCell<State> = const { RefCell::new(State::new()) };
}

struct State {
    last_id: u64,
    requests: VecDeque<PendingRequest>,
    delays: VecDeque<PendingDelay>,
}

impl State {
    const fn new() -> Self {
        State {
            last_id: 0,
            requests: VecDeque::new(),
            delays: VecDeque::new(),
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

pub(crate) fn request(message: &[u8], is_stream: bool) -> u64 {
    let mut reader = Reader(message);
    let mut text = || String::from_utf8(reader.bytes().expect("a whole request").to_vec()).expect("text");
    let (method, uri) = (text(), text());
    reader.headers(|_, _| {}).expect("headers");
    let body = reader.bytes().expect("a body").to_vec();
    STATE.with_borrow_mut(|state| {
        let id = state.next_id();
        state.requests.push_back(PendingRequest {
            id,
            method,
            uri,
            body,
            is_stream,
        });
        id
    })
}

pub(crate) fn delay(milliseconds: u64) -> u64 {
    STATE.with_borrow_mut(|state| {
        let id = state.next_id();
        state.delays.push_back(PendingDelay { id, milliseconds });
        id
    })
}

/// The replacement of the host on this thread.
pub struct Host(PhantomData<*const ()>);

impl Host {
    /// A host that has received no call yet.
    #[must_use]
    #[allow(clippy::new_without_default)] // It clears what was there; that is no default.
    pub fn new() -> Self {
        STATE.with_borrow_mut(|state| {
            state.requests.clear();
            state.delays.clear();
        });
        Host(PhantomData)
    }

    /// Runs all tasks until they wait.
    pub fn settle(&self) {
        executor::run_until_stalled();
    }

    /// The oldest request that was not taken yet.
    #[must_use]
    pub fn request(&self) -> Option<PendingRequest> {
        STATE.with_borrow_mut(|state| state.requests.pop_front())
    }

    /// The oldest delay that was not taken yet.
    #[must_use]
    pub fn delay(&self) -> Option<PendingDelay> {
        STATE.with_borrow_mut(|state| state.delays.pop_front())
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub struct PendingRequest {
    id: u64,
    method: String,
    uri: String,
    body: Vec<u8>,
    is_stream: bool,
}

impl PendingRequest {
    /// The method, such as `GET`.
    #[must_use]
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Path and query.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether the answer's body should arrive piece by piece.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Answers, and runs all tasks until they wait.
    pub fn answer(self, status: u16, headers: &[(&str, &str)], body: &[u8]) {
        let is_stream = self.is_stream;
        let begun = self.begin(status, headers);
        if is_stream {
            begun.piece(body);
            begun.end();
        } else {
            wake(begun.id, Some(body), true);
        }
    }

    /// Answers with a body that follows later.
    pub fn begin(self, status: u16, headers: &[(&str, &str)]) -> Body {
        let mut head = status.to_le_bytes().to_vec();
        head.extend((headers.len() as u64).to_le_bytes());
        for (name, value) in headers {
            head.extend((name.len() as u64).to_le_bytes());
            head.extend(name.as_bytes());
            head.extend(1u64.to_le_bytes());
            head.extend((value.len() as u64).to_le_bytes());
            head.extend(value.as_bytes());
        }
        wake(self.id, Some(&head), false);
        Body { id: self.id }
    }
}

/// The body of an answer to a streaming request.
pub struct Body {
    id: u64,
}

impl Body {
    /// Sends a piece, and runs all tasks until they wait.
    pub fn piece(&self, bytes: &[u8]) {
        wake(self.id, Some(bytes), false);
    }

    /// Ends the body.
    pub fn end(self) {
        wake(self.id, None, true);
    }
}

/// A delay that has not elapsed.
#[derive(Debug)]
pub struct PendingDelay {
    id: u64,
    milliseconds: u64,
}

impl PendingDelay {
    /// Its length.
    #[must_use]
    pub fn milliseconds(&self) -> u64 {
        self.milliseconds
    }

    /// Ends the delay.
    pub fn elapse(self) {
        wake(self.id, None, true);
    }
}

fn wake(id: u64, bytes: Option<&[u8]>, is_finished: bool) {
    call::answered(id, bytes.map(<[u8]>::to_vec), is_finished);
    executor::run_until_stalled();
}
