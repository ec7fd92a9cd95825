//! Real processes: killed at any moment, refused by the lock, out of disk.
//!
//! The children are this test binary itself, running the one test `child` with its orders in the
//! environment.

mod common;

use common::{Random, wait};
use sereno_core::{
    entry::{Head, SealedEntry},
    ids::Position,
};
use sereno_log::{
    Append, Log, LogError, Read, Snapshot,
    conformance::{entry_after, genesis},
    sqlite::{self, Options, SqliteLog},
};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

const DIR: &str = "SERENO_TEST_DIR";
const ORDER: &str = "SERENO_TEST_ORDER";

/// The one entry that a child appends after this head.
fn the_entry_after(head: &Head) -> SealedEntry {
    match head.position.0 {
        0 => genesis(7),
        position => entry_after(head, position, (position as usize * 37) % 3_000),
    }
}

/// The one snapshot that a child saves of this head.
fn the_snapshot_of(head: Head) -> Snapshot {
    let length = 1_000 + (head.position.0 as usize * 7_919) % 600_000;
    Snapshot { head, bytes: vec![head.position.0 as u8; length].into() }
}

fn options() -> Options {
    Options { checkpoint_bytes: 256 << 10 }
}

/// Not a test of its own: the others run it as a child process, which can be killed.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let dir = Path::new(&dir);
    match std::env::var(ORDER).expect("a child has an order").as_str() {
        "append" => append_until_killed(dir),
        "fill" => append_until_the_disk_is_full(dir),
        "open" => match sqlite::open(dir, options()) {
            Ok(_) => say("opened"),
            Err(error) => say(&error.to_string()),
        },
        order => panic!("{order}?"),
    }
}

/// Everything said stands at the beginning of a line, after the harness' own.
fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n! {what}").and_then(|()| out.flush()).expect("somebody listens");
}

fn append_until_killed(dir: &Path) -> ! {
    say("opening");
    let log = sqlite::open(dir, options()).expect("it opens");
    let mut head = wait(log.head()).expect("it has a head");
    loop {
        let entry = the_entry_after(&head);
        let next = entry.head;
        assert_eq!(wait(log.append(head, entry)), Append::Committed);
        head = next;
        say(&format!("appended {}", head.position));
        match head.position.0 % 64 {
            0 => {
                wait(log.save_snapshot(the_snapshot_of(head))).expect("it saves");
                say(&format!("saved {}", head.position));
            }
            32 => {
                let first = wait(log.trim(head.position)).expect("it trims");
                say(&format!("trimmed {first}"));
            }
            8 | 48 => wait(log.flush()).expect("it flushes"),
            _ => {}
        }
    }
}

fn append_until_the_disk_is_full(dir: &Path) {
    let log = sqlite::open(dir, Options { checkpoint_bytes: u64::MAX }).expect("it opens");
    let mut head = wait(log.head()).expect("it has a head");
    let failed = loop {
        let entry = the_entry_after(&head);
        let next = entry.head;
        match wait(log.append(head, entry.clone())) {
            Append::Committed => head = next,
            Append::Unknown(why) => {
                say(&format!("acknowledged {}", head.position));
                assert!(why.contains("committing"), "{why}");
                break entry;
            }
            result => panic!("{result:?}"),
        }
    };
    // From now on everything fails, and the entry that may be in the log is never said not to be.
    for _ in 0..3 {
        let again = wait(log.append(head, failed.clone()));
        assert!(matches!(again, Append::Unknown(_)), "{again:?}");
    }
    let stopped = |result: Result<(), LogError>| {
        assert!(matches!(result, Err(LogError::Storage(_))), "{result:?}");
    };
    stopped(wait(log.head()).map(drop));
    stopped(wait(log.read(Position(1), 1)).map(drop));
    stopped(wait(log.latest_snapshot()).map(drop));
    stopped(wait(log.save_snapshot(the_snapshot_of(head))));
    stopped(wait(log.trim(Position(1))).map(drop));
    stopped(wait(log.flush()));
    stopped(wait(log.usage()).map(drop));
    say("stopped");
}

/// A child and what it says.
struct Worker {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(mut command: Command, dir: &Path, order: &str) -> Self {
        let mut child = command
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(DIR, dir)
            .env(ORDER, order)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary runs again");
        let out = child.stdout.take().expect("it is piped");
        Self { child, lines: BufReader::new(out).lines() }
    }

    fn this_binary() -> Command {
        Command::new(std::env::current_exe().expect("this binary has a path"))
    }

