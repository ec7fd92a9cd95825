//! The data folder: creation that was cut, restore, reading beside a server, examination.

use crate::common::{Fixture, all_in_wal, append, wait};
use sereno_core::{entry::Head, ids::Position};
use sereno_log::{
    Log, LogError, Read, Snapshot,
    conformance::Chain,
    sqlite::{self, Options, Severity},
};
use std::{fs, path::Path};

#[test]
fn opening_and_closing_an_empty_log_leaves_it_empty() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let dir = folder.path().join("new/deeper");
    for _ in 0..3 {
        let log = sqlite::open(&dir, Options::default()).expect("it opens");
        assert_eq!(wait(log.head()), Ok(Head::EMPTY));
        assert_eq!(wait(log.latest_snapshot()), Ok(None));
    }
    assert!(sqlite::inspect(&dir).expect("it can be examined").is_sound());
}

/// The same bytes in another file.
fn replace(path: &Path) -> std::io::Result<()> {
    let copy = path.with_extension("copy");
    fs::copy(path, &copy)?;
    fs::rename(copy, path)
}

#[test]
fn a_folder_that_is_taken_away_under_a_log_stops_it() {
    type Fault = fn(&Path) -> std::io::Result<()>;
    let faults: [(&str, Fault); 6] = [
        ("sereno.lock", |dir| fs::remove_dir_all(dir)),
        ("sereno.lock", |dir| fs::rename(dir, dir.with_file_name("elsewhere"))),
        ("sereno.lock", |dir| fs::remove_file(dir.join("sereno.lock"))),
        ("log.db-wal", |dir| fs::remove_file(dir.join("log.db-wal"))),
        ("log.db", |dir| replace(&dir.join("log.db"))),
        ("HEAD", |dir| replace(&dir.join("HEAD"))),
    ];
    for (file, fault) in faults {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let dir = folder.path().join("data");
        let log = sqlite::open(&dir, Options::default()).expect("it opens");
        wait(Chain::default().grow(&log, 3));
        assert_eq!(wait(log.flush()), Ok(()));
        fault(&dir).expect("it is done");
        let flushed = wait(log.flush());
        assert!(
            matches!(&flushed, Err(LogError::Storage(why)) if why.contains(file)),
            "{file}: {flushed:?}"
        );
        assert_eq!(wait(log.head()).map(drop), flushed, "it has stopped for good");
    }
}

#[test]
fn a_creation_that_was_cut_is_finished() {
    // Before anything was written into log.db.
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("log.db"), b"").expect("it writes");
    let log = sqlite::open(folder.path(), Options::default()).expect("it opens");
    assert_eq!(wait(log.head()), Ok(Head::EMPTY));
    drop(log);
    // A database without a schema.
    let folder = tempfile::tempdir().expect("a folder can be made");
    let database = rusqlite::Connection::open(folder.path().join("log.db")).expect("it opens");
    let mode: String =
        database.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).expect("it answers");
    assert_eq!(mode, "wal");
    drop(database);
    let log = sqlite::open(folder.path(), Options::default()).expect("it opens");
    assert_eq!(wait(log.head()), Ok(Head::EMPTY));
    drop(log);
    // Before HEAD was there, and with HEAD half written; the log has never been opened.
    let snapshot = snapshot_of(9);
    for head in [None, Some(0), Some(10), Some(8192)] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        sqlite::create_from_snapshot(folder.path(), &snapshot).expect("it restores");
        let file = folder.path().join("HEAD");
        match head {
            None => fs::remove_file(file).expect("it removes"),
            Some(length) => fs::write(file, vec![0; length]).expect("it writes"),
        }
        let log = sqlite::open(folder.path(), Options::default()).expect("it opens");
        assert_eq!(wait(log.head()), Ok(snapshot.head));
        append(&log, snapshot.head, 1);
    }
}

fn snapshot_of(count: usize) -> Snapshot {
    let mut chain = Chain::default();
    wait(chain.grow(&sereno_log::memory::MemoryLog::new(), count));
    chain.snapshot(count as u64, 600_000)
}

