//! The other nodes on the same log, as their presence records tell: whose clocks are right, whether anybody reaches
//! this leader, and which levels all understand (DESIGN.md sections 4 to 6).

use super::{Node, Output, Phase, append::pending, presence::Presence};
use crate::{
    clock::{Mono, Now},
    handle::{Peer, Undecided},
};
use sereno_core::{
    State,
    command::Operation,
    ids::{Position, Revision},
    names::Invalid,
    planted::{self, Planted},
};
use std::collections::BTreeMap;

/// How often a node rewrites its record.
const PUBLISH_MS: u64 = 1_000;
/// So long after its start a node looks for the others' records before it leads all the same.
const KNOWN_MS: u64 = 2_000;
/// A node whose record did not change for so long does not count against a leader that nobody reaches.
const FRESH_MS: u64 = 2_000;
/// A node whose record did not change for so long is not there.
const LIVE_MS: u64 = 10_000;
/// A leader that no link has reached for so long is of no use.
const UNREACHED_MS: u64 = 5_000;
/// A node whose record has gone is remembered for so long, for `status`.
const REMEMBERED_MS: u64 = 24 * 3_600_000;
/// So many of them.
const REMEMBERED_MAX: usize = 64;
/// As far may a leader's wall clock be from the others'.
const SKEW_US_MAX: u64 = 60_000_000;

/// The log has gone beyond what a node understands: it must not go on, and never skips.
#[derive(Debug, thiserror::Error)]
#[error("the log is at level {level} and this node understands {level_max}: upgrade it")]
pub struct LevelTooHigh {
    level: u32,
    level_max: u32,
}

impl LevelTooHigh {
    /// # Errors
    /// When the state is of a higher level than this.
    pub fn check(state: &State, level_max: u32) -> Result<(), Self> {
        let level = state.level();
        if level > level_max && !planted::has(Planted::LevelNotChecked) {
            Err(Self { level, level_max })
        } else {
            Ok(())
        }
    }
}

/// The other nodes as last seen.
#[derive(Debug)]
pub(super) struct Peers {
    seen: BTreeMap<String, Seen>,
    /// Those whose record is not there any more. Nothing but `status` rests on them.
    gone: BTreeMap<String, Seen>,
    /// When another node's record was read first, or when nobody waits for that any longer.
    known_at: Mono,
    /// When nobody waits for further records: whoever founds a log does, for its clock begins all tokens.
    all_known_at: Mono,
    twin: Twin,
    publish_at: Mono,
    beat: u64,
    /// Over a link, while leading.
    reached_at: Mono,
    /// A client's call came, while leading.
    called_at: Mono,
    /// In this reign the log was asked to keep everything.
    hold_queued: bool,
}

#[derive(Debug)]
struct Seen {
    record: Presence,
    changed_at: Mono,
}

impl Seen {
    fn is_within(&self, ms: u64, now: Mono) -> bool {
        now.since_ns(self.changed_at) <= ms * 1_000_000
    }
}

/// Another process under this node's own id, found by what it leaves in the record that both write. What a process
/// before this one has left is seen once; one that lives writes again.
#[derive(Debug, Default)]
struct Twin {
    start: u64,
    beat: u64,
    address: String,
    /// When it was last seen to live.
    seen_at: Option<Mono>,
}

impl Twin {
    fn look(&mut self, now: Mono, record: &Presence) {
        let writes_again = self.start == record.start && self.beat < record.beat;
        if writes_again {
            if !self.is_there(now) {
                tracing::error!(
                    node = %record.node_id, address = %record.address,
                    "another process has this node's id: give one of them another --node-id"
                );
            }
            self.seen_at = Some(now);
        }
        (self.start, self.beat) = (record.start, record.beat);
        self.address.clone_from(&record.address);
    }

    fn is_there(&self, now: Mono) -> bool {
        self.seen_at.is_some_and(|at| now.since_ns(at) <= LIVE_MS * 1_000_000)
    }
}

impl Peers {
    pub(super) fn new(now: Mono) -> Self {
        Self {
            seen: BTreeMap::new(),
            gone: BTreeMap::new(),
            known_at: now.plus_ms(KNOWN_MS),
            all_known_at: now.plus_ms(KNOWN_MS),
            twin: Twin::default(),
            publish_at: now,
            beat: 0,
            reached_at: now,
            called_at: now,
            hold_queued: false,
        }
    }

    pub(super) fn reached(&mut self, now: Mono) {
        self.reached_at = now;
    }

    pub(super) fn called(&mut self, now: Mono) {
        self.called_at = now;
    }

    pub(super) fn publish_at(&self) -> Mono {
        self.publish_at
    }

