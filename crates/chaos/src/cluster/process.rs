//! One process of a run.

use rustix::process::{Pid, Signal, kill_process};
use sereno_etcd_dev::process;
use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A started process. It ends with this value, and with the harness, however that ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts it; what it prints is appended to `log`. Its standard input stays open for [`Self::tell`].
    ///
    /// # Errors
    /// In words: the program is missing, or the log cannot be written.
    pub fn start(mut command: Command, log: &Path) -> Result<Self, String> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(file).stderr(errors);
        let child = process::spawn(command).map_err(|error| error.to_string())?;
        Ok(Self { child })
    }

    /// A line to its standard input.
    ///
    /// # Errors
    /// It has gone.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let stdin = self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{line}")?;
        stdin.flush()
    }

    /// Ends its standard input.
    pub fn tell_no_more(&mut self) {
        self.child.stdin = None;
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Waits for its end; `None`: it goes on.
    pub fn wait(&mut self, patience: Duration) -> Option<String> {
        let begun = Instant::now();
        loop {
            let ended = self.ended();
            if ended.is_some() || begun.elapsed() > patience {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// SIGSTOP.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // It may have ended by itself: whoever needs it will notice.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Process {
    /// SIGKILL.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a tool to its end.
///
/// # Errors
/// In words: it is missing, or says no.
pub fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    run_with(program, arguments, "")
}

/// The same with something to read.
///
/// # Errors
/// As [`run`].
pub fn run_with(program: &str, arguments: &[&str], input: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}", arguments.join(" "), errors.trim()))
}
