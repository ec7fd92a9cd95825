//! Where the service is.

use clap::Args;
use sereno_client::{Client, ClientBuilder, DEFAULT_SERVER, Error};
use std::time::Duration;

/// How commands find the service.
#[derive(Clone, Debug, Args)]
pub(crate) struct Service {
    /// Where the service is: one URL, or several of the same service, separated by commas.
    #[arg(
        long,
        // For the commands below the one that takes it.
        global = true,
        env = sereno_client::SERVER_VARIABLE,
        default_value = DEFAULT_SERVER,
        value_name = "URL[,URL]",
        help_heading = "Service"
    )]
    pub server: String,
}

impl Service {
    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder().servers(&self.server)
    }

    /// For a command that somebody waits for: a takeover fits in, a long outage does not.
    pub(crate) fn client(&self) -> Result<Client, Error> {
        self.builder().call_timeout(Duration::from_secs(5)).build()
    }
}
