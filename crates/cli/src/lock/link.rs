//! The wrapper's side of the watchdog.

use super::{
    group::Group,
    message::{self, Message},
    timetable::{Limits, Margins},
};
use crate::own;
use std::{io, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

const START_WITHIN: Duration = Duration::from_secs(5);
/// A watchdog that is stopped must not stop the wrapper with a full pipe.
const TAKE_WITHIN: Duration = Duration::from_millis(100);
const END_WITHIN: Duration = Duration::from_secs(1);

/// A running watchdog.
pub(crate) struct Watchdog {
    process: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Watchdog {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start() -> io::Result<Self> {
        let mut process = Command::new(own::PROGRAM)
            .arg0(own::NAME)
            .arg(own::WATCHDOG)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let mut watchdog = Self { process, to, from: BufReader::new(from).lines() };
        watchdog.expect(message::READY).await?;
        Ok(watchdog)
    }

    /// Hands the group over, and waits until it is watched.
    pub(crate) async fn watch(
        &mut self,
        group: Group,
        margins: Margins,
        limits: Limits,
    ) -> io::Result<()> {
        self.tell(Message::Limits(limits)).await?;
        self.tell(Message::Group { id: group.id(), grace: margins.grace }).await?;
        self.expect(message::WATCHING).await
    }

    /// Tells it something.
    pub(crate) async fn tell(&mut self, message: Message) -> io::Result<()> {
        match timeout(TAKE_WITHIN, self.to.write_all(message.line().as_bytes())).await {
            Ok(written) => written,
            Err(_) => Err(io::Error::other("the watchdog does not read")),
        }
    }

    /// The next thing it says; `None` when it is gone.
    pub(crate) async fn hear(&mut self) -> Option<String> {
        self.from.next_line().await.ok().flatten()
    }

    /// Makes an end of one that does not answer: it may be stopped, and KILL ends that too. Nobody waits for it.
    pub(crate) fn discard(mut self) {
        // It may be dead already; the runtime reaps it.
        let _ = self.process.start_kill();
    }

    /// Nothing is to be watched any more. Returns when it is gone. `true`: it has stopped the group before.
    pub(crate) async fn end(mut self) -> bool {
        let _ = self.tell(Message::Done).await;
        let mut has_stopped = false;
        let last_words = async {
            while let Some(said) = self.hear().await {
                has_stopped |= said == message::STOPPED;
            }
        };
        let _ = timeout(END_WITHIN, last_words).await;
        if timeout(END_WITHIN, self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
        has_stopped
    }

    async fn expect(&mut self, word: &str) -> io::Result<()> {
        match timeout(START_WITHIN, self.hear()).await {
            Ok(Some(said)) if said == word => Ok(()),
            Ok(Some(said)) => Err(io::Error::other(format!("the watchdog says {said:?}"))),
            Ok(None) => Err(io::Error::other("the watchdog has ended")),
            Err(_) => Err(io::Error::other("the watchdog does not answer")),
        }
    }
}
