//! Three members of etcd and three nodes over them: real processes on this machine, as `sereno cluster dev` starts them,
//! to be killed, paused and started again.

mod scrape;
mod work;

pub use scrape::{Buckets, Scrape};
pub use work::{Moment, Work};

use crate::{
    error::Error,
    process::{ServeArgs, Served},
};
use sereno_api::{Role, Status};
use sereno_etcd_dev::{Cluster, Options};
use std::{
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How many nodes there are, and members of etcd.
pub const NODES: usize = 3;
/// Between two looks at the same thing.
const BETWEEN: Duration = Duration::from_millis(20);
/// Longest that a cluster may be without a leader.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running cluster. Dropped, its processes are killed and its folder is removed.
pub struct Zones {
    nodes: Vec<Option<Served>>,
    /// Where each node listens, whether it runs or not.
    addresses: Vec<SocketAddr>,
    /// Below the nodes.
    pub etcd: Cluster,
    serve: ServeArgs,
    flags: Vec<String>,
    folder: TempDir,
}

impl Zones {
    /// Starts etcd, and no nodes yet.
    ///
    /// # Errors
    /// It is not installed, or does not come up.
    pub fn start_etcd(serve: &ServeArgs) -> Result<Self, Error> {
        let folder = serve.folder()?;
        let etcd = Cluster::start(&folder.path().join("etcd"), Options::default())
            .map_err(|error| Error::Missing(error.to_string()))?;
        let nodes = (0..NODES).map(|_| None).collect();
        let (serve, flags) = (serve.clone(), Vec::new());
        Ok(Self { nodes, addresses: Vec::new(), etcd, serve, flags, folder })
    }

    /// Starts etcd and all nodes, each with `flags`.
    ///
    /// # Errors
    /// A program is missing, or does not come up.
    pub async fn start(serve: &ServeArgs, flags: &[String]) -> Result<Self, Error> {
        let mut zones = Self::start_etcd(serve)?;
        zones.start_nodes(flags).await?;
        Ok(zones)
    }

    /// Starts all nodes anew, each with `flags`; those that run are killed first.
    ///
    /// # Errors
    /// One does not come up.
    pub async fn start_nodes(&mut self, flags: &[String]) -> Result<(), Error> {
        self.nodes.iter_mut().for_each(|node| *node = None);
        self.flags = flags.to_vec();
        for number in 0..NODES {
            let served = self.serve_node(number, "127.0.0.1:0").await?;
            self.addresses.truncate(number);
            self.addresses.push(served.address);
            self.nodes[number] = Some(served);
        }
        self.all_serve().await
    }

    async fn serve_node(&self, number: usize, http: &str) -> Result<Served, Error> {
        let folder = self.node_folder(number);
        std::fs::create_dir_all(&folder).map_err(Error::path("make", &folder))?;
        let mut flags = vec!["--node-id".to_owned(), format!("node-{number}")];
        flags.extend(self.flags.iter().cloned());
        self.serve.serve_on(&self.etcd.log_url("bench"), http, &folder, &flags).await
    }

    fn node_folder(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("node-{number}"))
    }

    /// Where the nodes that run listen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().flatten().map(|node| node.address).collect()
    }

    /// A node that runs.
    ///
    /// # Panics
    /// When it does not.
    pub fn node(&self, number: usize) -> &Served {
        self.nodes[number].as_ref().expect("this node runs")
    }

    /// Kills a node at once, as a crash would.
    pub fn kill(&mut self, number: usize) {
        self.nodes[number] = None; // Dropped, it is killed.
    }

    /// Removes all that a killed node has kept.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn wipe(&self, number: usize) -> Result<(), Error> {
        let folder = self.node_folder(number);
        std::fs::remove_dir_all(&folder).map_err(Error::path("remove", &folder))
    }

    /// Starts a killed node again, at its address, and waits until it serves.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn restart(&mut self, number: usize) -> Result<(), Error> {
        let http = self.addresses[number].to_string();
        self.nodes[number] = Some(self.serve_node(number, &http).await?);
        Ok(())
    }

    /// Which node leads, once one does.
    ///
    /// # Errors
    /// None does for a minute.
    pub async fn leader(&self) -> Result<usize, Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            for (number, node) in self.running() {
                if leads(node).await {
                    return Ok(number);
                }
            }
            pause(until).await?;
        }
    }

    /// A node that follows.
    ///
    /// # Errors
    /// None leads for a minute.
    pub async fn standby(&self) -> Result<usize, Error> {
        let leader = self.leader().await?;
        Ok(self
            .running()
            .map(|(number, _)| number)
            .find(|number| *number != leader)
            .unwrap_or(leader))
    }

    /// Until every node serves.
    ///
    /// # Errors
    /// One does not for a minute.
    pub async fn all_serve(&self) -> Result<(), Error> {
        let until = Instant::now() + PATIENCE;
        for (_, node) in self.running() {
            while !node.status().await.is_ok_and(|status| status.ready) {
                pause(until).await?;
            }
        }
        Ok(())
    }

    /// `host:port` of the member that leads etcd.
    ///
    /// # Errors
    /// No node knows which one leads, for a minute.
    pub async fn etcd_leader(&self) -> Result<String, Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            // A node asks each few seconds.
            let members = self.status().await?.etcd.map(|etcd| etcd.members).unwrap_or_default();
            if let Some(member) = members.into_iter().find(|member| member.leads) {
                return Ok(member.address);
            }
            pause(until).await?;
        }
    }

    /// Kills the member that leads etcd, as a crash would.
    ///
    /// # Errors
    /// No node knows which one leads.
    pub async fn kill_etcd_leader(&mut self) -> Result<(), Error> {
        let leader = self.etcd_leader().await?;
        let number = self.etcd.endpoints().iter().position(|address| *address == leader);
        self.etcd.kill(number.expect("it is one of the members"));
        Ok(())
    }

    /// Of all nodes and members that run.
    pub fn process_ids(&self) -> Vec<u32> {
        let nodes = self.running().map(|(_, node)| node.child.id());
        nodes.chain(self.etcd.process_ids()).collect()
    }

    /// What the first node that answers says of itself.
    ///
    /// # Errors
    /// None answers.
    pub async fn status(&self) -> Result<Status, Error> {
        for (_, node) in self.running() {
            if let Ok(status) = node.status().await {
                return Ok(status);
            }
        }
        Err(nobody())
    }

    fn running(&self) -> impl Iterator<Item = (usize, &Served)> {
        let all = self.nodes.iter().enumerate();
        all.filter_map(|(number, node)| node.as_ref().map(|node| (number, node)))
    }
}

async fn leads(node: &Served) -> bool {
    node.status().await.is_ok_and(|it| it.ready && it.role == Role::Leader)
}

async fn pause(until: Instant) -> Result<(), Error> {
    if Instant::now() > until {
        return Err(nobody());
    }
    tokio::time::sleep(BETWEEN).await;
    Ok(())
}

fn nobody() -> Error {
    Error::Service { call: "status".into(), why: format!("nobody leads after {PATIENCE:?}") }
}
