//! Starts the command in a process group of its own, in two steps: the process exists first and is handed to the
//! watchdog, and becomes the command only then. If the wrapper dies in between, the command never runs.

use crate::{exit, failure::Failure, own};
use rustix::io::{FdFlags, fcntl_setfd};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, PipeWriter, Read, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
};

/// A process that waits to become the command.
pub(crate) struct Launched {
    pub child: Child,
    go: PipeWriter,
}

impl Launched {
    /// Starts the waiting process. Standard output and error are those of this process.
    pub(crate) fn start(
        command: &[OsString],
        variables: &[(&str, String)],
        stdin: Stdio,
    ) -> io::Result<Self> {
        let (waits, go) = io::pipe()?;
        // Only this end is passed on, and the waiting process closes it before it becomes the command.
        fcntl_setfd(&waits, FdFlags::empty())?;
        let child = Command::new(own::PROGRAM)
            .arg0(own::NAME)
            .arg(own::LAUNCH)
            .arg(waits.as_raw_fd().to_string())
            .arg("--")
            .args(command)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(stdin)
            .spawn()?;
        Ok(Self { child, go })
    }

    /// It is watched now: it may become the command.
    pub(crate) fn go(mut self) -> io::Result<Child> {
        self.go.write_all(b"g")?;
        Ok(self.child)
    }
}

/// The waiting process. Returns only if the command cannot be run, or shall not be.
pub(crate) fn wait_and_become(pipe: i32, command: &[OsString]) -> Failure {
    match wait_for_go(pipe) {
        Ok(true) => {}
        Ok(false) => return Failure::new("the wrapper is gone").exit(exit::LOCK_FAILED),
        Err(error) => return Failure::io("waiting to start", &error).exit(exit::LOCK_FAILED),
    }
    let (program, arguments) = match command {
        [program, arguments @ ..] => (program.as_os_str(), arguments),
        [] => (OsStr::new(""), &[][..]),
    };
    let error = Command::new(program).args(arguments).exec();
    Failure::io(&format!("cannot run {}", program.display()), &error)
        .exit(exit::of_exec_error(&error))
}

/// `false`: the pipe has ended without the word.
fn wait_for_go(pipe: i32) -> io::Result<bool> {
    let mut go = File::open(format!("/proc/self/fd/{pipe}"))?;
    nix::unistd::close(pipe)?;
    let mut word = [0];
    match go.read_exact(&mut word) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
