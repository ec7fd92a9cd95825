//! Carrying out one call on one connection, and what its answer means for the load.

use super::{
    book::Mark,
    holdings::{Holding, Id},
    line::{Line, within},
    names::Name,
    pool::Shared,
    settings::duration,
};
use crate::{
    stats::Verdict,
    target::{Acquired, Ask, LeaseId, Released},
};
use std::time::{Duration, Instant};
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
pub(super) async fn perform(shared: &Shared, line: Option<Line>, call: Call) -> Option<Line> {
    let Call { job, mark } = call;
    let line = match line {
        Some(line) => Some(line),
        None => Line::open(shared).await,
    };
    let Some(mut line) = line else {
        shared.world().undo(job);
        shared.world().book.count(mark, Verdict::Refused("NOT_CONNECTED"), Instant::now());
        return None;
    };
    shared.world().book.sent(mark, Instant::now());
    let ended = match job {
        Job::Acquire { name } => acquire(shared, &mut line, name).await,
        Job::Wait { name, cancel_after: None } => {
            let request_id = shared.world().ids.next();
            wait(shared, &mut line, name, request_id, mark).await
        }
        Job::Wait { name, cancel_after: Some(patience) } => {
            let request_id = shared.world().ids.next();
            let waiting = wait(shared, &mut line, name, request_id, mark);
            match timeout(patience, waiting).await {
                Ok(ended) => ended,
                Err(_) => {
                    shared.abandon(name, request_id, mark.phase);
                    Broken(Verdict::Cancelled)
                }
            }
        }
        Job::Release { holding } => release(shared, &mut line, holding).await,
        Job::Renew { leases } => renew(shared, &mut line, leases).await,
        Job::Abandon { name, request_id } => abandon(shared, &mut line, name, request_id).await,
    };
    let (verdict, line) = match ended {
        Answered(verdict) => (verdict, line.is_good().then_some(line)),
        Broken(verdict) => (verdict, None),
    };
    shared.world().book.count(mark, verdict, Instant::now());
    line
}

async fn acquire(shared: &Shared, line: &mut Line, name: Name) -> Ended {
    let (resource, request_id) = {
        let world = shared.world();
        (world.names.text(name).to_owned(), world.ids.next())
    };
    let ask = Ask { resource: &resource, request_id: &request_id, wait: None };
    let asking = line.ask(shared, async |connection| connection.acquire(&ask).await);
    let found = within(shared.limit(), asking).await;
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
    line: &mut Line,
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
            match line.ask(shared, async |connection| connection.acquire(&ask).await).await? {
                Acquired::Waiting => {}
                found => return Some(found),
            }
        }
    };
    let found = within(shared.limit() + duration(wait), asking).await;
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

async fn release(shared: &Shared, line: &mut Line, holding: Holding) -> Ended {
    let Holding { name, lease, wanted, .. } = holding;
    let resource = {
        let mut world = shared.world();
        if wanted {
            world.hands_over(name, Instant::now());
        }
        world.names.text(name).to_owned()
    };
    let asking = line.ask(shared, async |connection| connection.release(&resource, &lease).await);
    let found = within(shared.limit(), asking).await;
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

async fn renew(shared: &Shared, line: &mut Line, leases: Vec<(Id, Name, LeaseId)>) -> Ended {
    let (texts, many) = {
        let world = shared.world();
        let text = |(_, name, _): &(Id, Name, LeaseId)| world.names.text(*name).to_owned();
        (leases.iter().map(text).collect::<Vec<_>>(), world.settings.renew_batch > 1)
    };
    let asking = line.ask(shared, async |connection| {
        let asked = texts.iter().zip(&leases).map(|(text, (_, _, lease))| (text.as_str(), lease));
        connection.renew(asked, many).await
    });
    let found = within(shared.limit(), asking).await;
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

async fn abandon(shared: &Shared, line: &mut Line, name: Name, request_id: LeaseId) -> Ended {
    let asking = line.ask(shared, async |connection| connection.abandon(&request_id).await);
    let found = within(shared.limit(), asking).await;
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