    pub(super) fn known_at(&self, founds: bool) -> Mono {
        if founds { self.all_known_at } else { self.known_at }
    }

    /// Takes the nodes that are there now; of those that were, it remembers who they were.
    fn change_to(&mut self, now: Mono, seen: BTreeMap<String, Seen>) {
        self.gone.extend(std::mem::replace(&mut self.seen, seen));
        let seen = &self.seen;
        self.gone.retain(|id, it| !seen.contains_key(id) && it.is_within(REMEMBERED_MS, now));
        while self.gone.len() > REMEMBERED_MAX {
            let oldest = self.gone.iter().min_by_key(|(_, it)| it.changed_at);
            let oldest = oldest.map(|(id, _)| id.clone()).expect("there are many");
            self.gone.remove(&oldest);
        }
    }

    fn live(&self, now: Mono) -> impl Iterator<Item = &Seen> {
        self.seen.values().filter(move |seen| seen.is_within(LIVE_MS, now))
    }
}

impl Node {
    /// Takes the records of all nodes, this one's among them.
    pub(super) fn present(&mut self, now: Mono, records: Vec<Presence>) {
        let mut seen = BTreeMap::new();
        for record in records {
            if record.node_id == self.settings.writer.node_id {
                if record.start != self.settings.writer.start {
                    self.peers.twin.look(now, &record);
                }
                continue;
            }
            let before = self.peers.seen.remove(&record.node_id);
            let unchanged = before.filter(|before| before.record == record);
            let changed_at = unchanged.map_or(now, |before| before.changed_at);
            seen.insert(record.node_id.clone(), Seen { record, changed_at });
        }
        if !seen.is_empty() {
            self.peers.known_at = self.peers.known_at.min(now);
        }
        // One beyond what this node has applied is told again.
        let applied = self.applied();
        let snapshots = seen.values().filter_map(|seen| seen.record.snapshot.map(Position));
        if let Some(newest) = snapshots.filter(|&snapshot| snapshot <= applied).max() {
            self.snapshot.is_known(now, newest);
        }
        self.peers.change_to(now, seen);
    }

    pub(super) fn publish(&mut self, now: Now, out: &mut Vec<Output>) {
        if !self.settings.is_shared || self.peers.publish_at > now.mono {
            return;
        }
        self.peers.publish_at = now.mono.plus_ms(PUBLISH_MS);
        self.peers.beat += 1;
        out.push(Output::Publish(Presence {
            node_id: self.settings.writer.node_id.clone(),
            start: self.settings.writer.start,
            address: self.settings.address.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            level_max: self.settings.level_max,
            wall_us: now.wall_us,
            leader_heard_ms: self.leader_heard_ms(now.mono),
            applied: self.applied().0,
            distrusts: matches!(self.phase, Phase::Distrusted { .. }),
            beat: self.peers.beat,
            snapshot: self.snapshot.position.map(|position| position.0),
            twin: self.twin(now.mono),
        }));
    }

    /// Why this node must not lead, next to the others. It has a twin, so that neither's record says what is true. Or
    /// its wall clock is over a minute from the median of all, or, of two, ahead of the other's: the one behind does
    /// no harm (S2).
    pub(super) fn peers_fault(&self, now: Now) -> Option<String> {
        if self.peers.twin.is_there(now.mono) {
            return Some("another process has this node's id".into());
        }
        let theirs = |seen: &Seen| seen.record.wall_us + now.mono.since_ns(seen.changed_at) / 1_000;
        let mut clocks: Vec<u64> = self.peers.live(now.mono).map(theirs).collect();
        if planted::has(Planted::SkewIgnored) {
            return None;
        }
        let (reference, is_off) = match clocks[..] {
            [] => return None,
            [other] => (other, now.wall_us > other + SKEW_US_MAX),
            _ => {
                clocks.push(now.wall_us);
                clocks.sort_unstable();
                // Of an even number the lower one: to be ahead is what does harm.
                let median = clocks[(clocks.len() - 1) / 2];
                (median, now.wall_us.abs_diff(median) > SKEW_US_MAX)
            }
        };
        let off_s = now.wall_us.abs_diff(reference) / 1_000_000;
        is_off.then(|| {
            format!("this machine's wall clock is {off_s} s from the other nodes': set the clock")
        })
    }

