//! What the wrapper tells its watchdog, and what it hears back: one line of words each.

use super::timetable::Limits;
use sereno_client::Moment;
use std::time::Duration;

/// From the wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The process group to watch; how long it has from TERM to KILL when the wrapper is dead.
    Group { id: i32, grace: Duration },
    /// The lease has these limits from now on.
    Limits(Limits),
    /// The wrapper has sent TERM; KILL is due at this moment.
    Stopping { kill_at: Moment },
    /// The group is gone; touch nothing any more.
    Done,
    /// Say that you are there.
    Ping,
}

/// From the watchdog.
pub(crate) const READY: &str = "ready";
/// From the watchdog: the group is watched.
pub(crate) const WATCHING: &str = "watching";
/// From the watchdog: it is there.
pub(crate) const ALIVE: &str = "alive";
/// From the watchdog: it has sent TERM.
pub(crate) const STOPPED: &str = "stopped";

impl Message {
    /// The line, with its end.
    pub(crate) fn line(self) -> String {
        match self {
            Self::Group { id, grace } => format!("group {id} {}\n", nanos(grace)),
            Self::Limits(limits) => {
                let (term, kill) = (limits.term_at.since_boot(), limits.kill_at.since_boot());
                format!("limits {} {}\n", nanos(term), nanos(kill))
            }
            Self::Stopping { kill_at } => format!("stopping {}\n", nanos(kill_at.since_boot())),
            Self::Done => "done\n".into(),
            Self::Ping => "ping\n".into(),
        }
    }

    /// Reads what [`Self::line`] wrote.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next()?;
        let numbers: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
        match (kind, numbers[..].as_ref()) {
            ("group", &[id, grace]) => Some(Self::Group {
                id: i32::try_from(id).ok().filter(|&id| id > 1)?,
                grace: Duration::from_nanos(grace),
            }),
            ("limits", &[term, kill]) => {
                Some(Self::Limits(Limits { term_at: moment(term), kill_at: moment(kill) }))
            }
            ("stopping", &[kill]) => Some(Self::Stopping { kill_at: moment(kill) }),
            ("done", []) => Some(Self::Done),
            ("ping", []) => Some(Self::Ping),
            _ => None,
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn moment(nanos: u64) -> Moment {
    Moment::from_boot(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back() {
        let limits = Limits { term_at: moment(1_000_000_007), kill_at: moment(2_000_000_009) };
        for message in [
            Message::Group { id: 4_711, grace: Duration::from_millis(250) },
            Message::Limits(limits),
            Message::Stopping { kill_at: moment(5) },
            Message::Done,
            Message::Ping,
        ] {
            assert_eq!(Message::parse(&message.line()), Some(message));
        }
    }

    #[test]
    fn everybody_and_oneself_are_no_groups() {
        for wrong in
            ["group 0 5", "group 1 5", "group -1 5", "group 9", "limits 1", "", "stop", "done 1"]
        {
            assert_eq!(Message::parse(wrong), None, "{wrong}");
        }
    }
}
