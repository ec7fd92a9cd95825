//! Follows the log while it grows, as a node would, and keeps every entry: trimming takes nothing from a run.

use crate::truth::Truth;
use sereno_core::{
    State,
    entry::{Head, SealedEntry},
    ids::Position,
};
use sereno_log::{
    Log, LogError, Read, Snapshot,
    etcd::{self, EtcdLog, EtcdOptions},
};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle};

const PAGE_BYTES: usize = 1 << 20;
const PAUSE: Duration = Duration::from_millis(200);

/// A task that follows.
#[derive(Debug)]
pub struct Tail {
    task: JoinHandle<Result<(), String>>,
    stop: watch::Sender<Option<Position>>,
}

/// Where the entries are kept in a run's folder.
pub fn export(dir: &Path) -> PathBuf {
    dir.join("log.entries")
}

async fn open(url: &str) -> Result<EtcdLog, String> {
    let url = url.parse().map_err(|error: etcd::UrlError| error.to_string())?;
    let options = EtcdOptions { compact: false, ..EtcdOptions::default() };
    etcd::open(&url, options).await.map_err(|error| error.to_string())
}

impl Tail {
    /// Begins at the log's first entry.
    ///
    /// # Errors
    /// In words.
    pub async fn start(url: &str, dir: &Path) -> Result<Self, String> {
        let log = open(url).await?;
        let file = File::create(export(dir)).map_err(|error| error.to_string())?;
        let (stop, until) = watch::channel(None);
        Ok(Self { task: tokio::spawn(follow(log, file, until)), stop })
    }

    /// Ends once it has this position.
    ///
    /// # Errors
    /// What kept it from following.
    pub async fn finish(self, position: Position) -> Result<(), String> {
        self.stop.send_replace(Some(position));
        self.task.await.map_err(|error| error.to_string())?
    }
}

