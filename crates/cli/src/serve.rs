//! `sereno serve`

use crate::{exit, failure::Failure};
use nix::sys::signal::{SigSet, Signal};
use sereno_server::ServerError;

pub(crate) fn run(args: sereno_server::Args) -> Result<u8, Failure> {
    // Whoever starts it may have blocked them for itself.
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_unblock().map_err(|error| Failure::io("unblocking signals", &error.into()))?;
    let config = args.into_config().map_err(|error| Failure::usage(error.to_string()))?;
    let data = config.data.clone();
    sereno_server::run(config).map(|()| 0).map_err(|error| {
        let failure = Failure::new(error.to_string());
        match error {
            ServerError::Config(_) => failure.exit(exit::USAGE),
            ServerError::Log(sereno_log::LogError::Damaged(_)) => failure.hint(format!(
                "Nothing was changed. Look closer with `sereno doctor --data {}`; restore a backup into another folder.",
                data.display()
            )),
            _ => failure,
        }
    })
}
