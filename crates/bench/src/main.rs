//! `sereno-bench`: see `docs/bench.md`.

use clap::Parser;
use sereno_bench::{cli::Cli, error::Error};
use std::{
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
};

/// A task of the load that panics must not leave a report that looks whole.
static PANICKED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let cli = Cli::parse();
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::SeqCst);
        print(panic);
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime
        .map_err(Error::io("start a runtime"))
        .and_then(|runtime| runtime.block_on(sereno_bench::cli::run(&cli)));
    match result {
        _ if PANICKED.load(Ordering::SeqCst) => ExitCode::FAILURE,
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("sereno-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
