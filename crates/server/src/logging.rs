//! Log lines, to standard error.

use crate::config::{Config, ConfigError, LogFormat};
use tracing_subscriber::{EnvFilter, fmt};

/// Starts writing log lines. A second call in one process changes nothing.
///
/// # Errors
/// A `log_level` that makes no sense.
pub(crate) fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&config.log_level).map_err(|error| ConfigError::Invalid {
        option: "--log-level",
        rule: format!("{:?}: {error}", config.log_level),
    })?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _already_started = match config.log_format {
        LogFormat::Text => lines.with_ansi(false).try_init().is_err(),
        LogFormat::Json => lines.json().flatten_event(true).try_init().is_err(),
    };
    Ok(())
}
