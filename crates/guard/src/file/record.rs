//! The memory of a fence, as text: people may look at it.

use super::{FileFenceError, error::doing};
use crate::TOKEN_MAX;
use std::{fmt, fs, io, path::Path};

const HEAD: &str = "sereno-fence 1";
const TAIL: &str = "end";
/// A key and a few words.
const BYTES_MAX: u64 = 4_096;

/// The highest token that was shown, and under which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: Option<String>,
    pub(super) token: u64,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}")?;
        if let Some(key) = &self.key {
            writeln!(f, "key {key}")?;
        }
        writeln!(f, "token {}", self.token)?;
        writeln!(f, "{TAIL}")
    }
}

impl Record {
    /// `None` where there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, FileFenceError> {
        let reading = doing("reading", path);
        let damaged = |why: &str| FileFenceError::Damaged { path: path.into(), why: why.into() };
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(reading(error)),
            Ok(metadata) if metadata.len() > BYTES_MAX => return Err(damaged("it is too long")),
            Ok(_) => {}
        }
        let bytes = fs::read(path).map_err(reading)?;
        let text = str::from_utf8(&bytes).map_err(|_| damaged("it is no text"))?;
        parse(text).map(Some).map_err(damaged)
    }
}

/// Exactly what is written, or nothing.
fn parse(text: &str) -> Result<Record, &'static str> {
    let mut lines = text.strip_suffix('\n').ok_or("it is cut off")?.split('\n').peekable();
    if lines.next() != Some(HEAD) {
        return Err("it does not begin as a fence of this version");
    }
    let key =
        lines.next_if(|line| line.starts_with("key ")).map(|line| line["key ".len()..].to_string());
    let token = lines.next().and_then(|line| line.strip_prefix("token "));
    let token = token.and_then(|token| token.parse().ok()).ok_or("it has no token")?;
    let record = Record { key, token };
    let is_whole = lines.next() == Some(TAIL) && lines.next().is_none();
    match is_whole && (1..=TOKEN_MAX).contains(&token) && record.to_string() == text {
        true => Ok(record),
        false => Err("it is not what was written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for key in [None, Some("default/lock/a b".to_string())] {
            let record = Record { key, token: 17 };
            assert_eq!(parse(&record.to_string()), Ok(record));
        }
    }

    #[test]
    fn nothing_else_is() {
        let good = Record { key: Some("k".into()), token: 17 }.to_string();
        for length in 0..good.len() {
            assert!(parse(&good[..length]).is_err(), "cut to {length}");
        }
        for bad in [
            "sereno-fence 2\ntoken 17\nend\n",
            "sereno-fence 1\ntoken 0\nend\n",
            "sereno-fence 1\ntoken 017\nend\n",
            "sereno-fence 1\ntoken -1\nend\n",
            "sereno-fence 1\ntoken 17\nend\nend\n",
            "sereno-fence 1\ntoken 17\nkey k\nend\n",
            "sereno-fence 1\ntoken 9007199254740992\nend\n",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
