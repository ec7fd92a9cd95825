//! The heart of a guard: a state machine without I/O and without a clock of its own.
//!
//! ```text
//!          renewal overdue              local deadline passed, or told by the service
//!   Held ──────────────────► AtRisk ──────────────────────────────────────────────► Lost
//!     ▲                        │                                                     (final)
//!     └────────────────────────┘
//!        renewal acknowledged
//! ```
//!
//! The local deadline is the moment at which the last acknowledged call was *sent*, plus the `expiresInMs` of its
//! answer, less 1 % (clocks may differ in rate) and 20 ms (timers and scheduling). The service counts its own
//! deadline from an entry stamped after that call arrived, so the local one always comes first.

use crate::clock::Moment;
use std::{fmt, time::Duration};

/// What a guard may be relied on for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardState {
    /// The lease is fresh.
    Held,
    /// A renewal is overdue. Begin nothing new; what runs may go on until the lease is lost.
    AtRisk,
    /// The lease has to be taken for ended. Final.
    Lost(Loss),
}

/// Why a lease is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// No renewal was acknowledged before the local deadline.
    Deadline,
    /// `maxHold` is used up.
    MaxHold,
    /// The service says that the lease has ended, and how (`expired`, `forced`, ...).
    Ended(String),
    /// The service has never heard of this lease.
    Unknown,
    /// This process has released it.
    Released,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline => f.write_str("no renewal was acknowledged before the local deadline"),
            Self::MaxHold => f.write_str("the longest permitted hold is over"),
            Self::Ended(how) => write!(f, "the service has ended the lease ({how})"),
            Self::Unknown => f.write_str("the service does not know the lease"),
            Self::Released => f.write_str("released by this process"),
        }
    }
}

impl std::error::Error for Loss {}

/// The figures of one acknowledged call: a grant, or a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// When the call was sent that this answers.
    pub sent: Moment,
    /// `expiresInMs`.
    pub expires_in: Duration,
    /// `finalDeadlineInMs`, where `maxHold` bounds the ownership.
    pub final_in: Option<Duration>,
}

/// What an unsuccessful renewal means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotRenewed {
    /// No answer, or one that decides nothing: try again.
    Undecided,
    /// Decided: the lease is gone.
    Lost(Loss),
    /// Nothing is left to add, and nothing more is known of the end.
    Final,
}

/// A random number that spreads clients over time; the caller draws it, so tests can choose it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roll(pub u32);

/// See the module's picture. Every method is told the time; none goes back.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    term: Term,
    deadline: Moment,
    risk_at: Moment,
    /// Renewing from here on is useful when a call is made anyway.
    joins_at: Moment,
    /// `None`: nothing left to renew.
    renew_at: Option<Moment>,
    final_deadline: Option<Moment>,
    /// Renewed by itself. Else it is as it is until its deadline.
    is_kept: bool,
    failures: u32,
    lost: Option<Loss>,
}

/// The local deadline of a call sent at `sent` and answered with `expires_in`.
pub(crate) fn local_deadline(sent: Moment, expires_in: Duration) -> Moment {
    let margin = expires_in / 100 + MARGIN;
    sent.plus(expires_in.saturating_sub(margin))
}

const MARGIN: Duration = Duration::from_millis(20);
/// Not even a lease that is about to be lost is asked for more often.
const SHORTEST_PACE: Duration = Duration::from_millis(250);

impl Lease {
    /// A lease just granted.
    pub(crate) fn new(term: Term, roll: Roll) -> Self {
        Self::granted(term, roll, true)
    }

    /// The same, which is renewed only where its owner does: it is held to its deadline, and never at risk.
    pub(crate) fn unkept(term: Term) -> Self {
        Self::granted(term, Roll(0), false)
    }

    fn granted(term: Term, roll: Roll, is_kept: bool) -> Self {
        let mut lease = Self {
            term,
            deadline: term.sent,
            risk_at: term.sent,
            joins_at: term.sent,
            renew_at: None,
            final_deadline: None,
            is_kept,
            failures: 0,
            lost: None,
        };
        lease.accept(term, roll);
        lease
    }

    /// The state at `now`. A loss by time is noted here, whoever asks first.
    pub(crate) fn state(&mut self, now: Moment) -> GuardState {
        if self.lost.is_none() && now >= self.deadline {
            let by_max_hold = self.final_deadline.is_some_and(|end| self.deadline >= end);
            self.lost = Some(if by_max_hold { Loss::MaxHold } else { Loss::Deadline });
        }
        match &self.lost {
            Some(loss) => GuardState::Lost(loss.clone()),
            None if now >= self.risk_at => GuardState::AtRisk,
            None => GuardState::Held,
        }
    }

