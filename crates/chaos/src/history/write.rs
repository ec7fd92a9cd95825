//! Writing a history: a line is in the file before the call is sent, so a killed client leaves its pending calls.

use super::{Answer, Line, Op};
use crate::clock;
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// One process's history.
#[derive(Debug)]
pub struct Recorder {
    file: Mutex<File>,
    next: AtomicU64,
}

impl Recorder {
    /// A new file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(File::create_new(path)?), next: AtomicU64::new(0) })
    }

    /// A call is about to be sent; its number.
    pub fn start(&self, worker: &str, node: usize, op: &Op) -> u64 {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let (worker, op) = (worker.to_owned(), op.clone());
        self.write(|| Line::Start { call, worker, node, at: clock::now(), op });
        call
    }

    /// Its answer is there.
    pub fn end(&self, call: u64, answer: Answer) {
        let at = clock::now();
        self.write(|| Line::End { call, at, answer });
    }

    /// A guard has held from `since` to `until`.
    pub fn guard(&self, place: &str, token: u64, since: u64, until: u64) {
        let place = place.to_owned();
        self.write(|| Line::Guard { place, token, since, until });
    }

    fn write(&self, line: impl FnOnce() -> Line) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = serde_json::to_vec(&line()).expect("a line is JSON");
        text.push(b'\n');
        file.write_all(&text).expect("the history can be written");
    }
}
