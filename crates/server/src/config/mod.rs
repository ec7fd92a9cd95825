//! What a server can be told. Flags win over the environment, that over the file, that over the defaults.

mod args;
mod etcd;
mod file;
mod size;

pub use args::Args;
pub use etcd::EtcdConfig;
pub(crate) use etcd::read_file;
pub use size::ByteSize;

use sereno_api::{DurationError, Millis};
use sereno_core::{LEVEL_MAX, names::RegionName};
use sereno_log::etcd::{EtcdUrl, UrlError};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

/// Everything a server needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The folder of the log, its snapshots and the audit trail.
    pub data: PathBuf,
    /// The engine that keeps the log.
    pub log: LogEngine,
    /// What else is needed for a log in etcd.
    pub etcd: EtcdConfig,
    /// The file with the secret that all nodes of a cluster share.
    pub cluster_secret_file: Option<PathBuf>,
    /// Where the HTTP door listens; port 0 takes a free one.
    pub http: SocketAddr,
    /// This node's name in the log.
    pub node_id: String,
    /// Where others can reach the door. `None`: `http://` and the address it listens on.
    pub advertise: Option<String>,
    /// Where the service runs. `None`: what its log says stays.
    pub region: Option<RegionName>,
    /// Without authentication, listen on an address that others can reach.
    pub insecure: bool,
    /// Names, besides `localhost`, that the `Host` header may carry.
    pub allowed_hosts: Vec<String>,
    /// A snapshot is taken after this time …
    pub snapshot_every: Duration,
    /// … or after this much log.
    pub snapshot_bytes: u64,
    /// The highest level of the log's rules that this node understands.
    pub level_max: u32,
    /// One file of the audit trail has this size.
    pub audit_file_bytes: u64,
    /// So many files of the audit trail are kept.
    pub audit_files: usize,
    /// Open connections at once.
    pub max_connections: usize,
    /// A connection that sends no whole request head for so long is closed.
    pub idle_timeout: Duration,
    /// Which log lines are written to standard error: `info`, or a list like `warn,sereno_node=debug`.
    pub log_level: String,
    /// How they are written.
    pub log_format: LogFormat,
}

/// The engine that keeps the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEngine {
    /// One file in the data folder: durable, for one machine.
    Sqlite,
    /// Forgotten when the process ends: for trying and for tests. Keeps no audit trail.
    Memory,
    /// An etcd cluster, shared with other nodes: one service over several zones.
    Etcd(EtcdUrl),
}

impl fmt::Display for LogEngine {
    /// As `--log` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => f.write_str("sqlite"),
            Self::Memory => f.write_str("memory"),
            Self::Etcd(url) => url.fmt(f),
        }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value breaks a rule.
    #[error("{option}: {rule}")]
    Invalid {
        /// The option as a flag, in the file without its dashes.
        option: &'static str,
        /// What it has to be, and what is wrong with this value.
        rule: String,
    },
    /// The file cannot be used.
    #[error("the configuration file {path}: {why}")]
    File {
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::from("./sereno-data"),
            log: LogEngine::Sqlite,
            etcd: EtcdConfig::default(),
            cluster_secret_file: None,
            http: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7480),
            node_id: "node-1".into(),
            advertise: None,
            region: None,
            insecure: false,
            allowed_hosts: Vec::new(),
            snapshot_every: Duration::from_secs(300),
            snapshot_bytes: 256 << 20,
            level_max: LEVEL_MAX,
            audit_file_bytes: 64 << 20,
            audit_files: 16,
            max_connections: 16_000,
            idle_timeout: Duration::from_secs(75),
            log_level: "info".into(),
            log_format: LogFormat::Text,
        }
    }
}

impl Config {
    /// The configuration of a server that forgets everything, on a free port: for tests and for embedding.
    pub fn in_memory() -> Self {
        Self { log: LogEngine::Memory, http: free_port(), ..Self::default() }
    }

