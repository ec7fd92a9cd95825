//! What a replica needs to know of a job's record: the wire type with its instants read.

use sereno_api::{Job, Missed, Overlap, Reason, Run, RunState};
use sereno_schedule::instant;
use std::collections::BTreeMap;

/// The rules and the rows of one job, as of one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ledger {
    /// The definition's version, for claims.
    pub version: u64,
    /// An operator has paused it.
    pub paused: bool,
    pub missed: Missed,
    pub overlap: Overlap,
    /// Slots before this instant (Unix milliseconds) without a row are over.
    pub watermark: u64,
    /// By slot, in Unix milliseconds.
    pub rows: BTreeMap<u64, Row>,
}

/// What a slot has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub state: RunState,
    /// Attempts so far.
    pub attempt: u32,
    /// Of an attempt under way: until its lease ends unless it is renewed, in milliseconds from the read.
    pub expires_in: u64,
    /// An operator asked for it: it takes no slot's place.
    pub is_extra: bool,
    /// When the last attempt failed by its own account (Unix milliseconds, the leader's clock). `None`: it did not.
    pub failed_at: Option<u64>,
}

impl Ledger {
    /// Reads the record.
    ///
    /// # Errors
    /// The instant that is none.
    pub(crate) fn read(job: &Job) -> Result<Self, String> {
        let mut rows = BTreeMap::new();
        for run in &job.runs {
            rows.insert(slot(&run.slot)?, Row::read(run)?);
        }
        Ok(Self {
            version: job.version,
            paused: job.paused,
            missed: job.missed,
            overlap: job.overlap,
            watermark: slot(&job.watermark)?,
            rows,
        })
    }
}

impl Row {
    fn read(run: &Run) -> Result<Self, String> {
        let failed_at = match (run.state, run.end, &run.ended_at) {
            (RunState::Retry, Some(Reason::Finished), Some(at)) => Some(slot(at)?),
            _ => None,
        };
        let expires_in = run.expires_in_ms.unwrap_or(0);
        // Of a slot that operators left out the reason stands there too; that one was never begun.
        let is_extra = run.reason.is_some();
        Ok(Self { state: run.state, attempt: run.attempt, expires_in, is_extra, failed_at })
    }
}

fn slot(text: &str) -> Result<u64, String> {
    instant::parse(text).ok_or_else(|| format!("{text:?} is no instant"))
}
