//! Log lines, to standard error.

use crate::config::{Config, ConfigError, LogFormat};
use tracing_subscriber::{EnvFilter, fmt};

/// Starts writing log lines. A second call in one process changes nothing.
///
/// # Errors
/// A `log_level` that makes no sense.
pub(crate) fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = filter(&config.log_level).map_err(|rule| ConfigError::Invalid {
        option: "--log-level",
        rule: format!("{:?}: {rule}", config.log_level),
    })?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _already_started = match config.log_format {
        LogFormat::Text => lines.with_ansi(false).try_init().is_err(),
        LogFormat::Json => lines.json().flatten_event(true).try_init().is_err(),
    };
    Ok(())
}

/// A level, or directives like `info,sereno_node=debug`. A lone word that is no level would be taken for a module, and
/// a typing error would turn everything off.
fn filter(text: &str) -> Result<EnvFilter, String> {
    let lone_word = !text.contains(['=', ',']);
    if lone_word && text.parse::<tracing::level_filters::LevelFilter>().is_err() {
        return Err("must be off, error, warn, info, debug or trace".into());
    }
    EnvFilter::try_new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_does_not_turn_logging_off() {
        for good in ["off", "error", "info", "DEBUG", "info,sereno_node=debug"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["inof", "nonsense", "sereno_node"] {
            assert!(filter(bad).is_err(), "{bad:?}");
        }
    }
}
