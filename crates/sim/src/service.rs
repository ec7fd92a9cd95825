//! The log that the nodes share, behind a network that loses, delays and refuses.

use crate::{
    clock::{MS, S, wall_us},
    event::{AppendCopy, Arrival, Event, To},
    world::World,
};
use sereno_core::{
    State,
    entry::{Entry, Head, SealedEntry},
    ids::Position,
    planted,
};
use sereno_log::{Append, Conflict, Read, Slot, memory::Memory};
use sereno_node::node::Fetched;
use std::collections::BTreeSet;

/// An append whose answer does not come is given up by the engine after this.
const APPEND_TIMEOUT_NS: u64 = 2 * S;
/// Bytes read at once: few, so that a node catches up in several steps.
const FETCH_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct LogService {
    pub(crate) memory: Memory,
    /// No quorum: nothing lands.
    pub(crate) is_out: bool,
    /// No space: nothing can be written, and everything be read.
    pub(crate) is_full: bool,
    pub(crate) cut: BTreeSet<usize>,
    pub(crate) slow: BTreeSet<usize>,
    /// In a thousand: appends lost, answers lost, late copies, refusals, and appends that arrive twice.
    pub(crate) flaky: [u64; 5],
    /// Nodes that wait for an entry.
    pub(crate) waiting: Vec<(To, Position)>,
    /// Nodes whose next rehearsal comes to something else.
    pub(crate) doubts: BTreeSet<usize>,
    pub(crate) was_put_back: bool,
}

impl LogService {
    /// The state of the head, as a node that starts makes it, the snapshot it began with, and the bytes since.
    pub(crate) fn recover(&self) -> (State, Option<Position>, u64) {
        let (mut state, position) = self.last_snapshot();
        let bytes = self.replay(&mut state, self.memory.head().position);
        (state, position, bytes.expect("the log goes on from its newest snapshot"))
    }

    pub(crate) fn last_snapshot(&self) -> (State, Option<Position>) {
        match self.memory.latest_snapshot() {
            None => (State::new(), None),
            Some(snapshot) => {
                let state = State::from_snapshot(&snapshot.bytes);
                let state = state.expect("a snapshot that was saved can be read");
                assert!(state.head() == snapshot.head, "a snapshot is of its head");
                (state, Some(snapshot.head.position))
            }
        }
    }

    /// Applies the log up to `end`. Gives the bytes; `None`: the log does not lead there (any more).
    pub(crate) fn replay(&self, state: &mut State, end: Position) -> Option<u64> {
        if state.head().position > end {
            return None;
        }
        let mut bytes = 0;
        let Read::Entries(entries) = self.memory.read(state.head().position.next(), usize::MAX)
        else {
            return None;
        };
        for sealed in entries.iter().take_while(|entry| entry.head.position <= end) {
            let entry = Entry::decode(&sealed.bytes).expect("the log holds entries");
            state.apply(&entry, sealed.head.hash).expect("the log's entries follow each other");
            bytes += sealed.bytes.len() as u64;
        }
        (state.head().position == end).then_some(bytes)
    }
}

impl World {
    pub(crate) fn reaches_log(&self, node: usize) -> bool {
        !self.log.is_out && !self.log.cut.contains(&node)
    }

    fn log_delay(&mut self, node: usize) -> u64 {
        if self.log.slow.contains(&node) {
            return self.random.between(20 * MS, 1_900 * MS);
        }
        self.random.skewed(MS / 2, 40 * MS)
    }

    pub(crate) fn append(&mut self, node: usize, expected: Head, entry: SealedEntry) {
        let now = self.agenda.now;
        self.truth.sent(entry.head.hash, now);
        self.trace.mix(&[2, node as u64, entry.head.position.0]);
        let process = self.hosts[node].process.as_mut().expect("only a process appends");
        assert!(!process.has_append, "one append at a time");
        process.has_append = true;
        let to = self.to(node);
        let [lost, reply_lost, late, refused, twice] = self.log.flaky;
        let draw = self.random.between(0, 999);
        let copy = |reply_ns| {
            let entry = entry.clone();
            Box::new(AppendCopy { to, expected, entry, reply_ns })
        };
        let (there, back) = (self.log_delay(node), self.log_delay(node));
        let position = expected.position.next();
        if !self.reaches_log(node) {
            // What waits in front of a log without quorum may land when that is back.
            let lands_late = self.random.in_1000(250);
            self.say(|| format!("n{node} -> append {position}: the log is not reached"));
            if lands_late {
                let delay = self.random.between(500 * MS, 25 * S);
                self.agenda.after(delay, Event::AppendReaches(copy(None)));
            } else if self.random.in_1000(200) {
                let refused = Append::NotAppended("not reached".into());
                return self.agenda.after(10 * MS, Event::Arrive(to, Arrival::Appended(refused)));
            }
            return self.append_unknown(to);
        }
        if self.log.is_full {
            self.say(|| format!("n{node} -> append {position}: there is no space"));
            self.mark("a full log takes no append");
            let refused = Append::NotAppended("there is no space".into());
            self.agenda.after(there, Event::Arrive(to, Arrival::Appended(refused)));
        } else if draw < lost {
            self.say(|| format!("n{node} -> append {position}: lost"));
            self.append_unknown(to);
        } else if draw < lost + reply_lost {
            self.say(|| format!("n{node} -> append {position}: its answer will be lost"));
            self.agenda.after(there, Event::AppendReaches(copy(None)));
            self.append_unknown(to);
        } else if draw < lost + reply_lost + late {
            let delay = self.random.between(200 * MS, 45 * S);
            self.say(|| format!("n{node} -> append {position}: late by {} ms", delay / MS));
            self.agenda.after(delay, Event::AppendReaches(copy(None)));
            self.append_unknown(to);
        } else if draw < lost + reply_lost + late + refused {
            self.say(|| format!("n{node} -> append {position}: refused"));
            let refused = Append::NotAppended("refused".into());
            self.agenda.after(there, Event::Arrive(to, Arrival::Appended(refused)));
        } else {
            self.say(|| format!("n{node} -> append {position}"));
            if draw < lost + reply_lost + late + refused + twice {
                let delay = there + self.random.between(0, 10 * S);
                let again = AppendCopy { to, expected, entry: entry.clone(), reply_ns: None };
                self.agenda.after(delay, Event::AppendReaches(Box::new(again)));
            }
            self.agenda.after(there, Event::AppendReaches(copy(Some(back))));
        }
    }

