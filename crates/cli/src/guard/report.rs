//! Whom a guard tells of refusals.

use crate::failure::Failure;
use clap::Args;
use sereno_client::Client;
use sereno_guard::Reporter;
use std::time::Duration;

/// As the service takes it.
const NAME_BYTES_MAX: usize = 128;

/// Where reports go. Other than commands a guard does without a service.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reports {
    /// The service that is told of refusals, and that tokens are checked here: one URL, or several of the same service,
    /// separated by commas. The guard works without it too. [default: nobody is told]
    #[arg(
        long,
        env = sereno_client::SERVER_VARIABLE,
        value_name = "URL[,URL]",
        help_heading = "Service"
    )]
    server: Option<String>,
}

impl Reports {
    /// `name` is cut to what the service takes.
    pub(super) fn reporter(&self, name: &str) -> Result<Option<Reporter>, Failure> {
        let Some(server) = self.server.as_deref().filter(|server| !server.is_empty()) else {
            return Ok(None);
        };
        let client =
            Client::builder().servers(server).call_timeout(Duration::from_secs(5)).build()?;
        let reporter = Reporter::new(client, &cut(name));
        reporter.map(Some).map_err(|error| Failure::io("starting to report", &error))
    }
}

/// Waits a little for what is still to be told.
pub(super) async fn settle(reporter: Option<&Reporter>, within: Duration) {
    if let Some(reporter) = reporter {
        let _ = tokio::time::timeout(within, reporter.settled()).await;
    }
}

fn cut(name: &str) -> String {
    let mut cut = String::new();
    for character in name.chars().map(|it| if it.is_control() { '?' } else { it }) {
        if cut.len() + character.len_utf8() > NAME_BYTES_MAX {
            break;
        }
        cut.push(character);
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_what_the_service_takes() {
        assert_eq!(cut("file a\nb"), "file a?b");
        assert_eq!(cut(&"é".repeat(100)).len(), 128);
        assert_eq!(cut(&format!("x{}", "é".repeat(100))).len(), 127);
    }
}
