//! Following a log that other nodes share, and when to stand up (DESIGN.md section 6). The log is the election: its
//! silence is the only reason to announce, and whoever's announce lands is the leader.

use super::{Committed, LevelTooHigh, Node, Output, Phase, append::InFlight, foreign};
use crate::{
    clock::{Mono, Now},
    events::EventBatch,
};
use sereno_core::{
    State,
    entry::{Body, Head, SealedEntry},
    ids::Position,
    planted::{self, Planted},
};
use sereno_log::{Conflict, Slot};
use std::sync::Arc;

/// The log's silence that makes a standby announce, at least.
const SILENCE_MS_MIN: u64 = 2_000;
/// So that standbys do not announce in step: up to this comes on top, drawn by each.
const JITTER_MS: u64 = 500;
/// Times the p99 of the gaps seen between entries.
const GAP_FACTOR: u64 = 4;
/// Gaps remembered.
const GAPS: usize = 256;
/// The p99 is worked out again after so many of them.
const GAPS_BETWEEN: usize = 32;
/// A fetch that failed is tried again after this.
const FETCH_RETRY_MS: u64 = 200;
/// A leader that resigned because nobody reached it leaves the log alone for so long, unless another leads.
pub(super) const ABSTAIN_MS: u64 = 5_000;

/// What came of a fetch.
#[derive(Debug)]
pub enum Fetched {
    /// The entries from the position asked for on, or from before it.
    Entries(Vec<SealedEntry>),
    /// They were trimmed, so here is the newest snapshot.
    Snapshot(Box<State>),
    /// The log could not be read; try again.
    Failed,
}

/// What a node knows of how the log moves.
#[derive(Debug)]
pub(super) struct Progress {
    /// When it last moved, as far as seen here.
    pub(super) moved_at: Mono,
    gaps_ms: Vec<u32>,
    next_gap: usize,
    since_p99: usize,
    p99_ms: u64,
    /// Drawn anew for each silence.
    jitter_ms: u64,
    random: u64,
    pub(super) fetching: bool,
    fetch_at: Mono,
    /// How far the log goes at least, as a conflict told.
    known: Position,
    /// Its announce has to wait until then, or until another leads.
    pub(super) abstains_until: Option<Mono>,
}

impl Progress {
    pub(super) fn new(now: Mono, seed: u64) -> Self {
        let mut progress = Self {
            moved_at: now,
            gaps_ms: Vec::new(),
            next_gap: 0,
            since_p99: 0,
            p99_ms: 0,
            jitter_ms: 0,
            random: seed,
            fetching: false,
            fetch_at: now,
            known: Position(0),
            abstains_until: None,
        };
        progress.draw();
        progress
    }

    /// The log has moved, by an entry of its leader: so long may a working one take. A longer silence than what makes
    /// a standby announce is an outage, not a pace: counted whole, a few of them would have the next takeover wait
    /// for minutes.
    fn moved(&mut self, now: Mono) {
        let gap_ms = (now.since_ns(self.moved_at) / 1_000_000).min(SILENCE_MS_MIN) as u32;
        self.moved_at = now;
        if self.gaps_ms.len() < GAPS {
            self.gaps_ms.push(gap_ms);
        } else {
            self.gaps_ms[self.next_gap] = gap_ms;
        }
        self.next_gap = (self.next_gap + 1) % GAPS;
        self.since_p99 += 1;
        if self.since_p99 >= GAPS_BETWEEN {
            self.since_p99 = 0;
            let mut sorted = self.gaps_ms.clone();
            sorted.sort_unstable();
            // Of less than a hundred not the longest: one outage says nothing of the pace.
            self.p99_ms = u64::from(sorted[(sorted.len() - 1) * 99 / 100]);
            self.draw();
        }
    }

    fn draw(&mut self) {
        // SplitMix64: any spread will do.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.jitter_ms = (bits ^ (bits >> 31)) % (JITTER_MS + 1);
    }

    fn silence_ms(&self, is_link_broken: bool) -> u64 {
        let silence_ms = SILENCE_MS_MIN.max(GAP_FACTOR * self.p99_ms) + self.jitter_ms;
        if is_link_broken { silence_ms / 2 } else { silence_ms }
    }
}

