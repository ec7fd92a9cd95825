//! The watchdog: a small process beside the wrapper that holds the deadline when the wrapper cannot.
//!
//! The wrapper tells it over a pipe what to watch and until when. It acts when the wrapper has not acted in time (it
//! is stopped, or starved), and at once when the pipe ends without a "done" (it is dead). It lives in a session of
//! its own and blocks every signal that can be blocked, so what ends the wrapper does not end it.

use super::{
    group::Group,
    message::{self, Message},
    stopper::{Act, Stopper},
    timetable::Limits,
};
use crate::{failure::Failure, output::note};
use nix::sys::signal::SigSet;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::setsid,
    stdio::stdin,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};
use sereno_client::Moment;
use std::{io::Write, os::fd::OwnedFd, time::Duration};

/// The wrapper comes first; the watchdog is for when it does not come.
const LAG_MAX: Duration = Duration::from_millis(500);
/// How often to look whether the group of a dead wrapper is gone.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What the watchdog knows; told the time, no I/O.
#[derive(Debug, Default)]
struct Watch {
    group: Option<(Group, Duration)>,
    stopper: Stopper,
    orphaned: bool,
    done: bool,
}

impl Watch {
    /// What the wrapper waits to hear.
    fn hear(&mut self, message: Message) -> Option<&'static str> {
        match message {
            Message::Group { id, grace } => {
                self.group = Group::from_id(id).map(|group| (group, grace));
                return self.group.map(|_| message::WATCHING);
            }
            Message::Ping => return Some(message::ALIVE),
            Message::Limits(limits) => self.stopper.set_limits(later(limits)),
            // It has sent TERM itself.
            Message::Stopping { kill_at } => drop(self.stopper.stop_by(kill_at)),
            Message::Done => self.done = true,
        }
        None
    }

    /// The pipe has ended.
    fn orphan(&mut self, now: Moment) -> Option<Act> {
        self.orphaned = true;
        let (_, grace) = self.group?;
        self.stopper.stop_by(now.plus(grace))
    }

    /// Nothing is left to watch.
    fn is_over(&self) -> bool {
        let gone = |(group, _): (Group, Duration)| !group.exists();
        self.done || self.stopper.has_killed() || (self.orphaned && self.group.is_none_or(gone))
    }

    fn wake(&self, now: Moment) -> Option<Moment> {
        let look = self.orphaned.then(|| now.plus(LOOK_EVERY));
        self.stopper.wake().into_iter().chain(look).min()
    }
}

fn later(limits: Limits) -> Limits {
    let lag = (limits.term_at.until(limits.kill_at) / 4).min(LAG_MAX);
    Limits { term_at: limits.term_at.plus(lag), ..limits }
}

/// The whole life of the process.
pub(crate) fn run() -> Result<(), Failure> {
    let failed = |doing: &str, error: Errno| Failure::io(doing, &error.into());
    SigSet::all().thread_block().map_err(|error| Failure::io("blocking signals", &error.into()))?;
    // Fails only for the leader of a group, which nobody but the terminal's user could make it.
    let _ = setsid();
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)
        .map_err(|error| failed("making a timer", error))?;
    say(message::READY);
    let mut watch = Watch::default();
    let mut pipe = Pipe::default();
    let mut why = None;
    while !watch.is_over() {
        wait(&timer, watch.wake(Moment::now()), pipe.ended)
            .map_err(|error| failed("waiting", error))?;
        while let Some(line) = pipe.line().map_err(|error| failed("reading", error))? {
            if let Some(word) = Message::parse(&line).and_then(|message| watch.hear(message)) {
                say(word);
            }
        }
        if pipe.ended && !watch.orphaned && !watch.done {
            let act = watch.orphan(Moment::now());
            why = why.or(carry_out(&watch, act).then_some("its wrapper is dead"));
        }
        while let Some(act) = watch.stopper.due(Moment::now()) {
            let acted = carry_out(&watch, Some(act));
            why = why.or(acted.then_some("its lease ended and its wrapper did not act"));
        }
    }
    // Not before everything is done: whoever reads standard error may be slow, or gone.
    if let Some(why) = why {
        note(&format!("the watchdog has stopped the command: {why}"));
    }
    Ok(())
}

