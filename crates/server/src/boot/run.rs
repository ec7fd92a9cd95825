//! A server as a process of its own: signals, the first line of output, and a quick end when something breaks.

use super::{Server, ServerError};
use crate::{config::Config, logging};
use std::{io::Write as _, time::Duration};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::Instant,
};

/// How long the first line waits for the node to lead.
const READY_PATIENCE: Duration = Duration::from_secs(5);
/// Signals so close to the first one are the same request: a wrapper passes on what the whole group has got already
/// (`timeout` does), and a terminal's Ctrl-C comes by both ways too.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// Serves until SIGTERM or SIGINT, and then stops gracefully; another signal, half a second later or more, quits at once.
/// The first line on standard output names the address.
///
/// A panic in any thread stops the process with its message: a broken server must not go on half.
///
/// # Errors
/// When the server cannot start, or something failed that it cannot do without.
pub fn run(config: Config) -> Result<(), ServerError> {
    logging::start(&config)?;
    abort_on_panic();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(config));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
}

async fn serve(config: Config) -> Result<(), ServerError> {
    let mut signals = Signals::new()?;
    // Until etcd answers there is nothing to stop gracefully.
    let server = tokio::select! {
        started = Server::start(config) => started?,
        name = signals.next() => {
            tracing::info!(signal = name, "asked to stop before it served");
            return Ok(());
        }
    };
    let _not_yet = tokio::time::timeout(READY_PATIENCE, server.ready()).await.is_err();
    announce(&server)?;
    tokio::select! {
        name = signals.next() => tracing::info!(signal = name, "asked to stop"),
        message = server.failed() => {
            // What the trail does not record must not go on; and what was answered is in the log.
            return Err(ServerError::Failed(message));
        }
    }
    let asked = Instant::now();
    tokio::select! {
        stopped = server.stop() => stopped,
        name = signals.insist(asked) => {
            Err(ServerError::Failed(format!("{name} came while stopping: calls may have lost their answers")))
        }
    }
}

/// Standard output may be a file or a pipe that somebody waits on.
fn announce(server: &Server) -> Result<(), ServerError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "sereno listens on {}", server.url())?;
    Ok(out.flush()?)
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, ServerError> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// The next one that is another request than the one that came at `asked`.
    async fn insist(&mut self, asked: Instant) -> &'static str {
        loop {
            let name = self.next().await;
            if asked.elapsed() >= SAME_REQUEST {
                return name;
            }
        }
    }
}
