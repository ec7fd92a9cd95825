//! What callers ask and what they are told, whatever the door.

use super::call_seconds;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use sereno_api::ErrorCode;
use sereno_core::command::Family as CoreFamily;
use std::time::Duration;

/// The code of a call that was done.
pub(crate) const OK: &str = "OK";
/// The code of an acquire that queues.
pub(crate) const WAITING: &str = "WAITING";

/// What was asked. In the order of [`Kind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Acquire,
    AcquireAll,
    Renew,
    RenewMany,
    Release,
    Abandon,
    ForceRelease,
    PutNamespace,
    TokenFloor,
    RaiseLevel,
    Read,
    Campaign,
    RenewTerm,
    Proclaim,
    Resign,
    Handoff,
    Hold,
    HoldAll,
    RenewHold,
    BeginHold,
    ReleaseHold,
    PutJob,
    ClaimRun,
    RenewRun,
    FinishRun,
    ChangeJob,
    ReportGuard,
    Reserve,
    BeginWork,
    Commit,
    Extend,
    Resize,
    ReleaseReservation,
    ReturnUse,
    Settle,
    PutLimit,
    ReportUsage,
    Reconcile,
    ChangeQuota,
}

impl Kind {
    fn may_wait(self) -> bool {
        matches!(self, Self::Acquire | Self::Campaign | Self::Reserve)
    }

    /// Whether it asks for something that is leased: refused while the log's storage is nearly full.
    pub(crate) fn asks(self) -> bool {
        matches!(
            self,
            Self::Acquire
                | Self::AcquireAll
                | Self::Campaign
                | Self::Hold
                | Self::HoldAll
                | Self::ClaimRun
                | Self::Reserve
        )
    }

    /// Whether its call carries a request id.
    pub(crate) fn has_request_id(self) -> bool {
        self.asks()
            || matches!(
                self,
                Self::ForceRelease
                    | Self::TokenFloor
                    | Self::Proclaim
                    | Self::Handoff
                    | Self::RenewHold
                    | Self::BeginHold
                    | Self::ReleaseHold
                    | Self::FinishRun
                    | Self::ChangeJob
                    | Self::ReportGuard
            )
            || self.is_quota()
    }

    /// Whether it is about a quota or a reservation.
    pub(crate) fn is_quota(self) -> bool {
        matches!(
            self,
            Self::Reserve
                | Self::BeginWork
                | Self::Commit
                | Self::Extend
                | Self::Resize
                | Self::ReleaseReservation
                | Self::ReturnUse
                | Self::Settle
                | Self::PutLimit
                | Self::ReportUsage
                | Self::Reconcile
                | Self::ChangeQuota
        )
    }

    /// Whose lease it renews, where it is about a single one.
    fn renews(self) -> Option<CoreFamily> {
        match self {
            Self::Renew => Some(CoreFamily::Lock),
            Self::RenewTerm => Some(CoreFamily::Election),
            Self::RenewHold => Some(CoreFamily::Hold),
            Self::RenewRun => Some(CoreFamily::Job),
            Self::Extend => Some(CoreFamily::Quota),
            _ => None,
        }
    }

    const ALL: [Self; 39] = [
        Self::Acquire,
        Self::AcquireAll,
        Self::Renew,
        Self::RenewMany,
        Self::Release,
        Self::Abandon,
        Self::ForceRelease,
        Self::PutNamespace,
        Self::TokenFloor,
        Self::RaiseLevel,
        Self::Read,
        Self::Campaign,
        Self::RenewTerm,
        Self::Proclaim,
        Self::Resign,
        Self::Handoff,
        Self::Hold,
        Self::HoldAll,
        Self::RenewHold,
        Self::BeginHold,
        Self::ReleaseHold,
        Self::PutJob,
        Self::ClaimRun,
        Self::RenewRun,
        Self::FinishRun,
        Self::ChangeJob,
        Self::ReportGuard,
        Self::Reserve,
        Self::BeginWork,
        Self::Commit,
        Self::Extend,
        Self::Resize,
        Self::ReleaseReservation,
        Self::ReturnUse,
        Self::Settle,
        Self::PutLimit,
        Self::ReportUsage,
        Self::Reconcile,
        Self::ChangeQuota,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::AcquireAll => "acquireAll",
            Self::Renew => "renew",
            Self::RenewMany => "renewMany",
            Self::Release => "release",
            Self::Abandon => "abandon",
            Self::ForceRelease => "forceRelease",
            Self::PutNamespace => "putNamespace",
            Self::TokenFloor => "tokenFloor",
            Self::RaiseLevel => "raiseLevel",
            Self::Read => "read",
            Self::Campaign => "campaign",
            Self::RenewTerm => "renewTerm",
            Self::Proclaim => "proclaim",
            Self::Resign => "resign",
            Self::Handoff => "handoff",
            Self::Hold => "hold",
            Self::HoldAll => "holdAll",
            Self::RenewHold => "renewHold",
            Self::BeginHold => "beginHold",
            Self::ReleaseHold => "releaseHold",
            Self::PutJob => "putJob",
            Self::ClaimRun => "claimRun",
            Self::RenewRun => "renewRun",
            Self::FinishRun => "finishRun",
            Self::ChangeJob => "changeJob",
            Self::ReportGuard => "reportGuard",
            Self::Reserve => "reserve",
            Self::BeginWork => "begin",
            Self::Commit => "commit",
            Self::Extend => "extend",
            Self::Resize => "resize",
            Self::ReleaseReservation => "releaseReservation",
            Self::ReturnUse => "return",
            Self::Settle => "settle",
            Self::PutLimit => "putLimit",
            Self::ReportUsage => "reportUsage",
            Self::Reconcile => "reconcile",
            Self::ChangeQuota => "changeQuota",
        }
    }
}

