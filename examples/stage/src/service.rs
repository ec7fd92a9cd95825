//! `sereno serve` as a process, with a data folder of its own.

use crate::{Process, program};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The service. Killed when dropped.
#[derive(Debug)]
pub struct Service {
    process: Process,
    url: String,
    data: TempDir,
}

impl Service {
    /// Starts it, and waits until it serves.
    pub fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let (process, url) = Process::serving(serve(&data, "127.0.0.1:0"));
        Self { process, url, data }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again, at the same address and with what it has remembered.
    pub fn start_again(&mut self) {
        let at = self.url.trim_start_matches("http://");
        (self.process, self.url) = Process::serving(serve(&self.data, at));
    }

    /// A command of an operator.
    ///
    /// # Panics
    /// It fails.
    pub fn tell(&self, words: &[&str]) {
        let output = self.try_to_tell(words);
        assert!(output.status.success(), "sereno {}: {output:?}", words.join(" "));
    }

    /// The same, which may be refused.
    pub fn try_to_tell(&self, words: &[&str]) -> Output {
        program("sereno").args(words).env("SERENO_SERVER", &self.url).output().unwrap()
    }
}

fn serve(data: &TempDir, at: &str) -> Command {
    let mut command = program("sereno");
    command.args(["serve", "--http", at, "--log-level", "error", "--data"]).arg(data.path());
    command
}
