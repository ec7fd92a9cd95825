//! Brings a server to a state of a given size: names seen, leases held, requests remembered.

use crate::{
    error::Error,
    target::{
        Acquired, Ask, LeaseId, Released, RequestIds, Sereno, SerenoTarget, Wording, ask_json,
    },
};
use sereno_api::{Millis, NamespacePut, Policy, PutNamespaceRequest, ReplyMemory};
use std::{cell::Cell, net::SocketAddr, rc::Rc};
use tokio::task::LocalSet;

const CLIENTS: usize = 64;
/// The longest that any policy may allow: nothing that was filled in ends during the run.
const TTL: Millis = Millis(3_600_000);
/// Likewise.
const REMEMBERED: Millis = Millis(24 * 3_600_000);

/// The namespace that is filled.
pub const NAMESPACE: &str = "bench-filled";

/// A state's size. The defaults are those of the bound that is asked for.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Fill {
    /// Names that are locked at least once.
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    pub resources: usize,

    /// Leases that stay held.
    #[arg(long, default_value_t = 20_000, value_name = "COUNT")]
    pub active: usize,

    /// Requests that are remembered.
    #[arg(long, default_value_t = 600_000, value_name = "COUNT")]
    pub requests: usize,
}

impl Fill {
    /// Checks what the types do not say.
    ///
    /// # Errors
    /// The sizes contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        // So that no two clients are about the same name.
        if self.resources < self.active + 10 * CLIENTS || self.requests < self.resources {
            return Err(Error::Usage(format!(
                "--resources must be at least {} more than --active, and --requests at least --resources",
                10 * CLIENTS
            )));
        }
        Ok(())
    }
}

/// Fills the namespace [`NAMESPACE`], which must not exist yet, through the server's door.
///
/// # Errors
/// A call is not answered as it should be.
pub async fn fill(address: SocketAddr, size: Fill) -> Result<(), Error> {
    size.check()?;
    let memory =
        ReplyMemory { refusals: Some(REMEMBERED), endings: Some(REMEMBERED), records: None };
    let policy = Policy { reply_memory: Some(memory), ..Policy::default() };
    put_namespace(address, NAMESPACE, policy).await?;
    let wording = Wording { namespace: NAMESPACE.into(), owner: "filler".into(), lease_ttl: TTL };
    let target = SerenoTarget::new(address, wording);
    let (next, ids) = (Rc::new(Cell::new(0)), Rc::new(RequestIds::default()));
    let local = LocalSet::new();
    let fillers: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (target, next, ids) = (target.clone(), next.clone(), ids.clone());
            local.spawn_local(async move { filler(&target, size, &next, &ids).await })
        })
        .collect();
    local
        .run_until(async {
            for filler in fillers {
                match filler.await {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => return Err(Error::Service { call: "fill".into(), why }),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                }
            }
            Ok(())
        })
        .await
}

/// Makes a namespace that does not exist yet.
///
/// # Errors
/// It does, or the server refuses it.
pub async fn put_namespace(address: SocketAddr, name: &str, policy: Policy) -> Result<(), Error> {
    let request = PutNamespaceRequest {
        expected_version: 0,
        policy: Some(policy),
        home: None,
        born_at: None,
    };
    let body = serde_json::to_vec(&request).map_err(std::io::Error::from);
    let body = body.map_err(Error::io("write a request"))?;
    let path = format!("/v1/namespaces/{name}");
    let _: NamespacePut = ask_json(address, "PUT", &path, &body).await?;
    Ok(())
}

/// What request number `index` locks, and whether it keeps the lease.
fn resource(size: Fill, index: usize) -> (String, bool) {
    if index < size.active {
        return (format!("filled/held/{index}"), true);
    }
    let others = size.resources - size.active;
    (format!("filled/seen/{}", (index - size.active) % others), false)
}

async fn filler(
    target: &SerenoTarget,
    size: Fill,
    next: &Cell<usize>,
    ids: &RequestIds,
) -> Result<(), String> {
    let mut client = Sereno::connect(target).await.map_err(|fault| fault.to_string())?;
    while next.get() < size.requests {
        let index = next.replace(next.get() + 1);
        let (resource, keep) = resource(size, index);
        let lease = acquire(&mut client, &resource, &ids.next()).await?;
        if !keep {
            match client.release(&resource, &lease).await.map_err(|fault| fault.to_string())? {
                Released::Done => {}
                other => return Err(format!("release of {resource}: {other:?}")),
            }
        }
    }
    Ok(())
}

async fn acquire(client: &mut Sereno, resource: &str, id: &LeaseId) -> Result<LeaseId, String> {
    let ask = Ask { resource, request_id: id, wait: None };
    match client.acquire(&ask).await.map_err(|fault| fault.to_string())? {
        Acquired::Granted(lease) => Ok(lease),
        other => Err(format!("acquire of {resource}: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn as_many_names_leases_and_requests_as_asked_for() {
        let size = Fill { resources: 1_000, active: 20, requests: 6_000 };
        size.check().unwrap();
        let all: Vec<_> = (0..size.requests).map(|index| resource(size, index)).collect();
        assert_eq!(all.iter().filter(|(_, keep)| *keep).count(), 20);
        assert_eq!(all.iter().map(|(name, _)| name).collect::<HashSet<_>>().len(), 1_000);
        assert!(Fill { resources: 659, ..size }.check().is_err());
        assert!(Fill { requests: 999, ..size }.check().is_err());
    }
}
