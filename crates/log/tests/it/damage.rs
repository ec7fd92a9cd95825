//! A damaged byte anywhere in the files is reported, or changes nothing of what is read.
//!
//! The sweeps flip a bit in place, examine the log and put the bit back. Where the examination finds nothing, all
//! that was acknowledged must be read; where it finds damage, what is read must still be right or an error. Of
//! the offsets some are also given to `open`, which writes and so gets a copy.

use crate::common::{Fixture, Random, all_in_database, all_in_wal, wait};
use sereno_log::{LogError, conformance::Chain, sqlite};
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
};

const WAL: &str = "log.db-wal";
const DATABASE: &str = "log.db";
const HEAD: &str = "HEAD";
const SLOTS: [u64; 2] = [0, 4096];
const SLOT_BYTES: u64 = 64;
const WAL_HEADER: u64 = 32;
const WAL_FRAME: u64 = 24 + 4096;

/// How a sweep went: where damage was reported, and where it changed nothing.
#[derive(Default, Debug)]
struct Swept {
    reported: u64,
    harmless: u64,
}

/// Flips one bit at each offset; two threads share the work, each with its own copy. Every `open_each`th copy
/// is opened too.
fn sweep(fixture: &Fixture, file: &str, offsets: &[u64], open_each: usize) -> Swept {
    let halves = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                let fixture = fixture.copy();
                let mut swept = Swept::default();
                for (index, &offset) in offsets.iter().enumerate().filter(|(i, _)| i % 2 == half) {
                    let bit = Random(offset).below(8);
                    let what = format!("{file}, byte {offset}, bit {bit}");
                    flip(&fixture.file(file), offset, 1 << bit);
                    let reported = examine(&fixture, &what);
                    if index % open_each == half {
                        open_copy(&fixture, reported, &what);
                    }
                    flip(&fixture.file(file), offset, 1 << bit);
                    *if reported { &mut swept.reported } else { &mut swept.harmless } += 1;
                }
                assert!(!examine(&fixture, "all bits put back"));
                swept
            })
        });
        halves.map(|half| half.join().expect("a half of the sweep failed"))
    });
    let [one, other] = halves;
    Swept { reported: one.reported + other.reported, harmless: one.harmless + other.harmless }
}

/// True if the damage is reported. If it is not, everything must be there.
fn examine(fixture: &Fixture, what: &str) -> bool {
    let reported = match sqlite::inspect(fixture.dir()) {
        Ok(report) => !report.is_sound(),
        Err(LogError::Damaged(_) | LogError::Storage(_)) => true,
        Err(error) => panic!("{what}: {error}"),
    };
    let whole = fixture.reads_right(what);
    assert!(reported || whole, "{what}: not all can be read, and nothing is reported");
    reported
}

/// `open` comes to the same judgement.
fn open_copy(fixture: &Fixture, reported: bool, what: &str) {
    let copy = fixture.copy();
    if !reported {
        copy.assert_whole(what);
        return;
    }
    match copy.open() {
        Err(LogError::Damaged(_) | LogError::Storage(_)) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: reported by inspect, and it opened"),
    }
}

fn flip(path: &Path, offset: u64, mask: u8) {
    let file = File::options().read(true).write(true).open(path).expect("it opens");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("it reads");
    file.write_all_at(&[byte[0] ^ mask], offset).expect("it writes");
}

fn length(fixture: &Fixture, file: &str) -> u64 {
    fs::metadata(fixture.file(file)).expect("it is there").len()
}

#[test]
fn a_flipped_bit_in_the_wal_does_not_shorten_the_log() {
    let fixture = Fixture::plain(100, all_in_wal());
    flip(&fixture.file(WAL), length(&fixture, WAL) / 2, 1);
    // What SQLite itself makes of it: a shorter log that is perfectly in order.
    let alone = fixture.copy();
    let database = rusqlite::Connection::open(alone.file(DATABASE)).expect("it opens");
    let ask = |sql| database.query_row(sql, [], |row| row.get(0)).expect("it answers");
    let check: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("");
    let entries: i64 = ask("SELECT count(*) FROM entries");
    assert_eq!(check, "ok");
    assert!((20..80).contains(&entries), "{entries} entries of 100");
    let told = fixture.assert_damaged("a flipped bit in the middle of the WAL");
    assert!(told.contains("position 100"), "{told}");
}

