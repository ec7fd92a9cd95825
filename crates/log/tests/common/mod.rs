//! A log on disk as the tests expect it, and what they do to its files.
#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use sereno_core::{entry::Head, ids::Position};
use sereno_log::{
    Append, Log, LogError, Read, Snapshot,
    conformance::{Chain, entry_after},
    sqlite::{self, Options, SqliteLog},
};
use std::{
    future::Future,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};
use tempfile::TempDir;

/// Waits for a future without a runtime.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A folder with a log, closed, and all that was acknowledged of it.
pub struct Fixture {
    pub folder: TempDir,
    pub chain: Chain,
    pub first: u64,
    /// The newest.
    pub snapshot: Option<Snapshot>,
}

impl Fixture {
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// `count` small entries, no snapshot.
    pub fn plain(count: usize, options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let log = sqlite::open(folder.path(), options).expect("a new log opens");
        let mut chain = Chain::default();
        wait(chain.grow(&log, count));
        drop(log);
        Self { folder, chain, first: 1, snapshot: None }
    }

    /// Everything that a log can have: entries of several sizes, replaced snapshots, a trimmed beginning.
    pub fn full(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let log = sqlite::open(folder.path(), options).expect("a new log opens");
        let mut chain = Chain::default();
        wait(async {
            chain.grow(&log, 10).await;
            log.save_snapshot(chain.snapshot(8, 9_000)).await.expect("it saves");
            for padding in [5_000, 300, 9_000] {
                let entry = entry_after(&chain.head(), 1, padding);
                chain.append(&log, entry).await;
            }
            log.save_snapshot(chain.snapshot(10, 100)).await.expect("it saves");
            chain.grow(&log, 20).await;
            log.save_snapshot(chain.snapshot(15, 6_000)).await.expect("it saves");
            log.trim(Position(7)).await.expect("it trims");
            chain.grow(&log, 26).await;
        });
        drop(log);
        let snapshot = Some(chain.snapshot(15, 6_000));
        Self { folder, chain, first: 8, snapshot }
    }

    /// The same log in a new folder.
    pub fn copy(&self) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        copy_files(self.dir(), folder.path());
        Self {
            folder,
            chain: self.chain.clone(),
            first: self.first,
            snapshot: self.snapshot.clone(),
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub fn open(&self) -> Result<SqliteLog, LogError> {
        sqlite::open(self.dir(), Options::default())
    }

    /// Opens it, and all that was acknowledged is there, and it goes on.
    pub fn assert_whole(&self, what: &str) {
        let log = self.open().unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut chain = self.chain.clone();
        wait(async {
            chain.assert_is(&log, self.first).await;
            assert_eq!(log.latest_snapshot().await, Ok(self.snapshot.clone()), "{what}");
            let count = chain.entries().len() + 1;
            chain.grow(&log, count).await;
            chain.assert_is(&log, self.first).await;
        });
    }

    /// Opening it is refused as damaged, by `open` and in the report, and again the second time: a refusal
    /// changes nothing.
    pub fn assert_damaged(&self, what: &str) -> String {
        let mut told = String::new();
        for _ in 0..2 {
            match self.open() {
                Err(LogError::Damaged(message)) => told = message,
                Err(error) => panic!("{what}: {error}"),
                Ok(_) => panic!("{what}: it opened"),
            }
            let report = sqlite::inspect(self.dir()).expect("it can be examined");
            assert!(!report.is_sound(), "{what}: {report:?}");
        }
        told
    }

    /// What `open_read_only` gives is right, or an error; `true` if it was all of it.
    pub fn reads_right(&self, what: &str) -> bool {
        let log = match sqlite::open_read_only(self.dir()) {
            Ok(log) => log,
            Err(_) => return false,
        };
        let mut whole = log.head() == self.chain.head() && log.first() == Position(self.first);
        match log.read(Position(self.first), usize::MAX) {
            Ok(Read::Entries(entries)) => {
                assert_eq!(entries, self.chain.entries()[self.first as usize - 1..], "{what}");
            }
            Ok(read @ Read::Trimmed { .. }) => panic!("{what}: {read:?}"),
            Err(_) => whole = false,
        }
        match log.latest_snapshot() {
            Ok(snapshot) => assert_eq!(snapshot, self.snapshot, "{what}"),
            Err(_) => whole = false,
        }
        whole
    }
}

pub fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("it lists") {
        let entry = entry.expect("it lists");
        // SQLite rebuilds it whenever nobody has the log open.
        if entry.file_name() != "log.db-shm" {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it copies");
        }
    }
}

/// Every option's default, but nothing is ever copied from the WAL into log.db.
pub fn all_in_wal() -> Options {
    Options { checkpoint_bytes: u64::MAX }
}

/// Nearly everything is copied into log.db at once.
pub fn all_in_database() -> Options {
    Options { checkpoint_bytes: 0 }
}

/// Numbers that look random and are the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Appends an entry and expects it to land.
pub fn append(log: &SqliteLog, expected: Head, tag: u64) -> Head {
    let entry = entry_after(&expected, tag, 0);
    let head = entry.head;
    assert_eq!(wait(log.append(expected, entry)), Append::Committed);
    head
}
