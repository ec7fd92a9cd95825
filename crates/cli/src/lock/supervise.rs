//! Runs a command under a lease (of a lock, or of a job's run), and sees to it that it is gone before the lease is.

use super::{
    group::{Group, processes},
    heartbeat::{Beat, Heartbeat},
    launch::Launched,
    link::Watchdog,
    message::{self, Message},
    signals::Signals,
    stopper::{Act, Stopper},
    terminal::Terminal,
    timetable::{Limits, Margins},
};
use crate::{exit, failure::Failure, output::note};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use sereno_client::{Guard, GuardState, GuardStatus, Loss, Moment};
use std::{
    ffi::OsString,
    os::unix::process::ExitStatusExt,
    process::{Child, Stdio},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// Timers stand still while the machine is suspended; looking this often finds the time that is gone.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(250);
/// How often to look whether what a command has left behind is gone.
const LOOK_FOR_REST_EVERY: Duration = Duration::from_millis(20);

/// Longer than this nobody waits for the kernel to end what was killed: it hangs in a device.
const DEAD_WITHIN: Duration = Duration::from_secs(10);

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this exit code.
    Itself(u8),
    /// It was stopped, and this is the wrapper's exit code.
    Stopped(u8),
}

/// What the command runs under.
pub(crate) struct Terms {
    /// The lease: its state and its deadlines.
    pub status: watch::Receiver<GuardStatus>,
    pub margins: Margins,
    /// What the command finds in its environment.
    pub variables: Vec<(&'static str, String)>,
    pub words: Words,
    /// It goes on when its lease is lost; only the end of the longest hold stops it.
    pub keep: bool,
    /// It may have the terminal; else its standard input is empty.
    pub interactive: bool,
}

/// What is told to people, in their words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// `the lock`
    pub what: &'static str,
    /// `the longest hold`
    pub longest: &'static str,
}

impl Terms {
    /// What the deadline of the command is.
    fn end(&self) -> Moment {
        let status = self.status.borrow();
        match (self.keep, status.final_deadline) {
            (true, Some(end)) => end,
            (true, None) => status.deadline.plus(Duration::MAX),
            (false, _) => status.deadline,
        }
    }

    fn limits(&self) -> Limits {
        self.margins.limits(self.end())
    }
}

/// Starts the command, watched, and returns when nothing of its group is left.
///
/// # Errors
/// It was not begun.
pub(crate) async fn run(
    terms: Terms,
    command: &[OsString],
    signals: &mut Signals,
) -> Result<Ended, Failure> {
    let failed = |what: &str, error| Failure::io(what, &error).exit(exit::LOCK_FAILED);
    let mut watchdog =
        Watchdog::start().await.map_err(|error| failed("the watchdog does not start", error))?;
    let stdin = if terms.interactive { Stdio::inherit() } else { Stdio::null() };
    let launched = Launched::start(command, &terms.variables, stdin)
        .map_err(|error| failed("the command's process does not start", error))?;
    let group = Group::of(&launched.child)
        .ok_or_else(|| Failure::new("the command has no process group").exit(exit::LOCK_FAILED))?;
    watchdog
        .watch(group, terms.margins, terms.limits())
        .await
        .map_err(|error| failed("the watchdog does not watch", error))?;
    let terminal = terms.interactive.then(|| Terminal::lend(group)).flatten();
    let child = launched.go().map_err(|error| failed("the command's process is gone", error))?;
    let supervisor = Supervisor {
        terms,
        group,
        child,
        stopper: Stopper::default(),
        watchdog: Some(watchdog),
        heartbeat: Heartbeat::default(),
        cause: None,
        is_without_lease: false,
        terminal,
    };
    Ok(supervisor.run(signals).await)
}

/// Why the command is being stopped, as an exit code.
type Cause = u8;

struct Supervisor {
    terms: Terms,
    group: Group,
    /// Not reaped before everything is over: until then nobody else gets its number.
    child: Child,
    stopper: Stopper,
    watchdog: Option<Watchdog>,
    heartbeat: Heartbeat,
    cause: Option<Cause>,
    /// The lease is lost and the command goes on.
    is_without_lease: bool,
    terminal: Option<Terminal>,
}

impl Supervisor {
    async fn run(mut self, signals: &mut Signals) -> Ended {
        self.follow_lease().await;
        while !has_exited(self.group.leader()) {
            self.resume_if_suspended();
            reap_orphans(self.group.leader());
            while let Some(act) = self.stopper.due(Moment::now()) {
                self.carry_out(act).await;
            }
            self.wait(signals).await;
        }
        self.finish().await
    }

