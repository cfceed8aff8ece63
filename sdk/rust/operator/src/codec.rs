//! The bytes of requests and answers: bincode 1.3 with its default options, that is, little-endian numbers
//! and 64-bit lengths. Two small structures, so written by hand.

use crate::http::Request;

/// `{method, uri, headers, body}`; a header's values are a list of byte strings.
pub(crate) fn encode_request(request: &Request) -> Vec<u8> {
    let mut message = Vec::with_capacity(64 + request.uri.len() + request.body.len());
    put_bytes(&mut message, request.method.as_bytes());
    put_bytes(&mut message, request.uri.as_bytes());
    put_length(&mut message, request.headers.len());
    for (name, value) in &request.headers {
        put_bytes(&mut message, name.as_bytes());
        put_length(&mut message, 1);
        put_bytes(&mut message, value.as_bytes());
    }
    put_bytes(&mut message, &request.body);
    message
}

fn put_bytes(message: &mut Vec<u8>, bytes: &[u8]) {
    put_length(message, bytes.len());
    message.extend_from_slice(bytes);
}

fn put_length(message: &mut Vec<u8>, length: usize) {
    message.extend_from_slice(&(length as u64).to_le_bytes());
}

/// Parses messages from front to back. Every method is `None` when the message ends too early.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn status(&mut self) -> Option<u16> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*bytes))
    }

    pub(crate) fn length(&mut self) -> Option<usize> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// All headers, one call of `each` per value.
    pub(crate) fn headers(&mut self, mut each: impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
        for _ in 0..self.length()? {
            let name = self.bytes()?;
            for _ in 0..self.length()? {
                each(name, self.bytes()?);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_hex(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn a_request_has_the_bytes_of_the_published_contract() {
        // As a controller built on the published fork of kube-rs sends it.
        let published = from_hex(concat!(
            "0300000000000000474554",
            "37000000000000002f617069732f616d7572616e742e696f2f76312f6e616d657370616365732f72696e67312f",
            "746573747265736f75726365732f72756e30",
            "0000000000000000",
            "0000000000000000"
        ));
        let request = Request::new("GET", "/apis/amurant.io/v1/namespaces/ring1/testresources/run0");
        assert_eq!(encode_request(&request), published);
    }

    #[test]
    fn headers_have_a_list_of_values_each() {
        let mut request = Request::new("PUT", "/x");
        request.headers.push(("a", "b".into()));
        request.body = b"{}".to_vec();
        let mut expected = from_hex("0300000000000000505554");
        expected.extend(from_hex("02000000000000002f78"));
        expected.extend(from_hex("0100000000000000010000000000000061"));
        expected.extend(from_hex("0100000000000000010000000000000062"));
        expected.extend(from_hex("02000000000000007b7d"));
        assert_eq!(encode_request(&request), expected);
    }

    #[test]
    fn a_message_that_ends_early_is_nothing_wherever_it_ends() {
        let mut whole = 200u16.to_le_bytes().to_vec();
        put_length(&mut whole, 1);
        put_bytes(&mut whole, b"name");
        put_length(&mut whole, 2);
        put_bytes(&mut whole, b"one");
        put_bytes(&mut whole, b"two");

        let read = |message: &[u8]| {
            let mut reader = Reader(message);
            let mut values = Vec::new();
            reader.status()?;
            reader.headers(|name, value| values.push((name.to_vec(), value.to_vec())))?;
            Some(values)
        };
        let values = read(&whole).unwrap();
        assert_eq!(values[1], (b"name".to_vec(), b"two".to_vec()));
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), None, "ends after {end} bytes");
        }
    }

    #[test]
    fn a_length_beyond_memory_is_nothing() {
        assert_eq!(Reader(&[0xff; 16]).bytes(), None);
    }
}
