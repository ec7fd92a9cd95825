//! Where each process lives and how the others reach it. With network namespaces each has its own address, and nftables
//! drops packets; without, all are on loopback, and the proxies cut what they can tell apart.

use super::process::{run, run_with};
use crate::proxy::{Pipe, Route};
use sereno_etcd_dev::process;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::Command,
    time::Duration,
};

/// A host of the run: one process that faults happen to, and its proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A member of etcd.
    Etcd(usize),
    /// A node of Sereno.
    Node(usize),
}

impl Host {
    /// All six.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..3).map(Self::Etcd).chain((0..3).map(Self::Node))
    }

    /// For file names and messages.
    pub fn name(self) -> String {
        match self {
            Self::Etcd(index) => format!("etcd-{index}"),
            Self::Node(index) => format!("node-{index}"),
        }
    }
}

/// How the run isolates its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each in its own network namespace.
    Namespaces,
    /// All on loopback.
    Loopback,
}

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// etcd's clients; a node's HTTP.
    Main,
    /// etcd's peers; links between nodes.
    Peer,
}

/// Who comes in by a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Everybody.
    Anyone,
    /// Clients, and the harness.
    Clients,
    /// This node.
    Node(usize),
}

#[derive(Debug)]
struct Way {
    port: Port,
    from: From,
    route: Route,
}

/// What the network does to packets, besides carrying them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// From the first to the second nothing comes through.
    pub cuts: BTreeSet<(Host, Host)>,
    /// What comes in takes so much longer, and up to so much more.
    pub delays: BTreeMap<Host, (Duration, Duration)>,
    /// So many percent of what comes in are lost.
    pub losses: BTreeMap<Host, u32>,
}

/// The hosts' addresses.
#[derive(Debug)]
pub struct Network {
    /// How they are isolated.
    pub mode: Mode,
    ways: BTreeMap<Host, Vec<Way>>,
    rules: BTreeMap<Host, String>,
}

const HARNESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

impl Network {
    /// Makes it. Namespaces and links vanish with the harness's own namespaces.
    ///
    /// # Errors
    /// In words: what the machine does not allow.
    pub fn new(mode: Mode) -> Result<Self, String> {
        let ways = match mode {
            Mode::Namespaces => {
                make_bridge()?;
                Host::all().map(|host| (host, ways_of_namespace(host))).collect()
            }
            Mode::Loopback => loopback()?,
        };
        Ok(Self { mode, ways, rules: BTreeMap::new() })
    }

    /// Where the harness listens for clients.
    pub fn harness(&self) -> SocketAddr {
        let ip = match self.mode {
            Mode::Namespaces => HARNESS,
            Mode::Loopback => Ipv4Addr::LOCALHOST,
        };
        (ip, 0).into()
    }

    /// `program`, to be run at a host.
    pub fn command(&self, host: Host, program: &str) -> Command {
        match self.mode {
            Mode::Loopback => process::that_ends_with_us(program),
            Mode::Namespaces => {
                let mut command = process::that_ends_with_us("ip");
                command.args(["netns", "exec", &host.name(), program]);
                command
            }
        }
    }

    /// Where a host itself listens.
    pub fn inside(&self, host: Host, port: Port) -> SocketAddr {
        self.way(host, port, From::Anyone).unwrap_or_else(|| self.any(host)).route.to
    }

    /// Where a host is reached by others.
    pub fn outside(&self, host: Host, port: Port, from: From) -> SocketAddr {
        self.way(host, port, from).unwrap_or_else(|| self.any(host)).route.listen
    }

    fn way(&self, host: Host, port: Port, from: From) -> Option<&Way> {
        let matches = |way: &&Way| way.from == from || way.from == From::Anyone;
        self.ways[&host].iter().filter(|way| way.port == port).find(matches)
    }

    fn any(&self, host: Host) -> &Way {
        &self.ways[&host][0]
    }

    /// What the host's proxy forwards.
    pub fn routes(&self, host: Host) -> Vec<Route> {
        self.ways[&host].iter().map(|way| way.route).collect()
    }

    /// What the host's proxy does to each route.
    pub fn pipes(&self, host: Host, weather: &Weather) -> Vec<Pipe> {
        let (delay, jitter) = weather.delays.get(&host).copied().unwrap_or_default();
        let pipe = |way: &Way| Pipe {
            delay_ms: delay.as_millis() as u64,
            jitter_ms: jitter.as_millis() as u64,
            cuts_in: self.mode == Mode::Loopback && is_cut(weather, way, host, true),
            cuts_out: self.mode == Mode::Loopback && is_cut(weather, way, host, false),
        };
        self.ways[&host].iter().map(pipe).collect()
    }

    /// Makes the packet filters those of this weather.
    ///
    /// # Errors
    /// In words: what nft says.
    pub fn filter(&mut self, weather: &Weather) -> Result<(), String> {
        if self.mode == Mode::Loopback {
            return Ok(());
        }
        for host in Host::all() {
            let rules = rules(host, weather);
            if self.rules.get(&host) != Some(&rules) {
                run_with("ip", &["netns", "exec", &host.name(), "nft", "-f", "-"], &rules)?;
                self.rules.insert(host, rules);
            }
        }
        Ok(())
    }
}

impl Drop for Network {
    /// Room for the next seed's.
    fn drop(&mut self) {
        if self.mode == Mode::Namespaces {
            for host in Host::all() {
                let _ = run("ip", &["netns", "del", &host.name()]);
            }
            let _ = run("ip", &["link", "del", "hub"]);
        }
    }
}

