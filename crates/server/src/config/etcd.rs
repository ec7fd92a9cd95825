//! How to talk to etcd: from file names to what the files hold.

use super::ConfigError;
use sereno_log::etcd::{EtcdOptions, EtcdTls, EtcdUser};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// How to talk to etcd, and what to do there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Whom etcd knows; needs `password_file`.
    pub user: Option<String>,
    /// The file with the user's password.
    pub password_file: Option<PathBuf>,
    /// The file with the certificates of the authorities that sign the members'; with it, TLS is spoken.
    pub ca: Option<PathBuf>,
    /// The file with this client's certificate, where etcd asks for one; needs `key`.
    pub cert: Option<PathBuf>,
    /// The file with its key.
    pub key: Option<PathBuf>,
    /// Whether etcd's history older than `history` is compacted by this service.
    pub compact: bool,
    /// How much of it is kept.
    pub history: Duration,
    /// etcd's own quota (`--quota-backend-bytes`), which 3.4 does not tell.
    pub quota: u64,
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            user: None,
            password_file: None,
            ca: None,
            cert: None,
            key: None,
            compact: true,
            history: Duration::from_secs(300),
            quota: 2 << 30,
        }
    }
}

impl EtcdConfig {
    /// Checks what goes together.
    ///
    /// # Errors
    /// The first option that breaks a rule.
    pub fn check(&self) -> Result<(), ConfigError> {
        let invalid = |option, rule: &str| Err(ConfigError::Invalid { option, rule: rule.into() });
        if self.user.is_some() != self.password_file.is_some() {
            return invalid("--etcd-user", "and --etcd-password-file go together");
        }
        if self.cert.is_some() != self.key.is_some() {
            return invalid("--etcd-cert", "and --etcd-key go together");
        }
        if self.cert.is_some() && self.ca.is_none() {
            return invalid("--etcd-cert", "needs --etcd-ca: certificates are for TLS");
        }
        if self.history < Duration::from_secs(1) {
            return invalid("--etcd-history", "must be at least 1s");
        }
        Ok(())
    }

    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read, or what is given does not go together.
    pub fn options(&self) -> Result<EtcdOptions, ConfigError> {
        self.check()?;
        let user = match (&self.user, &self.password_file) {
            (Some(name), Some(path)) => {
                let password = read_file("--etcd-password-file", path)?;
                let password = String::from_utf8_lossy(password.trim_ascii()).into_owned();
                Some(EtcdUser { name: name.clone(), password })
            }
            _ => None,
        };
        let client = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                Some((read_file("--etcd-cert", cert)?, read_file("--etcd-key", key)?))
            }
            _ => None,
        };
        let tls = match &self.ca {
            Some(ca) => {
                let ca = read_file("--etcd-ca", ca)?;
                // An empty list of authorities is taken without a word, and looks like an etcd that is away.
                if !String::from_utf8_lossy(&ca).contains("-----BEGIN CERTIFICATE-----") {
                    let rule = "has no certificate in it (PEM)".into();
                    return Err(ConfigError::Invalid { option: "--etcd-ca", rule });
                }
                Some(EtcdTls { ca, client, server_name: None })
            }
            None => None,
        };
        let (compact, history) = (self.compact, self.history);
        Ok(EtcdOptions { user, tls, compact, history, ..EtcdOptions::default() })
    }
}

/// What a file holds that an option names.
pub(crate) fn read_file(option: &'static str, path: &Path) -> Result<Vec<u8>, ConfigError> {
    let refused =
        |error| ConfigError::Invalid { option, rule: format!("{}: {error}", path.display()) };
    std::fs::read(path).map_err(refused)
}