#[test]
fn a_flipped_bit_anywhere_in_the_database_is_reported_or_harmless() {
    let fixture = Fixture::full(all_in_database());
    // As long as its WAL is there SQLite reads from it, also what was copied.
    let database = rusqlite::Connection::open(fixture.file(DATABASE)).expect("it opens");
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("it copies all");
    drop(database);
    assert!(!fixture.file(WAL).exists());
    // Every byte of the pages' beginnings, where SQLite's structure is, and every third of the rest.
    let end = length(&fixture, DATABASE);
    let offsets: Vec<u64> = (0..end).filter(|at| at % 4096 < 256 || at % 3 == 0).collect();
    let swept = sweep(&fixture, DATABASE, &offsets, 200);
    // Much of it is payload, and the rest unused.
    assert!(swept.reported > 5_000, "{swept:?}");
}

#[test]
fn a_flipped_bit_anywhere_in_the_wal_is_reported_or_harmless() {
    let fixture = Fixture::full(all_in_wal());
    let end = length(&fixture, WAL);
    let frame_headers = (WAL_HEADER..end).step_by(WAL_FRAME as usize).flat_map(|at| at..at + 24);
    let rest = (0..end).step_by(211);
    let offsets: Vec<u64> = (0..WAL_HEADER).chain(frame_headers).chain(rest).collect();
    let swept = sweep(&fixture, WAL, &offsets, 100);
    // Everything in it was committed and acknowledged.
    assert_eq!(swept.harmless, 0, "{swept:?}");
}

#[test]
fn a_flipped_bit_in_a_wal_that_was_copied_is_reported_or_harmless() {
    let fixture = Fixture::full(all_in_database());
    let offsets: Vec<u64> = (0..length(&fixture, WAL)).step_by(61).collect();
    sweep(&fixture, WAL, &offsets, 100);
}

#[test]
fn a_flipped_bit_in_a_slot_of_head_leaves_the_other() {
    for options in [all_in_wal(), all_in_database()] {
        let fixture = Fixture::full(options);
        let offsets: Vec<u64> = SLOTS.into_iter().flat_map(|at| at..at + SLOT_BYTES).collect();
        let swept = sweep(&fixture, HEAD, &offsets, 16);
        assert_eq!(swept.reported, 0, "{swept:?}");
    }
}

#[test]
fn without_a_sound_slot_a_used_log_is_refused() {
    let full = Fixture::full(all_in_wal());
    let both = full.copy();
    SLOTS.iter().for_each(|at| flip(&both.file(HEAD), at + 3, 8));
    both.assert_damaged("both slots flipped");
    for length in [0, 1, 63] {
        let cut = full.copy();
        let file = File::options().write(true).open(cut.file(HEAD)).expect("it opens");
        file.set_len(length).expect("it cuts");
        cut.assert_damaged("HEAD cut");
    }
    let zeroed = full.copy();
    fs::write(zeroed.file(HEAD), vec![0; 8192]).expect("it writes");
    zeroed.assert_damaged("HEAD zeroed");
    let removed = full.copy();
    fs::remove_file(removed.file(HEAD)).expect("it removes");
    removed.assert_damaged("HEAD removed");
}

#[test]
fn the_newest_sound_slot_counts() {
    let fixture = Fixture::plain(30, all_in_wal());
    // A tail of one commit is missing: only the newer slot knows it.
    let frames = (length(&fixture, WAL) - WAL_HEADER) / WAL_FRAME;
    let file = File::options().write(true).open(fixture.file(WAL)).expect("it opens");
    file.set_len(WAL_HEADER + (frames - 1) * WAL_FRAME).expect("it cuts");
    let told = fixture.assert_damaged("the last commit is missing");
    assert!(told.contains("stops at position 29") && told.contains("position 30"), "{told}");
    let mut damaged = 0;
    for slot in SLOTS {
        let one = fixture.copy();
        flip(&one.file(HEAD), slot + 5, 1);
        damaged += usize::from(one.open().is_err());
    }
    assert_eq!(damaged, 1, "with the newer slot it is found, with the older alone it cannot be");
}

