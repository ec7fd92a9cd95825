//! Carrying out one call on one connection, and what its answer means for the load.

use super::{
    book::Mark,
    holdings::{Holding, Id},
    names::Name,
    pool::Shared,
    settings::duration,
};
use crate::{
    stats::Verdict,
    target::{Acquired, Ask, LeaseId, Released, Sereno},
    wire::Fault,
};
use std::{
    future::Future,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// What to do.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// Take a free name.
    Acquire { name: Name },
    /// Wait for a held name, perhaps not for ever.
    Wait { name: Name, cancel_after: Option<Duration> },
    /// Give a lease back.
    Release { holding: Holding },
    /// Renew leases.
    Renew { leases: Vec<(Id, Name, LeaseId)> },
    /// Take back a request that was given up.
    Abandon { name: Name, request_id: LeaseId },
}

/// What to do, and since when it is due.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub job: Job,
    pub mark: Mark,
}

/// What became of a call.
enum Ended {
    /// It was answered: the connection is good for another.
    Answered(Verdict),
    /// It was not: whatever comes on this connection would be taken for another call's answer.
    Broken(Verdict),
}

use Ended::{Answered, Broken};

/// Carries a call out; gives the connection back if another call can be sent on it.
pub(super) async fn perform(
    shared: &Shared,
    connection: Option<Sereno>,
    call: Call,
) -> Option<Sereno> {
    let Call { job, mark } = call;
    let connection = match connection {
        Some(connection) => Some(connection),
        None => {
            let target = shared.world().target.clone();
            answer(shared.limit(), Sereno::connect(&target)).await
        }
    };
    let Some(mut connection) = connection else {
        shared.world().undo(job);
        shared.world().book.count(mark, Verdict::Refused("NOT_CONNECTED"), Instant::now());
        return None;
    };
    shared.world().book.sent(mark, Instant::now());
    let ended = match job {
        Job::Acquire { name } => acquire(shared, &mut connection, name).await,
        Job::Wait { name, cancel_after: None } => {
            let request_id = shared.world().ids.next();
            wait(shared, &mut connection, name, request_id, mark).await
        }
        Job::Wait { name, cancel_after: Some(patience) } => {
            let request_id = shared.world().ids.next();
            let waiting = wait(shared, &mut connection, name, request_id, mark);
            match timeout(patience, waiting).await {
                Ok(ended) => ended,
                Err(_) => {
                    shared.abandon(name, request_id, mark.phase);
                    Broken(Verdict::Cancelled)
                }
            }
        }
        Job::Release { holding } => release(shared, &mut connection, holding).await,
        Job::Renew { leases } => renew(shared, &mut connection, leases).await,
        Job::Abandon { name, request_id } => {
            abandon(shared, &mut connection, name, request_id).await
        }
    };
    let (verdict, connection) = match ended {
        Answered(verdict) => (verdict, (!connection.is_closing()).then_some(connection)),
        Broken(verdict) => (verdict, None),
    };
    shared.world().book.count(mark, verdict, Instant::now());
    connection
}

/// The answer, if there is one in time.
async fn answer<T>(limit: Duration, call: impl Future<Output = Result<T, Fault>>) -> Option<T> {
    timeout(limit, call).await.ok()?.ok()
}

async fn acquire(shared: &Shared, connection: &mut Sereno, name: Name) -> Ended {
    let (resource, request_id) = {
        let world = shared.world();
        (world.names.text(name).to_owned(), world.ids.next())
    };
    let ask = Ask { resource: &resource, request_id: &request_id, wait: None };
    let found = answer(shared.limit(), connection.acquire(&ask)).await;
    let (mut world, now) = (shared.world(), Instant::now());
    match found {
        Some(Acquired::Granted(lease)) => {
            world.granted(name, lease, now);
            Answered(Verdict::Done)
        }
        Some(Acquired::Refused(code)) => {
            // Held by somebody this run knows nothing of: not again soon.
            if code == "LOCKED" {
                world.bury(name, now)
            } else {
                world.names.unclaim(name)
            }
            Answered(Verdict::Refused(code))
        }
        Some(Acquired::Waiting | Acquired::Unknown) => {
            world.bury(name, now);
            Answered(Verdict::Unknown)
        }
        None => {
            world.bury(name, now);
            Broken(Verdict::Unknown)
        }
    }
}