#[test]
fn a_restored_log_begins_after_its_snapshot() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let snapshot = snapshot_of(9);
    sqlite::create_from_snapshot(folder.path(), &snapshot).expect("it restores");
    let mut chain = Chain::default();
    wait(chain.grow(&sereno_log::memory::MemoryLog::new(), 9));
    for count in [9, 9, 12, 15] {
        let log = sqlite::open(folder.path(), Options::default()).expect("it opens");
        wait(async {
            assert_eq!(log.latest_snapshot().await, Ok(Some(snapshot.clone())));
            chain.grow(&log, count).await;
            chain.assert_is(&log, 10).await;
        });
    }
    let report = sqlite::inspect(folder.path()).expect("it can be examined");
    assert_eq!((report.entries, report.first), (6, Position(10)));
    assert!(report.findings.is_empty(), "{report:?}");
}

#[test]
fn nothing_is_restored_into_a_folder_with_something_in_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("precious"), b"1").expect("it writes");
    let refused = sqlite::create_from_snapshot(folder.path(), &snapshot_of(3));
    let Err(LogError::Refused(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("precious"), "{why}");
    assert_eq!(fs::read(folder.path().join("precious")).expect("it is there"), b"1");
    let fixture = Fixture::plain(3, all_in_wal());
    let refused = sqlite::create_from_snapshot(fixture.dir(), &snapshot_of(3));
    assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
    fixture.assert_whole("a log that was to be restored over");
}

#[test]
fn a_restore_that_was_cut_does_not_become_an_empty_log() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("RESTORING"), b"").expect("it writes");
    for _ in 0..2 {
        match sqlite::open(folder.path(), Options::default()).map(drop) {
            Err(LogError::Refused(why)) => assert!(why.contains("restore again"), "{why}"),
            result => panic!("{result:?}"),
        }
    }
    let again = sqlite::create_from_snapshot(folder.path(), &snapshot_of(3));
    assert!(matches!(again, Err(LogError::Refused(_))), "{again:?}");
}

#[test]
fn a_log_is_read_beside_its_server_as_of_one_moment() {
    let mut fixture = Fixture::full(Options { checkpoint_bytes: 40_000 });
    let log = fixture.open().expect("it opens");
    let backup = sqlite::open_read_only(fixture.dir()).expect("it opens beside");
    let (head, first) = (backup.head(), backup.first());
    assert_eq!(head, fixture.chain.head());
    let then = fixture.chain.clone();
    // The server goes on: appends, snapshots, trims, checkpoints.
    wait(async {
        fixture.chain.grow(&log, 300).await;
        for position in [200, 250] {
            log.save_snapshot(fixture.chain.snapshot(position, 400_000)).await.expect("it saves");
        }
        assert_eq!(log.trim(Position(190)).await, Ok(Position(191)));
        fixture.chain.grow(&log, 350).await;
    });
    assert_eq!(backup.head(), head);
    let read = backup.read(first, usize::MAX).expect("it reads");
    assert_eq!(read, Read::Entries(then.entries()[first.0 as usize - 1..].to_vec()));
    assert_eq!(backup.latest_snapshot(), Ok(fixture.snapshot.clone()));
    let heads = backup.snapshots().expect("it lists");
    assert_eq!(heads, [then.head_at(10), then.head_at(15)]);
    assert_eq!(backup.snapshot(heads[0]), Ok(Some(then.snapshot(10, 100))));
    assert_eq!(backup.snapshot(head), Ok(None));
    drop(backup);
    let now = sqlite::open_read_only(fixture.dir()).expect("it opens beside");
    assert_eq!((now.head(), now.first()), (fixture.chain.head(), Position(191)));
    drop((now, log));
    fixture.first = 191;
    fixture.snapshot = Some(fixture.chain.snapshot(250, 400_000));
    fixture.assert_whole("after a backup");
}