impl Node {
    /// When this node, which follows, announces if the log stays silent; not before it has had a look at the others'
    /// clocks. `None`: it knows that it has to read first.
    pub(super) fn announce_at(&self) -> Option<Mono> {
        let progress = &self.progress;
        if !self.settings.is_shared {
            return Some(self.retry_at);
        }
        if self.applied() < progress.known {
            return None;
        }
        let silent_at = match self.state.leader() {
            // Nobody leads: the last one resigned, or the log is new.
            None => progress.abstains_until.unwrap_or(self.retry_at),
            Some(_) => progress.moved_at.plus_ms(progress.silence_ms(!self.forward.is_linked())),
        };
        let founds = self.state.head() == Head::EMPTY;
        Some(silent_at.max(self.retry_at).max(self.peers.known_at(founds)))
    }

    /// Whether it reads on. Not while its announce is under way: that has to be resolved before anything is applied,
    /// and a log that has moved would be read again and again for nothing.
    fn reads_on(&self) -> bool {
        self.settings.is_shared && self.phase == Phase::Following && self.in_flight.is_none()
    }

    /// Keeps one fetch under way while it follows.
    pub(super) fn fetch(&mut self, now: Mono, out: &mut Vec<Output>) {
        if self.reads_on() && !self.progress.fetching && self.progress.fetch_at <= now {
            self.progress.fetching = true;
            out.push(Output::Fetch(self.state.head().position.next()));
        }
    }

    /// When the next fetch is due, if none is under way.
    pub(super) fn fetch_at(&self) -> Option<Mono> {
        let is_due = self.reads_on() && !self.progress.fetching;
        is_due.then_some(self.progress.fetch_at)
    }

    pub(super) fn fetched(&mut self, now: Now, fetched: Fetched, out: &mut Vec<Output>) {
        self.progress.fetching = false;
        let follows = matches!(self.phase, Phase::Following | Phase::Leading);
        // What was sent has to be resolved first: it may be one of these entries.
        if !follows || self.in_flight.is_some() {
            return;
        }
        match fetched {
            Fetched::Entries(entries) => {
                for sealed in entries {
                    if !self.follow_entry(now, &sealed, out) {
                        return;
                    }
                }
                self.leader_changed(out);
            }
            Fetched::Snapshot(state) => self.jump(now.mono, *state, out),
            Fetched::Failed => self.progress.fetch_at = now.mono.plus_ms(FETCH_RETRY_MS),
        }
    }

    /// Applies an entry that somebody else wrote. False: this node cannot go on.
    fn follow_entry(&mut self, now: Now, sealed: &SealedEntry, out: &mut Vec<Output>) -> bool {
        let own = self.state.head();
        if sealed.head.position <= own.position {
            return true; // Seen already.
        }
        if own != Head::EMPTY && sealed.head.log_id != own.log_id {
            self.halt(now.mono, foreign::another_log(&own, &sealed.head), out);
            return false;
        }
        match EventBatch::applied(&mut self.state, sealed) {
            Err(unfit) => {
                self.halt(now.mono, foreign::does_not_follow(&own, &unfit), out);
                false
            }
            Ok((entry, batch)) => {
                if let Err(level) = LevelTooHigh::check(&self.state, self.settings.level_max) {
                    self.halt(now.mono, level.to_string(), out);
                    return false;
                }
                self.followed(now, &entry.body, sealed.bytes.len(), batch, out);
                true
            }
        }
    }

    fn followed(
        &mut self,
        now: Now,
        body: &Body,
        bytes: usize,
        batch: EventBatch,
        out: &mut Vec<Output>,
    ) {
        if self.phase == Phase::Leading {
            self.step_down(now.mono, out);
        }
        self.applied_at = now.mono;
        self.snapshot.bytes += bytes as u64;
        if matches!(body, Body::Announce(_)) {
            // The silence before it was nobody's.
            self.progress.moved_at = now.mono;
            self.progress.abstains_until = None;
        } else {
            self.progress.moved(now.mono);
        }
        if self.phase == Phase::Following && self.forward.is_linked() {
            // Whatever kept it from announcing: the log moves, and its leader is reached.
            self.not_ready = None;
        }
        let commands = match body {
            Body::Batch(commands) => commands.len(),
            Body::Announce(_) | Body::Resign => 0,
        };
        out.push(Output::Committed(Committed {
            took_ns: None,
            commands,
            bytes,
            batch: Arc::new(batch),
        }));
        self.release_reads(out);
    }