    /// The local deadline: the moment at which the lease is lost unless a renewal is acknowledged before.
    pub(crate) fn deadline(&self) -> Moment {
        self.deadline
    }

    /// The moment that no renewal can pass, where `maxHold` sets one.
    pub(crate) fn final_deadline(&self) -> Option<Moment> {
        self.final_deadline
    }

    /// A renewal has to be sent now.
    pub(crate) fn is_due(&self, now: Moment) -> bool {
        self.lost.is_none() && self.renew_at.is_some_and(|at| at <= now)
    }

    /// A renewal may share a call that is made now for others.
    pub(crate) fn may_join(&self, now: Moment) -> bool {
        let waits_for_first = self.failures == 0 && self.renew_at.is_some();
        self.is_due(now) || (self.lost.is_none() && waits_for_first && self.joins_at <= now)
    }

    /// When to look at this lease again, if nothing happens before. `None`: never.
    pub(crate) fn next_wake(&self, now: Moment) -> Option<Moment> {
        if self.lost.is_some() {
            return None;
        }
        let risk_at = Some(self.risk_at).filter(|&at| at > now);
        [self.renew_at, risk_at, Some(self.deadline)].into_iter().flatten().min()
    }

    /// A renewal was sent. If it hangs, another one follows beside it; the first one's answer still counts.
    pub(crate) fn renewal_sent(&mut self, now: Moment) {
        self.failures = self.failures.saturating_add(1);
        if self.renew_at.is_some() {
            self.renew_at = Some(now.plus((self.term.expires_in / 6).min(self.pace(now))));
        }
    }

    /// A renewal sent at `term.sent` was acknowledged.
    pub(crate) fn renewed(&mut self, term: Term, now: Moment, roll: Roll) {
        if !matches!(self.state(now), GuardState::Lost(_)) {
            self.accept(term, roll);
        }
    }

    /// A renewal was not acknowledged.
    pub(crate) fn not_renewed(&mut self, why: NotRenewed, now: Moment, roll: Roll) {
        if matches!(self.state(now), GuardState::Lost(_)) {
            return;
        }
        match why {
            NotRenewed::Undecided => self.retry_soon(now, roll),
            NotRenewed::Lost(loss) => self.lost = Some(loss),
            NotRenewed::Final => self.stop_renewing(),
        }
    }

    /// The owner has released it, or gives it up: nothing is renewed any more.
    pub(crate) fn end(&mut self, loss: Loss, now: Moment) {
        if !matches!(self.state(now), GuardState::Lost(_)) {
            self.lost = Some(loss);
        }
    }

    fn accept(&mut self, term: Term, roll: Roll) {
        self.failures = 0;
        if let Some(final_in) = term.final_in {
            let end = local_deadline(term.sent, final_in);
            self.final_deadline = Some(self.final_deadline.map_or(end, |known| known.max(end)));
        }
        let deadline = local_deadline(term.sent, term.expires_in);
        // An answer that was overtaken by that of a later call says nothing new.
        if deadline > self.deadline {
            self.term = term;
            self.deadline = deadline;
            self.schedule(roll);
        }
        if term.final_in.is_some_and(|final_in| final_in <= term.expires_in) {
            self.stop_renewing();
        }
    }

    fn schedule(&mut self, roll: Roll) {
        if !self.is_kept {
            self.risk_at = self.deadline;
            return;
        }
        let usable = self.deadline.since(self.term.sent);
        let third = self.term.expires_in / 3;
        let per_mille = 900 + roll.0 % 201;
        self.risk_at = self.term.sent.plus(usable * 2 / 3);
        self.joins_at = self.term.sent.plus(third * 9 / 10);
        self.renew_at = Some(self.term.sent.plus(third * per_mille / 1000));
    }

    fn stop_renewing(&mut self) {
        self.renew_at = None;
        self.risk_at = self.deadline;
        self.final_deadline.get_or_insert(self.deadline);
    }

    /// The longest pause before the next renewal: the nearer the end, the shorter, for a service that comes back
    /// just before it has to be asked in time.
    fn pace(&self, now: Moment) -> Duration {
        let shortest = (self.term.expires_in / 20).min(SHORTEST_PACE);
        (now.until(self.deadline) / 3).max(shortest)
    }

    /// Exponential, with jitter over the upper half, and never so long that the lease would pass unasked.
    fn retry_soon(&mut self, now: Moment, roll: Roll) {
        let ttl = self.term.expires_in;
        let longest = ((ttl / 40) * (1 << self.failures.min(3))).min(self.pace(now));
        let pause = longest / 2 + (longest / 2) * (roll.0 % 1001) / 1000;
        if let Some(at) = &mut self.renew_at {
            *at = (*at).min(now.plus(pause));
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
