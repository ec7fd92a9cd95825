//! Worker A of the demo.

use super::{
    RESOURCE, TTL,
    register::{Register, Verdict},
};
use crate::{connect::Service, failure::Failure, output::write};
use clap::Args;
use std::path::PathBuf;

/// Where the register is.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerArgs {
    register: PathBuf,
}

pub(crate) async fn run(service: &Service, args: WorkerArgs) -> Result<u8, Failure> {
    let client = service.builder().owner("A").build()?;
    let lock = client.lock(RESOURCE).ttl(TTL).acquire().await?;
    let lost = |error: &dyn std::error::Error| Failure::new(format!("A lost the lock: {error}"));
    let token = lock.token().map_err(|loss| lost(&loss))?;
    write(&format!("token {token}"))?;
    lock.check().map_err(|not_held| lost(&not_held))?;
    write("about to write")?;
    // Here it is paused. Nothing that it has checked is true any more when it goes on.
    std::io::stdin()
        .read_line(&mut String::new())
        .map_err(|error| Failure::io("reading", &error))?;
    let verdict = Register::at(&args.register).write(token, "written by A");
    let verdict = verdict.map_err(|error| Failure::io("writing the register", &error))?;
    write(&match verdict {
        Verdict::Taken => "outcome taken".to_string(),
        Verdict::Refused { highest } => format!("outcome refused, {highest} was there before"),
    })?;
    write(&match lock.check() {
        Ok(()) => "state held".to_string(),
        Err(not_held) => format!("state {not_held}"),
    })?;
    Ok(0)
}
