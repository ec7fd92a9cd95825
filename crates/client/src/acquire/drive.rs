//! Carries out what the plan says, for whatever can be asked for, waited for and granted.

use super::{
    plan::{News, Plan, Send, Step, Terms},
    standing::Teller,
};
use crate::{
    client::Inner,
    clock::Moment,
    core::{ATTEMPT_TIMEOUT, Core, Heard, random_id, retry_pause, stopped},
    error::Error,
    lease::NotRenewed,
    owed,
    servers::Round,
    transport::{Answer, Ask, NoAnswer},
};
use rand::RngExt;
use sereno_api::Family;
use std::{sync::Arc, time::Duration};
use tokio::{sync::oneshot, time::sleep};

/// What is asked for until it is granted or given up, in the words of its family.
pub(crate) trait Wanted: std::marker::Send + Sync + 'static {
    /// What the service grants.
    type Grant: std::marker::Send + Sync + 'static;
    /// What the caller is handed for it. Dropped, it gives back.
    type Held: std::marker::Send + 'static;

    /// Whose calls they are.
    fn family(&self) -> Family;

    /// Where it lives.
    fn namespace(&self) -> &str;

    /// The request.
    fn ask(&self, request_id: &str, wait: Option<Duration>, born_at: Option<u64>) -> Ask;

    /// Reads a 200.
    fn grant(&self, sent: Moment, body: &[u8]) -> Result<Self::Grant, String>;

    /// What says after a wait how long the grant still lasts, for some of it may be gone.
    fn confirming(&self, core: &Core, request_id: &str, grant: &Self::Grant) -> Ask;

    /// Reads the answer to that.
    fn confirm(
        &self,
        grant: &mut Self::Grant,
        asked: Moment,
        heard: &Heard,
    ) -> Result<(), NotRenewed>;

    /// Begins to hold it.
    fn hold(self, inner: Arc<Inner>, grant: Self::Grant) -> Self::Held;
}

/// Acquires on the client's thread. Dropping the returned future abandons the request in the background.
pub(crate) async fn acquire<W: Wanted>(
    inner: Arc<Inner>,
    wish: W,
    terms: Terms,
    teller: Teller,
) -> Result<W::Held, Error> {
    let (mut done, result) = oneshot::channel();
    let background = inner.core.background.clone();
    background.spawn_owed(async move {
        let mut run = Run::new(inner.core.clone(), wish, terms, teller);
        let outcome = tokio::select! {
            outcome = run.drive() => Some(outcome),
            () = done.closed() => None,
        };
        match outcome {
            Some(Ok(grant)) => {
                // If nobody takes the guard any more, it is dropped here, and that releases.
                let _ = done.send(Ok(run.wish.hold(inner, grant)));
                return;
            }
            Some(Err(error)) => {
                let _ = done.send(Err(error));
            }
            None => {}
        }
        drop(inner);
        if run.plan.may_hold() {
            run.abandon().await;
        }
    });
    match result.await {
        Ok(outcome) => outcome,
        Err(_) => Err(stopped()),
    }
}

struct Run<W: Wanted> {
    core: Arc<Core>,
    wish: W,
    plan: Plan,
    teller: Teller,
    request_id: String,
    round: Round,
    grant: Option<W::Grant>,
}

fn dice() -> u32 {
    rand::rng().random()
}

impl<W: Wanted> Run<W> {
    fn new(core: Arc<Core>, wish: W, terms: Terms, teller: Teller) -> Self {
        let plan = Plan::new(terms, core.transport.len(), Moment::now(), dice);
        let (request_id, round) = (random_id(), Round::default());
        Self { core, wish, plan, teller, request_id, round, grant: None }
    }

    async fn abandon(&self) -> bool {
        let (family, namespace) = (self.wish.family(), self.wish.namespace());
        owed::abandon(&self.core, family, namespace, &self.request_id).await
    }

    async fn drive(&mut self) -> Result<W::Grant, Error> {
        let mut step = Step::Again(Duration::ZERO);
        loop {
            step = match step {
                Step::Again(pause) => {
                    sleep(pause).await;
                    self.attempt().await
                }
                Step::Afresh(pause) => {
                    sleep(pause).await;
                    self.request_id = random_id();
                    self.plan.renew_id();
                    self.attempt().await
                }
                Step::Renounce => self.renounce().await,
                Step::Granted { confirm } => match (confirm, self.grant.take()) {
                    (false, Some(grant)) => return Ok(grant),
                    (true, Some(grant)) => match self.confirm(grant).await {
                        Ok(grant) => return Ok(grant),
                        Err(step) => step,
                    },
                    (_, None) => Step::Stop(Error::Unknown("the grant was not understood".into())),
                },
                Step::Stop(error) => return Err(error),
            }
        }
    }

    async fn attempt(&mut self) -> Step {
        let Send { wait, timeout } = self.plan.send(Moment::now());
        let before = self.plan.may_hold();
        self.plan.under_way();
        let ask = self.wish.ask(&self.request_id, wait, self.core.born_at());
        let heard = self.core.attempt(&mut self.round, &ask, timeout).await;
        let now = Moment::now();
        self.teller.hear(&heard, self.core.transport.len());
        let news = self.understand(heard, now);
        self.plan.hear(news, before, now)
    }

    fn understand(&mut self, heard: Heard, now: Moment) -> News {
        match heard {
            Heard::Done(Answer { sent, status: 202, .. }) => {
                News::Waiting { round_trip: now.since(sent) }
            }
            Heard::Done(answer) => match self.wish.grant(answer.sent, &answer.body) {
                Ok(grant) => {
                    self.grant = Some(grant);
                    News::Granted { round_trip: now.since(answer.sent) }
                }
                Err(why) => News::Nothing(NoAnswer::Silent(why)),
            },
            Heard::Problem(problem) => News::Refused(problem),
            Heard::Nothing(nothing) => News::Nothing(nothing),
        }
    }

    async fn renounce(&mut self) -> Step {
        let left = Moment::now().until(self.plan.gives_up());
        match tokio::time::timeout(left, self.abandon()).await {
            // Confirmed; or so old by now that nothing of it is left.
            Ok(_) => Step::Afresh(Duration::ZERO),
            Err(_) => Step::Stop(Error::Unknown("the service does not answer".into())),
        }
    }

    /// After a wait much of the lease may be gone, and the service may have to hear that somebody is there:
    /// it is reported as held on the answer to another call.
    async fn confirm(&mut self, mut grant: W::Grant) -> Result<W::Grant, Step> {
        let until = self.plan.gives_up().max(Moment::now().plus(ATTEMPT_TIMEOUT));
        let (mut attempt, mut round) = (0, Round::default());
        loop {
            let ask = self.wish.confirming(&self.core, &self.request_id, &grant);
            let asked = Moment::now();
            let within = asked.until(until).min(ATTEMPT_TIMEOUT);
            let heard = self.core.attempt(&mut round, &ask, within).await;
            match self.wish.confirm(&mut grant, asked, &heard) {
                Ok(()) | Err(NotRenewed::Final) => return Ok(grant),
                Err(NotRenewed::Lost(loss)) => {
                    return Err(self.plan.lost(Error::Lost(loss), Moment::now()));
                }
                Err(NotRenewed::Undecided) => {}
            }
            let pause = retry_pause(attempt, self.core.transport.len());
            attempt += 1;
            if Moment::now().plus(pause) >= until {
                let why = "granted after a wait, but no answer confirmed it".into();
                return Err(Step::Stop(Error::Unknown(why)));
            }
            sleep(pause).await;
        }
    }
}
