//! The trace of a run: a hash over everything that happened, and on demand the words for it.

use crate::clock::{MS, Real};
use std::collections::VecDeque;

/// Lines kept for a failure's message.
const LINES: usize = 120;

#[derive(Debug, Default)]
pub(crate) struct Trace {
    hash: u64,
    pub(crate) events: u64,
    /// Whether lines are kept at all: words are slow.
    keeps: bool,
    prints: bool,
    lines: VecDeque<String>,
}

impl Trace {
    pub(crate) fn with_words(prints: bool) -> Self {
        Self { keeps: true, prints, ..Self::default() }
    }

    /// Takes numbers into the hash.
    pub(crate) fn mix(&mut self, parts: &[u64]) {
        for &part in parts {
            let mut bits = (self.hash ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
            self.hash = bits ^ (bits >> 32);
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn say(&mut self, now: Real, line: impl FnOnce() -> String) {
        if !self.keeps && !self.prints {
            return;
        }
        let line = format!("{:>6}.{:06} {}", now / MS, now % MS, line());
        if self.prints {
            println!("{line}");
        }
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}
