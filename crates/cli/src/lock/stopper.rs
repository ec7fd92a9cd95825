//! Decides when to stop a process group: TERM, then KILL. Told the time; used by the wrapper and by its watchdog.

use super::timetable::Limits;
use sereno_client::Moment;

/// What to do to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Ask it to stop.
    Terminate,
    /// Stop it.
    Kill,
}

/// See the module. Once stopping has begun, no renewal takes it back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopper {
    limits: Option<Limits>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    Terminating {
        kill_at: Moment,
    },
    Killed,
}

impl Stopper {
    /// The lease has these limits from now on.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.limits = Some(limits);
    }

    /// Stops it, whatever the limits say: TERM now unless that was sent, and KILL at `kill_at` at the latest.
    pub(crate) fn stop_by(&mut self, kill_at: Moment) -> Option<Act> {
        let kill_at = self.limits.map_or(kill_at, |limits| limits.kill_at.min(kill_at));
        match self.phase {
            Phase::Running => {
                self.phase = Phase::Terminating { kill_at };
                Some(Act::Terminate)
            }
            Phase::Terminating { kill_at: planned } => {
                self.phase = Phase::Terminating { kill_at: planned.min(kill_at) };
                None
            }
            Phase::Killed => None,
        }
    }

    /// What is due now; ask again until there is nothing.
    pub(crate) fn due(&mut self, now: Moment) -> Option<Act> {
        match self.phase {
            Phase::Running => {
                let limits = self.limits.filter(|limits| limits.term_at <= now)?;
                self.stop_by(limits.kill_at)
            }
            Phase::Terminating { kill_at } if kill_at <= now => {
                self.phase = Phase::Killed;
                Some(Act::Kill)
            }
            Phase::Terminating { .. } | Phase::Killed => None,
        }
    }

    /// When something will be due.
    pub(crate) fn wake(&self) -> Option<Moment> {
        match self.phase {
            Phase::Running => self.limits.map(|limits| limits.term_at),
            Phase::Terminating { kill_at } => Some(kill_at),
            Phase::Killed => None,
        }
    }

    /// TERM was sent.
    pub(crate) fn has_begun(&self) -> bool {
        self.phase != Phase::Running
    }

    /// KILL was sent.
    pub(crate) fn has_killed(&self) -> bool {
        self.phase == Phase::Killed
    }

    /// When KILL comes, once stopping has begun.
    pub(crate) fn kill_at(&self) -> Option<Moment> {
        match self.phase {
            Phase::Terminating { kill_at } => Some(kill_at),
            Phase::Running | Phase::Killed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    fn limited(term: u64, kill: u64) -> Stopper {
        let mut stopper = Stopper::default();
        stopper.set_limits(Limits { term_at: at(term), kill_at: at(kill) });
        stopper
    }

    #[test]
    fn without_limits_nothing_is_due() {
        let mut stopper = Stopper::default();
        assert_eq!((stopper.due(at(1_000_000)), stopper.wake()), (None, None));
    }

    #[test]
    fn term_then_kill_each_once() {
        let mut stopper = limited(10, 20);
        assert_eq!((stopper.due(at(9)), stopper.wake()), (None, Some(at(10))));
        assert_eq!(stopper.due(at(10)), Some(Act::Terminate));
        assert_eq!((stopper.due(at(10)), stopper.wake()), (None, Some(at(20))));
        assert_eq!(stopper.due(at(20)), Some(Act::Kill));
        assert_eq!((stopper.due(at(99)), stopper.wake()), (None, None));
    }

    #[test]
    fn renewals_move_it_but_take_nothing_back() {
        let mut stopper = limited(10, 20);
        stopper.set_limits(Limits { term_at: at(30), kill_at: at(40) });
        assert_eq!(stopper.due(at(20)), None);
        assert_eq!(stopper.due(at(30)), Some(Act::Terminate));
        stopper.set_limits(Limits { term_at: at(50), kill_at: at(60) });
        assert_eq!(stopper.due(at(40)), Some(Act::Kill));
    }

    #[test]
    fn after_a_suspend_both_come_at_the_first_chance() {
        let mut stopper = limited(10, 20);
        assert_eq!(stopper.due(at(500)), Some(Act::Terminate));
        assert_eq!(stopper.due(at(500)), Some(Act::Kill));
    }

    #[test]
    fn stop_by_never_goes_past_the_lease_and_only_comes_nearer() {
        let mut stopper = limited(10, 20);
        assert_eq!(stopper.stop_by(at(25)), Some(Act::Terminate));
        assert_eq!(stopper.wake(), Some(at(20)));
        assert_eq!(stopper.stop_by(at(15)), None);
        assert_eq!(stopper.stop_by(at(18)), None);
        assert_eq!(stopper.due(at(15)), Some(Act::Kill));
        assert_eq!(stopper.stop_by(at(16)), None);
    }
}
