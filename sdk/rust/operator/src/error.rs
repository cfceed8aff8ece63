//! Why a request has no usable answer.

use std::fmt;

use serde::Deserialize;

/// The API server's own description of a failure.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Status {
    /// HTTP status.
    pub code: u16,
    /// For programs, such as `NotFound`.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// Why a request has no usable answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused the request.
    Api(Status),
    /// A document does not have the expected form.
    Json(serde_json::Error),
    /// The host violated the contract.
    Protocol(&'static str),
}

impl Error {
    /// The HTTP status, if the API server refused.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Error::Api(status) => Some(status.code),
            Error::Json(_) | Error::Protocol(_) => None,
        }
    }

    /// Whether the object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether another writer was faster: the object changed, or exists already.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the requested version is too old: the remedy is to list again.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// Made from an answer whose status means failure. Its body need not be a Status.
    pub(crate) fn from_answer(code: u16, body: &[u8]) -> Self {
        let mut status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
            message: String::from_utf8_lossy(body).into_owned(),
            ..Status::default()
        });
        status.code = code;
        Error::Api(status)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Api(status) if status.message.is_empty() => {
                write!(formatter, "HTTP status {}", status.code)
            }
            Error::Api(status) => formatter.write_str(&status.message),
            Error::Json(error) => error.fmt(formatter),
            Error::Protocol(message) => formatter.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Error::Json(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let body = br#"{"kind":"Status","reason":"NotFound","message":"pods \"a\" not found","code":404}"#;
        let error = Error::from_answer(404, body);
        assert!(error.is_not_found());
        assert_eq!(error.to_string(), "pods \"a\" not found");
    }

    #[test]
    fn a_refusal_in_plain_text_keeps_its_words_too() {
        let error = Error::from_answer(502, b"bad gateway");
        assert_eq!(error.code(), Some(502));
        assert_eq!(error.to_string(), "bad gateway");
        assert_eq!(Error::from_answer(500, b"").to_string(), "HTTP status 500");
    }
}
