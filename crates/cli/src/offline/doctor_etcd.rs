//! `sereno doctor --log`: a log in etcd, looked at without changing it, whether or not nodes use it.

use super::{
    doctor::{Diagnosis, not_examined},
    etcd::{EtcdArgs, Examined},
    replay::{PAGE_BYTES, Source},
};
use crate::failure::Failure;
use sereno_core::{
    entry::{Entry, EntryError, EntryHash, SealedEntry},
    ids::Position,
};
use sereno_log::{LogError, Read, etcd::EtcdUrl};

/// Nodes may trim the log, and replace snapshots, only so often while one looks.
const LOOKS: usize = 3;

/// Findings about entries beyond this many are not told.
const FINDINGS_MAX: usize = 100;

/// All that `doctor` says of the log at this address.
pub(super) fn examine(args: &EtcdArgs, url: &EtcdUrl) -> Result<Diagnosis, Failure> {
    let failed = |error: LogError| not_examined(&url.to_string(), error);
    let mut looks = 1;
    loop {
        let mut diagnosis = Diagnosis::of_log(url.to_string());
        let log = match args.examine(url)? {
            Ok(log) => log,
            Err(LogError::Damaged(what)) => {
                diagnosis.found(true, "etcd", what);
                return Ok(diagnosis);
            }
            Err(error) => return Err(failed(error)),
        };
        diagnosis.examine_etcd(&log).map_err(failed)?;
        // A prefix that nothing was ever written under is most likely mistyped, and nothing to call sound.
        if diagnosis.position == 0 && !diagnosis.has_damage() {
            return Err(not_examined(&url.to_string(), format!("there is no log at {url}")));
        }
        let may_be_stale = diagnosis.has_damage() && looks < LOOKS;
        if !may_be_stale || !log.has_moved().map_err(failed)? {
            return Ok(diagnosis);
        }
        looks += 1;
    }
}

impl Diagnosis {
    fn examine_etcd(&mut self, log: &Examined) -> Result<(), LogError> {
        let head = log.head();
        self.in_use = log.in_use;
        (self.position, self.first) = (head.position.0, log.first().0);
        if self.position == 0 {
            return Ok(());
        }
        self.log_id = Some(head.log_id.to_hex());
        for kept in &log.report.snapshots {
            self.snapshots.push(kept.head.position.0);
            let place = format!("snapshot of position {}", kept.head.position);
            if kept.snapshot.is_none() {
                self.found(true, &*place, "its chunks are not what was saved");
            }
            if kept.head.log_id != head.log_id || kept.head.position > head.position {
                self.found(true, place, "it is not of this log");
            }
        }
        self.check_entries(log)?;
        self.examine_replay(log);
        Ok(())
    }

    /// Every entry up to the head is there and follows on the one before. That its bytes have its hash is seen by whoever
    /// reads it.
    fn check_entries(&mut self, log: &Examined) -> Result<(), LogError> {
        let head = log.head();
        let (mut due, mut previous) = (log.first(), None);
        while due <= head.position && self.findings.len() < FINDINGS_MAX {
            let entries = match log.read(due, PAGE_BYTES) {
                Ok(Read::Entries(entries)) if !entries.is_empty() => entries,
                Ok(_) => {
                    self.found(true, format!("entry {due}"), "it is missing");
                    return Ok(());
                }
                Err(LogError::Damaged(what)) => {
                    self.found(true, "etcd", what);
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            for entry in entries.iter().take_while(|it| it.head.position <= head.position) {
                self.check_entry(due, entry, previous);
                self.entries += 1;
                (due, previous) = (due.next(), Some(entry.head.hash));
            }
        }
        if previous.is_some_and(|hash| hash != head.hash) && due > head.position {
            self.found(true, "head", "its hash is not that of the last entry");
        }
        Ok(())
    }

    fn check_entry(&mut self, due: Position, entry: &SealedEntry, previous: Option<EntryHash>) {
        let place = format!("entry {due}");
        match Entry::decode(&entry.bytes) {
            Ok(decoded) => {
                if decoded.position != due || decoded.epoch != entry.head.epoch {
                    self.found(true, &*place, "it says another position or epoch than its head");
                }
                if previous.is_some_and(|hash| hash != decoded.previous) {
                    self.found(true, place, "it does not chain to the one before");
                }
            }
            // A newer program's entry is not damage, but this one cannot judge it.
            Err(EntryError::Version(version)) => {
                self.found(false, place, format!("schema version {version} is not known here"));
            }
            Err(error) => self.found(true, place, error.to_string()),
        }
    }
}
