//! What all parts of a client share: the addresses, the background thread, the last seen cluster time.

use crate::{
    background::Background,
    clock::Moment,
    error::Error,
    renewer::Renewer,
    servers::{Round, Standing},
    transport::{Answer, Ask, NoAnswer, Transport},
};
use hyper::Method;
use rand::RngExt;
use serde::de::DeserializeOwned;
use sereno_api::{ErrorCode, Outcome, Problem, RetryWith};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Semaphore;

/// One attempt of a plain call.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Not even with many addresses is one given less.
const SHORTEST_ATTEMPT: Duration = Duration::from_secs(1);
/// Releases and abandons under way at once, however many are owed after an outage.
const OWED_CALLS_MAX: usize = 64;

/// Shared by the client, its guards and its background tasks.
pub(crate) struct Core {
    pub transport: Transport,
    pub background: Background,
    pub renewer: Renewer,
    pub settings: Settings,
    pub owed_calls: Semaphore,
    cluster_time: Mutex<Option<ClusterTime>>,
}

/// What calls take when they do not say it themselves.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub namespace: String,
    pub owner: String,
    pub call_timeout: Duration,
}

/// A cluster time, and when it was told.
#[derive(Clone, Copy, Debug)]
struct ClusterTime {
    ms: u64,
    seen: Moment,
}

/// What one attempt brought.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// A status below 300.
    Done(Answer),
    /// A problem document.
    Problem(Box<Problem>),
    /// Nothing that decides anything.
    Nothing(NoAnswer),
}

/// Makes what a call sends, of the value for `bornAt`. Not a type for each call, or each has a code of its own for all
/// that lies below it.
pub(crate) type Asking<'a> = dyn Fn(Option<u64>) -> Ask + Send + Sync + 'a;

/// A mutex's content; a panic elsewhere does not make it wrong.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 128 random bits in hexadecimal digits.
pub(crate) fn random_id() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

/// A pause before attempt number `attempt` + 1: exponential up to `longest`, with full jitter.
pub(crate) fn backoff(attempt: u32, shortest: Duration, longest: Duration) -> Duration {
    let grown = shortest.saturating_mul(1 << attempt.min(16)).min(longest);
    grown.mul_f64(rand::rng().random::<f64>())
}

impl Core {
    pub(crate) fn new(transport: Transport, background: Background, settings: Settings) -> Self {
        Self {
            transport,
            background,
            renewer: Renewer::default(),
            settings,
            owed_calls: Semaphore::new(OWED_CALLS_MAX),
            cluster_time: Mutex::new(None),
        }
    }

    /// The value for `bornAt`: the cluster time of the last answer, while it is young enough to be told.
    pub(crate) fn born_at(&self) -> Option<u64> {
        const YOUNG: Duration = Duration::from_secs(10);
        let known = (*lock(&self.cluster_time))?;
        (Moment::now().since(known.seen) < YOUNG).then_some(known.ms)
    }

    fn note_cluster_time(&self, ms: Option<u64>) {
        *lock(&self.cluster_time) = ms.map(|ms| ClusterTime { ms, seen: Moment::now() });
    }

    /// One attempt at the next address of the call's round.
    pub(crate) async fn attempt(&self, round: &mut Round, ask: &Ask, timeout: Duration) -> Heard {
        let server = self.transport.next(round);
        self.attempt_at(server, ask, self.transport.patience(server, timeout)).await
    }

    /// One attempt at this address, which others are preferred to if it does not serve.
    async fn attempt_at(&self, server: usize, ask: &Ask, timeout: Duration) -> Heard {
        let sent = Moment::now();
        let heard = match self.transport.exchange(server, ask, timeout).await {
            Ok(answer) => self.understand(answer),
            Err(nothing) => Heard::Nothing(nothing),
        };
        let standing = match &heard {
            Heard::Nothing(_) => Standing::Silent,
            Heard::Problem(problem) if problem.status >= 500 => Standing::Answers,
            Heard::Problem(_) | Heard::Done(_) => Standing::Serves,
        };
        self.transport.note(server, standing, sent);
        heard
    }

    /// The same; others are preferred to one that has not answered after `suspect_after`, though it may still.
    pub(crate) async fn attempt_renewal(
        &self,
        server: usize,
        ask: &Ask,
        timeout: Duration,
        suspect_after: Duration,
    ) -> Heard {
        let sent = Moment::now();
        let attempt = self.attempt_at(server, ask, timeout);
        tokio::pin!(attempt);
        tokio::select! {
            heard = &mut attempt => heard,
            () = tokio::time::sleep(suspect_after) => {
                self.transport.note(server, Standing::Silent, sent);
                attempt.await
            }
        }
    }

    fn understand(&self, answer: Answer) -> Heard {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stamp {
            cluster_time_ms: u64,
        }
        if answer.status < 300 {
            if let Ok(stamp) = serde_json::from_slice::<Stamp>(&answer.body) {
                self.note_cluster_time(Some(stamp.cluster_time_ms));
            }
            return Heard::Done(answer);
        }
        match serde_json::from_slice::<Problem>(&answer.body) {
            Ok(mut problem) => {
                // A problem without a time may be one about the time that we told: it is not told again.
                self.note_cluster_time(problem.cluster_time_ms);
                if problem.field.as_deref() == Some("bornAt") {
                    problem.retry_with = Some(RetryWith::SameRequestId);
                }
                Heard::Problem(Box::new(problem))
            }
            Err(_) => Heard::Nothing(NoAnswer::Silent(format!(
                "status {} without a problem document (is this Sereno?)",
                answer.status
            ))),
        }
    }

