//! What the processes say of themselves while a load runs.

use crate::{
    error::Error,
    zones::{Moment, Work, Zones},
};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Between two looks at the size of etcd's database.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The size of etcd's database at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// Since the warm-up began.
    pub second: u64,
    /// The largest member's file.
    pub file_bytes: u64,
    /// Bytes in use in the fullest member.
    pub used_bytes: u64,
}

/// Watches from the end of the warm-up to the end of the load.
pub(super) async fn over(
    zones: &Zones,
    start: oneshot::Receiver<Instant>,
    warm_up: Duration,
    length: Duration,
) -> Result<(Work, Vec<Size>), Error> {
    let Ok(start) = start.await else { return Ok(Default::default()) }; // The load tells why.
    tokio::time::sleep_until((start + warm_up).into()).await;
    let (begin, end) = (Moment::of(zones).await?, start + warm_up + length);
    let mut sizes = vec![size(zones, start).await?];
    while Instant::now() + LOOK_EVERY < end {
        tokio::time::sleep(LOOK_EVERY).await;
        sizes.push(size(zones, start).await?);
    }
    tokio::time::sleep_until(end.into()).await;
    Ok((Moment::of(zones).await?.since(&begin), sizes))
}

async fn size(zones: &Zones, start: Instant) -> Result<Size, Error> {
    let members = zones.status().await?.etcd.map(|etcd| etcd.members).unwrap_or_default();
    Ok(Size {
        second: start.elapsed().as_secs(),
        file_bytes: members.iter().map(|member| member.db_bytes).max().unwrap_or(0),
        used_bytes: members.iter().map(|member| member.db_used_bytes).max().unwrap_or(0),
    })
}