    /// A leader that only the log can reach helps nobody: it resigns, if others could do better.
    pub(super) fn resign_if_unreached(&mut self, now: Mono, out: &mut Vec<Output>) {
        if !self.settings.is_shared || self.phase != Phase::Leading {
            return;
        }
        let is_long_ago = |at: Mono| now.since_ns(at) > UNREACHED_MS * 1_000_000;
        if !is_long_ago(self.peers.reached_at) {
            return;
        }
        let others = self.peers.seen.values().filter(|seen| seen.is_within(FRESH_MS, now)).count();
        let resigns = match others {
            0 => false,
            1 => is_long_ago(self.peers.called_at),
            _ => true,
        };
        if resigns {
            tracing::warn!("no other node reaches this leader: it resigns");
            self.phase = Phase::Resigning;
            self.not_ready = Some("no other node reaches this leader".into());
            self.end_waiting_calls(now, out);
        }
    }

    /// It begins to lead: nobody has had time to reach it.
    pub(super) fn begin_to_be_reached(&mut self, now: Mono) {
        self.peers.reached_at = now;
        self.peers.called_at = now;
        self.peers.hold_queued = false;
    }

    /// A node that disagrees with its log may need all of it to find out why.
    pub(super) fn hold_trim_for_others(&mut self) {
        let is_wanted = self.peers.seen.values().any(|seen| seen.record.distrusts);
        let is_done = self.state.is_trim_held() || self.peers.hold_queued;
        let is_untold = planted::has(Planted::DistrustUntold);
        if self.phase == Phase::Leading && is_wanted && !is_done && !is_untold {
            self.peers.hold_queued = true;
            let command = self.own(Operation::HoldTrim);
            self.intake.push_own(pending(None, command));
        }
    }

    /// A log in which nothing has happened yet begins at the level that it is to have.
    pub(super) fn raise_new_log(&mut self, now: Mono) {
        let level = self.settings.new_log_level;
        let is_wanted = self.state.revision() == Revision(0) && self.state.level() < level;
        if is_wanted && self.check_level(now, level).is_ok() {
            self.raising = Some(level);
            let command = self.own(Operation::RaiseLevel { level });
            self.intake.push_own(pending(None, command));
        }
    }

    /// Why a command cannot be appended at the level in force, or at the one that comes before it in the intake.
    pub(super) fn level_refusal(&self, operation: &Operation) -> Option<Undecided> {
        let (needed, level) = (operation.level(), self.state.level());
        if needed <= level.max(self.raising.unwrap_or(0)) {
            return None;
        }
        let reason = format!(
            "this belongs to level {needed} and level {level} is in force: when all nodes are upgraded, an operator \
             raises it (sereno raise-level)"
        );
        Some(Undecided::Unavailable { reason, retry_after_ms: 10_000 })
    }

    /// Whether every node that is there understands a level.
    pub(super) fn check_level(&self, now: Mono, level: u32) -> Result<(), Invalid> {
        let own = (&self.settings.writer.node_id, self.settings.level_max);
        let theirs = self.peers.live(now).map(|seen| (&seen.record.node_id, seen.record.level_max));
        match theirs.chain([own]).find(|&(_, level_max)| level_max < level) {
            None => Ok(()),
            Some((node, level_max)) => Err(Invalid::new(
                "level",
                format!("must not be above {level_max}: node {node} understands no higher one"),
            )),
        }
    }

    /// Whether snapshots are this node's work: the first standby's in order of ids, the leader's where it is alone.
    pub(super) fn makes_snapshots(&self, now: Mono) -> bool {
        let Some(leader) = self.state.leader() else { return !self.settings.is_shared };
        let own = &self.settings.writer.node_id;
        let others = self.peers.live(now).map(|seen| &seen.record.node_id);
        let standbys = others.chain([own]).filter(|&id| *id != leader.writer.node_id);
        standbys.min().is_none_or(|first| first == own)
    }

    /// Where another process with this node's id is.
    pub(super) fn twin(&self, now: Mono) -> Option<String> {
        let twin = &self.peers.twin;
        twin.is_there(now).then(|| twin.address.clone())
    }

    /// The other nodes, in the order of their ids, for status.
    pub(super) fn peers_view(&self, now: Mono) -> Vec<Peer> {
        let view = |seen: &Seen, gone: bool| Peer {
            node_id: seen.record.node_id.clone(),
            address: seen.record.address.clone(),
            version: seen.record.version.clone(),
            level_max: seen.record.level_max,
            position: Position(seen.record.applied),
            leader_heard_ms: seen.record.leader_heard_ms,
            silent_ms: now.since_ns(seen.changed_at) / 1_000_000,
            gone,
            twin: seen.record.twin.clone(),
        };
        let there = self.peers.seen.values().map(|seen| view(seen, false));
        let gone = self.peers.gone.values().map(|seen| view(seen, true));
        let mut peers: Vec<_> = there.chain(gone).collect();
        peers.sort_unstable_by(|a, b| a.node_id.cmp(&b.node_id));
        peers
    }
}
