//! The client: where the service is, who we are, and the door to everything else.

use crate::{
    acquire::{Acquire, Shape},
    background::{Background, KeepsAlive},
    clock::Moment,
    core::{Core, Settings},
    error::Error,
    job::Job,
    many::{ManyGuard, in_order},
    owed, renewer,
    transport::Transport,
};
use sereno_api::DEFAULT_NAMESPACE;
use std::{sync::Arc, time::Duration};

/// Where the service is found when nobody says.
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:7480";
/// The environment's word for where the service is.
pub const SERVER_VARIABLE: &str = "SERENO_SERVER";

/// What keeps a client's thread alive: the client, its clones, its guards.
pub(crate) struct Inner {
    pub core: Arc<Core>,
    _keeps_alive: KeepsAlive,
}

/// A client of one service. Cheap to clone; have one per process, for all its guards then share their renewals.
///
/// It works from a thread of its own, so it can be used on any async runtime, and a busy runtime does not keep
/// leases from being renewed.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    servers: Option<String>,
    settings: Settings,
}

impl Client {
    /// A client of the service at `servers`: one address or several of the same service, separated by commas.
    ///
    /// # Errors
    /// [`Error::Invalid`] for addresses that are none. Nothing is connected yet.
    pub fn new(servers: &str) -> Result<Self, Error> {
        Self::builder().servers(servers).build()
    }

    /// A client of the service that `SERENO_SERVER` names, or the one on this machine.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn from_env() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// All settings.
    pub fn builder() -> ClientBuilder {
        let settings = Settings {
            namespace: DEFAULT_NAMESPACE.into(),
            owner: default_owner(),
            call_timeout: Duration::from_secs(10),
        };
        ClientBuilder { servers: None, settings }
    }

    /// Describes an acquire of one lock.
    pub fn lock(&self, resource: impl Into<String>) -> Acquire {
        Acquire::new(self.inner.clone(), Shape::One(resource.into()))
    }

    /// Describes an acquire of up to 64 locks that the service grants all together or not at all: one lease, one
    /// token for each. It does not wait in queues; give it a time-out to have it tried again.
    pub fn lock_all(&self, resources: impl IntoIterator<Item = impl Into<String>>) -> Acquire {
        let resources = resources.into_iter().map(Into::into).collect();
        Acquire::new(self.inner.clone(), Shape::All(resources))
    }

    /// Acquires several locks one after the other, in sorted order, each with its own place in the queue.
    /// `describe` says what holds for all; its wait and its time-out bound them together. What was acquired is
    /// released in reverse order when one of them cannot be had.
    ///
    /// # Errors
    /// That of the first one that was not granted; [`Error::Invalid`] for no resources at all.
    pub async fn lock_many(
        &self,
        resources: impl IntoIterator<Item = impl Into<String>>,
        describe: impl FnOnce(Acquire) -> Acquire,
    ) -> Result<ManyGuard, Error> {
        let resources = in_order(resources);
        let Some(first) = resources.first() else {
            return Err(Error::Invalid("no resource to lock".into()));
        };
        let template = describe(self.lock(first.clone()));
        ManyGuard::acquire(template, resources).await
    }

    /// Describes a scheduled job that this process takes part in, as one of its replicas.
    pub fn job(&self, name: impl Into<String>) -> Job {
        Job::new(self.inner.clone(), name.into())
    }

    /// Waits until everything owed to the service is answered: the releases of dropped and lost guards, the abandons
    /// of dropped acquires. A process that ends without this leaves them to their TTL.
    pub async fn settled(&self) {
        for lost in self.core().renewer.take_lost(Moment::now()) {
            drop(owed::release(self.core(), &lost));
        }
        self.inner.core.background.settled().await;
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }
}

impl ClientBuilder {
    /// One address or several of the same service, separated by commas. Default: `SERENO_SERVER`, else
    /// [`DEFAULT_SERVER`].
    pub fn servers(mut self, servers: impl Into<String>) -> Self {
        self.servers = Some(servers.into());
        self
    }

    /// The namespace of calls that name none.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.settings.namespace = namespace.into();
        self
    }

    /// Who asks, for people. Default: `user@host:pid`.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.settings.owner = owner.into();
        self
    }

    /// How long plain calls and explicit releases are tried. Default: 10 s.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.settings.call_timeout = timeout;
        self
    }

    /// Starts the client's thread. Nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for addresses that are none, or when no thread can be started.
    pub fn build(self) -> Result<Client, Error> {
        let from_env = || std::env::var(SERVER_VARIABLE).ok().filter(|servers| !servers.is_empty());
        let servers = self.servers.or_else(from_env).unwrap_or_else(|| DEFAULT_SERVER.into());
        let transport = Transport::new(&servers)?;
        let (background, keeps_alive) = Background::start().map_err(|error| {
            Error::Invalid(format!("the client's thread cannot start: {error}"))
        })?;
        let core = Arc::new(Core::new(transport, background, self.settings));
        core.background.spawn(renewer::run(core.clone()));
        Ok(Client { inner: Arc::new(Inner { core, _keeps_alive: keeps_alive }) })
    }
}

/// `user@host:pid`, with what the environment knows of it.
fn default_owner() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::env::var("HOSTNAME"))
        .unwrap_or_default();
    let clean = |text: &str, none: &str| -> String {
        let text: String = text.trim().chars().filter(|c| !c.is_control()).take(40).collect();
        if text.is_empty() { none.into() } else { text }
    };
    format!("{}@{}:{}", clean(&user, "uid"), clean(&host, "localhost"), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_owner_is_a_name_that_the_service_takes() {
        let owner = default_owner();
        assert!((1..=128).contains(&owner.len()), "{owner}");
        assert!(owner.ends_with(&format!(":{}", std::process::id())), "{owner}");
        assert!(owner.contains('@') && !owner.contains(char::is_control));
    }
}
