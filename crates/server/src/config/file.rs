//! The TOML file: the same options under the same names.

use super::{
    Args, ByteSize, ConfigError, parse_address, parse_duration, parse_format, parse_log,
    parse_region,
};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What the file may say. Unknown names are refused.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    data: Option<PathBuf>,
    log: Option<String>,
    http: Option<String>,
    node_id: Option<String>,
    advertise: Option<String>,
    region: Option<String>,
    cluster_secret_file: Option<PathBuf>,
    etcd_user: Option<String>,
    etcd_password_file: Option<PathBuf>,
    etcd_ca: Option<PathBuf>,
    etcd_cert: Option<PathBuf>,
    etcd_key: Option<PathBuf>,
    etcd_compact: Option<bool>,
    etcd_history: Option<String>,
    etcd_quota: Option<ByteSize>,
    insecure: Option<bool>,
    allow_host: Option<Vec<String>>,
    snapshot_every: Option<String>,
    snapshot_bytes: Option<ByteSize>,
    level_max: Option<u32>,
    audit_file_bytes: Option<ByteSize>,
    audit_files: Option<usize>,
    max_connections: Option<usize>,
    idle_timeout: Option<String>,
    log_level: Option<String>,
    log_format: Option<String>,
}

impl File {
    /// Reads the file as if its options had been given as flags.
    pub(super) fn read(path: &Path) -> Result<Args, ConfigError> {
        let refused = |why: String| ConfigError::File { path: path.display().to_string(), why };
        let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        let file: Self = toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
        file.into_args().map_err(refused)
    }

    fn into_args(self) -> Result<Args, String> {
        Ok(Args {
            data: self.data,
            log: parsed("log", self.log, parse_log)?,
            http: parsed("http", self.http, parse_address)?,
            node_id: self.node_id,
            advertise: self.advertise,
            region: parsed("region", self.region, parse_region)?,
            cluster_secret_file: self.cluster_secret_file,
            etcd_user: self.etcd_user,
            etcd_password_file: self.etcd_password_file,
            etcd_ca: self.etcd_ca,
            etcd_cert: self.etcd_cert,
            etcd_key: self.etcd_key,
            etcd_compact: self.etcd_compact,
            etcd_history: parsed("etcd-history", self.etcd_history, parse_duration)?,
            etcd_quota: self.etcd_quota,
            config: None,
            insecure: self.insecure,
            allow_host: self.allow_host,
            snapshot_every: parsed("snapshot-every", self.snapshot_every, parse_duration)?,
            snapshot_bytes: self.snapshot_bytes,
            level_max: self.level_max,
            audit_file_bytes: self.audit_file_bytes,
            audit_files: self.audit_files,
            max_connections: self.max_connections,
            idle_timeout: parsed("idle-timeout", self.idle_timeout, parse_duration)?,
            log_level: self.log_level,
            log_format: parsed("log-format", self.log_format, parse_format)?,
        })
    }
}

fn parsed<T>(
    name: &str,
    text: Option<String>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    text.map(|text| parse(&text).map_err(|rule| format!("{name}: {rule}"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Args, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sereno.toml");
        std::fs::write(&path, text).unwrap();
        File::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_has_its_place() {
        let args = read(
            r#"
            data = "/d"
            log = "memory"
            http = "127.0.0.1:0"
            node-id = "n"
            advertise = "http://n:7480"
            region = "eu"
            cluster-secret-file = "/s"
            etcd-user = "ana"
            etcd-password-file = "/p"
            etcd-ca = "/ca"
            etcd-cert = "/cert"
            etcd-key = "/key"
            etcd-compact = false
            etcd-history = "1m"
            etcd-quota = "4GiB"
            insecure = true
            allow-host = ["sereno.local"]
            snapshot-every = "1m"
            snapshot-bytes = "1MiB"
            level-max = 1
            audit-file-bytes = "1MiB"
            audit-files = 3
            max-connections = 5
            idle-timeout = "10s"
            log-level = "warn"
            log-format = "json"
            "#,
        )
        .unwrap();
        let Args {
            data: Some(_),
            log: Some(_),
            http: Some(_),
            node_id: Some(_),
            advertise: Some(_),
            region: Some(_),
            cluster_secret_file: Some(_),
            etcd_user: Some(_),
            etcd_password_file: Some(_),
            etcd_ca: Some(_),
            etcd_cert: Some(_),
            etcd_key: Some(_),
            etcd_compact: Some(false),
            etcd_history: Some(_),
            etcd_quota: Some(_),
            config: None,
            insecure: Some(true),
            allow_host: Some(_),
            snapshot_every: Some(_),
            snapshot_bytes: Some(_),
            level_max: Some(1),
            audit_file_bytes: Some(_),
            audit_files: Some(3),
            max_connections: Some(5),
            idle_timeout: Some(_),
            log_level: Some(_),
            log_format: Some(_),
        } = args
        else {
            panic!("an option is missing: {args:?}");
        };
    }

    #[test]
    fn unknown_names_and_wrong_values_are_refused() {
        let error = read("htpp = \"127.0.0.1:1\"").unwrap_err();
        assert!(error.contains("htpp") && error.contains("sereno.toml"), "{error}");
        assert!(read("http = \"x\"").unwrap_err().contains("http: "));
        assert!(read("audit-files = \"3\"").is_err());
        assert!(File::read(Path::new("/nowhere/at/all.toml")).is_err());
    }
}
