//! One connection that goes on to the next server where one does not answer, with the same request, as the SDK does.
//! With one server only, nothing is sent twice.

use super::pool::Shared;
use crate::{
    target::{Acquired, Released, Renewals, Sereno},
    wire::Fault,
};
use rand::RngExt;
use std::{future::Future, time::Duration};
use tokio::time::{sleep, timeout};

/// Before a request is repeated, at least; and so much more at random.
const PAUSE_MS: u64 = 50;

/// What was answered, if anything was in time.
pub(super) async fn within<T>(limit: Duration, call: impl Future<Output = Option<T>>) -> Option<T> {
    timeout(limit, call).await.ok().flatten()
}

/// One connection, and to which server.
#[derive(Debug)]
pub(super) struct Line {
    connection: Option<Sereno>,
    server: usize,
}

impl Line {
    /// Connects to the server that is asked at present, or to the next one.
    pub(super) async fn open(shared: &Shared) -> Option<Self> {
        let mut line = Self { connection: None, server: 0 };
        let connected = async {
            while !line.connect(shared).await {
                line.turn_away(shared).await?;
            }
            Some(())
        };
        within(shared.limit(), connected).await?;
        Some(line)
    }

    /// Whether another call can be sent on it.
    pub(super) fn is_good(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.is_closing())
    }

    /// Whether the server has still got it open.
    pub(super) fn is_usable(&self) -> bool {
        self.connection.as_ref().is_some_and(Sereno::is_usable)
    }

    /// Asks until a server decides; `None`: the only one has not answered.
    pub(super) async fn ask<T: Decides>(
        &mut self,
        shared: &Shared,
        mut ask: impl AsyncFnMut(&mut Sereno) -> Result<T, Fault>,
    ) -> Option<T> {
        loop {
            if self.connection.is_none() && !self.connect(shared).await {
                self.turn_away(shared).await?;
                continue;
            }
            let connection = self.connection.as_mut()?;
            let found = ask(connection).await;
            match found {
                Ok(answer) if answer.decides() || !shared.world().has_others() => {
                    return Some(answer);
                }
                _ => self.turn_away(shared).await?,
            }
        }
    }

    async fn connect(&mut self, shared: &Shared) -> bool {
        let (server, target) = shared.world().server();
        self.server = server;
        self.connection = Sereno::connect(&target).await.ok();
        self.connection.is_some()
    }

    /// The next server is asked from now on; `None`: there is no other.
    async fn turn_away(&mut self, shared: &Shared) -> Option<()> {
        self.connection = None;
        let pause = {
            let mut world = shared.world();
            if !world.has_others() {
                return None;
            }
            world.pass_over(self.server);
            Duration::from_millis(PAUSE_MS + world.rng.random_range(0..=PAUSE_MS))
        };
        sleep(pause).await;
        Some(())
    }
}

/// Whether an answer is the last word on its request.
pub(super) trait Decides {
    fn decides(&self) -> bool;
}

/// The service is away for a moment: nothing was decided.
const AWAY: &str = "UNAVAILABLE";

impl Decides for Acquired {
    fn decides(&self) -> bool {
        !matches!(self, Self::Unknown | Self::Refused(AWAY))
    }
}

impl Decides for Released {
    fn decides(&self) -> bool {
        !matches!(self, Self::Unknown | Self::Refused(AWAY))
    }
}

impl Decides for Renewals {
    fn decides(&self) -> bool {
        !self.contains(&Some(AWAY))
    }
}

/// Of an abandon: why it was refused.
impl Decides for Option<&'static str> {
    fn decides(&self) -> bool {
        *self != Some(AWAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_that_is_away_is_asked_again() {
        assert!(Acquired::Refused("LOCKED").decides() && Acquired::Waiting.decides());
        assert!(!Acquired::Refused("UNAVAILABLE").decides() && !Acquired::Unknown.decides());
        assert!(Released::Done.decides() && !Released::Unknown.decides());
        assert!(vec![None, Some("LEASE_ENDED")].decides());
        assert!(!vec![None, Some("UNAVAILABLE")].decides());
        assert!(None.decides() && !Some("UNAVAILABLE").decides());
    }
}
