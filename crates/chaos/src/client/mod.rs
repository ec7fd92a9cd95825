//! A client process: several workers, one history. It works until its standard input ends, brings to an end what it
//! has begun, and ends.

pub mod door;
mod guarded;
mod locks;

use crate::{history::Recorder, input};
use door::{Door, NAMESPACE};
use guarded::Work;
use rand::{SeedableRng, rngs::StdRng};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
};
use tokio::{sync::watch, task::JoinSet};

const LOCK_WORKERS: usize = 10;

/// Its command line.
#[derive(Clone, Debug, clap::Args)]
pub struct ClientArgs {
    /// Its name: begins every request id.
    #[arg(long)]
    pub name: String,
    /// The nodes.
    #[arg(long, value_delimiter = ',')]
    pub servers: Vec<String>,
    /// The protected resource.
    #[arg(long)]
    pub resource: SocketAddr,
    /// What it does is drawn from this, and from its name.
    #[arg(long)]
    pub seed: u64,
    /// Where it records.
    #[arg(long)]
    pub history: PathBuf,
}

/// The run is over.
#[derive(Clone, Debug)]
struct Stop(watch::Receiver<bool>);

impl Stop {
    fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    async fn wait(&mut self) {
        // Without a sender the run is over too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Works until it is told to stop.
///
/// # Errors
/// In words: it cannot begin.
pub async fn run(args: ClientArgs) -> Result<(), String> {
    let recorder = Recorder::create(&args.history);
    let recorder = recorder.map_err(|error| format!("{}: {error}", args.history.display()))?;
    let door = Door::new(args.servers.clone(), recorder).map_err(|error| error.to_string())?;
    let (door, (set, stop)) = (Arc::new(door), watch::channel(false));
    let random = |worker: &str| {
        let mut hasher = DefaultHasher::new();
        (args.seed, &args.name, worker).hash(&mut hasher);
        StdRng::seed_from_u64(hasher.finish())
    };
    let mut workers = JoinSet::new();
    for index in 0..LOCK_WORKERS {
        let name = format!("{}-w{index}", args.name);
        let worker =
            locks::Worker::new(door.clone(), name.clone(), random(&name), Stop(stop.clone()));
        workers.spawn(worker.run());
    }
    let sereno = sereno_client::Client::builder()
        .servers(args.servers.join(","))
        .namespace(NAMESPACE)
        .owner(&args.name)
        .build()
        .map_err(|error| error.to_string())?;
    for work in [Work::Plain, Work::Fenced, Work::Room] {
        let worker = guarded::Worker {
            door: door.clone(),
            sereno: sereno.clone(),
            resource: args.resource,
            random: random(&format!("{work:?}")),
            stop: Stop(stop.clone()),
            work,
        };
        workers.spawn(worker.run());
    }
    let mut lines = input::lines();
    while lines.recv().await.is_some() {}
    set.send_replace(true);
    while let Some(worker) = workers.join_next().await {
        worker.map_err(|error| format!("a worker has ended: {error}"))?;
    }
    Ok(())
}
