//! What is looked at before a log is trusted: the same for `open`, which refuses at the first damage, and for
//! `inspect`, which lists all of it.

use super::{
    create, database, entries,
    failure::Doing,
    folder,
    inspect::{Finding, SnapshotReport},
    reader::in_transaction,
    side::{self, Mark, SideFile, SlotState, Slots},
    snapshots,
    state::LogState,
};
use crate::LogError;
use rusqlite::Connection;
use sereno_core::{
    entry::{Entry, EntryError, EntryHash},
    ids::Position,
};
use std::path::Path;

/// Findings beyond this many are only counted.
const FINDINGS_MAX: usize = 100;

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Whatever can change what is read.
    Start,
    /// Also the chain of the entries' contents, which a node checks as it replays.
    Full,
}

/// What was found.
#[derive(Default)]
pub(super) struct Examined {
    pub(super) state: Option<LogState>,
    pub(super) entries: u64,
    pub(super) snapshots: Vec<SnapshotReport>,
    pub(super) findings: Vec<Finding>,
    beyond: usize,
}

impl Examined {
    fn add(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.beyond += 1;
        }
    }

    /// Damage becomes a finding; an error that is none (a disk that cannot be read) ends the examination.
    fn keep<T>(&mut self, result: Result<T, LogError>) -> Result<Option<T>, LogError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(LogError::Damaged(what)) => {
                self.add(Finding::damage(&what));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn finish(mut self) -> Self {
        if self.beyond > 0 {
            self.findings.push(Finding::damage(&format!("log.db: {} findings more", self.beyond)));
        }
        self
    }
}

/// The state of a log that is sound; creates it where nothing is yet, or finishes a creation that was cut.
pub(super) fn at_start(dir: &Path) -> Result<LogState, LogError> {
    let slots = side::read(dir)?;
    if is_new(dir, &slots, database::open_reader)? {
        create::create(dir, LogState::NEW, None)?;
        return Ok(LogState::NEW);
    }
    let examined = {
        let connection = database::open_reader(dir)?;
        examine(&connection, &slots, Depth::Start)?
    };
    let damages: Vec<String> =
        examined.findings.iter().filter(|it| it.is_damage()).map(Finding::to_string).collect();
    if !damages.is_empty() {
        return Err(LogError::Damaged(damages.join("; ")));
    }
    let state = examined.state.expect("a log without damage has a state");
    if slots.as_ref().and_then(side::newest).is_none() {
        assert_eq!(state.changes, 0, "a used log without HEAD is damaged");
        SideFile::create(dir, &Mark::of(&state))?;
    }
    Ok(state)
}

/// How a log is opened for reading.
pub(super) type Open = fn(&Path) -> Result<Connection, LogError>;

/// True if no log was ever finished here. Looks at the files' sizes first: SQLite deletes the WAL of an empty
/// database when it opens it.
pub(super) fn is_new(dir: &Path, slots: &Slots, open: Open) -> Result<bool, LogError> {
    if slots.is_none() && folder::has_content(dir, "log.db-journal") {
        // SQLite writes one when it puts a new file into WAL mode, and never again. Only the writer can roll it
        // back.
        return Ok(true);
    }
    if folder::has_content(dir, database::FILE) {
        return Ok(slots.is_none() && database::is_blank(&open(dir)?)?);
    }
    for witness in [side::FILE, database::WAL_FILE] {
        if folder::has_content(dir, witness) {
            let what = format!("log.db: it is missing or empty, but {witness} is there");
            return Err(LogError::Damaged(what));
        }
    }
    Ok(true)
}

/// Looks at everything in one reading transaction. `slots` were read before it began: a log that is being
/// written is never behind them.
pub(super) fn examine(
    connection: &Connection,
    slots: &Slots,
    depth: Depth,
) -> Result<Examined, LogError> {
    let mut examined = Examined::default();
    let result = in_transaction(connection, |connection| {
        let found = check_file(connection, depth, &mut examined);
        examined.keep(found)?;
        let state = LogState::load(connection);
        examined.state = examined.keep(state)?;
        let Some(state) = examined.state else { return Ok(()) };
        let found = check_entries(connection, &state, depth, &mut examined);
        examined.keep(found)?;
        let found = check_snapshots(connection, &state, &mut examined);
        examined.keep(found)?;
        let found = check_side(connection, &state, slots, &mut examined);
        examined.keep(found)?;
        Ok(())
    });
    examined.keep(result)?;
    Ok(examined.finish())
}

/// The file as such, and SQLite's own structure: also where nothing is read, for the next write would trust it.
fn check_file(
    connection: &Connection,
    depth: Depth,
    examined: &mut Examined,
) -> Result<(), LogError> {
    let doing = "checking log.db";
    let mode = database::journal_mode(connection)?;
    if mode != "wal" {
        let what = format!("log.db, header: the journal mode is {mode}, not wal");
        examined.add(Finding::damage(&what));
    }
    for (name, expected) in
        [("application_id", database::APPLICATION_ID), ("user_version", database::SCHEMA_VERSION)]
    {
        let found = database::pragma(connection, name)?;
        if found != expected {
            let what = format!("log.db, header: {name} is {found}, not {expected}");
            examined.add(Finding::damage(&what));
        }
    }
    let check = match depth {
        Depth::Start => "PRAGMA quick_check(20)",
        Depth::Full => "PRAGMA integrity_check(20)",
    };
    let mut select = connection.prepare(check).doing(doing)?;
    let mut rows = select.query([]).doing(doing)?;
    while let Some(row) = rows.next().doing(doing)? {
        let line: String = row.get(0).doing(doing)?;
        if line != "ok" {
            examined.add(Finding::damage(&format!("log.db, structure: {line}")));
        }
    }
    Ok(())
}