#[test]
fn the_newest_slot_is_never_the_one_that_is_overwritten() {
    let mut fixture = Fixture::plain(5, all_in_wal());
    for round in 0..6 {
        let slots = |fixture: &Fixture| {
            let bytes = fs::read(fixture.file(HEAD)).expect("it reads");
            SLOTS.map(|at| bytes[at as usize..(at + SLOT_BYTES) as usize].to_vec())
        };
        // The count of changes comes after the position.
        let changes = |slot: &Vec<u8>| u64::from_le_bytes(slot[8..16].try_into().expect("8 bytes"));
        let before = slots(&fixture);
        let newest = before.iter().max_by_key(|slot| changes(slot)).expect("there are two");
        // Opening writes one slot: torn, the other one still tells how far the log goes.
        let log = fixture.open().expect("it opens");
        assert!(slots(&fixture).contains(newest), "round {round}");
        // An odd and an even number of changes.
        let count = fixture.chain.entries().len() + round % 2;
        wait(fixture.chain.grow(&log, count));
    }
}

/// After a power cut `HEAD` may say what it said at the last sync: that is only less strict.
#[test]
fn a_head_that_is_behind_the_log_is_no_damage() {
    let mut fixture = Fixture::full(all_in_wal());
    let old = fs::read(fixture.file(HEAD)).expect("it reads");
    let log = fixture.open().expect("it opens");
    wait(fixture.chain.grow(&log, 40));
    drop(log);
    for head in
        [&old[..], &[&old[..4096], &[0; 4096]].concat(), &[&[0; 4096], &old[4096..]].concat()]
    {
        let behind = fixture.copy();
        fs::write(behind.file(HEAD), head).expect("it writes");
        behind.assert_whole("an older HEAD");
        // It was brought up to date: a tail that is lost now is missed.
        let end = length(&behind, WAL) - WAL_FRAME;
        File::options()
            .write(true)
            .open(behind.file(WAL))
            .expect("it opens")
            .set_len(end)
            .expect("");
        behind.assert_damaged("a lost tail");
    }
}

#[test]
fn a_head_of_another_log_is_refused() {
    let fixture = Fixture::plain(30, all_in_wal());
    let other = Fixture::full(all_in_wal());
    fs::copy(other.file(HEAD), fixture.file(HEAD)).expect("it copies");
    fixture.assert_damaged("the HEAD of another log");
}

#[test]
fn an_older_copy_of_the_database_is_refused() {
    let mut fixture = Fixture::plain(30, all_in_database());
    let old = fixture.copy();
    let log = fixture.open().expect("it opens");
    wait(fixture.chain.grow(&log, 60));
    drop(log);
    for name in [DATABASE, WAL] {
        fs::copy(old.file(name), fixture.file(name)).expect("it copies");
    }
    fixture.assert_damaged("log.db from an older copy");
}

#[test]
fn a_missing_or_empty_database_is_refused_and_nothing_is_deleted() {
    let full = Fixture::full(all_in_wal());
    let wal = fs::read(full.file(WAL)).expect("it reads");
    let removed = full.copy();
    fs::remove_file(removed.file(DATABASE)).expect("it removes");
    removed.assert_damaged("log.db removed");
    let emptied = full.copy();
    fs::write(emptied.file(DATABASE), b"").expect("it writes");
    emptied.assert_damaged("log.db emptied");
    for fixture in [removed, emptied] {
        assert!(fs::read(fixture.file(WAL)).expect("the WAL is still there") == wal);
    }
    let no_wal = full.copy();
    fs::remove_file(no_wal.file(WAL)).expect("it removes");
    no_wal.assert_damaged("the WAL removed");
}

#[test]
fn a_refused_open_leaves_the_evidence() {
    let fixture = Fixture::full(all_in_wal());
    flip(&fixture.file(WAL), length(&fixture, WAL) / 3, 4);
    let files = [DATABASE, WAL, HEAD].map(|name| fixture.file(name));
    let before = files.clone().map(|file| fs::read(file).expect("it reads"));
    fixture.assert_damaged("a flipped bit");
    assert!(files.map(|file| fs::read(file).expect("it reads")) == before);
    flip(&fixture.file(WAL), length(&fixture, WAL) / 3, 4);
    fixture.assert_whole("the bit put back");
}

