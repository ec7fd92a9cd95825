//! What the harness sees of nodes and members.

use crate::client::door::{Door, NAMESPACE};
use sereno_api::{Role, Status};
use std::{
    fmt,
    process::Command,
    time::{Duration, Instant},
};
use tokio::runtime::Handle;

/// Asks nodes and members. Blocks the thread of the harness.
pub struct Eyes {
    runtime: Handle,
    http: reqwest::Client,
    servers: Vec<String>,
    members: Vec<String>,
    /// For recorded calls.
    pub door: Door,
}

impl fmt::Debug for Eyes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Eyes").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Eyes {
    /// On these nodes and members (`host:port`).
    ///
    /// # Errors
    /// There can be no HTTP client.
    pub fn new(
        runtime: Handle,
        servers: Vec<String>,
        members: Vec<String>,
        door: Door,
    ) -> Result<Self, String> {
        const LOOK: Duration = Duration::from_millis(500);
        let http = reqwest::Client::builder().no_proxy().timeout(LOOK).build();
        let http = http.map_err(|error| error.to_string())?;
        Ok(Self { runtime, http, servers, members, door })
    }

    /// What each node says of itself, if it says something.
    pub fn statuses(&self) -> Vec<Option<Status>> {
        let asked = |url: &String| {
            let request = self.http.get(format!("{url}/v1/status"));
            tokio::spawn(async move { request.send().await.ok()?.json::<Status>().await.ok() })
        };
        self.runtime.block_on(async {
            let mut statuses = Vec::new();
            let asked: Vec<_> = self.servers.iter().map(asked).collect();
            for status in asked {
                statuses.push(status.await.ok().flatten());
            }
            statuses
        })
    }

    fn find(&self, wanted: impl Fn(&Status) -> bool) -> Option<usize> {
        self.statuses().iter().position(|status| status.as_ref().is_some_and(&wanted))
    }

    /// The node that leads and serves.
    pub fn leader(&self) -> Option<usize> {
        self.find(|status| status.role == Role::Leader && status.ready)
    }

    /// A node that answers and does not lead.
    pub fn standby(&self) -> Option<usize> {
        self.find(|status| status.role == Role::Follower)
    }

    /// The member that leads, as one that answers says.
    pub fn etcd_leader(&self) -> Option<usize> {
        (0..self.members.len()).find(|&index| self.leads_etcd(index).unwrap_or_default())
    }

    fn leads_etcd(&self, index: usize) -> Option<bool> {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.members[index]]);
        command.args(["--dial-timeout", "1s", "--command-timeout", "1s"]);
        let output = command.args(["endpoint", "status", "-w", "json"]).output().ok()?;
        let statuses: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let status = &statuses.get(0)?["Status"];
        let (member, leader) = (&status["header"]["member_id"], &status["leader"]);
        Some(!leader.is_null() && member == leader)
    }

    /// Waits until one node leads and all of them serve.
    ///
    /// # Errors
    /// With what they say of themselves, when that takes too long.
    pub fn wait_ready(&self, patience: Duration) -> Result<Duration, String> {
        const PAUSE: Duration = Duration::from_millis(50);
        let begun = Instant::now();
        loop {
            let statuses = self.statuses();
            let ready = |it: &Option<Status>| it.as_ref().is_some_and(|status| status.ready);
            let leads =
                |it: &&Option<Status>| it.as_ref().is_some_and(|it| it.role == Role::Leader);
            if statuses.iter().all(ready) && statuses.iter().filter(leads).count() == 1 {
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > patience {
                return Err(format!("after {patience:?} not all nodes serve: {statuses:#?}"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Blocks until it is done.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Creates the namespace of the run.
    ///
    /// # Errors
    /// In words.
    pub fn put_namespace(&self) -> Result<(), String> {
        let nodes = 0..self.servers.len();
        let mut put = nodes.map(|node| self.block_on(self.door.put_namespace(node)));
        put.find(Result::is_ok).unwrap_or_else(|| Err(format!("nobody puts {NAMESPACE}")))
    }
}
