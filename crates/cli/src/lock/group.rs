//! The process group of the command.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::{fs, process::Child};

/// A process group, named by its leader. Valid as long as the leader is not reaped: until then the kernel gives its
/// number to nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group(Pid);

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub zombie: bool,
}

impl Group {
    /// The group that `leader` was started to lead.
    pub(crate) fn of(leader: &Child) -> Option<Self> {
        i32::try_from(leader.id()).ok().and_then(Self::from_id)
    }

    /// The group with this number; `None` for those that mean something else to kill(2).
    pub(crate) fn from_id(id: i32) -> Option<Self> {
        (id > 1).then(|| Pid::from_raw(id)).flatten().map(Self)
    }

    pub(crate) fn id(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    pub(crate) fn leader(self) -> Pid {
        self.0
    }

    /// A group that is gone already is no error: that is what was wanted.
    pub(crate) fn signal(self, signal: Signal) {
        let _ = kill_process_group(self.0, signal);
    }

    /// TERM, and CONT so that a stopped process gets it too.
    pub(crate) fn terminate(self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    pub(crate) fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Some process has this group, if only a dead one that nobody has reaped.
    pub(crate) fn exists(self) -> bool {
        test_kill_process_group(self.0) != Err(rustix::io::Errno::SRCH)
    }

    /// Members that are alive; the leader's body is not counted. `None`: the process table cannot be read.
    pub(crate) fn alive(self) -> Option<usize> {
        let processes = processes()?;
        Some(processes.iter().filter(|p| p.group == self.id() && !p.zombie).count())
    }
}

/// The process table. `None` where there is no `/proc`.
pub(crate) fn processes() -> Option<Vec<Process>> {
    let entries = fs::read_dir("/proc").ok()?;
    let stat = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        parse_stat(pid, &fs::read_to_string(entry.path().join("stat")).ok()?)
    };
    Some(entries.flatten().filter_map(stat).collect())
}

/// `pid (name) state parent group …`; the name can hold anything, so the last parenthesis counts.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let zombie = matches!(words.next()?, "Z" | "X");
    let parent = words.next()?.parse().ok()?;
    let group = words.next()?.parse().ok()?;
    Some(Process { pid, parent, group, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let process = parse_stat(7, "7 (a) Z 1 (b)) S 3 5 5 0 -1 4194304").unwrap();
        assert_eq!(process, Process { pid: 7, parent: 3, group: 5, zombie: false });
        assert!(parse_stat(7, "7 (x) Z 1 7 7").unwrap().zombie);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = i32::try_from(std::process::id()).unwrap();
        let processes = processes().unwrap();
        let me = processes.iter().find(|process| process.pid == own).unwrap();
        assert!(!me.zombie && me.group > 0);
    }

    #[test]
    fn numbers_that_mean_everybody_are_no_groups() {
        assert_eq!([-1, 0, 1].map(Group::from_id), [None; 3]);
    }
}