#[test]
fn a_cut_or_zeroed_file_is_reported_or_harmless() {
    for options in [all_in_wal(), all_in_database()] {
        let fixture = Fixture::full(options);
        for (name, unit, start) in [(DATABASE, 4096, 0), (WAL, WAL_FRAME, WAL_HEADER)] {
            let bytes = fs::read(fixture.file(name)).expect("it reads");
            let length = bytes.len() as u64;
            let edges = (start..=length).step_by(unit as usize);
            let cuts = edges.clone().flat_map(|at| [at.saturating_sub(1), at, at + 1, at + 100]);
            for cut in cuts.chain([0, 1, 16, 31]).filter(|cut| *cut < length) {
                let damaged = fixture.copy();
                fs::write(damaged.file(name), &bytes[..cut as usize]).expect("it writes");
                let what = format!("{name} cut to {cut} of {length}");
                let reported = examine(&damaged, &what);
                open_copy(&damaged, reported, &what);
            }
            for zeroed in edges.filter(|at| *at < length) {
                let damaged = fixture.copy();
                let mut bytes = bytes.clone();
                let end = length.min(zeroed + unit) as usize;
                bytes[zeroed as usize..end].fill(0);
                fs::write(damaged.file(name), bytes).expect("it writes");
                let what = format!("{name} zeroed at {zeroed}");
                let reported = examine(&damaged, &what);
                open_copy(&damaged, reported, &what);
            }
            let mut longer = bytes.clone();
            longer.extend_from_slice(&[0x5a; 5_000]);
            let damaged = fixture.copy();
            fs::write(damaged.file(name), longer).expect("it writes");
            let reported = examine(&damaged, "garbage at the end");
            open_copy(&damaged, reported, "garbage at the end");
        }
    }
}

#[test]
fn a_damaged_shm_changes_nothing() {
    let fixture = Fixture::full(all_in_wal());
    for mask in [0xff_u8, 1] {
        let log = fixture.copy();
        let live = log.open().expect("it opens");
        drop(live);
        let mut bytes = fs::read(log.file("log.db-shm")).expect("it is left behind");
        bytes.iter_mut().for_each(|byte| *byte ^= mask);
        fs::write(log.file("log.db-shm"), bytes).expect("it writes");
        log.assert_whole("log.db-shm flipped");
    }
}

#[test]
fn swapped_entries_are_found() {
    let fixture = Fixture::plain(20, all_in_database());
    let database = rusqlite::Connection::open(fixture.file(DATABASE)).expect("it opens");
    database
        .execute_batch(
            "CREATE TEMP TABLE t AS SELECT head, bytes FROM entries WHERE position = 5;
             UPDATE entries SET (head, bytes) = (SELECT head, bytes FROM entries WHERE position = 6)
                WHERE position = 5;
             UPDATE entries SET (head, bytes) = (SELECT head, bytes FROM t) WHERE position = 6;",
        )
        .expect("it swaps");
    drop(database);
    let told = fixture.assert_damaged("two entries swapped");
    assert!(told.contains("entry 5") && told.contains("entry 6"), "{told}");
}

#[test]
fn a_removed_entry_is_found_wherever_it_stood() {
    for position in [1, 10, 20] {
        let fixture = Fixture::plain(20, all_in_database());
        let database = rusqlite::Connection::open(fixture.file(DATABASE)).expect("it opens");
        database
            .execute("DELETE FROM entries WHERE position = ?1", [position])
            .expect("it deletes");
        drop(database);
        let told = fixture.assert_damaged("an entry removed");
        assert!(told.contains(&format!("entry {position}: it is missing")), "{told}");
    }
}

#[test]
fn the_examination_follows_the_chain() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let log = sqlite::open(folder.path(), all_in_wal()).expect("a new log opens");
    let mut chain = Chain::default();
    wait(async {
        chain.grow(&log, 3).await;
        // An entry that chains to another past: each row is sound by itself.
        let mut forged = chain.head();
        forged.hash.0[0] ^= 1;
        let stranger = sereno_log::conformance::entry_after(&forged, 0, 0);
        chain.append(&log, stranger).await;
    });
    drop(log);
    let report = sqlite::inspect(folder.path()).expect("it can be examined");
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!(finding.place, "log.db, entry 4");
    assert!(finding.what.contains("chain"), "{finding}");
}
