//! A term of office.

use super::plain::handoff;
use crate::{
    acquire::Grant,
    cell::GuardStatus,
    core::{random_id, stopped},
    error::{Error, NotHeld, RunError},
    guard::Guard,
    lease::{GuardState, Loss},
    owed::Release,
    transport::Ask,
};
use sereno_api::{ErrorCode, HandedOff, ProclaimRequest, Proclaimed};
use std::{fmt, future::Future, time::Duration};
use tokio::sync::{Mutex, oneshot, watch};

/// A term as the leader, renewed in the background until it is resigned, handed off, dropped or lost.
///
/// **held → at risk → lost**, as for a lock: see [`GuardState`]. While a renewal is overdue [`Leadership::check`] says
/// no, so a leader that cannot be sure begins nothing new; at the local deadline, before anybody else can be elected,
/// the term is lost. Ask [`Leadership::check`] before each step of work, send [`Leadership::term`] along with every
/// write, and stop when [`Leadership::lost`] resolves. Dropping it resigns in the background.
#[must_use = "dropping it resigns"]
pub struct Leadership {
    guard: Guard,
    /// The record's version as this leader knows it. Locked for as long as a proclaim takes.
    version: Mutex<u64>,
}

/// What became of a hand-off.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One in a term.
pub enum Handoff {
    /// The named candidate leads.
    Done {
        /// Its term.
        term: u64,
    },
    /// Nothing has changed: this is the same term, as if the hand-off had not been tried.
    StillLeading {
        /// To lead on.
        leadership: Leadership,
        /// Why, `NOT_FOUND` where nobody of that name waits.
        why: Error,
    },
}

impl Leadership {
    pub(super) fn new(guard: Guard) -> Self {
        let version = Mutex::new(guard.grant().version);
        Self { guard, version }
    }

    /// The fencing token, larger than that of every leader before, while the term is not lost.
    ///
    /// # Errors
    /// The reason, once it is lost.
    pub fn term(&self) -> Result<u64, Loss> {
        self.guard.token()
    }

    /// Under what a protected resource remembers the highest token.
    pub fn fence_key(&self) -> &str {
        self.guard.fence_key()
    }

    /// What was granted. Its one holding is the election.
    pub fn grant(&self) -> &Grant {
        self.guard.grant()
    }

    /// The term as a guard like that of a lock.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Whether the next step of work may begin. Looks at the clock, so it is right after a suspend too.
    ///
    /// # Errors
    /// [`NotHeld::AtRisk`] while a renewal is overdue, [`NotHeld::Lost`] once it is over.
    pub fn check(&self) -> Result<(), NotHeld> {
        self.guard.check()
    }

    /// Held, at risk or lost, at this moment.
    pub fn state(&self) -> GuardState {
        self.guard.state()
    }

    /// How long the term is certain without another renewal; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// The state with its deadlines, and a way to wait for changes.
    pub fn watch(&self) -> watch::Receiver<GuardStatus> {
        self.guard.watch()
    }