/// On loopback a proxy knows the node that comes to etcd; of peers it only knows that they are some.
fn is_cut(weather: &Weather, way: &Way, host: Host, inward: bool) -> bool {
    weather.cuts.iter().any(|&(from, to)| {
        let (near, far) = if inward { (to, from) } else { (from, to) };
        near == host
            && match (way.port, way.from, far) {
                (Port::Main, From::Node(node), Host::Node(cut)) => node == cut,
                (Port::Peer, _, Host::Etcd(_)) => matches!(host, Host::Etcd(_)),
                (Port::Peer, _, Host::Node(_)) => matches!(host, Host::Node(_)),
                _ => false,
            }
    })
}

fn address(host: Host) -> Ipv4Addr {
    match host {
        Host::Etcd(index) => Ipv4Addr::new(10, 77, 0, 11 + index as u8),
        Host::Node(index) => Ipv4Addr::new(10, 77, 0, 21 + index as u8),
    }
}

fn rules(host: Host, weather: &Weather) -> String {
    let mut drops = String::new();
    for (from, _) in weather.cuts.iter().filter(|(_, to)| *to == host) {
        drops += &format!("ip saddr {} drop\n", address(*from));
    }
    if let Some(percent) = weather.losses.get(&host) {
        drops += &format!("numgen random mod 100 < {percent} drop\n");
    }
    format!(
        "table inet chaos\ndelete table inet chaos\ntable inet chaos {{\nchain in {{\n\
         type filter hook input priority 0; policy accept;\niifname \"lo\" accept\n{drops}}}\n}}\n"
    )
}

/// The harness's own namespace is the hub.
fn make_bridge() -> Result<(), String> {
    let hub = format!("{HARNESS}/24");
    run("ip", &["link", "add", "hub", "type", "bridge"])?;
    run("ip", &["address", "add", &hub, "dev", "hub"])?;
    run("ip", &["link", "set", "hub", "up"])?;
    for host in Host::all() {
        let name = host.name();
        let own = format!("{}/24", address(host));
        run("ip", &["netns", "add", &name])?;
        run("ip", &["link", "add", &name, "type", "veth", "peer", "name", "zone", "netns", &name])?;
        run("ip", &["link", "set", &name, "master", "hub", "up"])?;
        run("ip", &["-n", &name, "address", "add", &own, "dev", "zone"])?;
        run("ip", &["-n", &name, "link", "set", "zone", "up"])?;
        run("ip", &["-n", &name, "link", "set", "lo", "up"])?;
    }
    Ok(())
}

fn ways_of_namespace(host: Host) -> Vec<Way> {
    let way = |port, outer: u16| Way {
        port,
        from: From::Anyone,
        route: Route {
            listen: (address(host), outer).into(),
            to: (Ipv4Addr::LOCALHOST, outer + 10_000).into(),
        },
    };
    match host {
        Host::Etcd(_) => vec![way(Port::Main, 2379), way(Port::Peer, 2380)],
        Host::Node(_) => vec![way(Port::Main, 7480)],
    }
}

fn loopback() -> Result<BTreeMap<Host, Vec<Way>>, String> {
    // Bound all at once, so that no two are the same.
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = (0..64).map(bind).collect::<Result<Vec<_>, _>>();
    let listeners = listeners.map_err(|error| format!("looking for free ports: {error}"))?;
    let mut free = listeners.iter().filter_map(|listener| listener.local_addr().ok());
    let mut ways = BTreeMap::new();
    for host in Host::all() {
        let mut next = || free.next().ok_or("there are too few ports".to_owned());
        let (main, peer) = (next()?, next()?);
        let mut of_host = Vec::new();
        let mut add = |port, from, to| -> Result<(), String> {
            of_host.push(Way { port, from, route: Route { listen: next()?, to } });
            Ok(())
        };
        add(Port::Main, From::Clients, main)?;
        match host {
            Host::Etcd(_) => {
                add(Port::Peer, From::Anyone, peer)?;
                (0..3).try_for_each(|node| add(Port::Main, From::Node(node), main))?;
            }
            Host::Node(_) => add(Port::Peer, From::Anyone, main)?,
        }
        ways.insert(host, of_host);
    }
    Ok(ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_the_cut_host_and_the_loss() {
        let (a, b) = (Host::Node(0), Host::Etcd(1));
        let weather =
            Weather { cuts: [(a, b)].into(), losses: [(b, 20)].into(), ..Weather::default() };
        let text = rules(b, &weather);
        assert!(text.contains("ip saddr 10.77.0.21 drop"), "{text}");
        assert!(text.contains("mod 100 < 20 drop"), "{text}");
        assert!(!rules(a, &weather).contains("ip saddr"), "one way only");
    }

    #[test]
    fn on_loopback_a_cut_is_that_of_its_route_and_direction() {
        let network = Network::new(Mode::Loopback).unwrap();
        let weather = Weather {
            cuts: [(Host::Node(1), Host::Etcd(0)), (Host::Etcd(2), Host::Node(1))].into(),
            ..Weather::default()
        };
        let cut = |host| -> Vec<(bool, bool)> {
            let pipes = network.pipes(host, &weather);
            pipes.iter().map(|pipe| (pipe.cuts_in, pipe.cuts_out)).collect()
        };
        let no = (false, false);
        assert_eq!(cut(Host::Etcd(0)), [no, no, no, (true, false), no]);
        assert_eq!(cut(Host::Etcd(2)), [no, no, no, (false, true), no]);
        assert_eq!(cut(Host::Node(1)), [no, no]);
    }
}
