//! A reservation by its name: what any process can do about it.

use super::{
    calls::{self, Named, items},
    commit::Commit,
    plain::Quotas,
    refusal::QuotaError,
};
use crate::transport::Ask;
use serde::de::DeserializeOwned;
use sereno_api::{Committed, OnExpiry, ReservationReleased, Reserved};
use std::time::Duration;

/// Names a reservation, wherever it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationName {
    /// From its answer: 32 hexadecimal digits.
    pub reservation_id: String,
    /// Its fence, where it is known: another one is refused then.
    pub fence: Option<u64>,
}

impl ReservationName {
    /// Without a fence.
    pub fn new(reservation_id: impl Into<String>) -> Self {
        Self { reservation_id: reservation_id.into(), fence: None }
    }
}

impl Quotas {
    /// The outside work has begun: the reservation gets a deadline and a fate of its own.
    ///
    /// # Errors
    /// [`QuotaError::Over`] where it has ended.
    pub async fn begin(
        &self,
        name: &ReservationName,
        in_flight_ttl: Duration,
        on_expiry: OnExpiry,
    ) -> Result<Reserved, QuotaError> {
        self.about(self.named(name).begin(in_flight_ttl, on_expiry)).await
    }

    /// Moves its deadline to `ttl` from now, if that is later; `None`: by the time last granted.
    ///
    /// # Errors
    /// As [`Self::begin`]; `MAX_HOLD_REACHED` in [`QuotaError::Other`] where nothing is left to add.
    pub async fn extend(
        &self,
        name: &ReservationName,
        ttl: Option<Duration>,
    ) -> Result<Reserved, QuotaError> {
        self.about(self.named(name).extend(ttl)).await
    }

    /// Changes what is reserved: the new amounts, as (quota, path, amount).
    ///
    /// # Errors
    /// As [`Self::begin`]; [`QuotaError::Exhausted`] where there is not so much more.
    pub async fn resize<Q: Into<String>, P: Into<String>>(
        &self,
        name: &ReservationName,
        amounts: impl IntoIterator<Item = (Q, P, u64)>,
    ) -> Result<Reserved, QuotaError> {
        self.about(self.named(name).resize(items(amounts))).await
    }

    /// What is reserved is used now. A lost answer is asked for again with the same request.
    ///
    /// # Errors
    /// As [`crate::Reservation::commit_with`].
    pub async fn commit(
        &self,
        name: &ReservationName,
        commit: Commit,
    ) -> Result<Committed, QuotaError> {
        self.about(calls::commit(commit.request(&self.named(name)))).await
    }

    /// Gives it back: nothing was used. Repeatable.
    ///
    /// # Errors
    /// [`QuotaError::Over`] where it was committed, or is in quarantine.
    pub async fn release(&self, name: &ReservationName) -> Result<ReservationReleased, QuotaError> {
        self.about(self.named(name).release()).await
    }

    async fn about<T: DeserializeOwned>(
        &self,
        ask: impl Fn(Option<u64>) -> Ask + Send + Sync + 'static,
    ) -> Result<T, QuotaError> {
        self.client.core().run_call(ask).await.map_err(QuotaError::of)
    }

    fn named(&self, name: &ReservationName) -> Named {
        Named {
            namespace: self.namespace.clone(),
            reservation_id: name.reservation_id.clone(),
            fence: name.fence,
        }
    }
}
