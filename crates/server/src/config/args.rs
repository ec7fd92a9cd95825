//! The flags of `sereno serve`, each with its environment variable.

use super::{
    ByteSize, Config, ConfigError, EtcdConfig, LogEngine, LogFormat, file::File, parse_address,
    parse_duration, parse_format, parse_log, parse_region,
};
use sereno_core::names::RegionName;
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Serve locks, elections, holds, quotas and scheduled jobs over HTTP.
///
/// Each option can be given as a flag, in the environment, or in the TOML file of --config under its name without
/// dashes (`max-connections = 1000`); a flag wins over the environment, that over the file, that over the default.
/// The first line on standard output names the address; log lines go to standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Args {
    /// The folder of the log, its snapshots and the audit trail. [default: ./sereno-data]
    #[arg(long, env = "SERENO_DATA", value_name = "DIR", hide_env_values = true)]
    pub data: Option<PathBuf>,

    /// Where the log is kept: sqlite (durable, one machine), etcd://HOST:PORT,HOST:PORT,.../PREFIX (shared with other
    /// nodes; without a prefix: sereno), or memory (for trying; forgets everything when it ends and keeps no audit
    /// trail). [default: sqlite]
    #[arg(long, env = "SERENO_LOG", value_name = "LOG", value_parser = parse_log, hide_env_values = true)]
    pub log: Option<LogEngine>,

    /// Where to listen for HTTP; port 0 takes a free port. [default: 127.0.0.1:7480]
    #[arg(long, env = "SERENO_HTTP", value_name = "ADDR", value_parser = parse_address, hide_env_values = true)]
    pub http: Option<SocketAddr>,

    /// This node's name in the log. With a log in etcd it has to be given, another one on each node; else
    /// [default: node-1]
    #[arg(long, env = "SERENO_NODE_ID", value_name = "ID", hide_env_values = true)]
    pub node_id: Option<String>,

    /// Where other nodes and clients reach this node, like http://zone-a:7480. [default: http:// and the address it
    /// listens on]
    #[arg(long, env = "SERENO_ADVERTISE", value_name = "URL", hide_env_values = true)]
    pub advertise: Option<String>,

    /// The region in which the service runs: 1 to 64 bytes of a-z 0-9 . _ -. Namespaces and quotas whose home is
    /// another one are refused here as WRONG_REGION. All nodes of a service are told the same; one that is told nothing
    /// leaves what the log says. [default: none]
    #[arg(long, env = "SERENO_REGION", value_name = "NAME", value_parser = parse_region, hide_env_values = true)]
    pub region: Option<RegionName>,

    /// A file with the secret that all nodes of a cluster share (any bytes; spaces and line ends around them do not
    /// count): who does not know it cannot pass commands to the leader. [default: none, on loopback only]
    #[arg(long, env = "SERENO_CLUSTER_SECRET_FILE", value_name = "FILE", hide_env_values = true)]
    pub cluster_secret_file: Option<PathBuf>,

    /// etcd's user, where it asks for one. [default: none]
    #[arg(long, env = "SERENO_ETCD_USER", value_name = "NAME", hide_env_values = true)]
    pub etcd_user: Option<String>,

    /// The file with that user's password. [default: none]
    #[arg(long, env = "SERENO_ETCD_PASSWORD_FILE", value_name = "FILE", hide_env_values = true)]
    pub etcd_password_file: Option<PathBuf>,

    /// Speak TLS with etcd, and trust these authorities (PEM). [default: none]
    #[arg(long, env = "SERENO_ETCD_CA", value_name = "FILE", hide_env_values = true)]
    pub etcd_ca: Option<PathBuf>,

    /// This node's certificate for etcd (PEM), where etcd asks for one. [default: none]
    #[arg(long, env = "SERENO_ETCD_CERT", value_name = "FILE", hide_env_values = true)]
    pub etcd_cert: Option<PathBuf>,

    /// The key of that certificate (PEM). [default: none]
    #[arg(long, env = "SERENO_ETCD_KEY", value_name = "FILE", hide_env_values = true)]
    pub etcd_key: Option<PathBuf>,

    /// Have etcd forget its history older than --etcd-history. An etcd that nobody compacts fills up and stops; say
    /// false where somebody else does it. [default: true]
    #[arg(
        long, env = "SERENO_ETCD_COMPACT", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_env_values = true
    )]
    pub etcd_compact: Option<bool>,

    /// How much of its history etcd keeps when it is compacted. [default: 5m]
    #[arg(long, env = "SERENO_ETCD_HISTORY", value_name = "DURATION", value_parser = parse_duration, hide_env_values = true)]
    pub etcd_history: Option<Duration>,

    /// etcd's own quota (its --quota-backend-bytes), which 3.4 does not tell. Above 80 % of it nothing new is granted.
    /// [default: 2GiB]
    #[arg(long, env = "SERENO_ETCD_QUOTA", value_name = "SIZE", hide_env_values = true)]
    pub etcd_quota: Option<ByteSize>,

    /// The TOML file with what is given neither here nor in the environment. [default: none]
    #[arg(long, env = "SERENO_CONFIG", value_name = "FILE", hide_env_values = true)]
    pub config: Option<PathBuf>,

    /// Listen on an address that others can reach, without authentication. [default: false]
    #[arg(
        long, env = "SERENO_INSECURE", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_env_values = true
    )]
    pub insecure: Option<bool>,

    /// A host name, besides localhost, under which browsers and clients may call; can be given several times (in
    /// the environment: with commas). On a loopback address all other names are refused, because a web page could
    /// point a name of its own there; IP addresses are always allowed. [default: none on loopback, else all]
    #[arg(
        long,
        env = "SERENO_ALLOW_HOST",
        value_name = "NAME",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub allow_host: Option<Vec<String>>,

    /// Take a snapshot after this time. [default: 5m]
    #[arg(long, env = "SERENO_SNAPSHOT_EVERY", value_name = "DURATION", value_parser = parse_duration, hide_env_values = true)]
    pub snapshot_every: Option<Duration>,

    /// Or after this much log. [default: 256MiB]
    #[arg(long, env = "SERENO_SNAPSHOT_BYTES", value_name = "SIZE", hide_env_values = true)]
    pub snapshot_bytes: Option<ByteSize>,

    /// Understand no higher level of the log's rules, as an older version would: to rehearse a rolling upgrade, or to
    /// be sure that nobody raises the level yet. [default: 4]
    #[arg(long, env = "SERENO_LEVEL_MAX", value_name = "LEVEL", hide_env_values = true)]
    pub level_max: Option<u32>,

    /// Size of one file of the audit trail. [default: 64MiB]
    #[arg(long, env = "SERENO_AUDIT_FILE_BYTES", value_name = "SIZE", hide_env_values = true)]
    pub audit_file_bytes: Option<ByteSize>,

    /// How many files of the audit trail are kept. [default: 16]
    #[arg(long, env = "SERENO_AUDIT_FILES", value_name = "COUNT", hide_env_values = true)]
    pub audit_files: Option<usize>,

    /// Open connections at once; beyond them new ones are turned away. [default: 16000]
    #[arg(long, env = "SERENO_MAX_CONNECTIONS", value_name = "COUNT", hide_env_values = true)]
    pub max_connections: Option<usize>,

    /// Close a connection that sends no whole request head for so long. [default: 75s]
    #[arg(
        long, env = "SERENO_IDLE_TIMEOUT", value_name = "DURATION", value_parser = parse_duration, hide_env_values = true
    )]
    pub idle_timeout: Option<Duration>,

    /// Which log lines are written: error, warn, info, debug, trace, or by part of the program like
    /// warn,sereno_node=debug. [default: info]
    #[arg(long, env = "SERENO_LOG_LEVEL", value_name = "LEVEL", hide_env_values = true)]
    pub log_level: Option<String>,

    /// How log lines are written: text or json. [default: text]
    #[arg(long, env = "SERENO_LOG_FORMAT", value_name = "FORMAT", value_parser = parse_format, hide_env_values = true)]
    pub log_format: Option<LogFormat>,
}

