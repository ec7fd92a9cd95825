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

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n";

    /// A folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn what_the_files_hold_is_what_etcd_is_told() {
        let files =
            [("password", "swordfish\n"), ("ca", CERTIFICATE), ("cert", "CERT"), ("key", "KEY")];
        let folder = folder(&files);
        let file = |name: &str| Some(folder.path().join(name));
        let config = EtcdConfig {
            user: Some("ana".into()),
            password_file: file("password"),
            ca: file("ca"),
            cert: file("cert"),
            key: file("key"),
            compact: false,
            history: Duration::from_secs(7),
            quota: 1,
        };
        let options = config.options().unwrap();
        let user = options.user.unwrap();
        assert_eq!((user.name.as_str(), user.password.as_str()), ("ana", "swordfish"));
        let tls = options.tls.unwrap();
        assert_eq!(tls.ca, CERTIFICATE.as_bytes());
        assert_eq!(tls.client, Some((b"CERT".to_vec(), b"KEY".to_vec())));
        assert_eq!((options.compact, options.history), (false, Duration::from_secs(7)));

        // Where only etcd shows a certificate its authority is enough.
        let config = EtcdConfig { ca: file("ca"), ..EtcdConfig::default() };
        let options = config.options().unwrap();
        assert!(options.user.is_none() && options.tls.is_some_and(|tls| tls.client.is_none()));
        let options = EtcdConfig::default().options().unwrap();
        assert!(options.user.is_none() && options.tls.is_none() && options.compact);
    }

    #[test]
    fn what_does_not_go_together_or_cannot_be_read_is_refused_by_name() {
        let folder = folder(&[("ca", CERTIFICATE), ("empty", ""), ("some", "x")]);
        let file = |name: &str| Some(folder.path().join(name));
        let none = EtcdConfig::default;
        let user = Some("ana".to_string());
        for (config, says) in [
            (EtcdConfig { user: user.clone(), ..none() }, "--etcd-user"),
            (EtcdConfig { password_file: file("some"), ..none() }, "--etcd-user"),
            (EtcdConfig { ca: file("ca"), cert: file("some"), ..none() }, "--etcd-cert"),
            (EtcdConfig { ca: file("ca"), key: file("some"), ..none() }, "--etcd-cert"),
            (EtcdConfig { cert: file("some"), key: file("some"), ..none() }, "needs --etcd-ca"),
            (EtcdConfig { ca: file("empty"), ..none() }, "--etcd-ca: has no certificate in it"),
            (EtcdConfig { ca: file("missing"), ..none() }, "--etcd-ca"),
            (EtcdConfig { user, password_file: file("missing"), ..none() }, "--etcd-password-file"),
            (EtcdConfig { history: Duration::from_millis(999), ..none() }, "--etcd-history"),
        ] {
            let error = config.options().expect_err(says).to_string();
            assert!(error.contains(says), "{error} for {says}");
        }
    }
}
