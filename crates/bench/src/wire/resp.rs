//! Redis' protocol (RESP2) as far as `SET`, `EVALSHA`, `SCRIPT LOAD`, `PING` and `CONFIG GET` need it.

use super::{Framing, http::write_number};
use std::ops::Range;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK` and the like.
    Simple(Range<usize>),
    /// `-ERR …`
    Error(Range<usize>),
    /// `:1`
    Number(i64),
    /// A string of known length.
    Bulk(Range<usize>),
    /// Nothing.
    Nil,
    /// Several.
    Array(Vec<Reply>),
}

/// Answers in RESP2.
#[derive(Debug)]
pub struct Resp;

impl Framing for Resp {
    type Frame = Reply;

    fn frame(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
        reply(bytes, 0)
    }
}

fn reply(bytes: &[u8], start: usize) -> Result<Option<(Reply, usize)>, String> {
    let Some(line) = line(bytes, start) else { return Ok(None) };
    let next = line.end + 2;
    let number = || -> Result<i64, String> {
        let text = std::str::from_utf8(&bytes[line.start + 1..line.end]).unwrap_or_default();
        text.parse().map_err(|_| format!("no number: {text:?}"))
    };
    let rest = line.start + 1..line.end;
    let whole = match bytes[line.start] {
        b'+' => (Reply::Simple(rest), next),
        b'-' => (Reply::Error(rest), next),
        b':' => (Reply::Number(number()?), next),
        b'$' => match usize::try_from(number()?) {
            Err(_) => (Reply::Nil, next),
            Ok(length) if bytes.len() < next + length + 2 => return Ok(None),
            Ok(length) => (Reply::Bulk(next..next + length), next + length + 2),
        },
        b'*' => {
            let (mut items, mut next) = (Vec::new(), next);
            for _ in 0..number()? {
                let Some((item, end)) = reply(bytes, next)? else { return Ok(None) };
                items.push(item);
                next = end;
            }
            (Reply::Array(items), next)
        }
        other => return Err(format!("no RESP: it begins with byte {other}")),
    };
    Ok(Some(whole))
}

/// The line that begins at `start`, without its end.
fn line(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let length = bytes.get(start..)?.windows(2).position(|pair| pair == b"\r\n")?;
    (length > 0).then_some(start..start + length)
}

/// Writes one command.
pub fn write_command(output: &mut Vec<u8>, words: &[&[u8]]) {
    output.push(b'*');
    write_number(output, words.len());
    for word in words {
        output.extend_from_slice(b"\r\n$");
        write_number(output, word.len());
        output.extend_from_slice(b"\r\n");
        output.extend_from_slice(word);
    }
    output.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &[u8]) -> Reply {
        for end in 0..text.len() {
            assert_eq!(Resp::frame(&text[..end]).unwrap(), None, "{end} bytes of {text:?}");
        }
        let (reply, length) = Resp::frame(text).unwrap().unwrap();
        assert_eq!(length, text.len());
        reply
    }

    #[test]
    fn answers_are_whole_only_with_their_last_byte() {
        assert_eq!(whole(b"+OK\r\n"), Reply::Simple(1..3));
        assert_eq!(whole(b"-NOSCRIPT no\r\n"), Reply::Error(1..12));
        assert_eq!(whole(b":-7\r\n"), Reply::Number(-7));
        assert_eq!(whole(b"$-1\r\n"), Reply::Nil);
        assert_eq!(whole(b"$3\r\nabc\r\n"), Reply::Bulk(4..7));
        assert_eq!(
            whole(b"*2\r\n:1\r\n$1\r\nx\r\n"),
            Reply::Array(vec![Reply::Number(1), Reply::Bulk(12..13)])
        );
        assert!(Resp::frame(b"HTTP/1.1\r\n").is_err());
    }

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut output = Vec::new();
        write_command(&mut output, &[b"SET", b"k", b"v"]);
        assert_eq!(output, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
    }
}
