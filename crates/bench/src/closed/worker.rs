//! One thread of a closed loop, with its share of the clients.

use super::Plan;
use crate::{
    error::Error,
    stats::{Board, Operation, Verdict},
    target::{Acquired, Ask, Client, LeaseId, Released, RequestIds, Target},
    wire::Fault,
};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::{
    cell::RefCell,
    iter::StepBy,
    ops::Range,
    rc::Rc,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::LocalSet;

/// After the end: how long answers are awaited. What is still open then is unknown.
const GRACE: Duration = Duration::from_secs(10);
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// What one thread has to do.
pub(super) struct Job<'a> {
    pub target: &'a Target,
    pub plan: &'a Plan,
    pub ids: Arc<RequestIds>,
    /// Numbers of its clients.
    pub clients: StepBy<Range<usize>>,
    /// All clients have their connections.
    pub connected: &'a Barrier,
    /// The warm-up begins, unless a connection failed.
    pub started: &'a Barrier,
    /// A connection failed.
    pub failed: &'a AtomicBool,
}

/// What was counted within the window.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub cycles: u64,
    pub board: Board,
}

impl Counts {
    pub(super) fn merge(&mut self, other: &Self) {
        self.cycles += other.cycles;
        self.board.merge(&other.board);
    }

    /// Calls that got any answer.
    pub(super) fn answered(&self) -> u64 {
        let all = self.board.occurred();
        all.map(|(_, figures)| figures.done + figures.refused_total()).sum()
    }

    /// Calls still open when all was over.
    fn give_up(&mut self) {
        for operation in Operation::ALL {
            let figures = self.board.of_mut(operation);
            let ended = figures.done + figures.unknown + figures.refused_total();
            for _ in ended..figures.offered {
                figures.count(Verdict::Unknown, GRACE);
            }
        }
    }
}

pub(super) fn run(job: Job<'_>) -> Result<Counts, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let target = job.target.for_a_thread();
    let prepared = match runtime {
        Ok(runtime) => connect(&job, &target, &runtime).map(|clients| (runtime, clients)),
        Err(error) => Err(Error::io("start a runtime")(error)),
    };
    if prepared.is_err() {
        job.failed.store(true, Ordering::SeqCst);
    }
    // Even without a connection: the others wait here.
    job.connected.wait();
    job.started.wait();
    let (runtime, clients) = prepared?;
    if job.failed.load(Ordering::SeqCst) {
        return Ok(Counts::default());
    }
    let start = Instant::now() + job.plan.warm_up;
    let end = start + job.plan.window;
    let counts = Rc::new(RefCell::new(Counts::default()));
    let local = LocalSet::new();
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|(number, client)| {
            let mut lane = Lane {
                target: target.clone(),
                client: Some(client),
                names: Names::new(job.plan, number),
                ids: job.ids.clone(),
                wait: job.plan.wait,
                start,
                end,
                counts: counts.clone(),
            };
            local.spawn_local(async move { lane.run().await })
        })
        .collect();
    local.block_on(&runtime, async {
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout_at((end + GRACE).into(), all).await;
    });
    drop(local);
    let mut counts = counts.take();
    counts.give_up();
    Ok(counts)
}

fn connect(
    job: &Job<'_>,
    target: &Target,
    runtime: &tokio::runtime::Runtime,
) -> Result<Vec<(usize, Client)>, Error> {
    runtime.block_on(async {
        let mut clients = Vec::new();
        for number in job.clients.clone() {
            let client = target.connect().await.map_err(|fault| Error::Service {
                call: format!("connect client {number}"),
                why: fault.to_string(),
            })?;
            clients.push((number, client));
        }
        Ok(clients)
    })
}

/// The names that a client locks.
struct Names {
    names: Vec<String>,
    rng: SmallRng,
}

impl Names {
    fn new(plan: &Plan, client: usize) -> Self {
        let names = match plan.resources {
            Some(count) => (0..count).map(|number| format!("bench/shared/{number}")).collect(),
            None => vec![format!("bench/own/{client}")],
        };
        let seed = plan.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(client as u64);
        Self { names, rng: SmallRng::seed_from_u64(seed) }
    }

    fn draw(&mut self) -> usize {
        if self.names.len() == 1 { 0 } else { self.rng.random_range(0..self.names.len()) }
    }
}