/// `true`: the group was told to stop, which its wrapper has not done.
fn carry_out(watch: &Watch, act: Option<Act>) -> bool {
    let (Some(act), Some((group, _))) = (act, watch.group) else { return false };
    match act {
        Act::Terminate => {
            group.terminate();
            say(message::STOPPED);
            true
        }
        Act::Kill => {
            group.kill();
            false
        }
    }
}

/// To the wrapper; if that is dead there is nobody to tell.
fn say(word: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{word}").and_then(|()| out.flush());
}

/// Until the wrapper says something (unless its pipe has ended, which would be readable for ever), or the timer is due.
fn wait(timer: &OwnedFd, wake: Option<Moment>, ended: bool) -> Result<(), Errno> {
    let at = wake.map_or(Duration::ZERO, |moment| moment.since_boot().max(Duration::from_nanos(1)));
    let at = Timespec::try_from(at).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
    let never_again = Timespec { tv_sec: 0, tv_nsec: 0 };
    let setting = Itimerspec { it_interval: never_again, it_value: at };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting)?;
    let mut sources =
        [PollFd::new(timer, PollFlags::IN), PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    let awaited = if ended { &mut sources[..1] } else { &mut sources[..] };
    match poll(awaited, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Standard input, line by line, without ever blocking.
#[derive(Debug, Default)]
struct Pipe {
    bytes: Vec<u8>,
    ended: bool,
}

impl Pipe {
    fn line(&mut self) -> Result<Option<String>, Errno> {
        loop {
            if let Some(length) = self.bytes.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=length).collect();
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            if self.ended || !readable()? {
                return Ok(None);
            }
            let mut more = [0; 1_024];
            match rustix::io::read(stdin(), &mut more) {
                Ok(0) => self.ended = true,
                Ok(count) => self.bytes.extend_from_slice(&more[..count]),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn readable() -> Result<bool, Errno> {
    let mut source = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut source, Some(&now)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_boot(Duration::from_millis(ms))
    }

    fn watching() -> Watch {
        let mut watch = Watch::default();
        // A number that no process of a test machine has: the tests below send no signals.
        let group = Message::Group { id: i32::MAX, grace: Duration::from_millis(100) };
        assert_eq!(watch.hear(group), Some(message::WATCHING), "the wrapper waits for this");
        let limits = Limits { term_at: at(1_000), kill_at: at(2_000) };
        assert_eq!(watch.hear(Message::Limits(limits)), None);
        watch
    }

    #[test]
    fn the_wrapper_has_the_first_chance() {
        let mut watch = watching();
        assert_eq!(watch.stopper.due(at(1_249)), None);
        assert_eq!(watch.stopper.due(at(1_250)), Some(Act::Terminate));
        assert_eq!(watch.stopper.due(at(1_999)), None);
        assert_eq!(watch.stopper.due(at(2_000)), Some(Act::Kill), "KILL has no lag");
        assert!(watch.is_over());
    }

    #[test]
    fn a_wrapper_that_stops_the_command_itself_is_only_backed_up() {
        let mut watch = watching();
        watch.hear(Message::Stopping { kill_at: at(1_500) });
        assert_eq!(watch.stopper.due(at(1_499)), None);
        assert_eq!(watch.stopper.due(at(1_500)), Some(Act::Kill));
    }

    #[test]
    fn a_dead_wrapper_ends_the_command_at_once() {
        let mut watch = watching();
        assert_eq!(watch.orphan(at(500)), Some(Act::Terminate));
        assert_eq!(watch.stopper.wake(), Some(at(600)));
        let mut late = watching();
        late.orphan(at(1_950));
        assert_eq!(late.stopper.wake(), Some(at(2_000)), "not past the lease");
    }

    #[test]
    fn a_wrapper_that_died_before_it_started_anything_leaves_nothing_to_do() {
        let mut watch = Watch::default();
        assert_eq!(watch.orphan(at(1)), None);
        assert!(watch.is_over());
    }

    #[test]
    fn it_says_that_it_is_there_and_nothing_else_changes() {
        let mut watch = watching();
        assert_eq!(watch.hear(Message::Ping), Some(message::ALIVE));
        assert_eq!(watch.stopper.wake(), Some(at(1_250)));
    }

    #[test]
    fn done_is_the_end() {
        let mut watch = watching();
        assert!(!watch.is_over());
        watch.hear(Message::Done);
        assert!(watch.is_over());
    }
}
