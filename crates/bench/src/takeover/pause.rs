//! One leader stopped and resumed, and whether every promise held meanwhile.

use super::client::{Client, acquire, holds, is_locked};
use crate::{error::Error, zones::Zones};
use serde::Serialize;
use sereno_api::{Granted, Role};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Grants acknowledged by the leader before it is stopped.
const GRANTS_BEFORE: usize = 5;
/// Between two looks at the old leader.
const BETWEEN: Duration = Duration::from_millis(20);
/// Longest that it may take to step down.
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of a leader that was stopped and resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resumed {
    /// From resuming it until it followed another leader and served; absent: it did not.
    pub stepped_down_ms: Option<u64>,
    /// Grants acknowledged before and during the pause.
    pub acknowledged: usize,
    /// Of them, those that are not held any more.
    pub lost: usize,
    /// Grants of what somebody else held: while it was stopped, or by itself once it was resumed.
    pub double: usize,
    /// A later grant had a lower token.
    pub tokens_fell: bool,
}

impl Resumed {
    /// Nothing lost, nobody twice, and it stepped down.
    pub fn is_sound(&self) -> bool {
        self.stepped_down_ms.is_some() && self.lost == 0 && self.double == 0 && !self.tokens_fell
    }
}

/// Milliseconds until another node granted, and what became of the old leader.
pub(super) async fn try_once(
    zones: &Zones,
    leader: usize,
    length: Duration,
    client: &mut Client,
) -> Result<(u64, Resumed), Error> {
    let old = zones.node(leader).address;
    let others: Vec<SocketAddr> =
        zones.addresses().into_iter().filter(|address| *address != old).collect();
    let mut grants = Vec::new();
    for _ in 0..GRANTS_BEFORE {
        grants.push(acquire(old, &client.fresh_name()).await?);
    }
    let contested = client.fresh_name();
    zones.node(leader).child.pause();
    let begun = Instant::now();
    // It lies in the stopped leader's socket until that goes on, and must not be granted then.
    let asked_of_old = acquire(old, &contested);
    let meanwhile = async {
        let (away_ms, grant) = client.until_granted(&others).await?;
        grants.push(grant);
        let taken = acquire(others[0], &grants[0].resource).await;
        grants.push(acquire(others[1], &contested).await?);
        tokio::time::sleep_until((begun + length).into()).await;
        zones.node(leader).child.resume();
        let stepped_down_ms = until_it_follows(zones, leader).await;
        Ok::<_, Error>((away_ms, taken, stepped_down_ms))
    };
    let (from_old, meanwhile) = tokio::join!(asked_of_old, meanwhile);
    let (away_ms, taken, stepped_down_ms) = meanwhile?;
    let again = acquire(old, &contested).await;
    let resumed = Resumed {
        stepped_down_ms,
        acknowledged: grants.len(),
        lost: count_lost(old, &grants).await? + count_lost(others[0], &grants).await?,
        double: count_granted([from_old, taken, again])?,
        tokens_fell: !tokens_rise(&grants),
    };
    Ok((away_ms, resumed))
}

async fn until_it_follows(zones: &Zones, leader: usize) -> Option<u64> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let status = zones.node(leader).status().await;
        if status.is_ok_and(|it| it.ready && it.role == Role::Follower) {
            return Some(begun.elapsed().as_millis() as u64);
        }
        tokio::time::sleep(BETWEEN).await;
    }
    None
}

/// Asked of one node, by consistent reads.
async fn count_lost(address: SocketAddr, grants: &[Granted]) -> Result<usize, Error> {
    let mut lost = 0;
    for grant in grants {
        lost += usize::from(!holds(address, grant).await?);
    }
    Ok(lost)
}

/// What somebody else held; every answer but a refusal for that reason is a fault of the run.
fn count_granted(answers: [Result<Granted, Error>; 3]) -> Result<usize, Error> {
    let mut granted = 0;
    for answer in answers {
        match answer {
            Ok(_) => granted += 1,
            Err(error) if is_locked(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(granted)
}

/// In the order in which they were acknowledged.
fn tokens_rise(grants: &[Granted]) -> bool {
    grants.is_sorted_by(|earlier, later| earlier.fencing_token < later.fencing_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_is_not_sound() {
        let sound = Resumed { stepped_down_ms: Some(1), acknowledged: 7, ..Resumed::default() };
        assert!(sound.is_sound());
        for broken in [
            Resumed { stepped_down_ms: None, ..sound.clone() },
            Resumed { lost: 1, ..sound.clone() },
            Resumed { double: 1, ..sound.clone() },
            Resumed { tokens_fell: true, ..sound },
        ] {
            assert!(!broken.is_sound(), "{broken:?}");
        }
    }
}