impl Args {
    /// Adds the file and the defaults, and checks the result.
    ///
    /// # Errors
    /// The first option that breaks a rule, with its name.
    pub fn into_config(self) -> Result<Config, ConfigError> {
        let file = match &self.config {
            Some(path) => File::read(path)?,
            None => Self::default(),
        };
        let given = self.or(file);
        if let (Some(LogEngine::Etcd(_)), None) = (&given.log, &given.node_id) {
            let rule = "is needed with a log in etcd: another one on each node".into();
            return Err(ConfigError::Invalid { option: "--node-id", rule });
        }
        let config = given.with_defaults();
        config.check()?;
        Ok(config)
    }

    /// Each option of `self`, else of `other`.
    fn or(self, other: Self) -> Self {
        Self {
            data: self.data.or(other.data),
            log: self.log.or(other.log),
            http: self.http.or(other.http),
            node_id: self.node_id.or(other.node_id),
            advertise: self.advertise.or(other.advertise),
            region: self.region.or(other.region),
            cluster_secret_file: self.cluster_secret_file.or(other.cluster_secret_file),
            etcd_user: self.etcd_user.or(other.etcd_user),
            etcd_password_file: self.etcd_password_file.or(other.etcd_password_file),
            etcd_ca: self.etcd_ca.or(other.etcd_ca),
            etcd_cert: self.etcd_cert.or(other.etcd_cert),
            etcd_key: self.etcd_key.or(other.etcd_key),
            etcd_compact: self.etcd_compact.or(other.etcd_compact),
            etcd_history: self.etcd_history.or(other.etcd_history),
            etcd_quota: self.etcd_quota.or(other.etcd_quota),
            config: self.config,
            insecure: self.insecure.or(other.insecure),
            allow_host: self.allow_host.or(other.allow_host),
            snapshot_every: self.snapshot_every.or(other.snapshot_every),
            snapshot_bytes: self.snapshot_bytes.or(other.snapshot_bytes),
            level_max: self.level_max.or(other.level_max),
            audit_file_bytes: self.audit_file_bytes.or(other.audit_file_bytes),
            audit_files: self.audit_files.or(other.audit_files),
            max_connections: self.max_connections.or(other.max_connections),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            log_level: self.log_level.or(other.log_level),
            log_format: self.log_format.or(other.log_format),
        }
    }

