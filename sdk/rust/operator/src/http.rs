//! HTTP to the API server, through the host. Most controllers use [`Api`](crate::Api) instead.

use std::time::Duration;

use crate::abi;
use crate::call::Call;
use crate::codec::{Reader, encode_request};
use crate::error::Error;

/// A request. The host adds the server's address and the operator's credential.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: &'static str,
    /// Path and query.
    pub uri: String,
    /// Name, in lower case and only once, and value.
    pub headers: Vec<(&'static str, String)>,
    /// The body; may be empty.
    pub body: Vec<u8>,
}

impl Request {
    /// A request without headers and body.
    #[must_use]
    pub fn new(method: &'static str, uri: impl Into<String>) -> Self {
        Request {
            method,
            uri: uri.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// The same with a body.
    #[must_use]
    pub fn with_body(mut self, content_type: &str, body: Vec<u8>) -> Self {
        self.headers.push(("content-type", content_type.into()));
        self.body = body;
        self
    }

    /// Sends the request and waits for the whole answer. A status that means failure is an answer too.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the host's answer is not valid.
    pub async fn send(self) -> Result<Response, Error> {
        let mut call = Call::new(abi::request(&encode_request(&self), false));
        drop(self);
        let head = Head::new(call.next().await)?;
        let body = call.next().await.unwrap_or_default();
        Ok(Response { head, body })
    }

    /// Sends the request and waits for the answer's head; the body is read as it arrives.
    ///
    /// # Errors
    /// As [`send`](Request::send).
    pub async fn stream(self) -> Result<Streaming, Error> {
        let mut call = Call::new(abi::request(&encode_request(&self), true));
        drop(self);
        let head = Head::new(call.next().await)?;
        Ok(Streaming {
            head,
            call,
            rest: Vec::new(),
        })
    }
}

/// Status and headers of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    status: u16,
    message: Vec<u8>,
}

impl Head {
    fn new(message: Option<Vec<u8>>) -> Result<Self, Error> {
        const BROKEN: Error = Error::Protocol("the host's answer has no readable head");
        let message = message.ok_or(BROKEN)?;
        let mut reader = Reader(&message);
        let status = reader.status().ok_or(BROKEN)?;
        reader.headers(|_, _| {}).ok_or(BROKEN)?;
        Ok(Head { status, message })
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The first value of a header, if it is there and text. Names are in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = None;
        let mut reader = Reader(&self.message);
        reader.status()?;
        reader.headers(|key, value| {
            if found.is_none() && key == name.as_bytes() {
                found = Some(value);
            }
        })?;
        std::str::from_utf8(found?).ok()
    }

    /// The time that the header `retry-after` asks for, if it is in seconds.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.parse().ok().map(Duration::from_secs)
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer whose body is still arriving.
pub struct Streaming {
    /// Status and headers.
    pub head: Head,
    call: Call,
    /// The bytes after the last line that was returned.
    rest: Vec<u8>,
}

impl Streaming {
    /// The next line without its end, wherever the host cut the body; `None` after the last one.
    pub async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                return Some(self.take(end));
            }
            match self.call.next().await {
                Some(piece) if self.rest.is_empty() => self.rest = piece,
                Some(piece) => self.rest.extend(piece),
                None if self.rest.is_empty() => return None,
                None => return Some(std::mem::take(&mut self.rest)),
            }
        }
    }

    /// The rest of the body.
    pub async fn body(mut self) -> Vec<u8> {
        let mut body = self.rest;
        while let Some(piece) = self.call.next().await {
            body.extend(piece);
        }
        body
    }

    /// Removes the line that ends at `end`. A piece that is one line, as hosts send them, is not copied.
    fn take(&mut self, end: usize) -> Vec<u8> {
        let after = self.rest.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.rest, after);
        line.truncate(end);
        line
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::testing::Host;
    use crate::{executor, spawn};

    #[test]
    fn an_answer_has_status_headers_and_body() {
        let host = Host::new();
        let answer = Rc::new(RefCell::new(None));
        spawn({
            let answer = answer.clone();
            async move { *answer.borrow_mut() = Some(Request::new("GET", "/x").send().await.unwrap()) }
        });
        executor::run_until_stalled();

        let request = host.request().unwrap();
        assert_eq!((request.method(), request.uri()), ("GET", "/x"));
        assert!(!request.is_stream());
        request.answer(429, &[("retry-after", "3")], b"slow down");

        let answer = answer.take().unwrap();
        assert_eq!(answer.head.status(), 429);
        assert_eq!(answer.head.retry_after(), Some(Duration::from_secs(3)));
        assert_eq!(answer.head.header("x-none"), None);
        assert_eq!(answer.body, b"slow down");
    }

    #[test]
    fn lines_are_whole_however_the_body_is_cut() {
        for cuts in [
            vec!["a\n", "bc\n", "d"],
            vec!["a\nb", "c\nd"],
            vec!["a", "\n", "b", "c", "\nd"],
        ] {
            let host = Host::new();
            let lines = Rc::new(RefCell::new(Vec::new()));
            spawn({
                let lines = lines.clone();
                async move {
                    let mut stream = Request::new("GET", "/x").stream().await.unwrap();
                    while let Some(line) = stream.line().await {
                        lines.borrow_mut().push(String::from_utf8(line).unwrap());
                    }
                    lines.borrow_mut().push("end".into());
                }
            });
            executor::run_until_stalled();
            let request = host.request().unwrap();
            assert!(request.is_stream());
            let body = request.begin(200, &[]);
            for cut in &cuts {
                body.piece(cut.as_bytes());
            }
            body.end();
            assert_eq!(*lines.borrow(), ["a", "bc", "d", "end"], "{cuts:?}");
        }
    }

    #[test]
    fn a_head_that_is_cut_off_is_an_error() {
        assert!(matches!(Head::new(Some(vec![200])), Err(Error::Protocol(_))));
        assert!(matches!(Head::new(None), Err(Error::Protocol(_))));
    }
}