    /// Resolves when the term is lost, or has been given up. Independent of this value's own life.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + 'static {
        self.guard.lost()
    }

    /// Does `work` as long as the term is not lost; on a loss the work's future is dropped where it stands.
    ///
    /// # Errors
    /// [`RunError::NotBegun`] where [`Self::check`] says no; [`RunError::Lost`] when the term was lost under it.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, RunError<F::Output>> {
        self.guard.run(work).await
    }

    /// Changes the value that the others see. Of several at a time each waits for the one before; returns the record's
    /// new version.
    ///
    /// # Errors
    /// As for every call: [`Error`]. One that says that the term is over loses it at once. After an
    /// [`Error::Unknown`] the value may have been proclaimed; it never takes the place of one proclaimed later.
    pub async fn proclaim(&self, value: impl Into<String>) -> Result<u64, Error> {
        let value = value.into();
        let mut version = self.version.lock().await;
        loop {
            match self.propose(&value, *version).await {
                Ok(done) => {
                    *version = done.version;
                    return Ok(done.version);
                }
                // Only the leader proclaims: it is an earlier value of ours, whose answer was lost.
                Err(Error::Refused(problem))
                    if problem.code == ErrorCode::VersionConflict
                        && problem.current_version > Some(*version) =>
                {
                    *version = problem.current_version.unwrap_or(*version);
                }
                Err(error) => {
                    if let Error::Refused(problem) = &error {
                        self.guard.heed(problem);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// The version goes along, so that a copy of this call that is late cannot undo a later one.
    async fn propose(&self, value: &str, version: u64) -> Result<Proclaimed, Error> {
        let grant = self.guard.grant();
        let request = ProclaimRequest {
            namespace: grant.namespace.clone(),
            election: grant.holdings[0].resource.clone(),
            lease_id: grant.lease_id.clone(),
            value: value.into(),
            version: Some(version),
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ProclaimRequest { born_at, ..request.clone() };
            Ask::post("/v1/elections/proclaim", &request)
        };
        self.guard.core().run_call(ask).await
    }

    /// Resigns now: the next of the queue leads. Returns once the service has answered, and says whether this ended
    /// the term.
    ///
    /// # Errors
    /// [`Error::Unknown`] when no answer came within the client's call time-out. It is still repeated in the
    /// background, and the term ends by itself when its TTL is over.
    pub async fn resign(self) -> Result<Release, Error> {
        self.guard.release().await
    }

    /// The same for one that the work may have shared.
    pub(super) async fn resign_shared(&self) -> Result<Release, Error> {
        self.guard.release_shared().await
    }

    /// Hands the term over to a candidate who waits. Stop the work first: from the moment of the call this leader
    /// takes the term for lost, for the other may lead already before the answer is here.
    ///
    /// The hand-off is carried out even if the returned future is dropped.
    ///
    /// # Errors
    /// [`Error::Lost`] when the term was lost before, [`Error::Refused`] when it had ended, [`Error::Unknown`] when no
    /// answer told what became of it; then it is resigned in the background.
    pub async fn handoff_to(self, candidate: impl Into<String>) -> Result<Handoff, Error> {
        let candidate = candidate.into();
        let (done, result) = oneshot::channel();
        self.guard.core().clone().background.spawn_owed(async move {
            // If nobody takes a term that goes on, it is dropped here, and that resigns.
            let _ = done.send(self.hand_over(candidate).await);
        });
        result.await.unwrap_or_else(|_| Err(stopped()))
    }

    async fn hand_over(self, candidate: String) -> Result<Handoff, Error> {
        let Some(lease) = self.guard.step_aside() else {
            let loss = self.guard.token().err().unwrap_or(Loss::Released);
            return Err(Error::Lost(loss));
        };
        let (core, grant) = (self.guard.core(), self.guard.grant());
        let election = &grant.holdings[0].resource;
        let ask = handoff(&grant.namespace, election, &grant.lease_id, &candidate);
        match core.call(ask, core.settings.call_timeout).await {
            Ok(HandedOff { term, .. }) => Ok(Handoff::Done { term }),
            Err(why) if changed_nothing(&why) => {
                let guard = self.guard.step_back(lease);
                let leadership = Self { guard, version: self.version };
                Ok(Handoff::StillLeading { leadership, why })
            }
            Err(why) => {
                self.guard.let_go();
                Err(why)
            }
        }
    }
}

fn changed_nothing(why: &Error) -> bool {
    match why {
        Error::Refused(problem) => {
            !matches!(problem.code, ErrorCode::LeaseEnded | ErrorCode::NotHolder)
        }
        Error::Unavailable(_) => true,
        _ => false,
    }
}

impl fmt::Debug for Leadership {
    /// Without the lease id, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership").field(&self.guard).finish()
    }
}
