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
};

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
    nodes.iter_mut().try_for_each(Node::stop)?;
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
    let mut text =
        format!("etcd        {}\nfolder      {}\n", etcd.endpoints().join(" "), dir.display());
    for node in nodes {
        text += &format!("{:11} {}  (process {})\n", node.zone, node.url, node.child.id());
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

    /// Gracefully, as an operator would.
    fn stop(&mut self) -> Result<(), Failure> {
        let failed = |error| Failure::io(&format!("stopping the node {}", self.zone), &error);
        let id = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        // One that was killed before has gone.
        let _ = nix::sys::signal::kill(id, Signal::SIGTERM);
        let _ = nix::sys::signal::kill(id, Signal::SIGCONT);
        self.child.wait().map(drop).map_err(failed)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It has ended already, unless starting the others failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