    /// The configuration of a durable server in `data`, on a free port: for tests and for embedding.
    pub fn in_folder(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), http: free_port(), ..Self::default() }
    }

    /// The folder of the audit trail.
    pub fn audit_folder(&self) -> PathBuf {
        self.data.join("audit")
    }

    /// Checks what the types do not say.
    ///
    /// # Errors
    /// The first option that breaks a rule.
    pub fn check(&self) -> Result<(), ConfigError> {
        let invalid = |option, rule: String| Err(ConfigError::Invalid { option, rule });
        if !self.http.ip().is_loopback() && !self.insecure {
            let address = self.http;
            return invalid(
                "--http",
                format!(
                    "{address} can be reached by others, and this version has no authentication: everybody \
                     there could take, end and read every lock. Listen on a loopback address, or say \
                     --insecure if the network itself keeps strangers out"
                ),
            );
        }
        if self.node_id.is_empty()
            || self.node_id.len() > 64
            || self.node_id.contains(char::is_control)
        {
            return invalid(
                "--node-id",
                "must have 1 to 64 bytes and no control characters".into(),
            );
        }
        match self.log {
            LogEngine::Etcd(_) => self.check_cluster()?,
            LogEngine::Memory | LogEngine::Sqlite => self.etcd.check_unused()?,
        }
        let is_name = |name: &String| {
            let in_names = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            !name.is_empty() && name.chars().all(in_names)
        };
        if let Some(other) = self.allowed_hosts.iter().find(|name| !is_name(name)) {
            return invalid(
                "--allow-host",
                format!("{other:?} is no host's name: give it without scheme and port"),
            );
        }
        if self.snapshot_every < Duration::from_secs(1) {
            return invalid("--snapshot-every", "must be at least 1s".into());
        }
        if self.snapshot_bytes < 1 << 20 {
            return invalid("--snapshot-bytes", "must be at least 1MiB".into());
        }
        if !(1..=LEVEL_MAX).contains(&self.level_max) {
            return invalid("--level-max", format!("must be from 1 to {LEVEL_MAX}"));
        }
        if self.audit_file_bytes < 64 << 10 {
            return invalid("--audit-file-bytes", "must be at least 64KiB".into());
        }
        if self.audit_files < 2 {
            return invalid("--audit-files", "must be at least 2".into());
        }
        if self.max_connections == 0 {
            return invalid("--max-connections", "must be at least 1".into());
        }
        if self.idle_timeout < Duration::from_secs(1) {
            return invalid("--idle-timeout", "must be at least 1s".into());
        }
        Ok(())
    }
}

impl Config {
    /// What a node that shares its log has to be told.
    fn check_cluster(&self) -> Result<(), ConfigError> {
        let invalid = |option, rule: &str| Err(ConfigError::Invalid { option, rule: rule.into() });
        if self.cluster_secret_file.is_none() && !self.http.ip().is_loopback() {
            return invalid(
                "--cluster-secret-file",
                "is needed where other machines reach this node: without it anybody could pass \
                 commands to the leader",
            );
        }
        match &self.advertise {
            Some(address) => {
                if let Err(rule) = crate::cluster::authority(address) {
                    return invalid("--advertise", &rule);
                }
            }
            None if self.http.ip().is_unspecified() => {
                let rule =
                    "is needed with an address for all interfaces: the others must know which";
                return invalid("--advertise", rule);
            }
            None => {}
        }
        self.etcd.check()
    }
}

fn free_port() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)
}

/// Reads `IP:PORT` or `localhost:PORT`.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let literal = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    literal.parse().map_err(|_| format!("{text:?} is not an address like 127.0.0.1:7480"))
}

/// Reads the engine's name.
fn parse_log(text: &str) -> Result<LogEngine, String> {
    match text {
        "sqlite" => Ok(LogEngine::Sqlite),
        "memory" => Ok(LogEngine::Memory),
        _ if text.starts_with("etcd://") => {
            text.parse().map(LogEngine::Etcd).map_err(|error: UrlError| error.to_string())
        }
        _ => Err(format!(
            "{text:?} is not a log engine; there are sqlite, memory and etcd://HOST:PORT,.../PREFIX"
        )),
    }
}

