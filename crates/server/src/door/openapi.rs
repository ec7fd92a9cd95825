//! The OpenAPI document: what the routes do not say by their types.

use super::routes;
use sereno_api as api;
use sereno_api::ErrorCode;
use std::collections::BTreeMap;
use utoipa::{
    IntoParams, IntoResponses, OpenApi as _,
    openapi::{
        Content, OpenApi, PathItem, Ref, RefOr, Response, ResponseBuilder,
        path::{Operation, Parameter, ParameterIn},
    },
};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Sereno",
        description = "A coordination service: locks with leases, fencing tokens and a fair queue, decided by one \
            log. Writes are POST with one JSON object; every error is a problem document (RFC 9457) with a stable \
            `code`, an `outcome`, and how to go on.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "locks", description = "Locks: grants with leases and fencing tokens."),
        (name = "elections", description = "Elections: a lock with a face; its token is the term."),
        (name = "holds", description = "Holds: something is kept for an owner for a while."),
        (name = "quotas", description = "Quotas: capacity over a tree of tenants, reserved, committed and returned."),
        (name = "jobs", description = "Scheduled jobs: the ledger of their runs."),
        (name = "guards", description = "What fence guards report."),
        (name = "namespaces", description = "What a namespace allows."),
        (name = "operations", description = "For people and machines that run the service."),
        (name = "admin", description = "Operators' writes."),
    ),
    components(schemas(api::Problem, api::WatchEvent, api::WatchStart)),
)]
struct Base;

pub(super) fn base() -> OpenApi {
    Base::openapi()
}

/// The whole document, as served at `/openapi.json`.
pub fn openapi() -> OpenApi {
    let (_, mut document) = routes::documented().split_for_parts();
    let (_, rest) = routes::documented_rest().split_for_parts();
    for (path, item) in &rest.paths.paths {
        let Some((folder, _)) = path.split_once('{') else { continue };
        let Some(read) = &item.get else { continue };
        let verbs = document.paths.paths.iter_mut();
        for (path, verb) in verbs.filter(|(path, item)| is_verb(folder, path, item)) {
            verb.get = Some(read_of_verb(read, path));
        }
    }
    document.merge(rest);
    document
}

/// A name may be called like a verb: its read has the verb's path.
fn read_of_verb(read: &Operation, path: &str) -> Operation {
    let mut read = read.clone();
    let verb = path.rsplit('/').next().unwrap_or_default();
    read.operation_id = read.operation_id.map(|id| format!("{id}-{verb}"));
    read.parameters.get_or_insert_default().retain(|one| !is_in_path(one));
    read
}

fn is_in_path(parameter: &RefOr<Parameter>) -> bool {
    matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Path)
}

fn is_verb(folder: &str, path: &str, item: &PathItem) -> bool {
    path.starts_with(folder) && item.post.is_some()
}

/// Names a set of problems that a route can answer, for its document.
macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident: $($code:ident)+;)+) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problem_responses(&[$(ErrorCode::$code),+])
            }
        }
    )+};
}

