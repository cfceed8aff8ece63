//! Errors as the users of hangar read them.
#![forbid(unsafe_code)]

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    Limit,
}

#[derive(Debug)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

pub fn invalid<T>(message: impl Into<String>) -> Result<T> {
    Err(Error { kind: Kind::Invalid, message: message.into() })
}

pub fn limit<T>(message: impl Into<String>) -> Result<T> {
    Err(Error { kind: Kind::Limit, message: message.into() })
}

pub fn ends_early(error: &wasmparser::Error) -> bool {
    error.message() == "unexpected end-of-file"
}

impl From<wasmparser::Error> for Error {
    fn from(error: wasmparser::Error) -> Self {
        let text = error.message();
        let what = if ends_early(&error) {
            "ends early"
        } else if text.ends_with("integer too large") || text.ends_with("representation too long") {
            "number too large"
        } else {
            text
        };
        let message = format!("{what} at offset {}", error.offset());
        Error { kind: Kind::Invalid, message }
    }
}
