//! What the nodes' background threads do with the log: rehearsals that save snapshots, fresh states, trims.

use crate::{
    clock::S,
    event::{Arrival, Event, Healing, To},
    world::World,
};
use sereno_core::{
    entry::{EntryHash, Head},
    ids::Position,
};
use sereno_log::Snapshot;
use sereno_node::node::Rehearsal;

impl World {
    /// The work of a rehearsal, at one moment.
    pub(crate) fn rehearse(&mut self, to: To, head: Head, outcome_chain: EntryHash) {
        self.takes_its_turn(to.node);
        let rehearsal = if self.log.doubts.remove(&to.node) {
            self.mark("a rehearsal differs");
            Rehearsal::Differs(head)
        } else if self.log.is_full {
            Rehearsal::Failed("there is no space".into())
        } else if self.reaches_log(to.node) {
            self.rehearsal(head, outcome_chain)
        } else {
            Rehearsal::Failed("the log is not reached".into())
        };
        self.say(|| format!("n{} rehearsed: {rehearsal:?}", to.node));
        self.agenda.after(0, Event::Arrive(to, Arrival::Rehearsed(rehearsal)));
    }

    fn rehearsal(&mut self, head: Head, outcome_chain: EntryHash) -> Rehearsal {
        let (mut state, _) = self.log.last_snapshot();
        if self.log.replay(&mut state, head.position).is_none() || state.head() != head {
            // Another node has a newer snapshot.
            return Rehearsal::Failed("overtaken".into());
        }
        assert!(
            state.outcome_chain() == outcome_chain,
            "S1: a rehearsal comes to the live state at {}",
            head.position
        );
        let snapshot = Snapshot { head, bytes: state.to_snapshot().into() };
        match self.log.memory.save_snapshot(snapshot) {
            Ok(()) => {
                self.snapshots += 1;
                Rehearsal::Saved(head)
            }
            Err(error) => Rehearsal::Failed(error.to_string()),
        }
    }

    pub(crate) fn reload(&mut self, to: To, head: Head) {
        if self.to(to.node) != to {
            return;
        }
        self.takes_its_turn(to.node);
        let once = || {
            let (mut state, _) = self.log.last_snapshot();
            self.log.replay(&mut state, head.position).map(|_| state)
        };
        let Some(state) = once() else {
            // Overtaken by another node's snapshot: the driver gives up, and its process is started again.
            self.kill(to.node);
            return self.agenda.after(2 * S, Event::Heal(Healing::Start(to.node)));
        };
        let is_bad_again = self.random.in_1000(200);
        if is_bad_again {
            self.mark("it differs again");
        }
        let again = if is_bad_again { EntryHash::ZERO } else { state.outcome_chain() };
        let come = Arrival::Reloaded(Box::new(state), again);
        self.agenda.after(0, Event::Arrive(to, come));
    }

    pub(crate) fn trim(&mut self, to: To, position: Position) {
        if self.reaches_log(to.node) {
            let first = self.log.memory.trim(position);
            self.say(|| format!("   log: trimmed, begins at {first}"));
        }
    }
}