problems! {
    /// Of campaign.
    CampaignProblems: InvalidArgument PermissionDenied FencingRequired NotFound RequestTimeout Locked WaitTimeout
        LeaseEnded Abandoned TooLarge UnsupportedMediaType WrongRegion RequestIdReused QueueFull
        LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of proclaim and handoff.
    LeaderProblems: InvalidArgument PermissionDenied NotFound RequestTimeout LeaseEnded NotHolder Abandoned
        VersionConflict TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded
        Unavailable UnknownOutcome;
    /// Of hold and hold-all.
    HoldProblems: InvalidArgument PermissionDenied NotFound RequestTimeout Taken LeaseEnded NotHolder Abandoned
        TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable
        UnknownOutcome;
    /// Of the other writes about a hold.
    HoldWriteProblems: InvalidArgument PermissionDenied NotFound RequestTimeout NotHolder MaxHoldReached TooLarge
        UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable
        UnknownOutcome;
    /// Of putting a job.
    PutJobProblems: InvalidArgument PermissionDenied NotFound RequestTimeout VersionConflict RunClaimed TooLarge
        UnsupportedMediaType WrongRegion LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of claim-run.
    ClaimProblems: InvalidArgument PermissionDenied NotFound RequestTimeout LeaseEnded Abandoned VersionConflict
        RunClaimed RunFinished RunPaused RetriesExhausted TooEarly TooLarge UnsupportedMediaType
        WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of finish-run.
    FinishProblems: InvalidArgument PermissionDenied NotFound RequestTimeout LeaseEnded NotHolder RunFinished TooLarge
        UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of operators' writes about a job.
    JobProblems: InvalidArgument PermissionDenied NotFound RequestTimeout RunClaimed RunFinished RetriesExhausted
        TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable
        UnknownOutcome;
    /// Of a guard's report.
    ReportProblems: InvalidArgument PermissionDenied NotFound RequestTimeout TooLarge UnsupportedMediaType
        WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of reserve.
    ReserveProblems: InvalidArgument PermissionDenied NotFound RequestTimeout WaitTimeout Abandoned QuotaExhausted
        ReservationEnded TooLarge UnsupportedMediaType WrongRegion RequestIdReused QueueFull LimitReached Overloaded
        Unavailable UnknownOutcome;
    /// Of begin.
    BeginProblems: InvalidArgument PermissionDenied NotFound RequestTimeout NotHolder Abandoned ReservationEnded
        TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of extend.
    ExtendProblems: InvalidArgument PermissionDenied NotFound RequestTimeout NotHolder MaxHoldReached Abandoned
        ReservationEnded TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable
        UnknownOutcome;
    /// Of resize.
    ResizeProblems: InvalidArgument PermissionDenied NotFound RequestTimeout NotHolder Abandoned QuotaExhausted
        ReservationEnded TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable
        UnknownOutcome;
    /// Of commit.
    CommitProblems: InvalidArgument PermissionDenied NotFound RequestTimeout NotHolder Abandoned ReservationEnded
        ExceedsReservation ExpiredNoCapacity TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached
        Overloaded Unavailable UnknownOutcome;
    /// Of releasing or settling a reservation.
    ReservationProblems: InvalidArgument PermissionDenied NotFound RequestTimeout NotHolder Abandoned ReservationEnded
        TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of giving committed use back, and of changing it.
    UseProblems: InvalidArgument PermissionDenied NotFound RequestTimeout Abandoned ExceedsReservation TooLarge
        UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of a quota's limits.
    LimitProblems: InvalidArgument PermissionDenied NotFound RequestTimeout Abandoned VersionConflict TooLarge
        UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of reports of use, and of what is done about them.
    ReconcileProblems: InvalidArgument PermissionDenied NotFound RequestTimeout Abandoned StaleReport TooLarge
        UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of lending capacity to a region.
    ShareGrantProblems: InvalidArgument PermissionDenied NotFound RequestTimeout Abandoned QuotaExhausted TooLarge
        UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of what becomes of it.
    ShareProblems: InvalidArgument PermissionDenied NotFound RequestTimeout Abandoned ExceedsReservation TooLarge
        UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of acquire.
    AcquireProblems: InvalidArgument PermissionDenied FencingRequired NotFound RequestTimeout Locked WaitTimeout
        LeaseEnded Abandoned TooLarge UnsupportedMediaType WrongRegion RequestIdReused QueueFull
        LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of acquire-all.
    AcquireAllProblems: InvalidArgument PermissionDenied FencingRequired NotFound RequestTimeout Locked LeaseEnded
        Abandoned TooLarge UnsupportedMediaType WrongRegion RequestIdReused LimitReached Overloaded
        Unavailable UnknownOutcome;
    /// Of renew.
    RenewProblems: InvalidArgument PermissionDenied NotFound RequestTimeout LeaseEnded NotHolder MaxHoldReached
        TooLarge UnsupportedMediaType WrongRegion LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of renew-many.
    RenewManyProblems: InvalidArgument PermissionDenied RequestTimeout TooLarge UnsupportedMediaType
        WrongRegion LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of release and abandon.
    LeaseProblems: InvalidArgument PermissionDenied NotFound RequestTimeout TooLarge UnsupportedMediaType LimitReached
        Overloaded Unavailable UnknownOutcome;
    /// Of force-release.
    ForceProblems: InvalidArgument PermissionDenied NotFound RequestTimeout NotHolder TooLarge UnsupportedMediaType
        RequestIdReused LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of operators' other writes.
    AdminProblems: InvalidArgument PermissionDenied RequestTimeout TooLarge UnsupportedMediaType RequestIdReused
        Overloaded Unavailable UnknownOutcome;
    /// Of a PUT.
    PutProblems: InvalidArgument PermissionDenied NotFound RequestTimeout VersionConflict TooLarge
        UnsupportedMediaType LimitReached Overloaded Unavailable UnknownOutcome;
    /// Of a read of one thing.
    GetProblems: InvalidArgument PermissionDenied NotFound Overloaded Unavailable;
    /// Of a read of an election, or of following it.
    GetElectionProblems: InvalidArgument PermissionDenied NotFound Resync Overloaded Unavailable;
    /// Of a read of a list.
    ListProblems: InvalidArgument PermissionDenied NotFound Overloaded Unavailable;
    /// Of a watch.
    WatchProblems: InvalidArgument PermissionDenied Resync;
    /// Of the audit trail.
    AuditProblems: InvalidArgument PermissionDenied NotFound Unavailable;
    /// Of what needs neither log nor state.
    PlainProblems: InvalidArgument PermissionDenied;
    /// Of what works only while the node does.
    ReadyProblems: PermissionDenied Unavailable;
    /// Of a page.
    PageProblems: PermissionDenied NotFound;
}

