//! What those who wait feel: how long a hand-over takes, and how long it takes until a dead holder's lock is theirs.

use super::{
    PeersArgs,
    rounds::{Peer, target},
};
use crate::{
    error::Error,
    stats::{Latency, Percentiles},
    target::{Acquired, Ask, Client, LeaseId, RequestIds, Target},
    wire::Fault,
    zones::Zones,
};
use serde::Serialize;
use sereno_api::Millis;
use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::task::{JoinSet, LocalSet};

/// As long as a request may wait; leases live as long.
const WAIT: Millis = Millis(600_000);
/// Hand-overs that are timed.
const HAND_OVERS: usize = 200;
/// Of a holder that dies: the shortest that three zones allow.
const DEAD_TTL: Millis = Millis(5_000);
/// Holders that die.
const DEAD: usize = 20;
/// All of it is over by then.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long those who waited waited for the service.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// On what.
    pub peer: Peer,
    /// How many waited for the one name; absent: one for each holder that died.
    pub waiters: Option<usize>,
    /// From sending the release, or from the end of the dead holder's TTL, until the next one knew that it had the
    /// lock.
    pub latency: Percentiles,
}

/// Measures hand-overs and recoveries on one etcd.
pub(super) async fn run(args: &PeersArgs) -> Result<Vec<Wait>, Error> {
    // Hand-overs are about the queue, whose leases are nobody's concern.
    let mut peers = vec![Peer::Zones, Peer::EtcdShared];
    peers.retain(|peer| args.peers.contains(peer));
    if peers.is_empty() || args.waiters.is_empty() {
        return Ok(Vec::new());
    }
    let mut waits = Vec::new();
    for &waiters in &args.waiters {
        // Each time another etcd, and its own locks last: clients that give up waiting for those can hold up others.
        let zones = Zones::start(&args.serve_args, &[]).await?;
        for &peer in &peers {
            let target = target(&zones, peer, WAIT).await?;
            let latency = in_time(hand_overs(&target, waiters)).await?;
            eprintln!("{}, {waiters} waiting: {latency:?}", peer.title());
            waits.push(Wait { peer, waiters: Some(waiters), latency });
        }
    }
    let zones = Zones::start(&args.serve_args, &[]).await?;
    for &peer in &peers {
        let (waiter, dies) =
            (target(&zones, peer, WAIT).await?, target(&zones, peer, DEAD_TTL).await?);
        let latency = in_time(recoveries(&waiter, &dies)).await?;
        waits.push(Wait { peer, waiters: None, latency });
    }
    Ok(waits)
}

async fn in_time(work: impl Future<Output = Result<Latency, Error>>) -> Result<Percentiles, Error> {
    let found = tokio::time::timeout(PATIENCE, LocalSet::new().run_until(work)).await;
    let late = || failed(&Fault::Silent(format!("not over in {PATIENCE:?}")));
    Ok(found.map_err(|_| late())??.percentiles())
}

fn failed(fault: &Fault) -> Error {
    Error::Service { call: "waiting".into(), why: fault.to_string() }
}

/// What all who want one name share.
#[derive(Default)]
struct Queue {
    ids: RequestIds,
    /// Clients that have had the lock. When all have, the others wait.
    had: RefCell<HashSet<usize>>,
    released: Cell<Option<Instant>>,
    latency: RefCell<Latency>,
}

/// One more client than waiters: whoever has the lock gives it back at once, and waits again.
async fn hand_overs(target: &Target, waiters: usize) -> Result<Latency, Error> {
    let queue = Rc::new(Queue::default());
    let name: Rc<str> = format!("hand-over/{waiters}").into();
    let mut clients = JoinSet::new();
    for number in 0..=waiters {
        let client = target.connect().await.map_err(|fault| failed(&fault))?;
        let (queue, name) = (queue.clone(), name.clone());
        clients
            .spawn_local(async move { take_turns(client, &queue, &name, number, waiters).await });
    }
    // The first to end has seen the last hand-over, or a fault.
    match clients.join_next().await {
        Some(Ok(Ok(()))) => Ok(queue.latency.take()),
        Some(Ok(Err(fault))) => Err(failed(&fault)),
        Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
        None => Err(failed(&Fault::NotSent("there is no client".into()))),
    }
}

async fn take_turns(
    mut client: Client,
    queue: &Queue,
    name: &str,
    number: usize,
    waiters: usize,
) -> Result<(), Fault> {
    loop {
        let lease = wait(&mut client, &queue.ids, name).await?;
        let since = queue.released.take();
        if queue.had.borrow().len() > waiters
            && let Some(since) = since
        {
            queue.latency.borrow_mut().record(since.elapsed());
        }
        queue.had.borrow_mut().insert(number);
        queue.released.set(Some(Instant::now()));
        client.release(name, &lease).await?;
        if queue.latency.borrow().count() >= HAND_OVERS as u64 {
            return Ok(());
        }
    }
}

/// Until it has the lock.
async fn wait(client: &mut Client, ids: &RequestIds, name: &str) -> Result<LeaseId, Fault> {
    let request_id = ids.next();
    loop {
        let ask = Ask { resource: name, request_id: &request_id, wait: Some(WAIT) };
        match client.acquire(&ask).await? {
            Acquired::Granted(lease) => return Ok(lease),
            Acquired::Waiting => {}
            other => return Err(Fault::Silent(format!("{other:?}"))),
        }
    }
}

/// Holders that are never heard of again, each of a name of its own, and one who waits for each.
async fn recoveries(waiter: &Target, dies: &Target) -> Result<Latency, Error> {
    let mut all = JoinSet::new();
    for number in 0..DEAD {
        let (waiter, dies) = (waiter.clone(), dies.clone());
        all.spawn_local(async move { recovery(&waiter, &dies, number).await });
    }
    let mut latency = Latency::default();
    while let Some(found) = all.join_next().await {
        match found {
            Ok(found) => latency.record(found.map_err(|fault| failed(&fault))?),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    Ok(latency)
}

/// How much longer than the TTL it takes, from the last call that the dead holder sent.
async fn recovery(waiter: &Target, dies: &Target, number: usize) -> Result<Duration, Fault> {
    let (ids, name) = (RequestIds::default(), format!("recovery/{number}"));
    let (mut waiter, mut holder) = (waiter.connect().await?, dies.connect().await?);
    let sent = Instant::now();
    wait(&mut holder, &ids, &name).await?;
    drop(holder);
    wait(&mut waiter, &ids, &name).await?;
    Ok(sent.elapsed().saturating_sub(Duration::from_millis(DEAD_TTL.0)))
}
