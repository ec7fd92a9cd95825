//! The pool: what there is, and what each tenant may.

use sereno_client::{Error, LimitChange, Limits, Quotas, api::ErrorCode};
use std::time::Duration;

/// What is counted.
pub const QUOTA: &str = "gpu";
/// How many there are.
pub const GPUS: u64 = 64;

/// Who shares the pool.
#[derive(Clone, Copy, Debug)]
pub struct Tenant {
    /// Its node below the root of the quota.
    pub name: &'static str,
    /// So many it always gets at once: nobody else is ever lent them.
    pub guaranteed: u64,
    /// Its share of the rest against the others'.
    pub weight: u64,
    /// More than so many it never gets.
    pub limit: u64,
    /// In pictures.
    pub colour: &'static str,
}

/// Of the 64 GPUs 40 are promised; the other 24 are for whoever wants them, by weight.
pub const TENANTS: [Tenant; 3] = [
    Tenant { name: "vision", guaranteed: 24, weight: 2, limit: 48, colour: "#1565c0" },
    Tenant { name: "speech", guaranteed: 16, weight: 1, limit: 48, colour: "#2e7d32" },
    Tenant { name: "research", guaranteed: 0, weight: 1, limit: 48, colour: "#b26a00" },
];

/// A tenant by its name.
pub fn tenant(name: &str) -> Option<&'static Tenant> {
    TENANTS.iter().find(|tenant| tenant.name == name)
}

/// Puts the limits, whatever they were before. `patience`: after so long a waiting job goes before all that are not under
/// their tenant's guarantee.
///
/// # Errors
/// The service does not answer, or refuses them.
pub async fn put_limits(quotas: &Quotas, patience: Duration) -> Result<(), Error> {
    put(quotas, "", Limits { patience: Some(patience), ..Limits::of(GPUS) }).await?;
    for Tenant { name, guaranteed, weight, limit, .. } in TENANTS {
        put(quotas, name, Limits { guaranteed, weight, ..Limits::of(limit) }).await?;
    }
    Ok(())
}

/// The version that was read goes along, so two who do this at the same time do not undo each other's change.
async fn put(quotas: &Quotas, path: &str, limits: Limits) -> Result<(), Error> {
    let expected_version = match quotas.get(QUOTA, path).await {
        Ok(read) => read.node.version,
        Err(Error::Refused(problem)) if problem.code == ErrorCode::NotFound => 0,
        Err(error) => return Err(error),
    };
    let (quota, path, refuse_debt) = (QUOTA.into(), path.into(), false);
    quotas.put_limit(LimitChange { quota, path, limits, expected_version, refuse_debt }).await?;
    Ok(())
}
