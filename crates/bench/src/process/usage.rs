//! CPU time and memory of a process, from `/proc`.

use crate::error::Error;
use serde::Serialize;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// CPU time a process has used, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl Cpu {
    /// Of a process.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32) -> Result<Self, Error> {
        let path = PathBuf::from(format!("/proc/{process}/stat"));
        let text = std::fs::read_to_string(&path).map_err(Error::path("read", &path))?;
        Ok(parse_stat(&text).unwrap_or_default().own)
    }

    /// Of several processes together.
    ///
    /// # Errors
    /// One is not there.
    pub fn of_all(processes: &[u32]) -> Result<Self, Error> {
        processes.iter().try_fold(Self::default(), |sum, process| Ok(sum.plus(Self::of(*process)?)))
    }

    /// Of several processes and of all that they have started, those that have ended included: a PostgreSQL has a process for
    /// each connection.
    ///
    /// # Errors
    /// One of the several is not there.
    pub fn of_families(processes: &[u32]) -> Result<Self, Error> {
        let stats = all_stats();
        let mut sum = Self::default();
        for process in processes {
            let Some(stat) = stats.get(process) else { return Self::of(*process) };
            sum = sum.plus(stat.own).plus(stat.ended_children);
            let children = stats.values().filter(|it| it.parent == *process);
            sum = children.fold(sum, |sum, it| sum.plus(it.own).plus(it.ended_children));
        }
        Ok(sum)
    }

    fn plus(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }

    /// Of this process.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn own() -> Result<Self, Error> {
        Self::of(std::process::id())
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// User and kernel together.
    pub fn total(self) -> Duration {
        self.user + self.system
    }
}

/// What `/proc/…/stat` says of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stat {
    parent: u32,
    own: Cpu,
    /// Of those that it has waited for.
    ended_children: Cpu,
}

/// Field 4 and fields 14 to 17; the second one, the program's name in parentheses, may contain blanks.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let mut fields = fields.skip(9);
    let ticks = rustix::param::clock_ticks_per_second();
    let mut next = || {
        let count: u64 = fields.next()?.parse().ok()?;
        Some(Duration::from_micros(count * 1_000_000 / ticks.max(1)))
    };
    let mut pair = || Some(Cpu { user: next()?, system: next()? });
    Some(Stat { parent, own: pair()?, ended_children: pair()? })
}

/// Of all processes that there are now.
fn all_stats() -> BTreeMap<u32, Stat> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stat = |process: u32| {
        // It may have ended meanwhile.
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        Some((process, parse_stat(&text)?))
    };
    processes.filter_map(stat).collect()
}

/// How long threads ran, and how long they could have but had no core: the part that belongs to the neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scheduled {
    /// Seconds; by second of a run, cores.
    pub ran: f64,
    /// Likewise, all threads together.
    pub waited: f64,
}

impl Scheduled {
    /// Of several processes together; a thread that has ended counts no more.
    pub fn of_all(processes: &[u32]) -> Self {
        let tasks = processes.iter().flat_map(|process| {
            std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten()
        });
        let texts =
            tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
        texts.filter_map(|text| parse_schedstat(&text)).fold(Self::default(), |sum, one| Self {
            ran: sum.ran + one.ran,
            waited: sum.waited + one.waited,
        })
    }

    /// By second, since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self, seconds: f64) -> Self {
        let per_second = |more: f64| (more / seconds.max(1e-9) * 100.0).round() / 100.0;
        Self {
            ran: per_second(self.ran - earlier.ran),
            waited: per_second(self.waited - earlier.waited),
        }
    }
}

/// Nanoseconds run, nanoseconds waited, and how often.
fn parse_schedstat(text: &str) -> Option<Scheduled> {
    let mut seconds = text.split_whitespace().map(|word| word.parse::<f64>().map(|ns| ns / 1e9));
    Some(Scheduled { ran: seconds.next()?.ok()?, waited: seconds.next()?.ok()? })
}

/// Resident memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Now.
    pub resident_bytes: u64,
    /// The most so far.
    pub peak_bytes: u64,
}

impl Memory {
    /// Of a process.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of(process: u32) -> Result<Self, Error> {
        let path = PathBuf::from(format!("/proc/{process}/status"));
        let text = std::fs::read_to_string(&path).map_err(Error::path("read", &path))?;
        Ok(parse_status(&text))
    }
}

fn parse_status(text: &str) -> Memory {
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0u64)
    };
    Memory { resident_bytes: kib("VmRSS:") << 10, peak_bytes: kib("VmHWM:") << 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses() {
        let text = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 10 2 20";
        let Stat { parent, own: cpu, ended_children } = parse_stat(text).unwrap();
        assert_eq!((parent, ended_children.user), (1, cpu.user / 25));
        assert_eq!(cpu.user, cpu.system * 5);
        let later = Cpu { user: cpu.user * 2, system: cpu.system };
        assert_eq!(later.since(cpu), Cpu { user: cpu.user, system: Duration::ZERO });
    }

    #[test]
    fn a_family_is_what_a_process_has_started() {
        let mut shell = std::process::Command::new("sh");
        // Its child works and ends; then it waits for us.
        shell.args([
            "-c",
            "i=0; (while [ $i -lt 200000 ]; do i=$((i + 1)); done); echo done; read line",
        ]);
        shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut said = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut said).unwrap();
        let (alone, family) = (Cpu::of(shell.id()), Cpu::of_families(&[shell.id()]));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(family.unwrap().total() > alone.unwrap().total(), "the child's time is its own");
    }

    #[test]
    fn what_a_thread_had_to_wait_is_told_by_second() {
        let earlier = parse_schedstat("1000000000 500000000 7\n").unwrap();
        assert_eq!(earlier, Scheduled { ran: 1.0, waited: 0.5 });
        let later = Scheduled { ran: 3.0, waited: 4.5 };
        assert_eq!(later.since(earlier, 4.0), Scheduled { ran: 0.5, waited: 1.0 });
        assert_eq!(parse_schedstat("1"), None);
    }

    #[test]
    fn memory_is_told_in_kib() {
        let text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_status(text), Memory { resident_bytes: 1 << 20, peak_bytes: 2 << 20 });
    }

    #[test]
    fn this_process_has_both() {
        assert!(Memory::of(std::process::id()).unwrap().resident_bytes > 0);
        Cpu::own().unwrap();
    }
}