async fn follow(
    log: EtcdLog,
    mut file: File,
    until: watch::Receiver<Option<Position>>,
) -> Result<(), String> {
    let mut last = Position(0);
    loop {
        if until.borrow().is_some_and(|until| last >= until) {
            return Ok(());
        }
        match log.read(last.next(), PAGE_BYTES).await {
            Ok(Read::Entries(entries)) if entries.is_empty() => log.wait_past(last).await,
            Ok(Read::Entries(entries)) => {
                for entry in entries {
                    write(&mut file, &entry).map_err(|error| error.to_string())?;
                    last = entry.head.position;
                }
            }
            Ok(Read::Trimmed { first }) => {
                return Err(format!("the log begins at {first}, and only {last} was read"));
            }
            Err(LogError::Unreachable(_)) => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn write(file: &mut File, entry: &SealedEntry) -> io::Result<()> {
    let length = u32::try_from(entry.bytes.len()).map_err(io::Error::other)?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&entry.bytes)
}

/// Applies an export.
///
/// # Errors
/// In words: it cannot be read, or an entry does not follow.
pub fn read_export(dir: &Path) -> Result<Truth, String> {
    let path = export(dir);
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (mut truth, mut rest) = (Truth::default(), bytes.as_slice());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let entry = after.get(..length).ok_or("the export is cut short")?;
        truth.add(entry)?;
        rest = &after[length..];
    }
    Ok(truth)
}

/// What etcd has when all is over.
pub struct End<L = EtcdLog> {
    log: L,
    snapshot: Option<Snapshot>,
    /// Where the log ends: behind the snapshot.
    pub head: Head,
}

impl End {
    /// As it is reached from the harness.
    ///
    /// # Errors
    /// In words.
    pub async fn read(url: &str) -> Result<Self, String> {
        let log = open(url).await?;
        let told = |error: LogError| error.to_string();
        let snapshot = log.latest_snapshot().await.map_err(told)?;
        let head = log.head().await.map_err(told)?;
        Ok(Self { log, snapshot, head })
    }
}

impl<L: Log> End<L> {
    /// Its entries are those that were read on the way, and its snapshot is what they lead to.
    ///
    /// # Errors
    /// With the promise that is broken.
    pub async fn compare(&self, truth: &Truth) -> Result<(), String> {
        if let Some(snapshot) = &self.snapshot {
            let position = snapshot.head.position;
            let state = State::from_snapshot(&snapshot.bytes).map_err(|error| error.to_string())?;
            if truth.outcome_chain(position.0) != Some(state.outcome_chain()) {
                return Err(format!("S1: the snapshot at {position} is another state"));
            }
        }
        let mut next = Position(1);
        while next <= self.head.position {
            let read = self.log.read(next, PAGE_BYTES).await;
            match read.map_err(|error| error.to_string())? {
                Read::Trimmed { first } => next = first,
                Read::Entries(entries) if entries.is_empty() => {
                    return Err(format!("S5: etcd has lost what it had from {next} on"));
                }
                Read::Entries(entries) => {
                    let ours = entries.iter().filter(|it| it.head.position <= self.head.position);
                    for entry in ours {
                        next = entry.head.position.next();
                        if !truth.is_same(entry) {
                            let position = entry.head.position;
                            return Err(format!("S5: {position} is another entry now"));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sereno_core::{
        entry::{Body, Entry},
        ids::LogId,
        testing::{self, Scribe},
    };
    use sereno_log::memory::{Memory, MemoryLog};

    /// A log of some acquires on the lock of this name.
    fn written(resource: &str) -> Scribe {
        let mut scribe = Scribe::new();
        scribe.keep = true;
        scribe.entries.push(Scribe::genesis());
        for number in 1..=4 {
            let acquire = testing::acquire(resource, number);
            scribe.run(sereno_core::command::Operation::Acquire(acquire));
        }
        scribe
    }

    fn seal(entry: &Entry) -> SealedEntry {
        entry.seal(LogId([7; 16]))
    }

    fn truth(scribe: &Scribe) -> Truth {
        let mut truth = Truth::default();
        scribe.entries.iter().for_each(|entry| truth.add(&seal(entry).bytes).unwrap());
        truth
    }

    /// A log that has these entries.
    fn log(entries: &[Entry]) -> MemoryLog {
        let mut memory = Memory::default();
        for sealed in entries.iter().map(seal) {
            let head = memory.head();
            memory.append(&head, &sealed);
        }
        MemoryLog::of(memory)
    }

    fn compare(entries: &[Entry], snapshot: Option<&Scribe>, head: Head) -> Result<(), String> {
        let snapshot = snapshot.map(|scribe| Snapshot {
            head: scribe.state.head(),
            bytes: scribe.state.to_snapshot().into(),
        });
        let end = End { log: log(entries), snapshot, head };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(end.compare(&truth(&written("a"))))
    }

    #[test]
    fn a_log_that_is_what_was_read_passes() {
        let scribe = written("a");
        assert_eq!(compare(&scribe.entries, None, scribe.state.head()), Ok(()));
        assert_eq!(compare(&scribe.entries, Some(&scribe), scribe.state.head()), Ok(()));
    }

    #[test]
    fn a_log_that_has_lost_its_end_is_found() {
        let scribe = written("a");
        let error = compare(&scribe.entries[..3], None, scribe.state.head()).unwrap_err();
        assert!(error.starts_with("S5") && error.contains("lost"), "{error}");
    }

    #[test]
    fn a_log_in_which_an_entry_is_another_now_is_found() {
        let (scribe, other) = (written("a"), written("b"));
        let error = compare(&other.entries, None, scribe.state.head()).unwrap_err();
        assert!(error.starts_with("S5") && error.contains("another entry"), "{error}");
    }

    #[test]
    fn a_snapshot_of_another_state_is_found() {
        let (scribe, other) = (written("a"), written("b"));
        let error = compare(&scribe.entries, Some(&other), scribe.state.head()).unwrap_err();
        assert!(error.starts_with("S1"), "{error}");
        // Nor is one that lies beyond what was read any state of this log.
        let mut later = written("a");
        later.write(500, Body::Batch(Vec::new()));
        let error = compare(&scribe.entries, Some(&later), scribe.state.head()).unwrap_err();
        assert!(error.starts_with("S1"), "{error}");
    }
}
