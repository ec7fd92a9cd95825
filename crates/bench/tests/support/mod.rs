//! Runs a command of `sereno-bench` and reads its report.
//!
//! `sereno` lies beside this crate's own program where the workspace is built or tested as a whole; where it does not, it is
//! built first.

#![allow(unreachable_pub)] // As a module of two test programs.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

const BENCH: &str = env!("CARGO_BIN_EXE_sereno-bench");

fn sereno() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let profile = Path::new(BENCH).parent().unwrap();
        let path = profile.join("sereno");
        if !path.is_file() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .args(["build", "-p", "sereno-cli", "--target-dir"])
                .arg(profile.parent().unwrap());
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().unwrap().success(), "sereno cannot be built");
        }
        path
    })
}

/// The report of a run that succeeded.
pub fn run(words: &str) -> Value {
    let mut command = Command::new(BENCH);
    command.args(words.split_whitespace()).args(["--output", "json", "--sereno"]).arg(sereno());
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A number of a report.
pub fn count(figures: &Value, name: &str) -> u64 {
    figures[name].as_u64().unwrap_or_else(|| panic!("{name} of {figures}"))
}
