//! `sereno-bench`: see `docs/bench.md`.

use clap::Parser;
use sereno_bench::{cli::Cli, error::Error};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime
        .map_err(Error::io("start a runtime"))
        .and_then(|runtime| runtime.block_on(sereno_bench::cli::run(&cli)));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("sereno-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
