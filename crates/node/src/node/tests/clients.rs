//! What clients of the simulated world do and see.

use super::{asks::Ask, world::World};
use crate::{
    handle::{Consistency, Reply, Undecided},
    node::{CallId, Input, NodeCall, ReadId},
};
use sereno_core::{
    ids::{ClusterTime, ObjectId},
    outcome::{Code, Done, Grant, Outcome, Waiting},
    testing,
};

impl World {
    /// A call, and what follows from it.
    pub(super) fn call(&mut self, ask: Ask) -> CallId {
        let id = self.queue(ask);
        self.advance();
        id
    }

    /// A call that may share its entry with others to come.
    pub(super) fn queue(&mut self, ask: Ask) -> CallId {
        self.asked += 1;
        let id = CallId(self.asked);
        let call = NodeCall {
            id,
            caller: ask.caller,
            operation: ask.operation,
            born_at: ask.born_at,
            deadline: self.now.mono.plus_ms(ask.within_ms),
            hold_ms: ask.hold_ms,
            is_passed: false,
        };
        self.hand(Input::Call(call));
        id
    }

    /// A call whose entry lands at once.
    pub(super) fn done(&mut self, ask: Ask) -> CallId {
        let id = self.call(ask);
        self.settle();
        id
    }

    pub(super) fn cancel(&mut self, id: CallId) {
        self.give(Input::Cancelled(id));
    }

    pub(super) fn read(&mut self, consistency: Consistency) -> ReadId {
        self.asked += 1;
        let (id, deadline) = (ReadId(self.asked), self.now.mono.plus_ms(10_000));
        self.give(Input::Read { id, consistency, deadline, is_passed: false });
        id
    }

    pub(super) fn is_open(&self, id: CallId) -> bool {
        !self.replies.contains_key(&id)
    }

    pub(super) fn outcome(&self, id: CallId) -> &Outcome {
        match self.replies.get(&id) {
            Some(Reply::Decided(outcome)) => outcome,
            other => panic!("{id:?} is decided, not {other:?}"),
        }
    }

    pub(super) fn undecided(&self, id: CallId) -> &Undecided {
        match self.replies.get(&id) {
            Some(Reply::Undecided(undecided)) => undecided,
            other => panic!("{id:?} is undecided, not {other:?}"),
        }
    }

    pub(super) fn is_unavailable(&self, id: CallId) -> bool {
        matches!(self.undecided(id), Undecided::Unavailable { .. })
    }

    pub(super) fn granted(&self, id: CallId) -> &Grant {
        match &self.outcome(id).result {
            Ok(Done::Granted(grant)) => grant,
            other => panic!("{id:?} is granted, not {other:?}"),
        }
    }

    pub(super) fn waiting(&self, id: CallId) -> &Waiting {
        match &self.outcome(id).result {
            Ok(Done::Waiting(waiting)) => waiting,
            other => panic!("{id:?} waits, not {other:?}"),
        }
    }

    pub(super) fn refused(&self, id: CallId) -> Code {
        match &self.outcome(id).result {
            Err(refusal) => refusal.code,
            other => panic!("{id:?} is refused, not {other:?}"),
        }
    }

    pub(super) fn time(&self) -> ClusterTime {
        self.node.state().time()
    }

    pub(super) fn not_ready(&self) -> Option<String> {
        self.node.status(self.now.mono).not_ready
    }

    /// The owner who holds the resource.
    pub(super) fn holder(&self, resource: &str) -> Option<String> {
        let name = testing::resource_name(resource);
        let view = self.node.state().lock(&testing::default_namespace(), &name);
        let holder = view.expect("the default namespace exists").holder?;
        Some(holder.holder.owner.to_string())
    }

    /// All waiting claims.
    pub(super) fn waiters(&self) -> Vec<ObjectId> {
        self.node.state().waiting_claims().collect()
    }
}