    fn with_defaults(self) -> Config {
        let default = Config::default();
        let bytes = |size: Option<ByteSize>, default| size.map_or(default, |size| size.0);
        Config {
            data: self.data.unwrap_or(default.data),
            log: self.log.unwrap_or(default.log),
            http: self.http.unwrap_or(default.http),
            node_id: self.node_id.unwrap_or(default.node_id),
            advertise: self.advertise,
            region: self.region,
            cluster_secret_file: self.cluster_secret_file,
            etcd: EtcdConfig {
                user: self.etcd_user,
                password_file: self.etcd_password_file,
                ca: self.etcd_ca,
                cert: self.etcd_cert,
                key: self.etcd_key,
                compact: self.etcd_compact.unwrap_or(default.etcd.compact),
                history: self.etcd_history.unwrap_or(default.etcd.history),
                quota: bytes(self.etcd_quota, default.etcd.quota),
            },
            insecure: self.insecure.unwrap_or(default.insecure),
            allowed_hosts: self.allow_host.unwrap_or(default.allowed_hosts),
            snapshot_every: self.snapshot_every.unwrap_or(default.snapshot_every),
            snapshot_bytes: bytes(self.snapshot_bytes, default.snapshot_bytes),
            level_max: self.level_max.unwrap_or(default.level_max),
            audit_file_bytes: bytes(self.audit_file_bytes, default.audit_file_bytes),
            audit_files: self.audit_files.unwrap_or(default.audit_files),
            max_connections: self.max_connections.unwrap_or(default.max_connections),
            idle_timeout: self.idle_timeout.unwrap_or(default.idle_timeout),
            log_level: self.log_level.unwrap_or(default.log_level),
            log_format: self.log_format.unwrap_or(default.log_format),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    fn parse(line: &str) -> Result<Args, clap::Error> {
        let command = Args::augment_args(clap::Command::new("serve"));
        let matches = command
            .try_get_matches_from(std::iter::once("serve").chain(line.split_whitespace()))?;
        Args::from_arg_matches(&matches)
    }

    #[test]
    fn nothing_given_is_the_default() {
        assert_eq!(parse("").unwrap().into_config().unwrap(), Config::default());
    }

    #[test]
    fn help_names_the_default_and_the_variable_of_each_option() {
        let mut command = Args::augment_args(clap::Command::new("serve"));
        let help = command.render_long_help().to_string();
        for option in command.get_arguments().filter(|option| option.get_id() != "help") {
            let name = option.get_id().as_str();
            let variable = format!("[env: SERENO_{}]", name.to_uppercase());
            assert!(help.contains(&variable), "{variable} is missing in:\n{help}");
        }
        let default = Config::default();
        for value in [
            default.data.display().to_string(),
            default.http.to_string(),
            default.node_id,
            sereno_api::Millis::from(default.snapshot_every).to_string(),
            ByteSize(default.snapshot_bytes).to_string(),
            default.level_max.to_string(),
            ByteSize(default.audit_file_bytes).to_string(),
            ByteSize(default.etcd.quota).to_string(),
            default.etcd.compact.to_string(),
            sereno_api::Millis::from(default.etcd.history).to_string(),
            default.audit_files.to_string(),
            default.max_connections.to_string(),
            sereno_api::Millis::from(default.idle_timeout).to_string(),
            default.log_level,
        ] {
            assert!(help.contains(&format!("[default: {value}]")), "[default: {value}] is missing");
        }
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sereno.toml");
        std::fs::write(&path, "node-id = \"from-file\"\nhttp = \"127.0.0.1:1\"\ninsecure = true\n")
            .unwrap();
        let line = format!("--config {} --http 127.0.0.1:2 --insecure=false", path.display());
        let config = parse(&line).unwrap().into_config().unwrap();
        assert_eq!(config.http, "127.0.0.1:2".parse().unwrap());
        assert_eq!(config.node_id, "from-file");
        assert!(!config.insecure);
        assert_eq!(config.audit_files, Config::default().audit_files);
    }

    #[test]
    fn wrong_values_name_their_option() {
        for line in [
            "--http nowhere",
            "--log etcd://",
            "--etcd-compact=maybe",
            "--snapshot-every 5",
            "--region Europe",
            "--snapshot-bytes 5MB",
            "--log-format xml",
            "--insecure=maybe",
        ] {
            let error = parse(line).unwrap_err().to_string();
            let option = line.split([' ', '=']).next().unwrap();
            assert!(error.contains(option), "{line}: {error}");
        }
    }
}
