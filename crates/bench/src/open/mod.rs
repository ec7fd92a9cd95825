//! Open loop: calls are due by a schedule fixed before, and latency counts from when a call was *due*. So a stall of
//! the service shows with everyone who came meanwhile, as it does in life.

mod alarm;
mod book;
mod calls;
mod holdings;
mod line;
mod load;
mod names;
mod phase;
mod pool;
mod report;
mod schedule;
mod settings;
mod standing;
mod world;

pub use phase::Phase;
pub use report::{OpenReport, PhaseReport};
pub use schedule::{Agenda, Arrivals, Due, Kind, Rates, Schedule};
pub use settings::Settings;

use crate::{
    error::Error,
    picture,
    process::{Cpu, Engine, Memory, ServeArgs, resolve},
    report::{Machine, Output},
    stats::{Latency, Percentiles, Timeline},
    target::{SerenoTarget, Wording},
};
use std::{cell::Cell, collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Instant};
use tokio::sync::oneshot;

/// Load by a fixed schedule; latency counts from the moment a call was due.
///
/// By default the load of DESIGN.md section 17: 100,000 names, 20,000 leases held and renewed each 10 s, 2,000
/// acquires and 2,000 releases a second, 10 % of acquires contended and waiting, 2 % cancelled, 1 % of holders
/// dying. Reports, by phase and operation: offered, done, dropped, unknown, refused by code, and percentiles.
#[derive(Clone, Debug, clap::Args)]
pub struct OpenArgs {
    /// A server that runs already; several, with commas: the first is asked, and another one, with the same request,
    /// when that does not answer.
    #[arg(
        long,
        value_name = "URL",
        value_delimiter = ',',
        conflicts_with = "serve",
        required_unless_present = "serve"
    )]
    pub server: Vec<String>,

    /// Start a server for this run, with this log.
    #[arg(long, value_enum)]
    pub serve: Option<Engine>,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub settings: Settings,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve_args: ServeArgs,

    /// Draw latency over time into this SVG file.
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,

    /// How to write the result.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// What a load found.
#[derive(Debug)]
pub struct Found {
    /// Of each measured phase, with its name and length in seconds.
    pub phases: Vec<PhaseReport>,
    /// Latency by second.
    pub timeline: Timeline,
    /// From the intended start to the sending, of all phases.
    pub lag: Percentiles,
    /// Leases that a renewal did not renew, by code.
    pub lost: BTreeMap<&'static str, u64>,
    /// Holders that were left to die.
    pub died: u64,
    /// Leases held at the end.
    pub held: usize,
    /// CPU time of the generator, in cores.
    pub generator_cores: f64,
    /// CPU time of the server, in cores, where its process is known.
    pub server_cores: Option<f64>,
    /// Memory of the server at the end, where its process is known.
    pub server_memory: Option<Memory>,
}

/// `sereno-bench open`
///
/// # Errors
/// The server does not come up or cannot be reached, or an option is wrong.
pub async fn run(args: &OpenArgs) -> Result<OpenReport, Error> {
    args.settings.check()?;
    let machine = Machine::look_with(args.settings.seed);
    let folder = args.serve_args.folder()?;
    let served = match args.serve {
        Some(engine) => Some(args.serve_args.serve(engine, folder.path(), &[]).await?),
        None => None,
    };
    let addresses = match &served {
        Some(served) => vec![served.address],
        None => args.server.iter().map(|url| resolve(url)).collect::<Result<_, _>>()?,
    };
    let server = served.as_ref().map(|served| served.child.id());
    let found = measure(Load { server, ..Load::new(&args.settings, addresses) }).await?;
    if let Some(served) = served {
        served.child.stop()?;
    }
    if let Some(path) = &args.picture {
        picture::draw(path, &found.timeline, &marks(&args.settings))?;
    }
    Ok(OpenReport::new(machine, found))
}

/// Where phases begin, for the picture.
fn marks(settings: &Settings) -> Vec<(u64, String)> {
    let mut second = 0;
    let mut marks = Vec::new();
    for phase in settings.phases() {
        marks.push((second, phase.name.clone()));
        second += phase.length.as_secs();
    }
    marks
}

/// A load to run.
#[derive(Debug)]
pub struct Load<'a> {
    /// Which.
    pub settings: &'a Settings,
    /// On these: the first is asked, and another one, with the same request, when that does not answer.
    pub addresses: Vec<SocketAddr>,
    /// The process whose CPU time and memory are told.
    pub server: Option<u32>,
    /// Is told when the first leases are taken and the warm-up begins.
    pub started: Option<oneshot::Sender<Instant>>,
}

impl<'a> Load<'a> {
    /// With nobody to tell, and no process to watch.
    pub fn new(settings: &'a Settings, addresses: Vec<SocketAddr>) -> Self {
        Self { settings, addresses, server: None, started: None }
    }
}

/// Runs a load.
///
/// # Errors
/// The server cannot be reached.
pub async fn measure(load: Load<'_>) -> Result<Found, Error> {
    let Load { settings, addresses, server, started } = load;
    let wording = Wording {
        namespace: settings.namespace.clone(),
        owner: "sereno-bench".into(),
        lease_ttl: settings.ttl,
    };
    let target = |address| SerenoTarget::new(address, wording.clone());
    let servers = addresses.into_iter().map(target).collect();
    let before = Cell::new(None);
    let on_start = || {
        let now = Instant::now();
        before.set(Some((now, Cpu::own()?, server.map(Cpu::of).transpose()?)));
        if let Some(started) = started {
            // Who asked may have given up meanwhile.
            let _ = started.send(now);
        }
        Ok(())
    };
    let (book, held) = load::run(settings, servers, on_start).await?;
    let (start, own, theirs) = before.get().unwrap_or((Instant::now(), Cpu::default(), None));
    let elapsed = start.elapsed().as_secs_f64().max(1e-9);
    let cores = |cpu: Cpu| (cpu.total().as_secs_f64() / elapsed * 100.0).round() / 100.0;
    let later = server.map(Cpu::of).transpose()?;
    // Without the warm-up.
    let phases = settings.phases().into_iter().zip(book.boards).zip(&book.lag).skip(1);
    let mut all = Latency::default();
    book.lag.iter().skip(1).for_each(|lag| all.merge(lag));
    Ok(Found {
        phases: phases.map(|((phase, board), lag)| PhaseReport::new(&phase, board, lag)).collect(),
        timeline: book.timeline,
        lag: all.percentiles(),
        lost: book.lost,
        died: book.died,
        held,
        generator_cores: cores(Cpu::own()?.since(own)),
        server_cores: later.zip(theirs).map(|(later, before)| cores(later.since(before))),
        server_memory: server.map(Memory::of).transpose()?,
    })
}
