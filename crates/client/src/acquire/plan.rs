//! How to go on after each answer to an acquire: a state machine without I/O, told the time.
//!
//! One request id is kept over all repeats, so a grant whose answer was lost is found again and not taken for
//! somebody else's. After a refusal that was seen the id is spent: another try draws a new one.

use crate::{clock::Moment, core::unknown, error::Error, transport::NoAnswer};
use sereno_api::{ErrorCode, Outcome, Problem, Reason, RetryWith};
use std::time::Duration;

/// A request is repeated for at most this long after it was first sent or last answered: the service remembers
/// for 90 s, less the 30 s for which a copy may be under way, less some for clocks.
const REPEAT_FOR: Duration = Duration::from_secs(55);
/// How long a door holds a call that waits, at most.
const HELD_FOR: Duration = Duration::from_secs(20);
/// The longest wait that the service takes; a longer one goes on in rounds, each from the end of the queue.
const ROUND: Duration = Duration::from_secs(600);
/// For an answer beyond what a call is held.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long an unavailable service is asked again where the caller says nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A grant whose answer took longer than this was waited for.
const AT_ONCE: Duration = Duration::from_millis(250);

/// What the caller wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// How long to stand in the service's queue.
    pub wait: Duration,
    /// Bound of the whole acquire. With it and without `wait`, a refusal is tried again.
    pub timeout: Option<Duration>,
}

/// What an attempt brought, as far as the plan needs it.
#[derive(Clone, Debug)]
pub(super) enum News {
    Granted { round_trip: Duration },
    Waiting { round_trip: Duration },
    Refused(Box<Problem>),
    Nothing(NoAnswer),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Send the request as [`Plan::send`] says, after a pause.
    Again(Duration),
    /// Draw a new request id ([`Plan::renew_id`]) and send, after a pause.
    Afresh(Duration),
    /// Abandon the request until that is answered, then go on afresh.
    Renounce,
    /// The lock was granted. `confirm`: after a wait, so renew it before it is reported.
    Granted { confirm: bool },
    /// It is over. If [`Plan::may_hold`], abandon in the background.
    Stop(Error),
}

/// The parameters of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Send {
    /// `waitTimeout`, if there is something to wait for.
    pub wait: Option<Duration>,
    /// When to take silence for no answer.
    pub timeout: Duration,
}

/// See the module.
pub(super) struct Plan {
    terms: Terms,
    servers: usize,
    wait_until: Moment,
    gives_up: Moment,
    /// Random, 0 to 999: a new one for each pause.
    dice: fn() -> u32,
    /// Of the present request id:
    first_sent: Option<Moment>,
    heard_at: Option<Moment>,
    may_hold: bool,
    waited: bool,
    is_round: bool,
    /// Attempts since something was heard; refusals seen so far.
    silent: u32,
    refused: u32,
}

impl Plan {
    pub(super) fn new(terms: Terms, servers: usize, now: Moment, dice: fn() -> u32) -> Self {
        let allowed = terms.timeout.unwrap_or(terms.wait.saturating_add(PATIENCE));
        // The service's own time-out gives a certain answer, so it should come first.
        let longest_wait = allowed.saturating_sub((allowed / 10).min(Duration::from_secs(1)));
        Self {
            terms,
            servers,
            wait_until: now.plus(terms.wait.min(longest_wait)),
            gives_up: now.plus(allowed),
            dice,
            first_sent: None,
            heard_at: None,
            may_hold: false,
            waited: false,
            is_round: false,
            silent: 0,
            refused: 0,
        }
    }

    /// The next attempt; it counts as under way from here on.
    pub(super) fn send(&mut self, now: Moment) -> Send {
        let wait = now.until(self.wait_until);
        let held = wait.min(HELD_FOR);
        let left = now.until(self.gives_up).max(Duration::from_millis(1));
        if self.first_sent.is_none() {
            // The service goes by the first copy that it sees.
            self.first_sent = Some(now);
            self.is_round = wait > ROUND;
        }
        Send {
            wait: Some(wait.min(ROUND)).filter(|wait| *wait >= Duration::from_millis(1)),
            timeout: (held + ANSWER_WITHIN).min(left),
        }
    }

    /// The present id may wait or hold at the service.
    pub(super) fn may_hold(&self) -> bool {
        self.may_hold
    }

    /// An attempt went out whose answer nobody has read yet.
    pub(super) fn under_way(&mut self) {
        self.may_hold = true;
    }

    /// When the whole acquire is given up.
    pub(super) fn gives_up(&self) -> Moment {
        self.gives_up
    }

    /// A new request id was drawn.
    pub(super) fn renew_id(&mut self) {
        self.first_sent = None;
        self.heard_at = None;
        self.may_hold = false;
        self.waited = false;
        self.silent = 0;
    }

