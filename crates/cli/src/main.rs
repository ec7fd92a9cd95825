//! `sereno`: the one binary of Sereno.

mod args;
mod connect;
mod exit;
mod failure;
mod lock;
mod own;
mod values;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => exit::with(code),
        Err(failure) => {
            failure.print();
            exit::with(failure.exit)
        }
    }
}

fn run(cli: Cli) -> Result<u8, Failure> {
    match cli.command {
        Command::Watchdog => lock::run_watchdog().map(|()| 0),
        Command::Launch { pipe, command } => Err(lock::wait_and_become(pipe, &command)),
        Command::Lock(args) => on_runtime(lock::run(&cli.service, *args)),
    }
}

/// One thread is enough for a command: the client brings its own.
fn on_runtime(command: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("starting the runtime", &error))?
        .block_on(command)
}
