//! `GET /v1/quota-ledger`.

use super::{
    Door,
    answer::{Answer, ok},
    caller::Caller,
    fields,
    openapi::{AuditProblems, NamespaceParam},
    problem::Refused,
    query::Params,
};
use crate::{audit::Search, time};
use axum::extract::State;
use hyper::Uri;
use sereno_api::{ErrorCode, LedgerPage};
use sereno_core::names::{NamespaceName, QuotaName, QuotaPath};
use std::sync::Arc;

/// Numbers stay plain JSON numbers.
const LINES_MAX: u64 = (1 << 53) - 1;

/// Which changes of quotas.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its document is used")]
struct LedgerParams {
    /// Only about this quota.
    #[param(nullable = false, pattern = "^[A-Za-z0-9._:@+-]{1,64}$")]
    quota: Option<String>,
    /// Only about this node of a tree, or those below it; empty: the root, so all.
    #[param(
        nullable = false,
        max_length = 190,
        pattern = "^([A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+){0,7})?$"
    )]
    path: Option<String>,
    /// Only of this owner.
    #[param(
        nullable = false,
        min_length = 1,
        max_length = 128,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    owner: Option<String>,
    /// Not before this UTC instant (RFC 3339).
    #[param(
        nullable = false,
        pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$",
        example = "2026-12-01T02:00:00Z"
    )]
    since: Option<String>,
    /// Before this UTC instant.
    #[param(
        nullable = false,
        pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$",
        example = "2026-12-02T02:00:00Z"
    )]
    until: Option<String>,
    /// The number of the first line of the audit trail to look at. Default: the first that is kept.
    #[param(nullable = false, minimum = 0, maximum = 9007199254740991u64)]
    from: Option<u64>,
    /// Lines at most. Default: 100.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u64>,
}

/// What has changed in the books of quotas, in order: lines of the audit trail.
///
/// One call looks at 20,000 lines at most: a page may be empty, and `complete` says whether there may be more. Everything
/// that this node had applied when the call arrived is looked at. A line that changes no amounts and is about no node
/// (`begun`, `quarantined`) is given only without `quota` and `path`.
#[utoipa::path(
    get, path = "/v1/quota-ledger", operation_id = "readQuotaLedger", tag = "quotas",
    params(NamespaceParam, LedgerParams),
    responses((status = 200, description = "Lines in order.", body = LedgerPage), AuditProblems)
)]
pub(super) async fn read_ledger(
    State(door): State<Arc<Door>>,
    caller: Caller,
    uri: Uri,
) -> Result<Answer<LedgerPage>, Refused> {
    caller.require_admin()?;
    let known = ["namespace", "quota", "path", "owner", "since", "until", "from", "limit"];
    let search = to_search(&door, &Params::parse(uri.query(), &known)?)?;
    let Some(audit) = &door.audit else {
        return Err(Refused::new(
            ErrorCode::NotFound,
            "the ledger is read from the audit trail, and a server with --log memory keeps none",
        ));
    };
    let page = audit.search(search).await;
    Ok(ok(page.map_err(|error| Refused::unavailable(error, 1_000))?))
}

fn to_search(door: &Door, params: &Params) -> Result<Search, Refused> {
    let namespace = door.namespace(params.get("namespace").unwrap_or(NamespaceName::DEFAULT))?;
    let quota = params.get("quota").map(QuotaName::new).transpose();
    let path = params.get("path").map(QuotaPath::new).transpose();
    let owner = params.get("owner").map(fields::owner).transpose()?;
    Ok(Search {
        namespace: namespace.to_string(),
        quota: quota.map_err(|rule| Refused::invalid("quota", rule))?.map(|it| it.to_string()),
        path: path.map_err(|rule| Refused::invalid("path", rule))?.map(|it| it.to_string()),
        owner: owner.map(|owner| owner.to_string()),
        since_ms: instant(params, "since")?,
        until_ms: instant(params, "until")?,
        from: params.number("from", 1, 0, LINES_MAX)?,
        limit: params.limit()?,
    })
}

fn instant(params: &Params, field: &str) -> Result<Option<u64>, Refused> {
    let rule = "must be a UTC instant like 2026-12-01T02:00:00Z, with at most milliseconds";
    let Some(text) = params.get(field) else { return Ok(None) };
    time::parse_rfc3339(text).map(Some).ok_or_else(|| Refused::invalid(field, rule))
}
