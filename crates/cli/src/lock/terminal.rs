//! Who may use the terminal. A command in a process group of its own may read from it only if that group is the
//! terminal's foreground group.

use super::group::Group;
use nix::sys::signal::{SigSet, Signal};
use rustix::{
    process::{Pid, getpgrp},
    stdio::{stdin, stdout},
    termios::{isatty, tcgetpgrp, tcsetpgrp},
};

/// The terminal, lent to the command; given back when dropped.
pub(crate) struct Terminal {
    owner: Pid,
}

impl Terminal {
    /// Lends the terminal to `group` if it is ours to lend and the command would use it: standard input and output
    /// are the terminal, and we are in its foreground. In a pipeline it stays with the others.
    pub(crate) fn lend(group: Group) -> Option<Self> {
        if !isatty(stdin()) || !isatty(stdout()) {
            return None;
        }
        let owner = getpgrp();
        if tcgetpgrp(stdin()).ok()? != owner {
            return None;
        }
        // From here on we are in the background, and must not be stopped for taking it back or for a message.
        SigSet::from(Signal::SIGTTOU).thread_block().ok()?;
        tcsetpgrp(stdin(), group.leader()).ok()?;
        Some(Self { owner })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = tcsetpgrp(stdin(), self.owner);
    }
}
