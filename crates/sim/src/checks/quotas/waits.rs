//! S7 for those who wait for quota: a wait ends once, and is never granted after that.

use super::{Moment, key_of};
use sereno_core::{
    command::Reserve,
    ids::{ClusterTime, ReservationId},
    outcome::WaitEnd,
};
use std::collections::{BTreeMap, BTreeSet};

/// Nobody is taken for gone before this has passed since it was asked for.
const GRACE_MS: u64 = 10_000;

#[derive(Clone, Debug)]
struct Wait {
    request: String,
    deadline: ClusterTime,
    asked_at: ClusterTime,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    of: BTreeMap<ReservationId, Wait>,
    /// Requests that hold nothing and never will. (The service remembers them for longer than a run takes.)
    dead: BTreeSet<String>,
}

impl Waits {
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn all_end(&mut self) {
        let requests = std::mem::take(&mut self.of).into_values().map(|wait| wait.request);
        self.dead.extend(requests);
    }

    pub(super) fn begins(&mut self, name: ReservationId, op: &Reserve, moment: &Moment) {
        let request = key_of(op);
        assert!(!self.dead.contains(&request), "S7: {request} was over, and waits again");
        let deadline = moment.time.plus(op.wait_timeout_ms);
        let wait = Wait { request, deadline, asked_at: moment.time };
        assert!(self.of.insert(name, wait).is_none(), "a reservation's name is its own");
    }

    pub(super) fn asked_again(&mut self, request: &str, time: ClusterTime) {
        let its = self.of.values_mut().filter(|wait| wait.request == request);
        its.for_each(|wait| wait.asked_at = time);
    }

    pub(super) fn ends(&mut self, name: ReservationId, why: Option<WaitEnd>, moment: &Moment) {
        let wait = self.of.remove(&name).unwrap_or_else(|| panic!("S7: {name}: a wait ends once"));
        let time = moment.time;
        match why {
            Some(WaitEnd::TimedOut) => assert!(
                time >= wait.deadline,
                "S7: {name}: a wait is as long as was asked for: {time} before {}",
                wait.deadline
            ),
            Some(WaitEnd::Deserted) => {
                let since = wait.asked_at.max(moment.announced_at);
                assert!(
                    since.until(time) >= GRACE_MS,
                    "S7: {name}: a wait is deserted after its grace: {} ms",
                    since.until(time)
                );
            }
            _ => {}
        }
        self.dead.insert(wait.request);
    }

    /// From here on this request is granted nothing.
    pub(super) fn dies(&mut self, request: String) {
        self.dead.insert(request);
    }

    pub(super) fn granted(
        &mut self,
        name: ReservationId,
        request: &str,
        waited: bool,
        time: ClusterTime,
    ) {
        assert!(!self.dead.contains(request), "S7: {request} was over, and is granted");
        let wait = self.of.remove(&name);
        assert!(wait.is_some() == waited, "S7: {name}: only who waits is granted after a wait");
        if let Some(wait) = wait {
            assert!(
                wait.deadline > time,
                "S7: {name}: a wait that is over is not granted: {} at {time}",
                wait.deadline
            );
        }
    }
}