fn parse_region(text: &str) -> Result<RegionName, String> {
    RegionName::new(text).map_err(|rule| format!("{text:?} is not the name of a region: it {rule}"))
}

fn parse_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("{text:?} is not a format; there are text and json")),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let millis: Result<Millis, DurationError> = text.parse();
    millis.map(Duration::from).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_unless_insecure() {
        let open = Config { http: ([0, 0, 0, 0], 7480).into(), ..Config::default() };
        let error = open.check().unwrap_err().to_string();
        assert!(error.starts_with("--http") && error.contains("--insecure"), "{error}");
        assert!(Config { insecure: true, ..open }.check().is_ok());
        let v6 = Config { http: "[::1]:0".parse().unwrap(), ..Config::default() };
        assert!(v6.check().is_ok());
    }

    #[test]
    fn a_node_of_a_cluster_is_told_what_it_needs() {
        let base = Config { log: parse_log("etcd://a:2379").unwrap(), ..Config::default() };
        base.check().unwrap();
        let open = Config {
            http: ([0, 0, 0, 0], 7480).into(),
            insecure: true,
            cluster_secret_file: Some("s".into()),
            advertise: Some("http://zone-a:7480".into()),
            ..base.clone()
        };
        open.check().unwrap();
        let etcd = |change: fn(&mut EtcdConfig)| {
            let mut config = base.clone();
            change(&mut config.etcd);
            config
        };
        for (config, option) in [
            (Config { cluster_secret_file: None, ..open.clone() }, "--cluster-secret-file"),
            (Config { advertise: None, ..open.clone() }, "--advertise"),
            (Config { advertise: Some("zone-a".into()), ..open.clone() }, "--advertise"),
            (etcd(|etcd| etcd.user = Some("ana".into())), "--etcd-user"),
            (etcd(|etcd| etcd.cert = Some("c".into())), "--etcd-cert"),
        ] {
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(option), "{error}");
        }
    }

    #[test]
    fn absurd_sizes_are_refused_by_name() {
        let base = Config::default();
        let for_etcd = EtcdConfig { password_file: Some("p".into()), ..EtcdConfig::default() };
        for (config, option) in [
            (Config { node_id: String::new(), ..base.clone() }, "--node-id"),
            (Config { etcd: for_etcd, ..base.clone() }, "--etcd-password-file"),
            (Config { allowed_hosts: vec!["http://a".into()], ..base.clone() }, "--allow-host"),
            (Config { snapshot_every: Duration::ZERO, ..base.clone() }, "--snapshot-every"),
            (Config { snapshot_bytes: 1, ..base.clone() }, "--snapshot-bytes"),
            (Config { level_max: 0, ..base.clone() }, "--level-max"),
            (Config { level_max: LEVEL_MAX + 1, ..base.clone() }, "--level-max"),
            (Config { audit_file_bytes: 1, ..base.clone() }, "--audit-file-bytes"),
            (Config { audit_files: 1, ..base.clone() }, "--audit-files"),
            (Config { max_connections: 0, ..base.clone() }, "--max-connections"),
            (Config { idle_timeout: Duration::ZERO, ..base.clone() }, "--idle-timeout"),
        ] {
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(option), "{error}");
        }
        base.check().unwrap();
    }

    #[test]
    fn engines_and_addresses_by_name() {
        assert_eq!(parse_log("memory"), Ok(LogEngine::Memory));
        assert!(matches!(parse_log("etcd://a:2379"), Ok(LogEngine::Etcd(_))));
        assert!(parse_log("etcd://").is_err());
        assert!(parse_log("sqlite3").unwrap_err().contains("there are sqlite, memory and etcd"));
        assert_eq!(parse_address("localhost:0"), Ok(free_port()));
        assert_eq!(parse_region("eu-west.1").unwrap().as_str(), "eu-west.1");
        assert!(parse_region("EU").unwrap_err().contains("it "));
        assert!(parse_address("7480").unwrap_err().contains("127.0.0.1:7480"));
    }
}
