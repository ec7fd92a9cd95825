//! The leases that are held all the time: taken before a load, given back after it.

use super::{pool::Shared, settings::duration};
use crate::{
    error::Error,
    target::{Acquired, Ask, Sereno, SerenoTarget},
};
use std::time::Instant;

/// Clients that take and give back.
const CLIENTS: usize = 64;

/// Takes the first leases, as fast as they are granted.
pub(super) async fn take(shared: &Shared) -> Result<(), Error> {
    let (active, target) = {
        let world = shared.world();
        (world.settings.active, world.server().1)
    };
    let began = Instant::now();
    let clients: Vec<_> = (0..CLIENTS.min(active))
        .map(|_| {
            let (shared, target) = (shared.clone(), target.clone());
            tokio::task::spawn_local(async move { take_some(&shared, &target, active).await })
        })
        .collect();
    for client in clients {
        match client.await {
            Ok(result) => {
                result.map_err(|why| Error::Service { call: "first leases".into(), why })?
            }
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    let (took, ttl) = (began.elapsed(), duration(shared.world().settings.ttl));
    if active > 0 && took > ttl / 2 {
        let why =
            format!("{active} took {took:.1?}, over half of the TTL: they would end too soon");
        return Err(Error::Service { call: "first leases".into(), why });
    }
    Ok(())
}

async fn take_some(shared: &Shared, target: &SerenoTarget, active: usize) -> Result<(), String> {
    let mut connection = Sereno::connect(target).await.map_err(|fault| fault.to_string())?;
    loop {
        let (name, text, request_id) = {
            let mut world = shared.world();
            let world = &mut *world;
            if world.holdings.len() + world.running >= active {
                return Ok(());
            }
            let Some(name) = world.names.claim_free(&mut world.rng, Instant::now()) else {
                return Err("no free name is left: they are held by an earlier run".into());
            };
            world.running += 1;
            (name, world.names.text(name).to_owned(), world.ids.next())
        };
        let ask = Ask { resource: &text, request_id: &request_id, wait: None };
        let found = connection.acquire(&ask).await;
        let mut world = shared.world();
        world.running -= 1;
        match found.map_err(|fault| fault.to_string())? {
            Acquired::Granted(lease) => world.holdings.add(name, lease),
            // An earlier run's: the claim stays, another name will do.
            Acquired::Refused("LOCKED") => world.bury(name, Instant::now()),
            other => return Err(format!("{other:?}")),
        }
    }
}

/// Releases what is still held, so that the next load finds free names. What cannot be released ends by itself.
pub(super) async fn give_back(shared: &Shared) {
    let target = shared.world().server().1;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (shared, target) = (shared.clone(), target.clone());
            tokio::task::spawn_local(async move {
                let Ok(mut connection) = Sereno::connect(&target).await else { return };
                loop {
                    let Some((resource, lease)) = shared.world().take_any() else { return };
                    if connection.release(&resource, &lease).await.is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    let all = async {
        for client in clients {
            let _ = client.await;
        }
    };
    let _ = tokio::time::timeout(shared.limit(), all).await;
}