    /// The next thing it says, or `None` when it has ended.
    fn listen(&mut self) -> Option<String> {
        loop {
            // A line cut by a kill may be no text: then it was not said.
            let line = self.lines.next()?.ok()?;
            if let Some(said) = line.strip_prefix("! ") {
                return Some(said.into());
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

/// What has been acknowledged of a log in several processes.
#[derive(Default)]
struct Acknowledged {
    /// Heads by position; the first is the empty one.
    heads: Vec<Head>,
    appended: u64,
    saved: u64,
    first: u64,
}

impl Acknowledged {
    fn note(&mut self, said: &str) {
        let Some((what, number)) = said.split_once(' ') else { return };
        let Ok(number) = number.parse() else { return };
        let field = match what {
            "appended" => &mut self.appended,
            "saved" => &mut self.saved,
            "trimmed" => &mut self.first,
            _ => return,
        };
        assert!(number > *field || what == "trimmed", "{said}, after {field}");
        *field = number;
    }

    /// The entry at `position`, as any child must have appended it.
    fn entry(&mut self, position: u64) -> SealedEntry {
        self.heads.resize(self.heads.len().max(1), Head::EMPTY);
        while self.heads.len() as u64 <= position {
            let last = self.heads.last().expect("the empty head is there");
            self.heads.push(the_entry_after(last).head);
        }
        the_entry_after(&self.heads[position as usize - 1])
    }

    /// All of it is there, and nothing that no child appended.
    fn check(&mut self, log: &SqliteLog) {
        let head = wait(log.head()).expect("it has a head");
        assert!(head.position.0 >= self.appended, "{} of {}", head.position, self.appended);
        assert!(head.position.0 <= self.appended + 1, "{} of {}", head.position, self.appended);
        self.appended = head.position.0;
        let first = wait(log.usage()).expect("it tells").first.0;
        assert!(first >= self.first, "{first} after {}", self.first);
        self.first = first;
        let Ok(Read::Entries(entries)) = wait(log.read(Position(first), usize::MAX)) else {
            panic!("it reads from {first}");
        };
        assert_eq!(entries.len() as u64, head.position.0 + 1 - first);
        for (entry, position) in entries.iter().zip(first..) {
            assert_eq!(*entry, self.entry(position));
        }
        let snapshot = wait(log.latest_snapshot()).expect("it reads");
        let position = snapshot.as_ref().map_or(0, |snapshot| snapshot.head.position.0);
        assert!(position >= self.saved, "snapshot {position} after {}", self.saved);
        self.saved = position;
        if let Some(snapshot) = snapshot {
            self.entry(position);
            assert_eq!(snapshot, the_snapshot_of(self.heads[position as usize]));
        }
    }
}

#[test]
fn everything_acknowledged_survives_kill_9() {
    const KILLS: u64 = 60;
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut random = Random(1);
    let mut acknowledged = Acknowledged::default();
    for _ in 0..KILLS {
        let mut worker = Worker::start(Worker::this_binary(), folder.path(), "append");
        for _ in 0..1 + random.below(250) {
            acknowledged.note(&worker.listen().expect("it works until it is killed"));
        }
        worker.kill();
        while let Some(said) = worker.listen() {
            acknowledged.note(&said); // It was in the pipe.
        }
        acknowledged.check(&sqlite::open(folder.path(), options()).expect("it opens"));
        let report = sqlite::inspect(folder.path()).expect("it can be examined");
        assert!(report.is_sound(), "{report:?}");
    }
    assert!(acknowledged.appended > 1_000 && acknowledged.saved > 0 && acknowledged.first > 1);
}

#[test]
fn a_creation_cut_by_kill_9_is_finished() {
    let mut random = Random(2);
    let mut cut = 0;
    for _ in 0..40 {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut acknowledged = Acknowledged::default();
        let mut worker = Worker::start(Worker::this_binary(), folder.path(), "append");
        assert_eq!(worker.listen().as_deref(), Some("opening"));
        // Any moment of the creation, which takes some milliseconds.
        let moment = Instant::now() + Duration::from_micros(random.below(6_000));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        worker.kill();
        while let Some(said) = worker.listen() {
            acknowledged.note(&said);
        }
        cut += u64::from(acknowledged.appended == 0);
        acknowledged.check(&sqlite::open(folder.path(), options()).expect("it opens"));
    }
    assert!(cut > 0, "no kill came before the first acknowledgement");
}

#[test]
fn a_second_process_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let log = sqlite::open(folder.path(), options()).expect("it opens");
    let other = |expected: &str| {
        let mut worker = Worker::start(Worker::this_binary(), folder.path(), "open");
        let said = worker.listen().expect("it says something");
        assert!(said.contains(expected), "{said}");
        worker.child.wait().expect("it ends");
        said
    };
    let refusal = other("in use");
    assert!(refusal.contains(&folder.path().display().to_string()), "{refusal}");
    let refused = sqlite::open(folder.path(), options());
    assert!(matches!(refused, Err(LogError::InUse(_))), "in the same process");
    drop(log);
    other("opened");
}

/// A limit on the size of files stands in for a full disk: writing fails in the middle of a commit.
#[test]
fn a_full_disk_stops_the_engine_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let binary = std::env::current_exe().expect("this binary has a path");
    let mut shell = Command::new("sh");
    // In blocks of 512 or 1,024 bytes, as the shell has it.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 900; exec \"$0\" \"$@\""]).arg(binary);
    let mut worker = Worker::start(shell, folder.path(), "fill");
    let said = worker.listen().expect("it says how far it came");
    let acknowledged = said.strip_prefix("acknowledged ").and_then(|it| it.parse().ok());
    let acknowledged: u64 = acknowledged.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(worker.listen().as_deref(), Some("stopped"));
    assert!(worker.child.wait().expect("it ends").success());
    assert!(acknowledged > 20, "{acknowledged}");
    let mut all = Acknowledged { appended: acknowledged, ..Acknowledged::default() };
    all.check(&sqlite::open(folder.path(), options()).expect("it opens"));
}