#[test]
fn backups_of_a_busy_log_are_never_behind_its_head_file() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let log = sqlite::open(folder.path(), Options { checkpoint_bytes: 30_000 }).expect("it opens");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut looks = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) || looks < 20 {
                sqlite::open_read_only(folder.path()).expect("it opens beside");
                let report = sqlite::inspect(folder.path()).expect("it can be examined");
                assert!(report.in_use && report.findings.is_empty(), "{report:?}");
                looks += 1;
            }
        });
        wait(Chain::default().grow(&log, 1_500));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn the_report_says_what_is_there() {
    let fixture = Fixture::full(all_in_wal());
    let report = sqlite::inspect(fixture.dir()).expect("it can be examined");
    assert_eq!(report.head, Some(fixture.chain.head()));
    assert_eq!(report.marked, Some(fixture.chain.head().position));
    assert_eq!((report.first, report.entries), (Position(8), 19));
    let snapshots: Vec<_> =
        report.snapshots.iter().map(|it| (it.head.position.0, it.bytes, it.sound)).collect();
    assert_eq!(snapshots, [(10, 100, true), (15, 6_000, true)]);
    assert!(!report.in_use && report.findings.is_empty(), "{report:?}");
    let log = fixture.open().expect("it opens");
    assert!(sqlite::inspect(fixture.dir()).expect("it can be examined").in_use);
    drop(log);
    // Damage in several places: all are told.
    let database = rusqlite::Connection::open(fixture.file("log.db")).expect("it opens");
    database
        .execute_batch(
            "UPDATE entries SET bytes = x'00' WHERE position IN (9, 20);
             DELETE FROM entries WHERE position = 25;
             UPDATE chunks SET bytes = x'00' WHERE key = (SELECT max(key) FROM chunks);",
        )
        .expect("it damages");
    drop(database);
    let report = sqlite::inspect(fixture.dir()).expect("it can be examined");
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Damage));
    let places: Vec<_> = report.findings.iter().map(|finding| finding.place.as_str()).collect();
    assert_eq!(
        places,
        [
            "log.db, entry 9",
            "log.db, entry 20",
            "log.db, entry 25",
            "log.db, snapshot of position 15"
        ]
    );
    assert_eq!(report.entries, 16);
}

#[test]
fn a_folder_without_a_log_is_no_log() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let refused = sqlite::open_read_only(folder.path()).map(|log| log.head());
    assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
    let refused = sqlite::inspect(folder.path());
    assert!(matches!(refused, Err(LogError::Refused(_))), "{refused:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("it lists").count(), 0, "nothing was created");
}

#[test]
fn a_log_of_a_newer_schema_is_refused() {
    let fixture = Fixture::plain(3, all_in_wal());
    let database = rusqlite::Connection::open(fixture.file("log.db")).expect("it opens");
    database.execute_batch("PRAGMA user_version = 2").expect("it sets");
    drop(database);
    let told = fixture.assert_damaged("user_version 2");
    assert!(told.contains("user_version is 2, not 1"), "{told}");
}

#[test]
fn chunks_left_by_a_cut_save_are_swept_away() {
    let fixture = Fixture::full(all_in_wal());
    let database = rusqlite::Connection::open(fixture.file("log.db")).expect("it opens");
    let count = || -> i64 {
        database.query_row("SELECT count(*) FROM chunks", [], |row| row.get(0)).expect("it counts")
    };
    let before = count();
    database
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
             INSERT INTO chunks SELECT (77 << 20) + i, zeroblob(3000) FROM n;",
        )
        .expect("it inserts");
    assert_eq!(count(), before + 100);
    let log = fixture.open().expect("it opens");
    // A task is done only when those before it are: the sweep is the first.
    wait(log.trim(Position(1))).expect("it trims");
    drop(log);
    assert_eq!(count(), before);
}