    /// A call that may be repeated, until it is decided or `within` has passed.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        ask: impl Fn(Option<u64>) -> Ask + Send + Sync,
        within: Duration,
    ) -> Result<T, Error> {
        decode(&self.call_for_answer(&ask, within).await?)
    }

    /// The same, with the moment at which the call that was answered was sent.
    pub(crate) async fn call_for_answer(
        &self,
        ask: &Asking<'_>,
        within: Duration,
    ) -> Result<Answer, Error> {
        let until = Moment::now().plus(within);
        // One address that is silent leaves time for the others.
        let servers = u32::try_from(self.transport.len()).unwrap_or(u32::MAX).max(1);
        let longest = ATTEMPT_TIMEOUT.min((within / servers).max(SHORTEST_ATTEMPT));
        let (mut maybe_done, mut attempt, mut round) = (false, 0, Round::default());
        loop {
            let left = Moment::now().until(until);
            let ask = ask(self.born_at());
            let changes = ask.method != Method::GET;
            let why = match self.attempt(&mut round, &ask, left.min(longest)).await {
                Heard::Done(answer) => return Ok(answer),
                Heard::Problem(problem) if problem.retry_with == Some(RetryWith::SameRequestId) => {
                    maybe_done |= changes && problem.outcome == Outcome::Unknown;
                    format!("{}: {}", problem.code, problem.detail)
                }
                Heard::Problem(problem) => return Err(Error::Refused(problem)),
                Heard::Nothing(NoAnswer::NotSent(why)) => why,
                Heard::Nothing(NoAnswer::Silent(why)) => {
                    maybe_done |= changes;
                    why
                }
            };
            let pause = retry_pause(attempt, self.transport.len());
            attempt += 1;
            if Moment::now().plus(pause) >= until {
                return Err(if maybe_done { unknown(why) } else { Error::Unavailable(why) });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// The same on the background thread.
    async fn run_for_answer(
        self: &Arc<Self>,
        ask: Box<Asking<'static>>,
        within: Duration,
    ) -> Result<Answer, Error> {
        let core = self.clone();
        let call = async move { core.call_for_answer(&*ask, within).await };
        self.background.run(call).await.unwrap_or_else(|| Err(stopped()))
    }

    /// A call on the background thread, with the moment at which the call was sent that was answered.
    pub(crate) async fn run_timed_call<T: DeserializeOwned>(
        self: &Arc<Self>,
        ask: impl Fn(Option<u64>) -> Ask + Send + Sync + 'static,
        within: Duration,
    ) -> Result<(Moment, T), Error> {
        let answer = self.run_for_answer(Box::new(ask), within).await?;
        Ok((answer.sent, decode(&answer)?))
    }

    /// The same with the client's own time-out.
    pub(crate) async fn run_call<T: DeserializeOwned>(
        self: &Arc<Self>,
        ask: impl Fn(Option<u64>) -> Ask + Send + Sync + 'static,
    ) -> Result<T, Error> {
        decode(&self.run_for_answer(Box::new(ask), self.settings.call_timeout).await?)
    }
}

/// One attempt may have been carried out, and `why` is what was heard last: that may be of another attempt, and certain
/// of that one.
pub(crate) fn unknown(why: String) -> Error {
    let code = ErrorCode::leading(&why);
    let is_of_another = code.is_some_and(|code| code != ErrorCode::UnknownOutcome);
    Error::Unknown(match is_of_another {
        true => {
            format!("{why} (that is the last attempt; an earlier one may have been carried out)")
        }
        false => why,
    })
}

/// Only a panic could do it.
pub(crate) fn stopped() -> Error {
    Error::Unknown("the client's thread has stopped".into())
}

/// Every address is tried once without a pause.
pub(crate) fn retry_pause(attempt: u32, servers: usize) -> Duration {
    match usize::try_from(attempt).unwrap_or(usize::MAX) {
        attempt if attempt + 1 < servers => Duration::ZERO,
        _ => backoff(attempt, Duration::from_millis(50), Duration::from_secs(2)),
    }
}

/// The body of an answer that says it was done.
pub(crate) fn decode<T: DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    serde_json::from_slice(&answer.body)
        .map_err(|error| Error::Unknown(format!("the answer was not understood: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_128_bits_and_differ() {
        let (one, other) = (random_id(), random_id());
        assert_eq!(one.len(), 32);
        assert!(one.bytes().all(|b| b.is_ascii_hexdigit()));
        assert_ne!(one, other);
    }

    #[test]
    fn pauses_grow_to_their_bound_and_jitter_below_it() {
        let (shortest, longest) = (Duration::from_millis(50), Duration::from_secs(2));
        for attempt in 0..40 {
            let bound = shortest.saturating_mul(1 << attempt.min(16)).min(longest);
            assert!((0..20).all(|_| backoff(attempt, shortest, longest) <= bound));
        }
        assert!((0..64).any(|_| backoff(20, shortest, longest) > longest / 2));
    }

    #[test]
    fn several_addresses_are_first_tried_in_a_row() {
        assert_eq!(retry_pause(0, 3), Duration::ZERO);
        assert_eq!(retry_pause(1, 3), Duration::ZERO);
        assert!((0..64).any(|_| retry_pause(2, 3) > Duration::ZERO));
    }

    #[test]
    fn of_an_unknown_outcome_a_refusal_of_the_last_attempt_is_told_apart() {
        let told = |why: &str| unknown(why.into()).to_string();
        let refused = told("UNAVAILABLE: the log took no entry");
        assert!(refused.contains("an earlier one may have been carried out"), "{refused}");
        for why in ["no answer in time", "UNKNOWN_OUTCOME: no answer came in time"] {
            assert_eq!(told(why), format!("the outcome is unknown: {why}"));
        }
    }
}
