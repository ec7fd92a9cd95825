//! Signals that reach the wrapper.

use rustix::process::Signal;
use std::{future::poll_fn, io, task::Poll};
use tokio::signal::unix::{self, SignalKind};

/// The signals that are passed on to the command, and the one that tells of its end.
pub(crate) struct Signals {
    passed_on: Vec<(Signal, unix::Signal)>,
    child: unix::Signal,
    told_to_end: Option<Signal>,
}

const PASSED_ON: [(Signal, SignalKind); 6] = [
    (Signal::TERM, SignalKind::terminate()),
    (Signal::INT, SignalKind::interrupt()),
    (Signal::HUP, SignalKind::hangup()),
    (Signal::QUIT, SignalKind::quit()),
    (Signal::USR1, SignalKind::user_defined1()),
    (Signal::USR2, SignalKind::user_defined2()),
];

impl Signals {
    /// From here on they arrive here. One that was ignored when this process started stays ignored, here and in
    /// the command (that is how `nohup` works).
    pub(crate) fn listen() -> io::Result<Self> {
        let ignored = ignored_mask().unwrap_or(0);
        let is_ignored = |signal: Signal| ignored & (1 << (signal.as_raw() - 1)) != 0;
        let mut passed_on = Vec::new();
        for (signal, kind) in PASSED_ON {
            if !is_ignored(signal) {
                passed_on.push((signal, unix::signal(kind)?));
            }
        }
        Ok(Self { passed_on, child: unix::signal(SignalKind::child())?, told_to_end: None })
    }

    /// The next signal for the command.
    pub(crate) async fn next(&mut self) -> Signal {
        let signal = next_of(&mut self.passed_on).await;
        self.remember(signal)
    }

    /// The next signal for the command, or `None` for news of a child.
    pub(crate) async fn next_or_child(&mut self) -> Option<Signal> {
        let Self { passed_on, child, .. } = self;
        let signal = tokio::select! {
            signal = next_of(passed_on) => signal,
            _ = child.recv() => return None,
        };
        Some(self.remember(signal))
    }

    /// The first signal so far that asks a process to end.
    pub(crate) fn told_to_end(&self) -> Option<Signal> {
        self.told_to_end
    }

    fn remember(&mut self, signal: Signal) -> Signal {
        if [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT].contains(&signal) {
            self.told_to_end.get_or_insert(signal);
        }
        signal
    }
}

async fn next_of(signals: &mut [(Signal, unix::Signal)]) -> Signal {
    poll_fn(|context| {
        for (signal, arrivals) in signals.iter_mut() {
            if let Poll::Ready(Some(())) = arrivals.poll_recv(context) {
                return Poll::Ready(*signal);
            }
        }
        Poll::Pending
    })
    .await
}

/// The kernel's own account of what this process ignores: bit n-1 for signal n.
fn ignored_mask() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_is_ignored() {
        let pipe = 1 << (Signal::PIPE.as_raw() - 1);
        assert_ne!(ignored_mask().unwrap() & pipe, 0, "Rust programs ignore SIGPIPE");
    }
}
