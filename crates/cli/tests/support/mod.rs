//! The real binary: a service as a process, and commands against it.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

pub mod load;
pub mod upstream;
pub mod wait;
pub mod zones;

use serde_json::Value;
use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
};

pub const SERENO: &str = env!("CARGO_BIN_EXE_sereno");

/// A running `sereno serve`; killed when dropped.
pub struct Service {
    pub child: Child,
    pub url: String,
}

impl Service {
    pub fn start(data: &Path) -> Self {
        Self::of(&mut Self::command(data))
    }

    /// What starts one.
    pub fn command(data: &Path) -> Command {
        let mut command = Command::new(SERENO);
        command.args(["serve", "--http", "127.0.0.1:0", "--log-level", "error", "--data"]);
        command.arg(data);
        command
    }

    /// One that is started so.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let at = line.find("http://").unwrap_or_else(|| panic!("no address in {line:?}"));
        Self { child, url: line[at..].trim().to_string() }
    }

    /// Gracefully, as an operator does.
    pub fn stop(mut self) {
        signal("-TERM", self.child.id());
        assert!(self.child.wait().unwrap().success());
    }

    /// A command against this service.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        Command::new(SERENO).env("SERENO_SERVER", &self.url).args(arguments).output().unwrap()
    }

    /// The same, which has to work; what it writes.
    pub fn text<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        stdout(&self.run(arguments))
    }

    /// The same as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.text(&[arguments, &["--output", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the binary without a service.
pub fn sereno<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    Command::new(SERENO).env_remove("SERENO_SERVER").args(arguments).output().unwrap()
}

/// Of a command that has to have worked.
pub fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn signal(signal: &str, pid: u32) {
    let done = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success());
}
