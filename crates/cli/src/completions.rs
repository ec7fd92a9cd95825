//! `sereno completions`: words for the shell.

use crate::{args::Cli, failure::Failure, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// For which shell. The script goes to standard output.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sereno", &mut script);
    output::write(String::from_utf8_lossy(&script).trim_end())?;
    Ok(0)
}
