//! Three members of etcd, three nodes and their clients, as real processes.

mod disk;
mod network;
pub mod process;

pub use disk::Disk;
pub use network::{From, Host, Mode, Network, Port, Weather};

use process::Process;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The three zones.
pub const ZONES: usize = 3;
/// How many client processes there are.
pub const CLIENTS: usize = 3;
/// The member with a disk of its own.
pub const SMALL_DISK: usize = 2;

/// The programs that are run.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `sereno`
    pub sereno: PathBuf,
    /// This program, as proxy and client.
    pub own: PathBuf,
    /// libfaketime, where there is one.
    pub faketime: Option<PathBuf>,
}

/// Everything that runs.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    programs: Programs,
    /// Addresses and packet filters.
    pub network: Network,
    /// What the network does just now.
    pub weather: Weather,
    proxies: BTreeMap<Host, Process>,
    /// Members and nodes; one that was killed is absent.
    pub hosts: BTreeMap<Host, Process>,
    /// Clients by number; with how often each was started.
    pub clients: BTreeMap<usize, Process>,
    starts: [u32; CLIENTS],
    resource: String,
    seed: u64,
    /// Under one member, where the machine allows it.
    pub disk: Option<Disk>,
    /// The node whose wall clock can be stepped.
    pub skewed: usize,
}

impl Cluster {
    /// Makes folders, network and disk; starts nothing but the proxies.
    ///
    /// # Errors
    /// In words.
    pub fn new(dir: &Path, programs: Programs, mode: Mode, seed: u64) -> Result<Self, String> {
        for folder in ["logs", "history"] {
            let folder = dir.join(folder);
            fs::create_dir_all(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
        fs::write(dir.join("secret"), "of this run, and long enough").map_err(failed)?;
        fs::write(dir.join("clock"), "+0").map_err(failed)?;
        let network = Network::new(mode)?;
        // Only in a mount namespace of its own does it vanish whatever happens.
        let disk = match mode {
            Mode::Namespaces => Disk::mount(dir).ok(),
            Mode::Loopback => None,
        };
        let mut cluster = Self {
            dir: dir.into(),
            programs,
            network,
            weather: Weather::default(),
            proxies: BTreeMap::new(),
            hosts: BTreeMap::new(),
            clients: BTreeMap::new(),
            starts: [0; CLIENTS],
            resource: String::new(),
            seed,
            disk,
            skewed: (seed % ZONES as u64) as usize,
        };
        Host::all().try_for_each(|host| cluster.start_proxy(host))?;
        Ok(cluster)
    }

    /// Whether a node's wall clock can be stepped here.
    pub fn has_faketime(&self) -> bool {
        self.programs.faketime.is_some()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }

    fn start_proxy(&mut self, host: Host) -> Result<(), String> {
        let own = self.programs.own.display().to_string();
        let mut command = self.network.command(host, &own);
        command.arg("proxy");
        for route in self.network.routes(host) {
            command.arg(format!("{}={}", route.listen, route.to));
        }
        let log = self.log(&format!("{}-proxy", host.name()));
        self.proxies.insert(host, Process::start(command, &log)?);
        Ok(())
    }

    /// Starts a member or a node, for the first time or again.
    ///
    /// # Errors
    /// In words.
    pub fn start(&mut self, host: Host) -> Result<(), String> {
        let command = match host {
            Host::Etcd(index) => self.etcd(index),
            Host::Node(index) => self.node(index),
        };
        self.hosts.remove(&host);
        self.hosts.insert(host, Process::start(command, &self.log(&host.name()))?);
        Ok(())
    }

    fn etcd(&self, index: usize) -> Command {
        let host = Host::Etcd(index);
        let url = |address| format!("http://{address}");
        let outside =
            |index, port| url(self.network.outside(Host::Etcd(index), port, From::Clients));
        let all: Vec<_> = (0..ZONES)
            .map(|index| format!("{}={}", Host::Etcd(index).name(), outside(index, Port::Peer)))
            .collect();
        let folder = match &self.disk {
            Some(disk) if index == SMALL_DISK => disk.folder().join("data"),
            _ => self.dir.join(host.name()),
        };
        let mut command = self.network.command(host, "etcd");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ETCD") {
                command.env_remove(name);
            }
        }
        command
            .args(["--name", &host.name(), "--logger", "zap", "--data-dir"])
            .arg(folder)
            .args(["--listen-client-urls", &url(self.network.inside(host, Port::Main))])
            .args(["--advertise-client-urls", &outside(index, Port::Main)])
            .args(["--listen-peer-urls", &url(self.network.inside(host, Port::Peer))])
            .args(["--initial-advertise-peer-urls", &outside(index, Port::Peer)])
            .args(["--initial-cluster", &all.join(",")])
            .args(["--initial-cluster-token", &format!("chaos-{}", self.seed)]);
        command
    }

