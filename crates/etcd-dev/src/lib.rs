//! An etcd of several members on this machine: for tests, and for trying things out. It is the etcd that Debian
//! packages (`etcd-server`, `etcd-client`); members can be killed, paused and restored from a backup.
//!
//! A crate of its own: it starts processes and knows nothing of logs, so the log's tests, those of other crates and
//! the command line can all use it without one another.

mod certificates;
mod control;
mod member;
mod ports;
pub mod process;
mod scratch;

pub use certificates::Certificates;
pub use scratch::scratch_folder;

use member::Member;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Why a cluster does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// A running cluster. Its processes end with this value, and with the process that started them, however it ends.
pub struct Cluster {
    dir: PathBuf,
    members: Vec<Member>,
    options: Options,
    /// How often it was restored: each time has its own folders.
    restored: u32,
}

/// What can be set of a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many members.
    pub members: usize,
    /// Serve clients over TLS with these.
    pub tls: Option<Tls>,
    /// Further arguments of every member.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { members: 3, tls: None, arguments: Vec::new() }
    }
}

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The authority that signed both certificates.
    pub ca: PathBuf,
    /// The members' certificate, for `127.0.0.1`.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// A certificate of clients, and its key: only clients with one are let in. `None`: clients need none.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts a new cluster that keeps everything in `dir`, and waits until it serves.
    pub fn start(dir: &Path, options: Options) -> Result<Self, Error> {
        /// A port that was free may be taken before a member has it.
        const ATTEMPTS: usize = 3;
        let mut failed = None;
        for attempt in 0..ATTEMPTS {
            let dir = dir.join(format!("attempt-{attempt}"));
            match Self::try_start(&dir, options.clone()) {
                Ok(cluster) => return Ok(cluster),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.expect("there was an attempt"))
    }

    fn try_start(dir: &Path, options: Options) -> Result<Self, Error> {
        let ports = ports::free(options.members * 2)?;
        let pairs = ports.chunks_exact(2).enumerate();
        let members = pairs.map(|(index, pair)| Member::new(index, pair[0], pair[1])).collect();
        let mut cluster = Self { dir: dir.into(), members, options, restored: 0 };
        cluster.start_all()?;
        Ok(cluster)
    }

    fn start_all(&mut self) -> Result<(), Error> {
        for index in 0..self.members.len() {
            self.launch(index)?;
        }
        self.wait_until_healthy()
    }

    fn launch(&mut self, index: usize) -> Result<(), Error> {
        let arguments = self.arguments(index);
        let log = self.dir.join(format!("member-{index}.log"));
        std::fs::create_dir_all(&self.dir)
            .map_err(|error| Error(format!("making {}: {error}", self.dir.display())))?;
        self.members[index].launch(&arguments, &log)
    }

    /// Starts a member again that was killed. Does not wait for it.
    pub fn restart(&mut self, member: usize) -> Result<(), Error> {
        self.launch(member)
    }

    /// Kills a member at once, as a crash would.
    pub fn kill(&mut self, member: usize) {
        self.members[member].kill();
    }

    /// Stops a member's process where it stands: it keeps its connections and answers nothing.
    pub fn pause(&self, member: usize) {
        self.members[member].pause();
    }

    /// Lets a paused member go on.
    pub fn resume(&self, member: usize) {
        self.members[member].resume();
    }

    /// Of the members that run.
    pub fn process_ids(&self) -> Vec<u32> {
        self.members.iter().filter_map(Member::process_id).collect()
    }

    /// `host:port` of each member, for clients.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::client_address).collect()
    }

    /// The URL of a log under `prefix`.
    pub fn log_url(&self, prefix: &str) -> String {
        format!("etcd://{}/{prefix}", self.endpoints().join(","))
    }

    /// Kills all members, and starts them anew from a backup that `etcdctl snapshot save` has made. Clients find
    /// them at the same addresses.
    pub fn restore(&mut self, backup: &Path) -> Result<(), Error> {
        (0..self.members.len()).for_each(|index| self.kill(index));
        self.restored += 1;
        for index in 0..self.members.len() {
            self.restore_member(index, backup)?;
        }
        self.start_all()
    }
}