fn problem_responses(codes: &[ErrorCode]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(code.as_str());
    }
    let responses = by_status.into_iter().map(|(status, codes)| {
        let content = Content::new(Some(Ref::from_schema_name("Problem")));
        let response = ResponseBuilder::new()
            .description(codes.join(", "))
            .content("application/problem+json", content)
            .build();
        (status.to_string(), RefOr::T(response))
    });
    responses.collect()
}

/// The caller's deadline.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct TimeoutHeader {
    /// How long the caller listens, from 1ms to 10m. Default: 30s.
    #[param(
        nullable = false,
        rename = "Sereno-Timeout",
        pattern = "^[0-9]{1,10}(ms|s|m|h)$",
        example = "30s"
    )]
    timeout: Option<String>,
}

/// Where.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct NamespaceParam {
    /// The namespace. Default: `default`.
    #[param(nullable = false, pattern = "^[a-z0-9._-]{1,64}$")]
    namespace: Option<String>,
}

/// How fresh.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct ConsistencyParam {
    /// `consistent` (the default) rests on an entry of the log that was sent after this call arrived; `stale` is
    /// answered at once from what this node knows.
    #[param(nullable = false, inline)]
    consistency: Option<Consistency>,
}

/// How fresh a read has to be.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its document is used")]
enum Consistency {
    Consistent,
    Stale,
}

/// Pages of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct PageParams {
    /// Rows at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// The `nextCursor` of the page before.
    #[param(nullable = false, pattern = "^[a-z0-9._-]{1,64}$")]
    cursor: Option<String>,
}

/// Which locks.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct ListParams {
    /// Only resources that begin so.
    #[param(nullable = false, max_length = 256, pattern = "^[A-Za-z0-9._:/@+-]*$")]
    prefix: Option<String>,
    /// Only of this owner.
    #[param(
        nullable = false,
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    owner: Option<String>,
    /// Rows at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// The `nextCursor` of the page before.
    #[param(nullable = false, pattern = "^[0-9]{1,15}$")]
    cursor: Option<String>,
}

/// What to follow.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct WatchParams {
    /// Only this family. Default: all.
    #[param(nullable = false, inline)]
    family: Option<WatchFamily>,
    /// Only resources that begin so.
    #[param(nullable = false, max_length = 256, pattern = "^[A-Za-z0-9._:/@+-]*$")]
    prefix: Option<String>,
    /// Only this namespace. Default: all.
    #[param(nullable = false, pattern = "^[a-z0-9._-]{1,64}$")]
    namespace: Option<String>,
    /// The cursor of the last event seen; the header `Last-Event-ID` wins over it. Default: from now on.
    #[param(nullable = false, pattern = "^[0-9a-f]{32}-[0-9]{1,19}$")]
    from: Option<String>,
}

/// The families that there are.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its document is used")]
enum WatchFamily {
    Lock,
    Election,
    Job,
    Hold,
    Quota,
    Admin,
}

/// Following one election.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct ObserveParams {
    /// Stream the record and its changes as server-sent events. Default: false.
    #[param(nullable = false)]
    observe: Option<bool>,
    /// With `observe`: the cursor of the last event seen; the header `Last-Event-ID` wins over it.
    #[param(nullable = false, pattern = "^[0-9a-f]{32}-[0-9]{1,19}$")]
    from: Option<String>,
}

/// Which holds or jobs, by name.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct NamesParams {
    /// Only names that begin so.
    #[param(nullable = false, max_length = 256, pattern = "^[A-Za-z0-9._:/@+-]*$")]
    prefix: Option<String>,
    /// Rows at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// The `nextCursor` of the page before.
    #[param(
        nullable = false,
        max_length = 256,
        pattern = "^[A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$"
    )]
    cursor: Option<String>,
}

/// Whose.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct OwnerParam {
    /// Only of this owner.
    #[param(
        nullable = false,
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    owner: Option<String>,
}

/// Which lines.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
pub(super) struct AuditParams {
    /// The number of the first line. Default: the first that is kept.
    #[param(nullable = false, minimum = 0, maximum = 9007199254740991u64)]
    from: Option<u64>,
    /// Lines at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}

/// One server-sent event as it is framed on the wire.
#[derive(utoipa::ToSchema)]
#[allow(dead_code)] // Only described: the door writes the frames as text.
pub(super) struct ServerSentEvent {
    /// `start` for the first one of a watch, `leader` for an election.
    event: Option<String>,
    /// A cursor; only on the last event of a revision.
    id: Option<String>,
    /// JSON: a WatchEvent, or of the first a WatchStart; of an election, the Election.
    data: String,
}