    /// Until anything happens, and not long in any case.
    async fn wait(&mut self, signals: &mut Signals) {
        let now = Moment::now();
        let wake = self.stopper.wake().map_or(LOOK_AT_LEAST_EVERY, |wake| now.until(wake));
        tokio::select! {
            // In this order: what the watchdog has said comes before the look that would miss it.
            biased;
            signal = signals.next_or_child() => if let Some(signal) = signal {
                self.group.signal(signal);
            },
            Ok(()) = self.terms.status.changed() => self.follow_lease().await,
            said = hear(&mut self.watchdog) => match said.as_deref() {
                Some(word) => {
                    self.heartbeat.heard();
                    if word == message::STOPPED {
                        self.stopped_by_watchdog();
                    }
                }
                None => self.replace_watchdog("has ended").await,
            },
            () = sleep(wake.min(LOOK_AT_LEAST_EVERY)) => self.look_after_watchdog().await,
        }
    }

    async fn look_after_watchdog(&mut self) {
        match self.heartbeat.look() {
            Beat::Wait => {}
            Beat::Ask => self.tell(Message::Ping).await,
            Beat::Silent => self.replace_watchdog("does not answer").await,
        }
    }

    /// Takes over the lease's present deadline, or its loss.
    async fn follow_lease(&mut self) {
        let status = self.terms.status.borrow_and_update().clone();
        let limits = self.terms.limits();
        self.stopper.set_limits(limits);
        self.tell(Message::Limits(limits)).await;
        if let GuardState::Lost(loss) = status.state {
            let what = self.terms.words.what;
            if self.terms.keep && loss != Loss::MaxHold {
                if !std::mem::replace(&mut self.is_without_lease, true) {
                    note(&format!("{what} is lost ({loss}); the command goes on"));
                }
                return;
            }
            self.cause.get_or_insert(cause_of(&loss));
            let kill_at = self.terms.margins.kill_when_lost(Moment::now());
            self.stop_by(kill_at).await;
            note(&format!("{what} is lost ({loss}); the command is stopped"));
        }
    }

    async fn stop_by(&mut self, kill_at: Moment) {
        if let Some(act) = self.stopper.stop_by(kill_at) {
            self.carry_out(act).await;
        }
    }

    async fn carry_out(&mut self, act: Act) {
        match act {
            Act::Terminate => {
                self.group.terminate();
                if let Some(kill_at) = self.stopper.kill_at() {
                    self.tell(Message::Stopping { kill_at }).await;
                }
                // Last, for a reader who is slow to read must not be in the way.
                self.note_cause_in_time();
            }
            Act::Kill => self.group.kill(),
        }
    }

    /// The command is stopped before the lock is lost, so the guard has not said why yet.
    fn note_cause_in_time(&mut self) {
        if self.cause.is_some() {
            return;
        }
        let by_max_hold = {
            let status = self.terms.status.borrow();
            let at_its_end = status.final_deadline.is_some_and(|end| status.deadline >= end);
            self.terms.keep || at_its_end
        };
        let (cause, why) = match by_max_hold {
            true => (exit::MAX_HOLD, format!("{} is nearly over", self.terms.words.longest)),
            false => {
                (exit::LOST, "no renewal was acknowledged and the lease is nearly over".into())
            }
        };
        self.cause = Some(cause);
        note(&format!("{why}; the command is stopped"));
    }

    fn stopped_by_watchdog(&mut self) {
        self.cause.get_or_insert(exit::LOST);
        // It has sent TERM; KILL stays with both of us.
        let _ = self.stopper.stop_by(Moment::now().plus(self.terms.margins.grace));
    }

    /// Without a watchdog the command must not go on; and while one starts nobody else stops the command, so that
    /// may last no longer than the lease allows.
    async fn replace_watchdog(&mut self, why: &str) {
        let Some(old) = self.watchdog.take() else { return };
        old.discard();
        if self.stopper.has_begun() {
            return; // KILL is due soon and the wrapper is there for it: a new one would only come too late.
        }
        let limits = self.terms.limits();
        let replaced = async {
            let mut watchdog = Watchdog::start().await?;
            watchdog.watch(self.group, self.terms.margins, limits).await?;
            Ok::<_, std::io::Error>(watchdog)
        };
        let too_late = |_| std::io::Error::other("another one did not start in time");
        let within = Moment::now().until(limits.term_at);
        match timeout(within, replaced).await.map_err(too_late).and_then(|replaced| replaced) {
            Ok(watchdog) => {
                self.watchdog = Some(watchdog);
                self.heartbeat = Heartbeat::default();
                note(&format!("the watchdog {why}; another one watches now"));
            }
            Err(error) => {
                self.cause.get_or_insert(exit::LOCK_FAILED);
                self.stop_by(Moment::now().plus(self.terms.margins.grace)).await;
                note(&format!("the watchdog {why} ({error}); the command is stopped"));
            }
        }
    }

