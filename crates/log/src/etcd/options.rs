//! What can be set of the engine.

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use std::{fmt, time::Duration};

/// How to talk to etcd, and what to do there.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// For an etcd with authentication enabled.
    pub user: Option<EtcdUser>,
    /// For an etcd that serves TLS.
    pub tls: Option<EtcdTls>,
    /// A request that takes longer has an unknown outcome, and the next goes to another member.
    pub request_timeout: Duration,
    /// A member that takes longer to be reached is passed over.
    pub connect_timeout: Duration,
    /// Whether this engine has etcd forget the history of all its keys that is older than [`Self::history`]. An
    /// etcd that nobody compacts fills up and stops; where somebody else does it, this can be off.
    pub compact: bool,
    /// How much history a compaction leaves.
    pub history: Duration,
    /// Bytes of a snapshot written in a second: more would delay appends.
    pub snapshot_bytes_per_second: u64,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            user: None,
            tls: None,
            request_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(1),
            compact: true,
            history: Duration::from_secs(300),
            snapshot_bytes_per_second: 8 << 20,
        }
    }
}

/// Whom etcd knows.
#[derive(Clone)]
pub struct EtcdUser {
    /// Its name there.
    pub name: String,
    /// Its password there.
    pub password: String,
}

/// What is needed to trust an etcd that serves TLS, and to be trusted by it. PEM texts.
#[derive(Clone)]
pub struct EtcdTls {
    /// Certificates of the authorities that sign the members' certificates.
    pub ca: Vec<u8>,
    /// Certificate and key of this client, where etcd asks for them.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
    /// The name that the members' certificates carry, if it is not the host that is connected to.
    pub server_name: Option<String>,
}

impl fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EtcdUser({:?})", self.name)
    }
}

impl fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EtcdTls(client certificate: {})", self.client.is_some())
    }
}

impl EtcdOptions {
    pub(super) fn connect_options(&self) -> ConnectOptions {
        /// etcd hangs up on clients that ping more often than each 5 s, or without an open stream.
        const PING_INTERVAL: Duration = Duration::from_secs(10);
        const PING_TIMEOUT: Duration = Duration::from_secs(3);
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.connect_timeout)
            .with_keep_alive(PING_INTERVAL, PING_TIMEOUT)
            .with_keep_alive_while_idle(false)
            .with_tcp_keepalive(PING_INTERVAL)
            // A member that has lost its leader says so at once.
            .with_require_leader(true)
            // Safe for an append as well: what etcd refuses for its token it has not looked at.
            .with_auto_token_refresh(true);
        if let Some(user) = &self.user {
            options = options.with_user(&user.name, &user.password);
        }
        if let Some(tls) = &self.tls {
            let mut config = TlsOptions::new().ca_certificate(Certificate::from_pem(&tls.ca));
            if let Some((certificate, key)) = &tls.client {
                config = config.identity(Identity::from_pem(certificate, key));
            }
            if let Some(name) = &tls.server_name {
                config = config.domain_name(name);
            }
            options = options.with_tls(config);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let options = EtcdOptions {
            user: Some(EtcdUser { name: "ana".into(), password: "swordfish".into() }),
            tls: Some(EtcdTls {
                ca: b"CA".to_vec(),
                client: Some((b"CERT".to_vec(), b"swordfish".to_vec())),
                server_name: None,
            }),
            ..EtcdOptions::default()
        };
        let shown = format!("{options:?}");
        assert!(shown.contains("ana") && !shown.contains("swordfish"), "{shown}");
    }
}