/// Whether the caller was ready to wait: then the time says little about the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Now,
    Wait,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Wait => "wait",
        }
    }
}

type Labels = [(&'static str, &'static str); 2];

pub(crate) struct CallMetrics {
    answers: Family<Labels, Counter>,
    /// The frequent ones, looked up once.
    frequent: Vec<Frequent>,
    renewals_refused: Family<Labels, Counter>,
}

/// Of one kind of call.
struct Frequent {
    ok: Counter,
    now: Histogram,
    wait: Histogram,
}

impl CallMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let seconds: Family<Labels, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(call_seconds);
        let answers = Family::<Labels, Counter>::default();
        let frequent = Kind::ALL.map(|kind| {
            let operation = ("operation", kind.as_str());
            let seconds =
                |mode: Mode| seconds.get_or_create_owned(&[operation, ("mode", mode.as_str())]);
            Frequent {
                ok: answers.get_or_create_owned(&[operation, ("code", OK)]),
                now: seconds(Mode::Now),
                wait: seconds(if kind.may_wait() { Mode::Wait } else { Mode::Now }),
            }
        });
        let metrics =
            Self { answers, frequent: frequent.into(), renewals_refused: Family::default() };
        // Series that only appear with their first event would hide that event from every rate.
        for kind in Kind::ALL {
            for code in [ErrorCode::UnknownOutcome.as_str(), ErrorCode::Overloaded.as_str()] {
                drop(
                    metrics.answers.get_or_create(&[("operation", kind.as_str()), ("code", code)]),
                );
            }
        }
        for family in Kind::ALL.into_iter().filter_map(Kind::renews) {
            let ended = match family {
                CoreFamily::Quota => ErrorCode::ReservationEnded,
                _ => ErrorCode::LeaseEnded,
            };
            for code in [ended, ErrorCode::NotHolder, ErrorCode::MaxHoldReached] {
                let labels = [("family", family.as_str()), ("code", code.as_str())];
                drop(metrics.renewals_refused.get_or_create(&labels));
            }
        }
        registry.register(
            "requests",
            "Calls by operation and answer: OK, WAITING or the code of the problem",
            metrics.answers.clone(),
        );
        registry.register(
            "request_seconds",
            "Time to the answer; mode wait: the caller was ready to queue",
            seconds,
        );
        registry.register(
            "renewals_refused",
            "Renewals of leases that were refused, by family",
            metrics.renewals_refused.clone(),
        );
        metrics
    }

    /// A call got its answer.
    pub(crate) fn answered(&self, kind: Kind, mode: Mode, code: &'static str, took: Duration) {
        let frequent = &self.frequent[kind as usize];
        if code == OK {
            frequent.ok.inc();
        } else {
            self.answers.get_or_create(&[("operation", kind.as_str()), ("code", code)]).inc();
        }
        let seconds = match mode {
            Mode::Now => &frequent.now,
            Mode::Wait => &frequent.wait,
        };
        seconds.observe(took.as_secs_f64());
        if let Some(family) = kind.renews().filter(|_| code != OK) {
            self.renewal_refused(family, code);
        }
    }

    /// A request was refused before it was a call.
    pub(crate) fn refused(&self, kind: Kind, code: ErrorCode) {
        self.answers.get_or_create(&[("operation", kind.as_str()), ("code", code.as_str())]).inc();
    }

    /// A renewal was refused, or that of one lease of a renew-many.
    pub(crate) fn renewal_refused(&self, family: CoreFamily, code: &'static str) {
        let labels = [("family", family.as_str()), ("code", code)];
        self.renewals_refused.get_or_create(&labels).inc();
    }
}