    fn append_unknown(&mut self, to: To) {
        let delay = self.random.between(300 * MS, APPEND_TIMEOUT_NS);
        let unknown = Append::Unknown("no answer".into());
        self.agenda.after(delay, Event::Arrive(to, Arrival::Appended(unknown)));
    }

    pub(crate) fn append_reaches(&mut self, copy: AppendCopy) {
        let AppendCopy { to, expected, entry, reply_ns } = copy;
        let is_gone = self.to(to.node) != to || self.hosts[to.node].process.is_none();
        if self.config.is_embedded && is_gone {
            // What a process writes to its own disk ends with it.
            return;
        }
        if self.log.is_out {
            if reply_ns.is_some() {
                self.append_unknown(to);
            }
            if self.random.in_1000(250) {
                let delay = self.random.between(500 * MS, 25 * S);
                let copy = Box::new(AppendCopy { to, expected, entry, reply_ns: None });
                self.agenda.after(delay, Event::AppendReaches(copy));
            }
            return;
        }
        if self.log.is_full {
            // It was sent before, and another copy may come later: this one says nothing about that.
            if reply_ns.is_some() {
                self.append_unknown(to);
            }
            return;
        }
        let result = self.log.memory.append(&expected, &entry);
        if result == Append::Committed {
            let position = entry.head.position;
            self.say(|| format!("   log: entry {position} of n{} lands", to.node));
            let now = self.agenda.now;
            planted::set_machine(wall_us(now), self.truth.state.level());
            self.truth.learn(&entry, now, self.log.is_out);
            self.landings += 1;
            self.tell_waiting();
        }
        match &result {
            Append::Committed if reply_ns.is_none() => {
                self.mark("an append lands and its answer is lost");
            }
            Append::Conflict(conflict) if conflict.slot == Slot::Entry(entry.head.hash) => {
                self.mark("a copy meets its own first one");
            }
            Append::Conflict(_) if reply_ns.is_none() => {
                self.mark("a late copy meets another head");
            }
            Append::Conflict(Conflict { slot: Slot::Trimmed, .. }) => {
                self.mark("a copy meets a trimmed slot");
            }
            Append::Conflict(_) => self.mark("a leader is overtaken"),
            _ => {}
        }
        if let Some(back) = reply_ns {
            if self.log.cut.contains(&to.node) {
                return self.append_unknown(to);
            }
            self.agenda.after(back, Event::Arrive(to, Arrival::Appended(result)));
        }
    }

    pub(crate) fn tell_waiting(&mut self) {
        let head = self.log.memory.head().position;
        let waiting = std::mem::take(&mut self.log.waiting);
        for (to, from) in waiting {
            if from <= head {
                let delay = self.log_delay(to.node);
                self.agenda.after(delay, Event::FetchReaches(to, from));
            } else {
                self.log.waiting.push((to, from));
            }
        }
    }

    pub(crate) fn fetch(&mut self, node: usize, from: Position) {
        let process = self.hosts[node].process.as_mut().expect("only a process fetches");
        if process.fetched_from == from {
            process.fetched_in_vain += 1;
        } else {
            (process.fetched_from, process.fetched_in_vain) = (from, 0);
        }
        assert!(
            process.fetched_in_vain < 400,
            "a node does not read the same again and again: n{node} from {from}"
        );
        let (to, delay) = (self.to(node), self.log_delay(node));
        self.agenda.after(delay, Event::FetchReaches(to, from));
    }

    pub(crate) fn fetch_reaches(&mut self, to: To, from: Position) {
        let back = self.log_delay(to.node);
        if !self.reaches_log(to.node) {
            let failed = Fetched::Failed;
            return self.agenda.after(S, Event::Arrive(to, Arrival::Fetched(failed)));
        }
        let hint_fails = self.random.in_1000(10);
        if self.log.memory.head().position < from && !hint_fails {
            self.log.waiting.push((to, from));
            return;
        }
        let fetched = match self.log.memory.read(from, FETCH_BYTES) {
            Read::Entries(entries) => Fetched::Entries(entries),
            Read::Trimmed { .. } => Fetched::Snapshot(Box::new(self.log.last_snapshot().0)),
        };
        self.agenda.after(back, Event::Arrive(to, Arrival::Fetched(fetched)));
    }

    /// Nothing comes over a way that is cut: whoever waits there finds out.
    pub(crate) fn break_waits(&mut self) {
        let waiting = std::mem::take(&mut self.log.waiting);
        for (to, from) in waiting {
            if self.reaches_log(to.node) {
                self.log.waiting.push((to, from));
            } else {
                self.agenda.after(S, Event::FetchReaches(to, from));
            }
        }
    }
}
