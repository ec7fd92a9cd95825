//! CPU time and memory of a process, from `/proc`.

use crate::error::Error;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};

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
        Ok(parse_stat(&text).unwrap_or_default())
    }

    /// Of several processes together.
    ///
    /// # Errors
    /// One is not there.
    pub fn of_all(processes: &[u32]) -> Result<Self, Error> {
        processes.iter().try_fold(Self::default(), |sum, process| {
            let cpu = Self::of(*process)?;
            Ok(Self { user: sum.user + cpu.user, system: sum.system + cpu.system })
        })
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

/// Fields 14 and 15; the second one, the program's name in parentheses, may contain blanks.
fn parse_stat(text: &str) -> Option<Cpu> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = rustix::param::clock_ticks_per_second();
    let mut next = || {
        let count: u64 = fields.next()?.parse().ok()?;
        Some(Duration::from_micros(count * 1_000_000 / ticks.max(1)))
    };
    Some(Cpu { user: next()?, system: next()? })
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
        let text = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        let cpu = parse_stat(text).unwrap();
        assert_eq!(cpu.user, cpu.system * 5);
        let later = Cpu { user: cpu.user * 2, system: cpu.system };
        assert_eq!(later.since(cpu), Cpu { user: cpu.user, system: Duration::ZERO });
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
