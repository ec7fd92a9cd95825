//! `sereno demo`: the story that the service exists for, played with real processes, real leases and real HTTP.

mod register;
mod worker;

pub(crate) use worker::{WorkerArgs, run as run_worker};

use crate::{exit, failure::Failure, output::write, own};
use register::{Register, Written};
use rustix::process::{Pid, Signal, kill_process};
use sereno_client::Client;
use sereno_server::{Config, Server};
use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// What both want to change.
const RESOURCE: &str = "demo/register";
/// Short, so that nobody waits long.
const TTL: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(20);

/// Plays it in a temporary folder, which is gone afterwards.
pub(crate) fn run() -> Result<u8, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::io("making a folder", &error))?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("starting the runtime", &error))?
        .block_on(boot_and_play(folder.path()))
}

async fn boot_and_play(folder: &Path) -> Result<u8, Failure> {
    let failed = |error: sereno_server::ServerError| Failure::new(error.to_string());
    let server = Server::start(Config::in_folder(folder.join("data"))).await.map_err(failed)?;
    server.ready().await;
    let played = play(&server.url(), &folder.join("register")).await;
    let stopped = server.stop().await.map_err(failed);
    let held = played?;
    stopped?;
    Ok(if held { 0 } else { exit::FAILED })
}

/// `true`: the fence has held.
async fn play(url: &str, path: &Path) -> Result<bool, Failure> {
    let story = Story { begun: Instant::now() };
    let register = Register::at(path);
    story.tell(&format!(
        "A lock service listens on {url}. Two workers want to write to one register."
    ))?;
    story.tell(
        "The register remembers the highest fencing token it has seen, and refuses lower ones.",
    )?;

    let mut a = Worker::start(url, path)?;
    let token_of_a = a.hears("token ").await?;
    story.tell(&format!(
        "A is granted the lock for {} s at a time, with token {token_of_a}.",
        TTL.as_secs()
    ))?;
    a.hears("about to write").await?;
    story.tell("A has checked that it holds the lock, and is about to write.")?;
    a.signal(Signal::STOP)?;
    story.tell(
        "A is paused right there (SIGSTOP), as by a long garbage collection or a frozen machine.",
    )?;
    story.tell("It cannot renew, and it cannot notice. B stands in the queue.")?;

    let client = Client::builder().servers(url).owner("B").build()?;
    let lock = client.lock(RESOURCE).ttl(TTL).wait(PATIENCE).acquire().await?;
    let token_of_b =
        lock.token().map_err(|loss| Failure::new(format!("B lost the lock: {loss}")))?;
    story.tell(&format!(
        "A's lease has ended. B is granted the lock, with token {token_of_b}: a larger one."
    ))?;
    register.write(token_of_b, "written by B").map_err(|error| Failure::io("B writes", &error))?;
    story.tell("B writes. The register takes it, and remembers B's token.")?;

    a.signal(Signal::CONT)?;
    story.tell("A wakes up. For A no time has passed: it writes what it was about to write.")?;
    a.tell("write").await?;
    let outcome = a.hears("outcome ").await?;
    let state = a.hears("state ").await?;
    a.end().await;
    let held = outcome.starts_with("refused");
    story.tell(&match held {
        true => {
            format!("The register refuses A: its token {token_of_a} is lower than {token_of_b}.")
        }
        false => format!("The register has answered A: {outcome}. This must not happen."),
    })?;
    story.tell(&format!("A asks its guard, which says: {state}."))?;
    let _ = lock.release().await?;
    let Written { token, value } =
        register.read().map_err(|error| Failure::io("reading the register", &error))?;
    story.tell(&format!(
        "The register holds {value:?} with token {token}. B has released the lock."
    ))?;
    Ok(held && token == token_of_b)
}

struct Story {
    begun: Instant,
}

impl Story {
    fn tell(&self, what: &str) -> Result<(), Failure> {
        write(&format!("{:5.1} s  {what}", self.begun.elapsed().as_secs_f32()))
    }
}

/// Worker A, a process of its own: it can really be paused.
struct Worker {
    process: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(url: &str, register: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::io("starting worker A", &error);
        let mut process = Command::new(own::PROGRAM)
            .arg0(own::NAME)
            .args([own::DEMO_WORKER, "--server", url])
            .arg(register)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(to), Some(from)) => Ok(Self { process, to, from: BufReader::new(from).lines() }),
            _ => Err(Failure::new("worker A has no pipes")),
        }
    }

    /// Waits for its next line, which has to begin so; gives the rest of it.
    async fn hears(&mut self, beginning: &str) -> Result<String, Failure> {
        match tokio::time::timeout(PATIENCE, self.from.next_line()).await {
            Ok(Ok(Some(line))) => match line.strip_prefix(beginning) {
                Some(rest) => Ok(rest.to_string()),
                None => Err(Failure::new(format!("worker A says {line:?}"))),
            },
            _ => Err(Failure::new("worker A says nothing")),
        }
    }

    async fn tell(&mut self, word: &str) -> Result<(), Failure> {
        let line = format!("{word}\n");
        self.to
            .write_all(line.as_bytes())
            .await
            .map_err(|error| Failure::io("telling worker A", &error))
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::new("worker A is gone"))?;
        kill_process(pid, signal).map_err(|error| Failure::io("signalling worker A", &error.into()))
    }

    async fn end(mut self) {
        drop(self.to);
        let _ = tokio::time::timeout(PATIENCE, self.process.wait()).await;
    }
}
