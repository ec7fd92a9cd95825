//! HTTP/1.1 as far as a load generator needs it: requests with a body of known length, answers likewise.

use super::Framing;
use std::ops::Range;

const HEADERS_MAX: usize = 32;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Where its body lies.
    pub body: Range<usize>,
    /// The server will close this connection.
    pub close: bool,
}

/// Answers framed by `content-length`.
#[derive(Debug)]
pub struct Http;

impl Framing for Http {
    type Frame = Answer;

    fn frame(bytes: &[u8]) -> Result<Option<(Answer, usize)>, String> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let start = match response.parse(bytes).map_err(|error| format!("no HTTP: {error}"))? {
            httparse::Status::Complete(start) => start,
            httparse::Status::Partial => return Ok(None),
        };
        let status = response.code.unwrap_or_default();
        let (mut length, mut close) = (None, false);
        for header in response.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = std::str::from_utf8(header.value).unwrap_or_default();
                length = Some(text.parse::<usize>().map_err(|_| "a broken content-length")?);
            } else if header.name.eq_ignore_ascii_case("connection") {
                close = header.value.eq_ignore_ascii_case(b"close");
            }
        }
        let Some(length) = length.or((status == 204).then_some(0)) else {
            return Err("an answer without content-length".into());
        };
        let end = start + length;
        Ok((bytes.len() >= end).then_some((Answer { status, body: start..end, close }, end)))
    }
}

/// The head of a request up to the value of `content-length`.
#[derive(Clone, Debug)]
pub struct Head(Vec<u8>);

impl Head {
    /// `method path` on `host`.
    pub fn new(method: &str, path: &str, host: &str) -> Self {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: "
        );
        Self(text.into_bytes())
    }

    /// Writes the whole request.
    pub fn write(&self, output: &mut Vec<u8>, body: &[u8]) {
        output.extend_from_slice(&self.0);
        write_number(output, body.len());
        output.extend_from_slice(b"\r\n\r\n");
        output.extend_from_slice(body);
    }
}

/// Writes `number` in decimal digits.
pub(super) fn write_number(output: &mut Vec<u8>, number: usize) {
    use std::io::Write;
    let _ = write!(output, "{number}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

    #[test]
    fn an_answer_is_whole_only_with_its_last_byte() {
        for end in 0..TEXT.len() {
            assert_eq!(Http::frame(&TEXT[..end]).unwrap(), None, "{end} bytes");
        }
        let (answer, length) = Http::frame(TEXT).unwrap().unwrap();
        assert_eq!(length, TEXT.len());
        assert_eq!((answer.status, answer.close), (409, true));
        assert_eq!(&TEXT[answer.body], b"{}");
    }

    #[test]
    fn what_is_no_answer_is_said() {
        assert!(Http::frame(b"+OK\r\n").unwrap_err().contains("no HTTP"));
        assert!(Http::frame(b"HTTP/1.1 200 OK\r\n\r\n").unwrap_err().contains("content-length"));
        assert!(
            Http::frame(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n")
                .unwrap_err()
                .contains("broken")
        );
    }

    #[test]
    fn a_request_names_its_length() {
        let mut output = Vec::new();
        Head::new("POST", "/v1/x", "h:1").write(&mut output, b"{\"a\":1}");
        let text = String::from_utf8(output).unwrap();
        assert!(text.starts_with("POST /v1/x HTTP/1.1\r\nhost: h:1\r\n"), "{text}");
        assert!(text.ends_with("content-length: 7\r\n\r\n{\"a\":1}"), "{text}");
    }
}
