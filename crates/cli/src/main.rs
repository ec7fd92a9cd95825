//! `sereno`: the one binary of Sereno. Each command has a module; what goes wrong is a [`failure::Failure`].

// The docs of arguments are their help: `[default: …]` is a value there, not a link.
#![allow(rustdoc::broken_intra_doc_links)]

mod args;
mod audit;
mod cluster;
mod completions;
mod connect;
mod demo;
mod elect;
mod elections;
mod exit;
mod failure;
mod guard;
mod hold;
mod holds;
mod job;
mod jobs;
mod lock;
mod locks;
mod namespace;
mod offline;
mod output;
mod own;
mod pause;
mod quota;
mod raise_level;
mod serve;
mod status;
mod token_floor;
mod values;
mod wording;

use args::{Cli, Command, Helper};
use clap::{CommandFactory, FromArgMatches};
use failure::Failure;
use output::Format;
use std::{pin::Pin, process::ExitCode};

fn main() -> ExitCode {
    let (format, result) = match Helper::asked_for() {
        Some(helper) => (Format::Text, help(helper)),
        None => {
            let matches = Cli::command().get_matches();
            let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
            (Format::told(&matches), run(cli))
        }
    };
    match result {
        Ok(code) => exit::with(code),
        Err(failure) => {
            failure.print(format);
            exit::with(failure.exit)
        }
    }
}

fn run(Cli { command }: Cli) -> Result<u8, Failure> {
    match command {
        Command::Serve(args) => serve::run(*args),
        Command::Lock(args) => on_runtime(lock::run(*args)),
        Command::Locks(args) => on_runtime(locks::run(args)),
        Command::Job(args) => on_runtime(job::run(*args)),
        Command::Jobs(args) => on_runtime(jobs::run(args)),
        Command::Elect(args) => on_runtime(elect::run(*args)),
        Command::Elections(args) => on_runtime(elections::run(args)),
        Command::Hold(args) => on_runtime(hold::run(args)),
        Command::Holds(args) => on_runtime(holds::run(args)),
        Command::Quota(args) => on_runtime(quota::run(args)),
        Command::Namespace(args) => on_runtime(namespace::run(args)),
        Command::Guard(args) => on_runtime(guard::run(args)),
        Command::GuardProxy(args) => guard::run_proxy(*args),
        Command::Audit(args) => on_runtime(audit::run(args)),
        Command::Status(args) => on_runtime(status::run(args)),
        Command::Backup(args) => offline::backup(&args),
        Command::Restore(args) => offline::restore(&args),
        Command::TokenFloor(args) => on_runtime(token_floor::run(args)),
        Command::RaiseLevel(args) => on_runtime(raise_level::run(args)),
        Command::Doctor(args) => offline::doctor(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Demo => demo::run(),
        Command::Completions(args) => completions::run(&args),
    }
}

fn help(helper: Helper) -> Result<u8, Failure> {
    match helper {
        Helper::Watchdog => lock::run_watchdog().map(|()| 0),
        Helper::Launch { pipe, command } => Err(lock::wait_and_become(pipe, &command)),
        Helper::DemoWorker { service, worker } => on_runtime(demo::run_worker(&service, worker)),
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<u8, Failure>> + 'a>>;

/// One thread is enough for a command: the client brings its own.
fn on_runtime<'a>(command: impl Future<Output = Result<u8, Failure>> + 'a) -> Result<u8, Failure> {
    // In a box, or else each command has a runtime's code of its own.
    let command: Running<'a> = Box::pin(command);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("starting the runtime", &error))?
        .block_on(command)
}
