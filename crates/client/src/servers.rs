//! Which of several addresses to ask: an order by what each was like lately. Pure: the caller says what time it is.

use crate::clock::Moment;
use std::time::Duration;

/// What was seen longer ago than this says nothing about now.
const LATELY: Duration = Duration::from_secs(10);
/// One that may be silent is asked beside the others this often, not more.
const ASK_BESIDE_EVERY: Duration = Duration::from_secs(1);

/// What an address was like when it was asked last. The first are asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It served, if only to refuse something.
    Serves,
    /// It answered that it cannot serve now: a standby without a leader, a leader that lost its log. It may the
    /// next moment, and says so at once: to ask it again costs a round trip.
    Answers,
    /// Nobody has asked it lately.
    Unknown,
    /// No connection was made, or no answer came in time. To ask it may cost all the time there is.
    Silent,
}

#[derive(Clone, Debug)]
struct Server {
    standing: Standing,
    /// When that was seen.
    seen: Moment,
    served: Option<Moment>,
    failed: Option<Moment>,
    asked: Option<Moment>,
}

/// What is known of each address of a service.
#[derive(Clone, Debug)]
pub(crate) struct Servers(Vec<Server>);

/// The addresses that one call has asked in vain since it had last asked all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round(Vec<usize>);

/// Where a renewal goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    pub first: usize,
    /// The same renewal goes here too, for it may have come back.
    pub beside: Option<usize>,
}

impl Server {
    fn standing(&self, now: Moment) -> Standing {
        match self.standing {
            Standing::Serves => Standing::Serves,
            _ if now.since(self.seen) > LATELY => Standing::Unknown,
            standing => standing,
        }
    }
}

impl Servers {
    /// `count` addresses of which nothing is known.
    pub(crate) fn new(count: usize) -> Self {
        let start = Moment::from_boot(Duration::ZERO);
        let unknown = Server {
            standing: Standing::Unknown,
            seen: start,
            served: None,
            failed: None,
            asked: None,
        };
        Self(vec![unknown; count])
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What came of a call to `server` that was sent at `sent`.
    pub(crate) fn note(&mut self, server: usize, standing: Standing, sent: Moment, now: Moment) {
        let known = &mut self.0[server];
        match standing {
            Standing::Serves => known.served = Some(now),
            // It has served since: an old call that hung says nothing new.
            _ if known.standing == Standing::Serves && known.served > Some(sent) => return,
            _ => known.failed = Some(now),
        }
        (known.standing, known.seen) = (standing, now);
    }

    /// The address that a call asks next: each once in a round, the most promising first.
    pub(crate) fn next(&mut self, round: &mut Round, now: Moment) -> usize {
        if round.0.len() >= self.len() {
            round.0.clear();
        }
        let server = self.best(now, |server| !round.0.contains(&server));
        round.0.push(server);
        self.0[server].asked = Some(now);
        server
    }

    /// A renewal may be sent twice. So it waits for no address that may be silent while others answer, and finds out
    /// all the same when that one is back.
    pub(crate) fn for_renewal(&mut self, now: Moment) -> Targets {
        let first = self.best(now, |_| true);
        let serves = self.0[first].standing == Standing::Serves;
        let rests =
            |server: &Server| server.asked.is_some_and(|at| now.since(at) < ASK_BESIDE_EVERY);
        let beside = (0..self.len())
            .filter(|&at| !serves && at != first && !rests(&self.0[at]))
            .filter(|&at| self.0[at].standing(now) >= Standing::Unknown)
            .min_by_key(|&at| self.0[at].asked);
        for server in [Some(first), beside].into_iter().flatten() {
            self.0[server].asked = Some(now);
        }
        Targets { first, beside }
    }

    /// It has been silent, and another one answers: not much time is to be spent on it.
    pub(crate) fn is_worth_little(&self, server: usize, now: Moment) -> bool {
        let answers = |other: &Server| other.standing(now) <= Standing::Answers;
        self.0[server].standing(now) == Standing::Silent && self.0.iter().any(answers)
    }

    /// Those that failed longest ago come first among their like, then in the order given.
    fn best(&self, now: Moment, may: impl Fn(usize) -> bool) -> usize {
        (0..self.len())
            .filter(|&at| may(at))
            .min_by_key(|&at| (self.0[at].standing(now), self.0[at].failed))
            .expect("there is an address that this round has not asked")
    }
}

impl Round {
    /// Every address has been asked, of so many.
    pub(crate) fn is_over(&self, servers: usize) -> bool {
        self.0.len() >= servers
    }
}

#[cfg(test)]
#[path = "servers_tests.rs"]
mod tests;
