//! A child process that never outlives its run.

use crate::error::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

/// Longest a child may take from TERM to its end before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const LAST_LINES: usize = 15;

/// A running child. Dropped, it is killed.
#[derive(Debug)]
pub struct Child {
    program: &'static str,
    process: process::Child,
    errors: PathBuf,
    first_line: mpsc::Receiver<String>,
}

impl Child {
    /// Starts `command`; what it writes to standard error goes to a file in `folder`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        program: &'static str,
        mut command: Command,
        folder: &Path,
    ) -> Result<Self, Error> {
        let errors = folder.join(format!("{program}.stderr"));
        let file = File::create(&errors).map_err(Error::path("create", &errors))?;
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(Error::io(format!("start {}", command.get_program().display())))?;
        let (sender, first_line) = mpsc::channel();
        if let Some(stdout) = process.stdout.take() {
            // Reads on after the first line, for a full pipe would stop the child.
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let _ = sender.send(line);
                }
            });
        }
        Ok(Self { program, process, errors, first_line })
    }

    /// The next line on its standard output.
    ///
    /// # Errors
    /// It ended, or wrote nothing in time; with the end of what it wrote to standard error.
    pub fn line(&mut self, timeout: Duration) -> Result<String, Error> {
        self.first_line.recv_timeout(timeout).map_err(|_| self.failed("wrote nothing"))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Still running?
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// What to say when it does not do as it should: how it ended, and the end of its standard error.
    pub fn failed(&mut self, what: &str) -> Error {
        std::thread::sleep(Duration::from_millis(50));
        let ended = match self.process.try_wait() {
            Ok(Some(status)) => format!("ended with {status}"),
            _ => what.to_owned(),
        };
        let text = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        Error::Child { program: self.program, why: format!("{ended}\n{last}") }
    }

    /// Stops it where it stands: it keeps its connections and answers nothing.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a paused one go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// To one that has ended by itself: nothing.
    fn signal(&self, signal: Signal) {
        if let Some(id) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(id, signal);
        }
    }

    /// Asks it to end (TERM) and waits for that; kills it if it takes too long.
    ///
    /// # Errors
    /// It took too long, or ended with an error.
    pub fn stop(mut self) -> Result<(), Error> {
        self.signal(Signal::TERM);
        let until = Instant::now() + STOP_TIMEOUT;
        loop {
            match self
                .process
                .try_wait()
                .map_err(Error::io(format!("wait for {}", self.program)))?
            {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return Err(self.failed("ended")),
                None if Instant::now() > until => {
                    return Err(self.failed(&format!("did not stop in {STOP_TIMEOUT:?}")));
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, folder: &Path) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Child::start("sh", command, folder).unwrap()
    }

    #[test]
    fn the_first_line_is_awaited_and_the_end_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = shell("echo ready; exec sleep 60", folder.path());
        assert_eq!(child.line(Duration::from_secs(10)).unwrap(), "ready");
        assert!(child.is_running());
        let error = child.stop().unwrap_err().to_string();
        assert!(error.contains("signal: 15"), "{error}");
    }

    #[test]
    fn a_child_that_ends_early_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = shell("echo no disk >&2; exit 3", folder.path());
        let error = child.line(Duration::from_secs(10)).unwrap_err().to_string();
        assert!(error.contains("no disk") && error.contains('3'), "{error}");
    }
}
