//! A client that goes on to another node until one grants.

use crate::{error::Error, target::ask_json};
use sereno_api::{Granted, Lock};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// One attempt to take a lock: a node that is dead refuses at once, one that is stopped never answers.
const ATTEMPT: Duration = Duration::from_millis(300);
/// Between two attempts.
const BETWEEN: Duration = Duration::from_millis(20);
/// Longest to try.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a pause and all that is done about it.
const LEASE_TTL: &str = "5m";

/// Asks for names that nobody has asked for.
#[derive(Debug, Default)]
pub(super) struct Client {
    asked: u64,
}

impl Client {
    /// A name that was never asked for.
    pub(super) fn fresh_name(&mut self) -> String {
        self.asked += 1;
        format!("takeover/{}", self.asked)
    }

    /// Milliseconds until some node grants a lock, each attempt being about another one; and that lock.
    pub(super) async fn until_granted(
        &mut self,
        addresses: &[SocketAddr],
    ) -> Result<(u64, Granted), Error> {
        let begun = Instant::now();
        for address in addresses.iter().cycle() {
            let name = self.fresh_name();
            let ask = acquire_once(*address, &name, rand::random());
            if let Ok(Ok(grant)) = timeout(ATTEMPT, ask).await {
                return Ok((begun.elapsed().as_millis() as u64, grant));
            }
            if begun.elapsed() > PATIENCE {
                break;
            }
            tokio::time::sleep(BETWEEN).await;
        }
        let why = format!("nothing was granted in {PATIENCE:?}");
        Err(Error::Service { call: "acquire".into(), why })
    }
}

/// Asks a node for a lock until it is granted, or refused because somebody holds it: the same request each time, as every
/// client does that is told that the outcome is unknown.
pub(super) async fn acquire(address: SocketAddr, resource: &str) -> Result<Granted, Error> {
    let (begun, id) = (Instant::now(), rand::random());
    loop {
        match acquire_once(address, resource, id).await {
            Err(error) if begun.elapsed() < PATIENCE && !is_locked(&error) => {
                tokio::time::sleep(BETWEEN).await;
            }
            decided => return decided,
        }
    }
}

/// Whether it was refused because somebody holds it.
pub(super) fn is_locked(error: &Error) -> bool {
    matches!(error, Error::Service { why, .. } if why.contains("\"code\":\"LOCKED\""))
}

async fn acquire_once(address: SocketAddr, resource: &str, id: u128) -> Result<Granted, Error> {
    let body = format!(
        r#"{{"resource":"{resource}","requestId":"{id:032x}","owner":"bench","leaseTtl":"{LEASE_TTL}"}}"#
    );
    ask_json(address, "POST", "/v1/locks/acquire", body.as_bytes()).await
}

/// Whether a node still says, by a consistent read, that this grant holds its lock.
pub(super) async fn holds(address: SocketAddr, grant: &Granted) -> Result<bool, Error> {
    let path = format!("/v1/locks/{}", grant.resource);
    let lock: Lock = ask_json(address, "GET", &path, b"").await?;
    Ok(lock.holder.is_some_and(|holder| holder.fencing_token == grant.fencing_token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_that_is_held_is_not_asked_for_again() {
        let error = |why: &str| Error::Service { call: "acquire".into(), why: why.into() };
        assert!(is_locked(&error(r#"409 {"status":409,"code":"LOCKED","detail":"held"}"#)));
        assert!(!is_locked(&error(r#"504 {"code":"UNKNOWN_OUTCOME","detail":"not LOCKED"}"#)));
    }
}