/// One client.
struct Lane {
    target: Target,
    client: Option<Client>,
    names: Names,
    ids: Arc<RequestIds>,
    wait: Option<sereno_api::Millis>,
    start: Instant,
    end: Instant,
    counts: Rc<RefCell<Counts>>,
}

impl Lane {
    async fn run(&mut self) {
        let (take, give) = self.target.operations();
        let mut now = Instant::now();
        while now < self.end {
            let name = self.names.draw();
            let began = self.offer(take, now);
            let (lease, verdict) = self.acquire(name).await;
            now = self.count(take, began, now, verdict);
            let Some(lease) = lease else { continue };
            let began = self.offer(give, now);
            let verdict = self.release(name, &lease).await;
            now = self.count(give, began, now, verdict);
            if began && verdict == Verdict::Done && now <= self.end {
                self.counts.borrow_mut().cycles += 1;
            }
        }
    }

    /// Whether a call sent now lies in the window.
    fn offer(&self, operation: Operation, now: Instant) -> bool {
        let inside = (self.start..self.end).contains(&now);
        if inside {
            self.counts.borrow_mut().board.of_mut(operation).offered += 1;
        }
        inside
    }

    fn count(
        &self,
        operation: Operation,
        inside: bool,
        sent: Instant,
        verdict: Verdict,
    ) -> Instant {
        let now = Instant::now();
        if inside {
            self.counts.borrow_mut().board.of_mut(operation).count(verdict, now - sent);
        }
        now
    }

    async fn acquire(&mut self, name: usize) -> (Option<LeaseId>, Verdict) {
        let request_id = self.ids.next();
        loop {
            let ask =
                Ask { resource: &self.names.names[name], request_id: &request_id, wait: self.wait };
            let answer = match &mut self.client {
                Some(client) => client.acquire(&ask).await,
                None => Err(Fault::NotSent("no connection".into())),
            };
            return match answer {
                Ok(Acquired::Granted(lease)) => (Some(lease), Verdict::Done),
                Ok(Acquired::Waiting) => continue,
                Ok(Acquired::Refused(code)) => (None, Verdict::Refused(code)),
                Ok(Acquired::Unknown) => (None, Verdict::Unknown),
                Err(fault) => (None, self.reconnect(fault).await),
            };
        }
    }

    async fn release(&mut self, name: usize, lease: &LeaseId) -> Verdict {
        let answer = match &mut self.client {
            Some(client) => client.release(&self.names.names[name], lease).await,
            None => Err(Fault::NotSent("no connection".into())),
        };
        match answer {
            Ok(Released::Done) => Verdict::Done,
            Ok(Released::Refused(code)) => Verdict::Refused(code),
            Ok(Released::Unknown) => Verdict::Unknown,
            Err(fault) => self.reconnect(fault).await,
        }
    }

    async fn reconnect(&mut self, fault: Fault) -> Verdict {
        let verdict = match fault {
            Fault::Silent(_) => Verdict::Unknown,
            Fault::NotSent(_) => Verdict::Refused("NOT_CONNECTED"),
        };
        self.client = self.target.connect().await.ok();
        if self.client.is_none() {
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_at_the_end_is_unknown() {
        let mut counts = Counts::default();
        let figures = counts.board.of_mut(Operation::Acquire);
        figures.offered = 3;
        figures.count(Verdict::Done, Duration::from_millis(1));
        counts.give_up();
        let figures = counts.board.of(Operation::Acquire);
        assert_eq!((figures.done, figures.unknown), (1, 2));
        assert!(figures.latency.percentiles().p50_us >= 9_900_000, "a stall must not look fast");
    }

    #[test]
    fn names_follow_from_the_seed() {
        let plan = Plan {
            clients: 2,
            warm_up: Duration::ZERO,
            window: Duration::from_secs(1),
            resources: Some(1_000),
            wait: None,
            threads: 1,
            seed: 7,
        };
        let draws = |plan: &Plan, client| {
            let mut names = Names::new(plan, client);
            (0..20).map(|_| names.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(&plan, 0), draws(&plan, 0));
        assert_ne!(draws(&plan, 0), draws(&plan, 1));
        assert_ne!(draws(&plan, 0), draws(&Plan { seed: 8, ..plan.clone() }, 0));
        let own = Plan { resources: None, ..plan };
        assert_eq!(Names::new(&own, 1).names, ["bench/own/1"]);
    }
}