/// Every entry from the first to the head, none missing, none beyond.
fn check_entries(
    connection: &Connection,
    state: &LogState,
    depth: Depth,
    examined: &mut Examined,
) -> Result<(), LogError> {
    let mut expected = state.first;
    let mut previous: Option<EntryHash> = None;
    let mut last: Option<EntryHash> = None;
    // From the very first row: one before `first` has no business there.
    entries::scan(connection, state, Position(0), |key, entry| {
        if key < entries::key(expected) || key > entries::key(state.head.position) {
            let what = format!("log.db, entry {key}: it lies outside the log");
            examined.add(Finding::damage(&what));
            return Ok(true);
        }
        if key > entries::key(expected) {
            let what = format!("log.db, entry {expected}: it is missing, next is {key}");
            examined.add(Finding::damage(&what));
            previous = None;
        }
        expected = Position(key as u64).next();
        last = None;
        if let Some(entry) = examined.keep(entry)? {
            examined.entries += 1;
            last = Some(entry.head.hash);
            if depth == Depth::Full {
                check_contents(&entry, previous, examined);
            }
        }
        previous = last;
        Ok(true)
    })?;
    if expected != state.head.position.next() {
        let what = format!(
            "log.db, entry {expected}: it is missing, and all up to the head, {}",
            state.head.position
        );
        examined.add(Finding::damage(&what));
    } else if last.is_some_and(|hash| hash != state.head.hash) {
        let what = "log.db, table state: the head's hash is not that of the last entry";
        examined.add(Finding::damage(what));
    }
    Ok(())
}

/// What an entry says of itself, and the hash of the one before that it carries.
fn check_contents(
    entry: &sereno_core::entry::SealedEntry,
    previous: Option<EntryHash>,
    examined: &mut Examined,
) {
    let position = entry.head.position;
    let mut damage =
        |what: String| examined.add(Finding::damage(&format!("log.db, entry {position}: {what}")));
    match Entry::decode(&entry.bytes) {
        Ok(decoded) => {
            if decoded.position != position || decoded.epoch != entry.head.epoch {
                damage(format!(
                    "it says position {}, epoch {}; its head says epoch {}",
                    decoded.position, decoded.epoch, entry.head.epoch
                ));
            }
            if previous.is_some_and(|hash| hash != decoded.previous) {
                damage("it does not chain to the one before".into());
            }
        }
        // A newer program's entry is not damage, but this one cannot judge it.
        Err(EntryError::Version(version)) => examined.add(Finding::note(&format!(
            "log.db, entry {position}: schema version {version} is not known here"
        ))),
        Err(error) => damage(error.to_string()),
    }
}

fn check_snapshots(
    connection: &Connection,
    state: &LogState,
    examined: &mut Examined,
) -> Result<(), LogError> {
    let stored = snapshots::list(connection, state)?;
    let mut newest_sound = Position(0);
    for snapshot in stored {
        let check = snapshot.check(connection);
        let sound = examined.keep(check)?.is_some();
        let head = snapshot.head;
        let place = format!("log.db, snapshot of position {}", head.position);
        if head.position > state.head.position || head.log_id != state.head.log_id {
            examined.add(Finding::damage(&format!("{place}: it is not of this log")));
        } else if head.position >= state.first {
            let entry = entries::load(connection, state, head.position);
            if examined.keep(entry)?.flatten().is_some_and(|entry| entry.head != head) {
                examined.add(Finding::damage(&format!("{place}: the entry there is another")));
            }
        }
        if sound {
            newest_sound = newest_sound.max(head.position);
        }
        examined.snapshots.push(SnapshotReport { head, bytes: snapshot.length, sound });
    }
    if newest_sound.next() < state.first {
        examined.add(Finding::damage(&format!(
            "log.db: entries before {} are trimmed, but no sound snapshot covers them",
            state.first
        )));
    }
    Ok(())
}

/// The log has all that `HEAD` tells of.
fn check_side(
    connection: &Connection,
    state: &LogState,
    slots: &Slots,
    examined: &mut Examined,
) -> Result<(), LogError> {
    let Some(slots) = slots else {
        if state.changes > 0 {
            examined.add(Finding::damage("HEAD: it is missing, though the log has been used"));
        }
        return Ok(());
    };
    let newest = side::newest(slots).map(|(_, mark)| mark);
    for (index, slot) in slots.iter().enumerate() {
        if *slot == SlotState::Unsound && newest.is_some() {
            let what = format!("HEAD, slot {index}: its check fails; the other slot counts");
            examined.add(Finding::note(&what));
        }
    }
    let Some(mark) = newest else {
        if state.changes > 0 {
            examined.add(Finding::damage("HEAD: no slot is sound, though the log has been used"));
        }
        return Ok(());
    };
    if mark.changes > state.changes || mark.position > state.head.position {
        examined.add(Finding::damage(&format!(
            "log.db: its end is missing: it stops at position {} (change {}), and HEAD tells of \
             position {} (change {})",
            state.head.position, state.changes, mark.position, mark.changes
        )));
        return Ok(());
    }
    let there = if mark.position == state.head.position {
        Some(state.head.hash)
    } else if mark.position < state.first {
        None // Trimmed, and covered by a sound snapshot or reported.
    } else {
        let entry = entries::load(connection, state, mark.position);
        examined.keep(entry)?.flatten().map(|entry| entry.head.hash)
    };
    if there.is_some_and(|hash| hash != mark.hash) {
        examined.add(Finding::damage(&format!(
            "HEAD: at position {} it tells of another entry than log.db has there",
            mark.position
        )));
    }
    Ok(())
}
