//! A lease's state machine, shared by the guard that shows it and the renewer that feeds it.

use crate::{
    clock::Moment,
    core::lock,
    lease::{GuardState, Lease, Loss},
};
use std::sync::Mutex;
use tokio::sync::watch;

/// What watchers of a guard see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardStatus {
    /// Held, at risk or lost.
    pub state: GuardState,
    /// The local deadline: lost from here on, unless a renewal is acknowledged before.
    pub deadline: Moment,
    /// No renewal can pass this moment, where `maxHold` sets one.
    pub final_deadline: Option<Moment>,
}

/// See the module.
pub(crate) struct Cell {
    lease: Mutex<Lease>,
    status: watch::Sender<GuardStatus>,
}

impl Cell {
    pub(crate) fn new(mut lease: Lease) -> Self {
        let status = watch::Sender::new(status(&mut lease, Moment::now()));
        Self { lease: Mutex::new(lease), status }
    }

    /// Does something to the lease, or only looks, and tells the watchers what has changed.
    pub(crate) fn with<T>(&self, now: Moment, act: impl FnOnce(&mut Lease) -> T) -> T {
        let mut lease = lock(&self.lease);
        let result = act(&mut lease);
        let status = status(&mut lease, now);
        self.status.send_if_modified(|seen| {
            let changed = *seen != status;
            *seen = status;
            changed
        });
        result
    }

    /// The state at this moment, by the clock and not by the last timer.
    pub(crate) fn state(&self) -> GuardState {
        let now = Moment::now();
        self.with(now, |lease| lease.state(now))
    }

    /// The reason, once it is lost.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match self.state() {
            GuardState::Lost(loss) => Some(loss),
            GuardState::Held | GuardState::AtRisk => None,
        }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<GuardStatus> {
        self.status.subscribe()
    }
}

fn status(lease: &mut Lease, now: Moment) -> GuardStatus {
    GuardStatus {
        state: lease.state(now),
        deadline: lease.deadline(),
        final_deadline: lease.final_deadline(),
    }
}
