//! `sereno cluster dev`: three etcd members and three nodes on this machine.

use crate::{failure::Failure, output::write};
use clap::Args;
use nix::sys::signal::{SigSet, Signal};
use rand::distr::{Alphanumeric, SampleString};
use sereno_etcd_dev::{Cluster, Options, process};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long a node may take to stop.
const STOP: Duration = Duration::from_secs(10);
/// The nodes' names.
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// Start three etcd members and three nodes on loopback, for trying things out; Ctrl-C stops them.
///
/// Needs etcd (Debian: etcd-server and etcd-client). All listen on free ports, and what they say goes into files of
/// the folder. Kill or stop (SIGSTOP) any process of it and see what happens: a killed one is not started again.
#[derive(Clone, Debug, Args)]
pub(crate) struct DevArgs {
    /// Where everything is kept: missing or empty. [default: a temporary folder, gone afterwards]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &DevArgs) -> Result<u8, Failure> {
    let temporary = match &args.dir {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(|error| Failure::io("making a folder", &error))?),
    };
    let dir = match (&args.dir, &temporary) {
        (Some(dir), _) => dir.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => unreachable!("one of the two is there"),
    };
    // Before any process or thread is started, so that all of them leave the signal to this one.
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block().map_err(|error| Failure::io("blocking signals", &error.into()))?;
    refuse_non_empty(&dir)?;
    let failed = |error: sereno_etcd_dev::Error| {
        Failure::new(error.to_string()).hint("Debian: apt install etcd-server etcd-client")
    };
    let etcd = Cluster::start(&dir.join("etcd"), Options::default()).map_err(failed)?;
    let secret = dir.join("cluster-secret");
    write_secret(&secret)?;
    let mut nodes = Vec::new();
    for zone in ZONES {
        nodes.push(Node::start(zone, &dir, &etcd.log_url("sereno"), &secret)?);
    }
    tell(&dir, &etcd, &nodes)?;
    signals.wait().map_err(|error| Failure::io("waiting for a signal", &error.into()))?;
    nodes.iter().for_each(Node::ask_to_stop);
    let until = Instant::now() + STOP;
    nodes.iter_mut().try_for_each(|node| node.gone_by(until))?;
    Ok(0)
}

fn refuse_non_empty(dir: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::io(&dir.display().to_string(), &error);
    fs::create_dir_all(dir).map_err(failed)?;
    match fs::read_dir(dir).map_err(failed)?.next() {
        Some(_) => Err(Failure::new(format!("the folder {} is not empty", dir.display()))),
        None => Ok(()),
    }
}

fn write_secret(path: &Path) -> Result<(), Failure> {
    let secret = Alphanumeric.sample_string(&mut rand::rng(), 32);
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(secret.as_bytes()))
        .map_err(|error| Failure::io(&format!("writing {}", path.display()), &error))
}

fn tell(dir: &Path, etcd: &Cluster, nodes: &[Node]) -> Result<(), Failure> {
    let urls: Vec<_> = nodes.iter().map(|node| node.url.as_str()).collect();
    let mut text = format!("folder      {}\n", dir.display());
    for (endpoint, process) in etcd.endpoints().iter().zip(etcd.process_ids()) {
        text += &format!("etcd        {endpoint}  (process {process})\n");
    }
    for node in nodes {
        text += &format!("{:11} {}  (process {})\n", node.zone, node.url, node.child.id());
    }
    // Any of them, started again after it was killed.
    if let Some(node) = nodes.first() {
        text += &format!(
            "\nA node that was killed is started again by\n\n    sereno serve --node-id {zone} --data {dir}/{zone} \
             --http {address} --log {log} --cluster-secret-file {dir}/cluster-secret\n",
            zone = node.zone,
            dir = dir.display(),
            address = node.url.trim_start_matches("http://"),
            log = etcd.log_url("sereno"),
        );
    }
    text += &format!(
        "\nIn another terminal:\n\n    export SERENO_SERVER={}\n    sereno status\n    sereno lock try -- sleep 10\n\n\
         Ctrl-C stops everything.",
        urls.join(",")
    );
    write(&text)
}

/// One `sereno serve`.
struct Node {
    zone: &'static str,
    url: String,
    child: Child,
}

impl Node {
    fn start(zone: &'static str, dir: &Path, log: &str, secret: &Path) -> Result<Self, Failure> {
        let doing = format!("starting the node {zone}");
        let failed = |error| Failure::io(&doing, &error);
        let own = std::env::current_exe().map_err(failed)?;
        let said = dir.join(format!("{zone}.log"));
        let mut command: Command = process::that_ends_with_us(&own.to_string_lossy());
        command
            .args(["serve", "--http", "127.0.0.1:0", "--node-id", zone, "--log", log])
            .arg("--data")
            .arg(dir.join(zone))
            .arg("--cluster-secret-file")
            .arg(secret)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&said).map_err(failed)?);
        let mut child = process::spawn(command).map_err(|error| Failure::new(error.to_string()))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        let Some(at) = line.find("http://") else {
            let _ = child.kill();
            let _ = child.wait();
            let why = fs::read_to_string(&said).unwrap_or_default();
            let last = why.lines().last().unwrap_or("it says nothing");
            return Err(Failure::new(format!("{doing}: {last}")));
        };
        Ok(Self { zone, url: line[at..].trim().into(), child })
    }

    /// As an operator would.
    fn ask_to_stop(&self) {
        let id = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        // One that was killed before has gone.
        let _ = nix::sys::signal::kill(id, Signal::SIGTERM);
        let _ = nix::sys::signal::kill(id, Signal::SIGCONT);
    }

    /// Waits until it has gone, and kills it if that is not before `until`.
    fn gone_by(&mut self, until: Instant) -> Result<(), Failure> {
        let failed = |error| Failure::io(&format!("stopping the node {}", self.zone), &error);
        while Instant::now() < until {
            if self.child.try_wait().map_err(failed)?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill().map_err(failed)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It has ended already, unless starting the others failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
