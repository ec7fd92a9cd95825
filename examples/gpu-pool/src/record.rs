//! The record: what happened, a line each. Every worker appends to the same file, and so does the observer. It is how
//! the report knows, without asking the service, whether more was ever in use than there is.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It asks for its GPUs.
    Asked,
    /// It has them, and begins to use them.
    Began,
    /// It has stopped using them, and gives them back next.
    Ended,
    /// It did not get them.
    Refused,
    /// Its reservation was lost, and it has stopped using them.
    Lost,
    /// It was killed, and is dead.
    Killed,
    /// The service shows that it waits.
    Queued,
    /// The service shows its reservation.
    Held,
    /// Until then the service showed one of the two, and at the next look neither.
    Gone,
}

const WORDS: [(What, &str); 9] = [
    (What::Asked, "asked"),
    (What::Began, "began"),
    (What::Ended, "ended"),
    (What::Refused, "refused"),
    (What::Lost, "lost"),
    (What::Killed, "killed"),
    (What::Queued, "queued"),
    (What::Held, "held"),
    (What::Gone, "gone"),
];

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Microseconds, on one clock for all processes of the machine.
    pub at_us: u64,
    /// What happened.
    pub what: What,
    /// Whose job.
    pub tenant: String,
    /// Which one.
    pub job: String,
    /// How many GPUs it is about.
    pub gpus: u64,
    /// The token of its grant; 0 where there is none. Tokens rise, so they tell in which order the service granted.
    pub fence: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_us, what, tenant, job, gpus, fence } = self;
        let (_, word) = WORDS.iter().find(|(it, _)| it == what).ok_or(fmt::Error)?;
        write!(f, "{at_us} {word} {tenant} {job} {gpus} {fence}")
    }
}

/// A line that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a line of a record: {0:?}")]
pub struct NoLine(String);

impl FromStr for Line {
    type Err = NoLine;

    fn from_str(text: &str) -> Result<Self, NoLine> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let line = || {
            let [at_us, word, tenant, job, gpus, fence] = words.as_slice() else { return None };
            Some(Self {
                at_us: at_us.parse().ok()?,
                what: WORDS.iter().find(|(_, it)| it == word)?.0,
                tenant: (*tenant).into(),
                job: (*job).into(),
                gpus: gpus.parse().ok()?,
                fence: fence.parse().ok()?,
            })
        };
        line().ok_or_else(|| NoLine(text.into()))
    }
}

/// The file. It is opened for appending, and a line is one write, so lines of several processes do not mix.
#[derive(Debug)]
pub struct Record(File);

impl Record {
    /// Opens it, and makes it where there is none.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append_to(path: &Path) -> io::Result<Self> {
        OpenOptions::new().create(true).append(true).open(path).map(Self)
    }

    /// Notes what happens now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, what: What, of: &Who, fence: u64) -> io::Result<()> {
        self.note_at(now_us(), what, of, fence)
    }

    /// Notes what happened at another moment.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note_at(&mut self, at_us: u64, what: What, of: &Who, fence: u64) -> io::Result<()> {
        let Who { tenant, job, gpus } = of;
        let (tenant, job, gpus) = (tenant.clone(), job.clone(), *gpus);
        let line = Line { at_us, what, tenant, job, gpus, fence };
        self.0.write_all(format!("{line}\n").as_bytes())
    }
}

/// Whose line it is.
#[derive(Clone, Debug)]
pub struct Who {
    /// The tenant.
    pub tenant: String,
    /// The job.
    pub job: String,
    /// Its GPUs.
    pub gpus: u64,
}

/// Why a record cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// A line of it.
    #[error("{0}: {1}")]
    Line(PathBuf, NoLine),
}

/// All lines, in the order of time. One that is being written at this moment does not count yet.
///
/// # Errors
/// The file cannot be read, or is no record.
pub fn read(path: &Path) -> Result<Vec<Line>, Unreadable> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Unreadable::File(path.into(), error))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().map(str::parse).collect::<Result<Vec<Line>, _>>();
    let mut lines = lines.map_err(|wrong| Unreadable::Line(path.into(), wrong))?;
    lines.sort_by_key(|line| line.at_us);
    Ok(lines)
}

/// A clock that all processes of this machine share and that nobody sets.
pub fn now_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_the_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        std::fs::write(&path, "18446744073709551615 killed a late 4 7\n").unwrap();
        let mut record = Record::append_to(&path).unwrap();
        let who = Who { tenant: "a".into(), job: "a-1".into(), gpus: 4 };
        let all = WORDS.map(|(what, _)| what);
        all.iter().for_each(|what| record.note(*what, &who, 9).unwrap());
        record.0.write_all(b"7 as").unwrap();
        let lines = read(&path).unwrap();
        let found: Vec<What> = lines.iter().map(|line| line.what).collect();
        assert_eq!(found, [&all[..], &[What::Killed]].concat());
        let first = &lines[0];
        let found = (first.tenant.as_str(), first.job.as_str(), first.gpus, first.fence);
        assert_eq!(found, ("a", "a-1", 4, 9));
    }

    #[test]
    fn what_is_no_line_is_told() {
        for text in ["", "1 asked a b 2", "1 dreamt a b 2 0", "x asked a b 2 0"] {
            let error = text.parse::<Line>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