async fn wait(
    shared: &Shared,
    connection: &mut Sereno,
    name: Name,
    request_id: LeaseId,
    mark: Mark,
) -> Ended {
    let (resource, wait) = {
        let world = shared.world();
        (world.names.text(name).to_owned(), world.settings.wait)
    };
    let ask = Ask { resource: &resource, request_id: &request_id, wait: Some(wait) };
    let asking = async {
        loop {
            match connection.acquire(&ask).await? {
                Acquired::Waiting => {}
                found => return Ok(found),
            }
        }
    };
    let found = answer(shared.limit() + duration(wait), asking).await;
    let (mut world, now) = (shared.world(), Instant::now());
    match found {
        Some(Acquired::Granted(lease)) => {
            world.handed_over(name, mark.phase, now);
            world.granted(name, lease, now);
            Answered(Verdict::Done)
        }
        Some(Acquired::Refused(code)) => {
            world.names.unclaim(name);
            Answered(Verdict::Refused(code))
        }
        Some(Acquired::Waiting | Acquired::Unknown) => {
            world.bury(name, now);
            Answered(Verdict::Unknown)
        }
        None => {
            world.bury(name, now);
            Broken(Verdict::Unknown)
        }
    }
}

async fn release(shared: &Shared, connection: &mut Sereno, holding: Holding) -> Ended {
    let Holding { name, lease, wanted, .. } = holding;
    let resource = {
        let mut world = shared.world();
        if wanted {
            world.hands_over(name, Instant::now());
        }
        world.names.text(name).to_owned()
    };
    let found = answer(shared.limit(), connection.release(&resource, &lease)).await;
    let (mut world, now) = (shared.world(), Instant::now());
    match found {
        Some(Released::Done) => {
            world.names.unclaim(name);
            Answered(Verdict::Done)
        }
        Some(Released::Refused(code)) => {
            if code.starts_with("not released") {
                world.names.unclaim(name);
            } else {
                world.bury(name, now);
            }
            Answered(Verdict::Refused(code))
        }
        Some(Released::Unknown) => {
            world.bury(name, now);
            Answered(Verdict::Unknown)
        }
        None => {
            world.bury(name, now);
            Broken(Verdict::Unknown)
        }
    }
}

async fn renew(
    shared: &Shared,
    connection: &mut Sereno,
    leases: Vec<(Id, Name, LeaseId)>,
) -> Ended {
    let (texts, many) = {
        let world = shared.world();
        let text = |(_, name, _): &(Id, Name, LeaseId)| world.names.text(*name).to_owned();
        (leases.iter().map(text).collect::<Vec<_>>(), world.settings.renew_batch > 1)
    };
    let asked = texts.iter().zip(&leases).map(|(text, (_, _, lease))| (text.as_str(), lease));
    let found = answer(shared.limit(), connection.renew(asked, many)).await;
    let mut world = shared.world();
    match found {
        Some(results) => {
            world.renewed(&leases, &results, Instant::now());
            match results.as_slice() {
                [Some(code)] if !many => Answered(Verdict::Refused(code)),
                _ => Answered(Verdict::Done),
            }
        }
        None => {
            world.not_renewed(&leases);
            Broken(Verdict::Unknown)
        }
    }
}

async fn abandon(
    shared: &Shared,
    connection: &mut Sereno,
    name: Name,
    request_id: LeaseId,
) -> Ended {
    let found = answer(shared.limit(), connection.abandon(&request_id)).await;
    let mut world = shared.world();
    match found {
        Some(None) => {
            world.names.unclaim(name);
            Answered(Verdict::Done)
        }
        Some(Some(code)) => {
            world.bury(name, Instant::now());
            Answered(Verdict::Refused(code))
        }
        None => {
            world.bury(name, Instant::now());
            Broken(Verdict::Unknown)
        }
    }
}
