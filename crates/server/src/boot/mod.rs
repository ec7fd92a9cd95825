//! Booting a whole server: log, audit trail, node, door; and stopping it again.

#[cfg(test)]
mod etcd_tests;
mod failure;
mod known;
mod open;
mod run;
#[cfg(test)]
mod tests;

pub use run::run;

use crate::{
    audit::{Audit, AuditConfig, AuditError},
    cluster::Links,
    config::{Config, ConfigError, LogEngine},
    door::{Bounds, Door, Hosts, Phase, Reach, Running, listen},
    metrics::{Leaderless, Metrics},
};
use failure::Failure;
use open::Opened;
use sereno_core::limits;
use sereno_log::{Log, LogError, sqlite::FolderLock};
use sereno_node::{
    driver::{self, StartError},
    events::Sink,
    handle::NodeHandle,
};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// Connections get this long to take their last answers.
const GRACE: Duration = Duration::from_secs(5);
/// Files that are open besides connections.
const OTHER_FILES: u64 = 384;
/// How often the time without a leader is counted.
const SAMPLE: Duration = Duration::from_millis(250);

/// Why a server does not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The log cannot be opened.
    #[error("{0}")]
    Log(#[from] LogError),
    /// The audit trail cannot be opened.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The node cannot start from this log.
    #[error(transparent)]
    Node(#[from] StartError),
    /// Something that the server cannot do without has failed; the message says what.
    #[error("{0}")]
    Failed(String),
    /// The system denies something.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// A running server.
pub struct Server {
    addr: SocketAddr,
    node: NodeHandle,
    audit: Option<Arc<Audit>>,
    phase: watch::Sender<Phase>,
    running: Running,
    sampler: JoinHandle<()>,
    /// Looks at the log's storage.
    watcher: Option<JoinHandle<()>>,
    failure: Failure,
    /// Where the log does not lock the data folder itself.
    _folder: Option<FolderLock>,
}

impl Server {
    /// Boots a server on the current runtime and returns when it takes requests. It may not lead yet, for which
    /// [`Self::ready`] waits.
    ///
    /// # Errors
    /// When any part of it cannot start; nothing is left running then.
    pub async fn start(config: Config) -> Result<Self, ServerError> {
        config.check()?;
        let opened = open::log(&config).await?;
        Self::start_with(config, opened).await
    }

    /// The same on a log that is open already, whatever the configuration says of it.
    ///
    /// # Errors
    /// When any part of it cannot start; nothing is left running then.
    pub async fn start_on(config: Config, log: Arc<dyn Log>) -> Result<Self, ServerError> {
        config.check()?;
        Self::start_with(config, Opened::alone(log)).await
    }

    async fn start_with(config: Config, opened: Opened) -> Result<Self, ServerError> {
        let Opened { log, shared, watcher, storage, folder } = opened;
        let listener = bind(config.http).await?;
        let addr = listener.local_addr()?;
        let connections_max = allow_connections(config.max_connections);
        let failure = Failure::default();
        let audit = open_audit(&config, &failure)?;
        if let Some(audit) = &audit {
            known::check_in(&config.data, &*log, audit.end(), shared.is_some()).await?;
        }
        let metrics = Arc::new(Metrics::new());
        let mut sinks: Vec<Arc<dyn Sink>> = vec![metrics.events.clone()];
        sinks.extend(audit.clone().map(|audit| audit as Arc<dyn Sink>));
        let secret = shared.as_ref().map(|shared| shared.secret.clone());
        let node_config = node_config(&config, addr, shared);
        let node = driver::start(log.clone(), node_config, sinks, metrics.node.clone()).await?;
        metrics.events.go_live();
        if let Some(audit) = &audit {
            tokio::spawn(begin_audit(node.clone(), audit.clone()));
        }
        let sampler = tokio::spawn(sample(node.clone(), metrics.clone()));
        let (phase, phase_seen) = watch::channel(Phase::Serving);
        let hosts = Hosts::new(addr, &config.allowed_hosts, !addr.ip().is_loopback());
        let links = secret.map(|secret| Links::new(node.clone(), secret, metrics.clone()));
        let reach = Reach { hosts, links, storage };
        let door = Door::new(node.clone(), log, metrics, audit.clone(), reach, phase_seen);
        let bounds = Bounds { connections_max, idle_timeout: config.idle_timeout };
        let running = listen(Arc::new(door), listener, bounds);
        tracing::info!(%addr, log = %config.log, "listening");
        Ok(Self { addr, node, audit, phase, running, sampler, watcher, failure, _folder: folder })
    }

    /// Where the door listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The node behind the door.
    pub fn node(&self) -> &NodeHandle {
        &self.node
    }

    /// Waits until the node serves.
    pub async fn ready(&self) {
        let _stopped =
            self.node.status().wait_for(|status| status.not_ready.is_none()).await.is_err();
    }

    /// Returns, with a message, when something has failed that the server cannot do without.
    pub async fn failed(&self) -> String {
        tokio::select! {
            message = self.failure.wait() => message,
            message = self.node.failed() => message,
        }
    }

    /// Stops: takes nothing new, answers what is in flight, ends held calls with `UNAVAILABLE` and outcome
    /// `unknown`, resigns, and makes everything durable.
    ///
    /// # Errors
    /// When something had failed before; the message says what.
    pub async fn stop(self) -> Result<(), ServerError> {
        tracing::info!("stopping");
        self.phase.send_replace(Phase::Stopping);
        self.node.stop().await;
        if !self.running.ended(GRACE).await {
            tracing::warn!("connections are closed before their last answers were taken");
        }
        self.phase.send_replace(Phase::Closing);
        self.sampler.abort();
        if let Some(watcher) = &self.watcher {
            watcher.abort();
        }
        if let Some(audit) = &self.audit {
            audit.stop().await;
        }
        tracing::info!("stopped");
        match self.failure.message().or(self.node.failure()) {
            Some(message) => Err(ServerError::Failed(message)),
            None => Ok(()),
        }
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServerError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| ServerError::Listen { address, error })
}

/// Raises this process's limit of open files, and lowers the number of connections to what it then allows.
fn allow_connections(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let allowed = files.map_or(usize::MAX, |files| {
        usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX).max(1)
    });
    if allowed < wanted {
        tracing::warn!(
            wanted,
            allowed,
            "the system allows fewer open files than --max-connections needs"
        );
    }
    wanted.min(allowed)
}

/// Its folder is only touched once the log's folder is ours.
fn open_audit(config: &Config, failure: &Failure) -> Result<Option<Arc<Audit>>, ServerError> {
    if config.log == LogEngine::Memory {
        return Ok(None);
    }
    let audit = AuditConfig {
        folder: config.audit_folder(),
        file_bytes: config.audit_file_bytes,
        files: config.audit_files,
    };
    let failure = failure.clone();
    let on_failure = Box::new(move |message: String| failure.report(message));
    Ok(Some(Audit::open(audit, on_failure)?))
}

fn node_config(
    config: &Config,
    addr: SocketAddr,
    shared: Option<driver::Shared>,
) -> driver::Config {
    driver::Config {
        node_id: config.node_id.clone(),
        address: config.advertise.clone().unwrap_or_else(|| format!("http://{addr}")),
        // Where nodes share a log a takeover has to fit into a lease.
        min_ttl_ms: match &shared {
            Some(_) => limits::TTL_MS_MIN_REPLICATED,
            None => limits::TTL_MS_MIN,
        },
        snapshot_interval: config.snapshot_every,
        snapshot_bytes: config.snapshot_bytes,
        level_max: config.level_max,
        region: config.region.clone(),
        shared,
    }
}

/// A log has its id from its first announce on.
async fn begin_audit(node: NodeHandle, audit: Arc<Audit>) {
    let mut status = node.status();
    let founded = status.wait_for(|status| status.log_id != Default::default()).await;
    if let Ok(log_id) = founded.map(|status| status.log_id) {
        audit.begin(log_id, node.replayed_after());
    }
}

async fn sample(node: NodeHandle, metrics: Arc<Metrics>) {
    let status = node.status();
    let mut leaderless = Leaderless::new(tokio::time::Instant::now());
    loop {
        tokio::time::sleep(SAMPLE).await;
        let (position, is_named) = {
            let status = status.borrow();
            (status.position, status.leader.is_some())
        };
        let passed = leaderless.passed(tokio::time::Instant::now(), position, is_named);
        metrics.node.leaderless(passed);
    }
}
