//! What a namespace allows (DESIGN.md section 13). Part of the state; changed by `PutNamespace`.

use crate::{limits, names::Invalid};
use borsh::{BorshDeserialize, BorshSerialize};
use std::ops::RangeInclusive;

/// Whether the protected resource checks the fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Fencing {
    /// The resource refuses lower tokens.
    Enforced,
    /// Nobody checks: a zombie's late write can get through.
    BestEffort,
}

/// The rules of one namespace. Durations in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Policy {
    /// Shortest lease. `None`: the service's own (1 s embedded, 5 s where a takeover is possible).
    pub min_ttl_ms: Option<u64>,
    /// Lease of a request that names none.
    pub default_ttl_ms: u64,
    /// Longest lease.
    pub max_ttl_ms: u64,
    /// Longest ownership over all renewals; also the ceiling of a request's own. `None`: unbounded.
    pub max_hold_ms: Option<u64>,
    /// After an expiry or a forced release nobody is granted for this long.
    pub lock_delay_ms: u64,
    /// Said for requests that do not say it themselves.
    pub fencing: Fencing,
    /// Refuses requests that say `bestEffort`.
    pub fencing_required: bool,
    /// Leases that may be active at once.
    pub max_leases: u64,
    /// Requests that may wait at once.
    pub max_waiters: u64,
    /// Requests per second, counted by the leader. `None`: unbounded.
    pub requests_per_second: Option<u64>,
    /// How long refusals, and grants released by their owner, are remembered.
    pub reply_refusals_ms: u64,
    /// How long other endings are remembered, from the end.
    pub reply_endings_ms: u64,
    /// Requests remembered at once; beyond it new ones are refused as `OVERLOADED`.
    pub reply_records: u64,
}

/// What a namespace allows its holds (DESIGN.md section 10). Changed by `PutHoldPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HoldPolicy {
    /// Resources that one owner may hold at once. `None`: unbounded.
    pub per_owner: Option<u64>,
    /// After the end of a hold whose payment had not begun its owner gets no new one on that resource for this long.
    pub cooldown_ms: u64,
}

impl HoldPolicy {
    /// Checks every field against the service's limits.
    pub fn check(&self) -> Result<(), Invalid> {
        if let Some(per_owner) = self.per_owner {
            within("holdsPerOwner", per_owner, 1..=limits::LEASES_PER_NAMESPACE_MAX)?;
        }
        within("holdCooldown", self.cooldown_ms, 0..=limits::HOLD_COOLDOWN_MS_MAX)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            min_ttl_ms: None,
            default_ttl_ms: limits::TTL_MS_DEFAULT,
            max_ttl_ms: limits::TTL_MS_MAX,
            max_hold_ms: None,
            lock_delay_ms: 0,
            fencing: Fencing::BestEffort,
            fencing_required: false,
            max_leases: limits::LEASES_PER_NAMESPACE_MAX,
            max_waiters: limits::WAITERS_PER_NAMESPACE_MAX,
            requests_per_second: None,
            reply_refusals_ms: limits::REPLY_REFUSALS_MS_DEFAULT,
            reply_endings_ms: limits::REPLY_ENDINGS_MS_DEFAULT,
            reply_records: limits::REPLY_RECORDS_MAX,
        }
    }
}

impl Policy {
    /// Checks every field against the service's limits, and the fields against each other.
    pub fn check(&self, service_min_ttl_ms: u64) -> Result<(), Invalid> {
        let ttl = limits::TTL_MS_MIN..=limits::TTL_MS_MAX;
        let min_ttl_ms = self.min_ttl_ms.unwrap_or(service_min_ttl_ms);
        within("minTtl", min_ttl_ms, ttl.clone())?;
        within("maxTtl", self.max_ttl_ms, ttl)?;
        if min_ttl_ms > self.max_ttl_ms {
            return Err(Invalid::new("minTtl", "must not be above maxTtl"));
        }
        within("defaultTtl", self.default_ttl_ms, min_ttl_ms..=self.max_ttl_ms)?;
        if let Some(max_hold_ms) = self.max_hold_ms {
            within("maxHold", max_hold_ms, limits::TTL_MS_MIN..=limits::MAX_HOLD_MS_MAX)?;
        }
        within("lockDelay", self.lock_delay_ms, 0..=limits::LOCK_DELAY_MS_MAX)?;
        if self.fencing_required && self.fencing == Fencing::BestEffort {
            return Err(Invalid::new("fencing", "must be enforced where fencingRequired is true"));
        }
        within("maxLeases", self.max_leases, 0..=limits::LEASES_PER_NAMESPACE_MAX)?;
        within("maxWaiters", self.max_waiters, 0..=limits::WAITERS_PER_NAMESPACE_MAX)?;
        if let Some(rate) = self.requests_per_second {
            within("requestsPerSecond", rate, 1..=limits::REQUESTS_PER_SECOND_MAX)?;
        }
        let memory = limits::REPLY_MS_MIN..=limits::REPLY_MS_MAX;
        within("replyMemory.refusals", self.reply_refusals_ms, memory.clone())?;
        within("replyMemory.endings", self.reply_endings_ms, memory)?;
        within("replyMemory.records", self.reply_records, 1..=limits::REPLY_RECORDS_MAX)
    }
}

/// `value` must lie in `range`; durations are named in milliseconds.
pub(crate) fn within(field: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), Invalid> {
    if range.contains(&value) {
        return Ok(());
    }
    let (start, end) = (range.start(), range.end());
    Err(Invalid::new(field, format!("must be {start} to {end} (durations in ms), is {value}")))
}
