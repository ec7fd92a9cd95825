//! An HTTP proxy that checks fencing tokens, for a service that cannot.
//!
//! A request carries `Sereno-Fence-Key` and `Sereno-Token`. An older token than was forwarded before gets `412`. A
//! newer one waits until the older writes in flight under its key have finished, and after it no older one is ever
//! forwarded. *Finished* is a write that the upstream has answered to the end, or for which `upstream_max` has passed
//! since it was sent; also where this process was killed meanwhile. Equal tokens go side by side.
//!
//! Before anything is forwarded, `memory.rs` has it durable that it is in flight, and with which token.

mod base;
mod body;
mod exchange;
mod headers;
mod keys;
mod memory;
mod problem;
mod serve;
mod wire;

pub use headers::{FENCE_KEY, TOKEN};
pub use memory::MemoryError;

use crate::Reporter;
use base::Base;
use keys::{Keys, Turn};
use memory::{Leftover, Memory};
use sereno_client::Moment;
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
};

/// Requests at once, those that wait for their turn included.
pub const REQUESTS_MAX: usize = 2_048;

/// Which requests may do without a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfenced {
    /// Those of methods that change nothing: `GET`, `HEAD`, `OPTIONS`.
    #[default]
    Safe,
    /// None.
    Nothing,
    /// All. They do not count as writes in flight.
    Everything,
}

/// What a proxy needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Before which service it stands: `http://host[:port][/path]`.
    pub upstream: String,
    /// The folder of its memory.
    pub data: PathBuf,
    /// After so long a write that the upstream has not answered counts as finished.
    pub upstream_max: Duration,
    /// The longest body of a request, in bytes.
    pub body_max: u64,
    /// Which requests may do without a token.
    pub unfenced: Unfenced,
    /// Who is told of refusals.
    pub reporter: Option<Reporter>,
}

/// Why a proxy does not run.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// An upstream that makes no sense.
    #[error("upstream {0:?} {1}")]
    Upstream(String, &'static str),
    /// No memory, no proxy.
    #[error("{0}")]
    Memory(#[from] MemoryError),
    /// The address cannot be listened at.
    #[error("listening at {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The memory has failed while it ran. What it had told before is durable.
    #[error("the memory has failed: {0}")]
    MemoryLost(String),
}

/// A proxy that listens.
pub struct Proxy {
    listener: TcpListener,
    shared: Arc<Shared>,
}

struct Shared {
    keys: Arc<Keys>,
    memory: Arc<Memory>,
    base: Base,
    next_id: AtomicU64,
    places: Arc<Semaphore>,
    upstream_max: Duration,
    body_max: u64,
    unfenced: Unfenced,
    reporter: Option<Reporter>,
}

/// A write that counts, in this process and in the memory.
///
/// Dropped before anything was sent, it never was. Dropped afterwards without having finished (the process ends), it
/// stays in the memory, and nobody with a newer token passes it here.
struct Write {
    id: u64,
    memory: Arc<Memory>,
    turn: Option<Turn>,
    may_be_sent: bool,
}

impl Write {
    fn new(id: u64, memory: Arc<Memory>, turn: Turn) -> Self {
        Self { id, memory, turn: Some(turn), may_be_sent: false }
    }

    /// From here on it only ends by finishing.
    fn send(mut self) -> Self {
        self.may_be_sent = true;
        self
    }

    fn finish(mut self) {
        self.may_be_sent = false;
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        if !self.may_be_sent {
            self.memory.end(self.id);
        } else if let Some(turn) = self.turn.take() {
            // Its own destructor would let others pass.
            std::mem::forget(turn);
        }
    }
}

/// What a request holds while it is on its way.
struct InFlight {
    write: Option<Write>,
    place: OwnedSemaphorePermit,
}

impl Proxy {
    /// Opens the memory and listens. Writes that an earlier process has left in flight count from here on.
    ///
    /// # Errors
    /// [`ProxyError`]: a wrong upstream, a folder that another process has, an address that is taken.
    pub async fn start(config: Config) -> Result<Self, ProxyError> {
        let base = Base::parse(&config.upstream)?;
        let (memory, leftovers) = Memory::open(&config.data)?;
        let memory = Arc::new(memory);
        let listener = TcpListener::bind(config.listen).await;
        let listener = listener.map_err(|error| ProxyError::Listen(config.listen, error))?;
        let next_id = leftovers.iter().map(|it| it.id).max().map_or(1, |id| id + 1);
        let shared = Shared {
            keys: Arc::default(),
            memory,
            base,
            next_id: AtomicU64::new(next_id),
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            upstream_max: config.upstream_max,
            body_max: config.body_max,
            unfenced: config.unfenced,
            reporter: config.reporter,
        };
        for leftover in leftovers {
            shared.go_on(leftover);
        }
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` ends, then finishes what is in flight.
    ///
    /// # Errors
    /// [`ProxyError::MemoryLost`]: it must not go on.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ProxyError> {
        serve::run(&self.listener, &self.shared, stop).await
    }
}

impl Shared {
    /// A write of an earlier process counts until its time is over.
    fn go_on(&self, leftover: Leftover) {
        let Leftover { id, fence, orphaned } = leftover;
        let left = Moment::now().until(orphaned.plus(self.upstream_max));
        let turn = self.keys.go_on(&fence, id);
        let write = Write::new(id, self.memory.clone(), turn).send();
        tracing::info!(
            "a write of an earlier process under {} with token {} counts for {} ms more",
            fence.key(),
            fence.token(),
            left.as_millis()
        );
        tokio::spawn(async move {
            tokio::time::sleep(left).await;
            write.finish();
        });
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