#[test]
fn the_wal_begins_anew_when_it_was_copied() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let log = sqlite::open(folder.path(), Options { checkpoint_bytes: 100_000 }).expect("it opens");
    wait(Chain::default().grow(&log, 3_000));
    let wal = fs::metadata(folder.path().join("log.db-wal")).expect("it is there").len();
    // About 25 MB were written to it.
    assert!(wal < 5_000_000, "{wal}");
}

fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_log_is_for_its_owner_only() {
    let parent = tempfile::tempdir().expect("a folder can be made");
    let (new, restored) = (parent.path().join("deeper/new"), parent.path().join("restored"));
    let log = sqlite::open(&new, Options::default()).expect("it opens");
    wait(Chain::default().grow(&log, 3));
    sqlite::create_from_snapshot(&restored, &snapshot_of(9)).expect("it restores");
    let other = sqlite::open(&restored, Options::default()).expect("it opens");
    for dir in [&new, &restored] {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
        let files: Vec<_> =
            fs::read_dir(dir).expect("it lists").map(|it| it.expect("it lists").path()).collect();
        assert!(files.len() >= 5, "all of them: {files:?}");
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
    }
    drop((log, other));
}

#[test]
fn a_folder_that_is_there_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).expect("it is ours");
    drop(sqlite::open(folder.path(), Options::default()).expect("it opens"));
    assert_eq!(mode(folder.path()), 0o750);
}

/// Every file with its content and the moment of its last change.
fn untouched(dir: &std::path::Path) -> Vec<(std::ffi::OsString, Vec<u8>, std::time::SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .expect("it lists")
        .map(|entry| {
            let path = entry.expect("it lists").path();
            let changed = fs::metadata(&path).and_then(|it| it.modified()).expect("it is there");
            let name = path.file_name().expect("it has a name").to_owned();
            (name, fs::read(&path).expect("it reads"), changed)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn an_examination_changes_no_file() {
    for options in [all_in_wal(), crate::common::all_in_database()] {
        let fixture = Fixture::full(options);
        let dir = fixture.dir();
        for without in [None, Some("log.db-shm"), Some("log.db-wal")] {
            if without == Some("log.db-wal") {
                // As somebody leaves it who has looked into the file with SQLite's own shell.
                let database = rusqlite::Connection::open(dir.join("log.db")).expect("it opens");
                database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("it copies all");
            }
            if let Some(name) = without {
                let _ = fs::remove_file(dir.join(name));
            }
            let before = untouched(dir);
            let report = sqlite::inspect(dir).expect("it can be examined");
            assert!(report.is_sound() && !report.in_use, "{report:?}");
            let log = sqlite::open_for_examination(dir).expect("it opens");
            assert_eq!(Some(log.head()), report.head);
            assert!(log.is_alone());
            assert!(
                matches!(log.read(log.first(), 1 << 20), Ok(Read::Entries(it)) if !it.is_empty())
            );
            let busy = sqlite::open(dir, Options::default());
            assert!(matches!(busy, Err(LogError::InUse(_))), "meanwhile nobody may write");
            drop(log);
            assert_eq!(untouched(dir), before, "without {without:?}");
        }
    }
}

#[test]
fn names_with_anything_in_them_are_examined() {
    let parent = tempfile::tempdir().expect("a folder can be made");
    let dir = parent.path().join("a ?b#c%d&e=ü");
    let log = sqlite::open(&dir, Options::default()).expect("it opens");
    wait(Chain::default().grow(&log, 3));
    drop(log);
    assert_eq!(sqlite::inspect(&dir).expect("it can be examined").entries, 3);
}

#[test]
fn what_cannot_be_read_is_not_called_damaged() {
    for name in ["HEAD", "log.db"] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        drop(sqlite::open(folder.path(), Options::default()).expect("it opens"));
        fs::remove_file(folder.path().join(name)).expect("it removes");
        fs::create_dir(folder.path().join(name)).expect("it makes one");
        let result = sqlite::inspect(folder.path());
        assert!(matches!(result, Err(LogError::Storage(_))), "{name}: {result:?}");
    }
}