    /// The log has trimmed what this node would need next: it goes on from the newest snapshot.
    fn jump(&mut self, now: Mono, state: State, out: &mut Vec<Output>) {
        let (own, newest) = (self.state.head(), state.head());
        if own != Head::EMPTY && newest.log_id != own.log_id {
            self.halt(now, foreign::another_log(&own, &newest), out);
            return;
        }
        if let Err(level) = LevelTooHigh::check(&state, self.settings.level_max) {
            self.halt(now, level.to_string(), out);
            return;
        }
        if newest.position <= own.position {
            // Trimmed, and no newer snapshot: it has moved on meanwhile, so look again.
            self.progress.fetch_at = now.plus_ms(FETCH_RETRY_MS);
            return;
        }
        if self.phase == Phase::Leading {
            self.step_down(now, out);
        }
        self.state = state;
        self.applied_at = now;
        self.snapshot.bytes = 0;
        self.snapshot.position = Some(newest.position);
        self.progress.moved_at = now;
        out.push(Output::Jumped);
        self.release_reads(out);
        self.leader_changed(out);
    }

    /// Somebody else's entry follows on the head that this node knew.
    pub(super) fn lost(
        &mut self,
        now: Mono,
        in_flight: &InFlight,
        conflict: &Conflict,
        out: &mut Vec<Output>,
    ) {
        let undecided = match conflict.slot {
            // Another entry stands there, so this one never will.
            Slot::Entry(_) => super::admission::log_unavailable(),
            // Trimmed, or another log: nobody can know.
            Slot::Trimmed | Slot::Empty => crate::handle::Undecided::Unknown,
        };
        self.end_calls(now, in_flight, &undecided, out);
        let (ours, theirs) = (in_flight.expected, conflict.head);
        let is_same_log = ours == Head::EMPTY || ours.log_id == theirs.log_id;
        if planted::has(Planted::StaysLeader) && self.phase == Phase::Leading {
            return;
        }
        let is_ahead =
            theirs.position > ours.position || planted::has(Planted::RestoredLogFollowed);
        if self.settings.is_shared && is_same_log && is_ahead {
            self.progress.known = theirs.position;
            return self.step_down(now, out);
        }
        let message = match self.settings.is_shared {
            true => foreign::set_back(&ours, &theirs),
            false => foreign::written_to(&ours, &theirs),
        };
        self.halt(now, message, out);
    }

    /// Somebody else leads, or nobody: what was held or queued here ends with a retryable answer.
    pub(super) fn step_down(&mut self, now: Mono, out: &mut Vec<Output>) {
        self.stamps = None;
        self.raising = None;
        // The log has moved, though not by this node: who wrote there has its time.
        self.progress.moved_at = now;
        match self.phase {
            // Whoever was about to resign has nothing left to: it follows too.
            Phase::Leading | Phase::Resigning | Phase::Following => {
                self.phase = Phase::Following;
                self.not_ready = Some("no leader is known".into());
            }
            // Nobody is left to resign for.
            _ => {}
        }
        self.end_waiting_calls(now, out);
        self.calls.clear_graces();
    }

    /// Going on would be wrong. Whoever waits is told so before the process ends.
    fn halt(&mut self, now: Mono, message: String, out: &mut Vec<Output>) {
        self.phase = Phase::Stopped;
        self.end_waiting_calls(now, out);
        out.push(Output::Halt(message));
    }

    /// Where a followed log stands, for tests and status: how long it has been silent.
    pub(super) fn silent_ms(&self, now: Mono) -> u64 {
        now.since_ns(self.progress.moved_at) / 1_000_000
    }

    /// Position up to which this node has applied the log.
    pub(super) fn applied(&self) -> Position {
        self.state.head().position
    }
}
