//! A client process: several workers, one history. It works until its standard input ends, brings to an end what it
//! has begun, and ends.

mod caller;
pub mod door;
pub(crate) mod elections;
mod guarded;
mod locks;
mod quota_words;
pub(crate) mod quotas;
pub(crate) mod replicas;
pub(crate) mod shop;
mod words;

use crate::{history::Recorder, input};
use caller::Caller;
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

/// How many workers each family has.
const LOCK_WORKERS: usize = 4;
const ELECTION_WORKERS: usize = 2;
const SHOP_WORKERS: usize = 2;
const JOB_WORKERS: usize = 2;
const QUOTA_WORKERS: usize = 3;

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

/// One of the locks that the SDK's guards hold.
pub(crate) fn guarded_lock(index: usize) -> &'static str {
    let (_, name) = [Work::Fenced, Work::Plain, Work::Room][index % 3].guarded_by();
    name
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
    let caller = |kind: &str, index: usize| {
        let name = format!("{}-{kind}{index}", args.name);
        let dice = random(&name);
        Caller::new(door.clone(), name, dice, Stop(stop.clone()))
    };
    for index in 0..LOCK_WORKERS {
        workers.spawn(locks::Worker(caller("w", index)).run());
    }
    for index in 0..ELECTION_WORKERS {
        workers.spawn(elections::Worker(caller("e", index)).run());
    }
    for index in 0..SHOP_WORKERS {
        workers.spawn(shop::Worker(caller("s", index)).run());
    }
    for index in 0..JOB_WORKERS {
        let replica = replicas::Worker { caller: caller("j", index), resource: args.resource };
        workers.spawn(replica.run());
    }
    for index in 0..QUOTA_WORKERS {
        workers.spawn(quotas::Worker::new(caller("q", index)).run());
    }
    let sereno = sereno_client::Client::builder()
        .servers(args.servers.join(","))
        .namespace(NAMESPACE)
        .owner(&args.name)
        .build()
        .map_err(|error| error.to_string())?;
    for work in [Work::Plain, Work::Fenced, Work::Room, Work::Led] {
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
