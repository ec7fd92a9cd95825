//! Closed loop: each client takes a lock, gives it back, and begins again. The next call waits for the last answer,
//! so the loop finds the throughput, and hides what a stall does to callers; for that there is [`crate::open`].

mod report;
mod worker;

pub use report::ClosedReport;

use crate::{
    error::Error,
    process::{Cpu, Engine, ServeArgs, resolve},
    report::{CpuPerCall, Machine, Output},
    stats::Board,
    target::{RequestIds, SerenoTarget, Target, Wording},
};
use sereno_api::Millis;
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use worker::{Counts, Job};

/// N clients, each in a loop of acquire and release on a keep-alive connection of its own.
///
/// Reports cycles a second, the latency of each operation, and the CPU time that server and generator spent on a
/// call. Latency counts from when a call was sent: it says nothing about callers that would have come meanwhile
/// (see `open`).
#[derive(Clone, Debug, clap::Args)]
pub struct ClosedArgs {
    /// How many clients.
    #[arg(long, default_value_t = 64)]
    pub clients: usize,

    /// How long to measure.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,

    /// How long to run before that, unmeasured.
    #[arg(long, default_value_t = 2)]
    pub warm_up: u64,

    /// A server that runs already.
    #[arg(long, value_name = "URL", conflicts_with = "serve", required_unless_present = "serve")]
    pub server: Option<String>,

    /// Start a server for this run, with this log.
    #[arg(long, value_enum)]
    pub serve: Option<Engine>,

    /// Draw names at random from so many, shared by all clients. [default: each client its own name]
    #[arg(long, value_name = "COUNT")]
    pub resources: Option<usize>,

    /// Queue for a held name for this long. [default: be refused]
    #[arg(long, value_name = "DURATION")]
    pub wait: Option<Millis>,

    /// TTL of each lease.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub ttl: Millis,

    /// In this namespace.
    #[arg(long, default_value = "default")]
    pub namespace: String,

    /// Threads of the generator. One is the least load; more only where one is the bottleneck.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,

    /// Decides which names are drawn.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// A closed loop's settings, whatever it runs against.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many clients.
    pub clients: usize,
    /// Unmeasured before.
    pub warm_up: Duration,
    /// Measured.
    pub window: Duration,
    /// Shared names, if not each client its own.
    pub resources: Option<usize>,
    /// How long to queue.
    pub wait: Option<Millis>,
    /// Of the generator.
    pub threads: usize,
    /// Of the names drawn.
    pub seed: u64,
}

/// What a closed loop found.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Both calls carried out (acquire and release, or reserve and commit), within the window.
    pub cycles: u64,
    /// By operation.
    pub board: Board,
    /// How long was measured.
    pub window: Duration,
    /// Of the server, where its process is known.
    pub server_cpu: Option<CpuPerCall>,
    /// Of the generator.
    pub generator_cpu: CpuPerCall,
}

impl Measured {
    /// Cycles a second.
    pub fn cycles_per_second(&self) -> f64 {
        self.cycles as f64 / self.window.as_secs_f64()
    }
}

/// `sereno-bench closed`
///
/// # Errors
/// The server does not come up or cannot be reached.
pub async fn run(args: &ClosedArgs) -> Result<ClosedReport, Error> {
    let machine = Machine::look_with(args.seed);
    let plan = Plan {
        clients: args.clients,
        warm_up: Duration::from_secs(args.warm_up),
        window: Duration::from_secs(args.seconds),
        resources: args.resources,
        wait: args.wait,
        threads: args.threads,
        seed: args.seed,
    };
    let folder = args.serve_args.folder()?;
    let served = match args.serve {
        Some(engine) => Some(args.serve_args.serve(engine, folder.path(), &[]).await?),
        None => None,
    };
    let address = match (&served, &args.server) {
        (Some(served), _) => served.address,
        (None, Some(url)) => resolve(url)?,
        (None, None) => return Err(Error::Usage("--server or --serve is needed".into())),
    };
    let wording = Wording {
        namespace: args.namespace.clone(),
        owner: "sereno-bench".into(),
        lease_ttl: args.ttl,
    };
    let target = Target::Sereno(SerenoTarget::new(address, wording));
    let servers: Vec<u32> = served.iter().map(|served| served.child.id()).collect();
    let measured = measure(&target, &plan, &servers)?;
    if let Some(served) = served {
        served.child.stop()?;
    }
    Ok(ClosedReport::new(machine, args, measured))
}

/// Runs the loop and blocks until it has ended. `servers`: the processes whose CPU time is told, with all that they have
/// started.
///
/// # Errors
/// The clients cannot connect.
pub fn measure(target: &Target, plan: &Plan, servers: &[u32]) -> Result<Measured, Error> {
    if plan.clients == 0 || plan.threads == 0 || plan.window.is_zero() || plan.resources == Some(0)
    {
        return Err(Error::Usage(
            "clients, threads, seconds and resources must be at least 1".into(),
        ));
    }
    let threads = plan.threads.min(plan.clients);
    let (connected, started) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let (ids, failed) = (Arc::new(RequestIds::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let jobs = (0..threads).map(|thread| Job {
            target,
            plan,
            ids: ids.clone(),
            clients: (thread..plan.clients).step_by(threads),
            connected: &connected,
            started: &started,
            failed: &failed,
        });
        let running: Vec<_> = jobs.map(|job| scope.spawn(move || worker::run(job))).collect();
        connected.wait();
        started.wait();
        let cpu_used = || -> Result<_, Error> { Ok((Cpu::own()?, Cpu::of_families(servers)?)) };
        let (mut before, mut after) = (Ok(Default::default()), Ok(Default::default()));
        if !failed.load(Ordering::SeqCst) {
            std::thread::sleep(plan.warm_up);
            before = cpu_used();
            std::thread::sleep(plan.window);
            after = cpu_used();
        }
        let mut counts = Counts::default();
        for thread in running {
            match thread.join() {
                Ok(found) => counts.merge(&found?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let (before, after) = (before?, after?);
        let calls = counts.answered();
        let cpu = |from: Cpu, to: Cpu| CpuPerCall::new(to.since(from), calls, plan.window);
        Ok(Measured {
            cycles: counts.cycles,
            board: counts.board,
            window: plan.window,
            server_cpu: (!servers.is_empty()).then(|| cpu(before.1, after.1)),
            generator_cpu: cpu(before.0, after.0),
        })
    })
}