    /// `before`: [`Self::may_hold`] as it was before the attempt.
    pub(super) fn hear(&mut self, news: News, before: bool, now: Moment) -> Step {
        match news {
            News::Granted { round_trip } => {
                Step::Granted { confirm: self.waited || round_trip > AT_ONCE }
            }
            News::Waiting { round_trip } => self.waiting(round_trip, now),
            News::Refused(problem) => self.refused(problem, before, now),
            News::Nothing(NoAnswer::NotSent(why)) => {
                self.may_hold = before;
                self.repeat(Duration::ZERO, why, now)
            }
            News::Nothing(NoAnswer::Silent(why)) => self.repeat(Duration::ZERO, why, now),
        }
    }

    /// The lease ended between its grant and its confirmation.
    pub(super) fn lost(&mut self, error: Error, now: Moment) -> Step {
        self.may_hold = false;
        self.afresh(Duration::ZERO, error, now)
    }

    fn waiting(&mut self, round_trip: Duration, now: Moment) -> Step {
        self.waited = true;
        self.silent = 0;
        self.heard_at = Some(now);
        // A door that does not hold the call must not be asked in a tight loop.
        let pause = Duration::from_millis(100).saturating_sub(round_trip);
        if now.plus(pause) >= self.gives_up {
            return Step::Stop(Error::Unknown("still waiting when the time was over".into()));
        }
        Step::Again(pause)
    }

    fn refused(&mut self, problem: Box<Problem>, before: bool, now: Moment) -> Step {
        let hint = Duration::from_millis(problem.retry_after_ms.unwrap_or(0));
        let retry_with = match problem.code {
            // Of an ask it is as a lease that has ended: the id is spent.
            ErrorCode::ReservationEnded => Some(RetryWith::NewRequestId),
            _ => problem.retry_with,
        };
        match retry_with {
            Some(RetryWith::SameRequestId) => {
                self.may_hold = before || problem.outcome == Outcome::Unknown;
                self.repeat(hint, format!("{}: {}", problem.code, problem.detail), now)
            }
            Some(RetryWith::NewRequestId) => {
                self.may_hold = false;
                if !self.tries_again_after(&problem, now) {
                    return Step::Stop(Error::Refused(problem));
                }
                let hint = if problem.code == ErrorCode::Locked { Duration::ZERO } else { hint };
                self.afresh(hint, Error::Refused(problem), now)
            }
            None => {
                self.may_hold = problem.outcome == Outcome::Unknown;
                Step::Stop(Error::Refused(problem))
            }
        }
    }

    fn tries_again_after(&self, problem: &Problem, now: Moment) -> bool {
        match problem.code {
            // Granted once, but nobody heard of it in time.
            ErrorCode::LeaseEnded | ErrorCode::ReservationEnded => true,
            // Its own deadline is what the caller asked for; anything else ended the wait early.
            ErrorCode::WaitTimeout => {
                let is_over = match problem.reason {
                    Some(Reason::TimedOut) => !self.is_round,
                    // Another candidate of the same name: to go on would push that one out in turn.
                    Some(Reason::Replaced) => true,
                    _ => false,
                };
                !is_over && now < self.wait_until
            }
            ErrorCode::Locked => self.terms.timeout.is_some(),
            // What could never be had has no time at which to ask again.
            ErrorCode::QuotaExhausted => {
                self.terms.timeout.is_some() && problem.retry_after_ms.is_some()
            }
            _ => self.terms.timeout.is_some() || now < self.wait_until,
        }
    }

    /// The same request once more, unless it is too old for that.
    fn repeat(&mut self, hint: Duration, why: String, now: Moment) -> Step {
        let pause = hint.max(self.pause_after_silence());
        let then = now.plus(pause);
        self.silent = self.silent.saturating_add(1);
        if then >= self.gives_up {
            let error = if self.may_hold { unknown(why) } else { Error::Unavailable(why) };
            return Step::Stop(error);
        }
        let since = self.heard_at.or(self.first_sent).unwrap_or(now);
        match then.since(since) < REPEAT_FOR {
            true => Step::Again(pause),
            false if self.may_hold => Step::Renounce,
            false => Step::Afresh(pause),
        }
    }

    fn afresh(&mut self, hint: Duration, error: Error, now: Moment) -> Step {
        let pause = hint.max(jittered(self.refused, 50, 2_000, (self.dice)()));
        self.refused = self.refused.saturating_add(1);
        match now.plus(pause) >= self.gives_up {
            true => Step::Stop(error),
            false => Step::Afresh(pause),
        }
    }

    /// Every address is tried once without a pause.
    fn pause_after_silence(&self) -> Duration {
        match usize::try_from(self.silent).unwrap_or(usize::MAX) {
            silent if silent + 1 < self.servers => Duration::ZERO,
            _ => jittered(self.silent, 50, 2_000, (self.dice)()),
        }
    }
}

/// Exponential up to `longest_ms`, with full jitter.
fn jittered(attempt: u32, shortest_ms: u64, longest_ms: u64, dice: u32) -> Duration {
    let bound = shortest_ms.saturating_mul(1 << attempt.min(16)).min(longest_ms);
    Duration::from_micros(bound * u64::from(dice % 1_000 + 1))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
