//! A log in etcd, for commands that work on a log without a service.

use super::replay::Source;
use crate::failure::Failure;
use clap::Args;
use sereno_core::{State, entry::Head, ids::Position};
use sereno_log::{
    Log, LogError, Read, Snapshot,
    etcd::{self, EtcdLog, EtcdOptions, EtcdReport, EtcdUrl},
    presence::Presence,
};
use sereno_node::replay;
use sereno_server::config::EtcdConfig;
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};

/// Where the log is, and who asks.
#[derive(Clone, Debug, Args)]
pub(super) struct EtcdArgs {
    /// A log in etcd instead of a data folder, whatever --data says: etcd://HOST:PORT,HOST:PORT,.../PREFIX
    #[arg(long, value_name = "URL")]
    pub(super) log: Option<EtcdUrl>,
    /// etcd's user, where it asks for one.
    #[arg(
        long,
        env = "SERENO_ETCD_USER",
        value_name = "NAME",
        requires = "etcd_password_file",
        hide_env_values = true
    )]
    etcd_user: Option<String>,
    /// The file with that user's password.
    #[arg(long, env = "SERENO_ETCD_PASSWORD_FILE", value_name = "FILE", hide_env_values = true)]
    etcd_password_file: Option<PathBuf>,
    /// Speak TLS with etcd, and trust these authorities (PEM).
    #[arg(long, env = "SERENO_ETCD_CA", value_name = "FILE", hide_env_values = true)]
    etcd_ca: Option<PathBuf>,
    /// A certificate for etcd (PEM), where it asks for one.
    #[arg(
        long,
        env = "SERENO_ETCD_CERT",
        value_name = "FILE",
        requires = "etcd_key",
        hide_env_values = true
    )]
    etcd_cert: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, env = "SERENO_ETCD_KEY", value_name = "FILE", hide_env_values = true)]
    etcd_key: Option<PathBuf>,
}

impl EtcdArgs {
    fn options(&self) -> Result<EtcdOptions, Failure> {
        let config = EtcdConfig {
            user: self.etcd_user.clone(),
            password_file: self.etcd_password_file.clone(),
            ca: self.etcd_ca.clone(),
            cert: self.etcd_cert.clone(),
            key: self.etcd_key.clone(),
            // What runs for a moment does not tidy up.
            compact: false,
            ..EtcdConfig::default()
        };
        config.options().map_err(|error| Failure::new(error.to_string()))
    }

    /// The state at the head of the log, replayed from its newest snapshot.
    pub(super) fn state_at_head(&self, url: &EtcdUrl) -> Result<State, Failure> {
        let options = self.options()?;
        on_runtime(async {
            let log = etcd::open(url, options).await.map_err(|error| error.to_string())?;
            let head = log.head().await.map_err(|error| error.to_string())?;
            if head.position.0 == 0 {
                return Err(format!("there is no log at {url}"));
            }
            let failed = |error: replay::ReplayError| error.to_string();
            let (state, _) = replay::last_snapshot(&log).await.map_err(failed)?;
            replay::to(&log, state, head, |_, _, _| {}).await.map_err(failed)
        })
    }

    /// The log as it is now, for an examination.
    pub(super) fn examine(&self, url: &EtcdUrl) -> Result<Result<Examined, LogError>, Failure> {
        let (options, runtime) = (self.options()?, runtime()?);
        let opened = runtime.block_on(async {
            let log = etcd::open(url, options).await?;
            let report = log.inspect().await?;
            let in_use = !log.presence().list().await?.is_empty();
            Ok((log, report, in_use))
        });
        let examined = |(log, report, in_use)| Examined { runtime, log, report, in_use };
        Ok(opened.map(examined))
    }

    /// A new log that begins after the snapshot.
    pub(super) fn create(&self, url: &EtcdUrl, snapshot: &Snapshot) -> Result<(), Failure> {
        let options = self.options()?;
        on_runtime(async {
            let created = etcd::create_from_snapshot(url, options, snapshot).await;
            created.map_err(|error| error.to_string())
        })
    }
}

/// A log in etcd at one moment. Nodes that use it go on meanwhile.
pub(super) struct Examined {
    runtime: Runtime,
    log: EtcdLog,
    pub(super) report: EtcdReport,
    /// A node has a presence record.
    pub(super) in_use: bool,
}

impl Examined {
    /// Whether entries or snapshots have been removed since.
    pub(super) fn has_moved(&self) -> Result<bool, LogError> {
        let now = self.runtime.block_on(self.log.inspect())?;
        let kept =
            |report: &EtcdReport| report.snapshots.iter().map(|it| it.head).collect::<Vec<_>>();
        Ok((now.first, kept(&now)) != (self.report.first, kept(&self.report)))
    }
}

impl Source for Examined {
    fn head(&self) -> Head {
        self.report.head
    }

    fn first(&self) -> Position {
        self.report.first
    }

    fn read(&self, from: Position, bytes_max: usize) -> Result<Read, LogError> {
        self.runtime.block_on(self.log.read(from, bytes_max))
    }

    /// Those that are sound.
    fn snapshots(&self) -> Result<Vec<Head>, LogError> {
        let sound = self.report.snapshots.iter().filter(|it| it.snapshot.is_some());
        Ok(sound.map(|it| it.head).collect())
    }

    fn snapshot(&self, head: Head) -> Result<Option<Snapshot>, LogError> {
        let kept = self.report.snapshots.iter().find(|it| it.head == head);
        Ok(kept.and_then(|it| it.snapshot.clone()))
    }
}

fn runtime() -> Result<Runtime, Failure> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Failure::io("starting the runtime", &error))
}

fn on_runtime<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, Failure> {
    runtime()?.block_on(work).map_err(Failure::new)
}