    async fn tell(&mut self, message: Message) {
        if let Some(watchdog) = &mut self.watchdog {
            // A watchdog that is gone is noticed where it is heard.
            let _ = watchdog.tell(message).await;
        }
    }

    /// Ctrl-Z would leave a command that holds a lock lying about: it goes on.
    fn resume_if_suspended(&self) {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let stopped = waitid(WaitId::Pid(self.group.leader()), options).ok().flatten();
        let by_terminal = stopped
            .and_then(|status| status.stopping_signal())
            .is_some_and(|signal| signal == Signal::TSTP.as_raw());
        if by_terminal && self.terminal.is_some() {
            self.group.signal(Signal::CONT);
            note(&format!(
                "the command goes on: it cannot be suspended under {}",
                self.terms.words.what
            ));
        }
    }

    /// The command is dead but not reaped, so its group's number is still its own. What it has left behind in its
    /// group goes too; only then is there nothing left to watch.
    async fn finish(mut self) -> Ended {
        self.stop_rest().await;
        if let Some(watchdog) = self.watchdog.take()
            && watchdog.end().await
        {
            self.cause.get_or_insert(exit::LOST);
        }
        let status = self.child.wait();
        drop(self.terminal.take());
        let own = match status.map(|status| (status.code(), status.signal())) {
            Ok((Some(code), _)) => u8::try_from(code).unwrap_or(u8::MAX),
            Ok((None, signal)) => exit::by_signal(signal.unwrap_or(0)),
            Err(error) => {
                note(&format!("it is not known how the command ended: {error}"));
                exit::LOCK_FAILED
            }
        };
        self.cause.map_or(Ended::Itself(own), Ended::Stopped)
    }

    /// TERM, KILL, and then until they are dead: a signal that is sent has not ended anything yet.
    async fn stop_rest(&mut self) {
        if self.group.alive() == Some(0) {
            return;
        }
        self.group.terminate();
        let now = Moment::now();
        let planned = self.stopper.kill_at().unwrap_or(now.plus(self.terms.margins.grace));
        let kill_at = planned.min(self.terms.limits().kill_at);
        if self.is_gone_by(kill_at).await {
            return;
        }
        self.group.kill();
        if !self.is_gone_by(Moment::now().plus(DEAD_WITHIN)).await {
            note("processes of the command have been killed and do not end");
        }
    }

    async fn is_gone_by(&self, limit: Moment) -> bool {
        while Moment::now() < limit {
            if self.group.alive() == Some(0) {
                return true;
            }
            reap_orphans(self.group.leader());
            sleep(LOOK_FOR_REST_EVERY).await;
        }
        false
    }
}

/// A watchdog that is being replaced says nothing.
async fn hear(watchdog: &mut Option<Watchdog>) -> Option<String> {
    match watchdog {
        Some(watchdog) => watchdog.hear().await,
        None => std::future::pending().await,
    }
}

fn cause_of(loss: &Loss) -> Cause {
    match loss {
        Loss::MaxHold => exit::MAX_HOLD,
        _ => exit::LOST,
    }
}

/// The child is dead. It stays in the process table.
fn has_exited(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(child), options), Ok(None))
}

/// As the first process of a container this one inherits all orphans, and their bodies.
fn reap_orphans(child: Pid) {
    if std::process::id() != 1 {
        return;
    }
    let child = child.as_raw_nonzero().get();
    let bodies = processes().unwrap_or_default().into_iter();
    for body in
        bodies.filter(|process| process.zombie && process.parent == 1 && process.pid != child)
    {
        if let Some(pid) = Pid::from_raw(body.pid) {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

/// How holding on to the lock ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// For as long as it was meant to.
    Enough,
    /// The lock is lost.
    Lost(Loss),
    /// A signal said to stop.
    Signal(Signal),
}

/// Holds on to the lock for what is left of `at_least`, unless it is lost or a signal says to stop.
pub(crate) async fn hold(guard: &Guard, left: Duration, signals: &mut Signals) -> Held {
    let until = Moment::now().plus(left);
    let lost = guard.lost();
    tokio::pin!(lost);
    while Moment::now() < until {
        let pause = Moment::now().until(until).min(LOOK_AT_LEAST_EVERY);
        tokio::select! {
            signal = signals.next() => return Held::Signal(signal),
            loss = &mut lost => return Held::Lost(loss),
            () = sleep(pause) => {}
        }
    }
    Held::Enough
}

/// What is owed to the service, for a moment.
pub(crate) async fn settle(client: &sereno_client::Client, within: Duration) {
    let _ = timeout(within, client.settled()).await;
}
