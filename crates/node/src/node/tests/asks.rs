//! What clients of the simulated world ask for.

use sereno_core::{
    command::{Abandon, Acquire, Family, LeaseRef, Operation, PutNamespace, RenewMany},
    ids::ClusterTime,
    names::{Caller, NamespaceName, RequestId},
    policy::Policy,
    testing,
};

/// A call to be made.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) operation: Operation,
    pub(super) caller: Caller,
    pub(super) within_ms: u64,
    pub(super) hold_ms: u64,
    pub(super) born_at: Option<ClusterTime>,
}

impl Ask {
    pub(super) fn new(operation: Operation) -> Self {
        let caller = Caller::new("").expect("anonymous is a caller");
        Self { operation, caller, within_ms: 10_000, hold_ms: 0, born_at: None }
    }

    pub(super) fn by(self, caller: &str) -> Self {
        Self { caller: Caller::new(caller).expect("tests use valid names"), ..self }
    }

    pub(super) fn within(self, within_ms: u64) -> Self {
        Self { within_ms, ..self }
    }

    /// Held back for so long while it waits; its caller listens longer than that.
    pub(super) fn held(self, hold_ms: u64) -> Self {
        Self { hold_ms, within_ms: hold_ms + 5_000, ..self }
    }
}

pub(super) fn acquire(resource: &str, n: u64) -> Ask {
    Ask::new(Operation::Acquire(testing::acquire(resource, n)))
}

/// Waits up to a minute.
pub(super) fn queue_for(resource: &str, n: u64) -> Ask {
    let acquire = testing::acquire(resource, n);
    Ask::new(Operation::Acquire(Acquire { wait_timeout_ms: 60_000, ..acquire }))
}

pub(super) fn acquire_for(resource: &str, n: u64, ttl_ms: u64) -> Ask {
    let acquire = testing::acquire(resource, n);
    Ask::new(Operation::Acquire(Acquire { lease_ttl_ms: Some(ttl_ms), ..acquire }))
}

pub(super) fn acquire_in(namespace: &str, resource: &str, n: u64) -> Ask {
    let namespace = NamespaceName::new(namespace).expect("tests use valid names");
    Ask::new(Operation::Acquire(Acquire { namespace, ..testing::acquire(resource, n) }))
}

pub(super) fn release(resource: &str, n: u64) -> Ask {
    Ask::new(testing::release(resource, n))
}

pub(super) fn renew(resource: &str, n: u64) -> Ask {
    Ask::new(testing::renew(resource, n))
}

pub(super) fn renew_many(leases: Vec<LeaseRef>) -> Ask {
    let namespace = testing::default_namespace();
    Ask::new(Operation::RenewMany(RenewMany { namespace, leases, lease_ttl_ms: None }))
}

pub(super) fn abandon(n: u64) -> Ask {
    let request_id = RequestId::new(&format!("request-{n}")).expect("tests use valid names");
    let namespace = testing::default_namespace();
    Ask::new(Operation::Abandon(Abandon { namespace, family: Family::Lock, request_id }))
}

pub(super) fn put_namespace(name: &str, expected_version: u64, policy: Policy) -> Ask {
    let namespace = NamespaceName::new(name).expect("tests use valid names");
    Ask::new(Operation::PutNamespace(PutNamespace { namespace, expected_version, policy }))
}
