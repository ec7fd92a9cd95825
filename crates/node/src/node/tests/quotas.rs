//! Commands about quotas, one of each class. Nothing that they name is there.

use sereno_core::{
    command::{
        Begin, Commit, Extend, Item, Late, NodeLimits, NodeRef, OnExpiry, PutLimit, QuotaCommand,
        ReleaseReservation, ReservationRef, Reserve, ReturnUse, Settle, Settlement, ShareReturn,
    },
    ids::{ObjectId, ReservationId},
    names::{Labels, Owner, QuotaName, QuotaPath, Reason, RequestId},
    testing::default_namespace,
};

fn request_id() -> RequestId {
    RequestId::new("about-a-quota").unwrap()
}

fn owner() -> Owner {
    Owner::new("o").unwrap()
}

fn node() -> NodeRef {
    NodeRef { quota: QuotaName::new("gpu").unwrap(), path: QuotaPath::root() }
}

fn of() -> ReservationRef {
    let (namespace, reservation) = (default_namespace(), ReservationId([1; 16]));
    ReservationRef { namespace, reservation, fence: None }
}

pub(super) fn reserve() -> QuotaCommand {
    QuotaCommand::Reserve(Reserve {
        namespace: default_namespace(),
        owner: owner(),
        items: vec![Item { node: node(), amount: 1 }],
        request_id: request_id(),
        reservation: ReservationId([1; 16]),
        ttl_ms: 10_000,
        max_lifetime_ms: None,
        on_expiry: OnExpiry::Release,
        priority: 0,
        wait_timeout_ms: 0,
        labels: Labels::default(),
    })
}

pub(super) fn put_limit() -> QuotaCommand {
    QuotaCommand::PutLimit(PutLimit {
        namespace: default_namespace(),
        node: node(),
        limits: NodeLimits::of(1),
        expected_version: 0,
        refuse_debt: false,
        request_id: request_id(),
    })
}

pub(super) fn begin() -> QuotaCommand {
    let (in_flight_ttl_ms, on_expiry) = (1_000, OnExpiry::Commit);
    let (of, request_id) = (of(), request_id());
    QuotaCommand::Begin(Begin { of, in_flight_ttl_ms, on_expiry, request_id })
}

pub(super) fn extend() -> QuotaCommand {
    QuotaCommand::Extend(Extend { of: of(), ttl_ms: None, request_id: request_id() })
}

pub(super) fn commit() -> QuotaCommand {
    QuotaCommand::Commit(Commit {
        of: of(),
        items: None,
        is_final: true,
        late: Late::Reject,
        readmitted: ReservationId([2; 16]),
        request_id: request_id(),
    })
}

pub(super) fn release_reservation() -> QuotaCommand {
    QuotaCommand::Release(ReleaseReservation { of: of(), request_id: request_id() })
}

pub(super) fn return_use() -> QuotaCommand {
    QuotaCommand::Return(ReturnUse {
        namespace: default_namespace(),
        commit: ObjectId(1),
        node: node(),
        owner: owner(),
        amount: 1,
        request_id: request_id(),
    })
}

pub(super) fn settle() -> QuotaCommand {
    let (settlement, reason) = (Settlement::Release, Reason::new("r").unwrap());
    QuotaCommand::Settle(Settle { of: of(), settlement, reason, request_id: request_id() })
}

pub(super) fn share_return() -> QuotaCommand {
    QuotaCommand::ShareReturn(ShareReturn {
        namespace: default_namespace(),
        share: ReservationId([1; 16]),
        returned: 1,
        spent: 0,
        request_id: request_id(),
    })
}