    fn node(&self, index: usize) -> Command {
        let host = Host::Node(index);
        let sereno = self.programs.sereno.display().to_string();
        let mut command = self.network.command(host, &sereno);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SERENO_") {
                command.env_remove(name);
            }
        }
        if let Some(faketime) = self.programs.faketime.as_ref().filter(|_| index == self.skewed) {
            command
                .env("LD_PRELOAD", faketime)
                .env("FAKETIME_TIMESTAMP_FILE", self.dir.join("clock"))
                .env("FAKETIME_CACHE_DURATION", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let advertised = self.network.outside(host, Port::Peer, From::Anyone);
        command
            .args(["serve", "--node-id", &host.name(), "--log-level", "info"])
            .args(["--http", &self.network.inside(host, Port::Main).to_string()])
            .args(["--advertise", &format!("http://{advertised}")])
            .args(["--log", &self.log_url(From::Node(index), index)])
            .args(["--snapshot-every", "20s"])
            .arg("--data")
            .arg(self.dir.join(host.name()))
            .arg("--cluster-secret-file")
            .arg(self.dir.join("secret"));
        command
    }

    /// Whether the last that a node said is that etcd cannot be reached: an operator's restart would try again.
    pub fn found_no_etcd(&self, host: Host) -> bool {
        let said = fs::read_to_string(self.log(&host.name())).unwrap_or_default();
        said.lines().next_back().is_some_and(|line| line.contains("the log cannot be reached"))
    }

    /// The log as it is reached from somewhere, the zone's own member first.
    pub fn log_url(&self, from: From, first: usize) -> String {
        let endpoint = |index| self.network.outside(Host::Etcd(index % ZONES), Port::Main, from);
        let all: Vec<_> = (first..first + ZONES).map(|it| endpoint(it).to_string()).collect();
        format!("etcd://{}/chaos", all.join(","))
    }

    /// Where clients find each node.
    pub fn servers(&self) -> Vec<String> {
        let address = |index| self.network.outside(Host::Node(index), Port::Main, From::Clients);
        (0..ZONES).map(|index| format!("http://{}", address(index))).collect()
    }

    /// Where clients find the resource; to be said before the first of them starts.
    pub fn set_resource(&mut self, address: &str) {
        self.resource = address.to_owned();
    }

    /// Starts a client, for the first time or again: each time with a history of its own.
    ///
    /// # Errors
    /// In words.
    pub fn start_client(&mut self, index: usize) -> Result<(), String> {
        let start = self.starts[index];
        self.starts[index] += 1;
        let name = format!("c{index}-{start}");
        let own = self.programs.own.display().to_string();
        let mut command = sereno_etcd_dev::process::that_ends_with_us(&own);
        command
            .args(["client", "--name", &name, "--servers", &self.servers().join(",")])
            .args(["--resource", &self.resource, "--seed", &self.seed.to_string()])
            .arg("--history")
            .arg(self.dir.join("history").join(format!("{name}.jsonl")));
        let log = self.log(&name);
        self.clients.remove(&index);
        self.clients.insert(index, Process::start(command, &log)?);
        Ok(())
    }

    /// Makes the network what `weather` says.
    ///
    /// # Errors
    /// In words.
    pub fn set_weather(&mut self) -> Result<(), String> {
        self.network.filter(&self.weather)?;
        for (host, proxy) in &mut self.proxies {
            let pipes = self.network.pipes(*host, &self.weather);
            let line = serde_json::to_string(&pipes).map_err(|error| error.to_string())?;
            let gone = |error| format!("the proxy of {} has gone: {error}", host.name());
            proxy.tell(&line).map_err(gone)?;
        }
        Ok(())
    }

    /// Steps the wall clock of the one node to so many seconds from the truth.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set_clock(&self, seconds: i64) -> Result<(), String> {
        let path = self.dir.join("clock");
        let write = fs::write(&path, format!("{seconds:+}"));
        write.map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Who waits for a disk that stands still cannot be killed; and the disk is unmounted after them.
        self.disk.iter_mut().for_each(Disk::fast);
        self.clients.clear();
        self.hosts.clear();
    }
}
