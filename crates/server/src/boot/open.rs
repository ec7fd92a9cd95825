//! The log that a server serves, and what comes with it.

use super::ServerError;
use crate::{
    cluster::{HttpDial, Storage, watch_storage},
    config::{Config, LogEngine},
};
use sereno_log::{
    Log, LogError,
    etcd::{self, EtcdLog, EtcdOptions, EtcdUrl},
    memory::MemoryLog,
    sqlite::{self, FolderLock},
};
use sereno_node::driver::{Secret, Shared};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};

/// An open log.
pub(super) struct Opened {
    pub(super) log: Arc<dyn Log>,
    /// Where other nodes share it.
    pub(super) shared: Option<Shared>,
    /// Looks at its storage.
    pub(super) watcher: Option<JoinHandle<()>>,
    pub(super) storage: Storage,
    /// Where the log does not lock the data folder itself.
    pub(super) folder: Option<FolderLock>,
}

impl Opened {
    /// One that no other node shares.
    pub(super) fn alone(log: Arc<dyn Log>) -> Self {
        Self { log, shared: None, watcher: None, storage: Storage::default(), folder: None }
    }
}

/// Opens what the configuration names.
pub(super) async fn log(config: &Config) -> Result<Opened, ServerError> {
    match &config.log {
        LogEngine::Memory => Ok(Opened::alone(Arc::new(MemoryLog::new()))),
        LogEngine::Sqlite => {
            let folder = config.data.clone();
            let open = move || sqlite::open(&folder, sqlite::Options::default());
            let opened = tokio::task::spawn_blocking(open).await;
            let opened = opened.map_err(|error| ServerError::Failed(error.to_string()))?;
            Ok(Opened::alone(Arc::new(opened?)))
        }
        LogEngine::Etcd(url) => shared_log(config, url).await,
    }
}

async fn shared_log(config: &Config, url: &EtcdUrl) -> Result<Opened, ServerError> {
    let folder = FolderLock::take(&config.data)?;
    let secret = match &config.cluster_secret_file {
        Some(path) => {
            let secret = read("--cluster-secret-file", path)?;
            let secret = secret.trim_ascii();
            if secret.len() < 16 {
                let why = "--cluster-secret-file: a secret has at least 16 bytes";
                return Err(ServerError::Failed(why.into()));
            }
            Secret::new(secret)
        }
        None => Secret::new(b""),
    };
    let log = Arc::new(when_it_answers(url, &config.etcd.options()?).await?);
    let storage = Storage::default();
    let watching = watch_storage(log.clone(), config.etcd.quota, storage.clone());
    let dial = Arc::new(HttpDial::of(&config.node_id));
    let shared = Shared { presence: Arc::new(log.presence()), dial, secret };
    Ok(Opened {
        log,
        shared: Some(shared),
        watcher: Some(tokio::spawn(watching)),
        storage,
        folder: Some(folder),
    })
}

/// After a power cut all machines start at once: a node waits for etcd as a running one would.
async fn when_it_answers(url: &EtcdUrl, options: &EtcdOptions) -> Result<EtcdLog, LogError> {
    const PAUSE: Duration = Duration::from_secs(1);
    const BETWEEN_LINES: Duration = Duration::from_secs(10);
    let mut next_line = Instant::now();
    loop {
        match etcd::open(url, options.clone()).await {
            Err(LogError::Unreachable(why)) => {
                if next_line <= Instant::now() {
                    next_line = Instant::now() + BETWEEN_LINES;
                    tracing::warn!(%why, "etcd does not answer, or not with a quorum: this node waits for it");
                }
                tokio::time::sleep(PAUSE).await;
            }
            opened => return opened,
        }
    }
}

fn read(option: &'static str, path: &Path) -> Result<Vec<u8>, ServerError> {
    Ok(crate::config::read_file(option, path)?)
}
