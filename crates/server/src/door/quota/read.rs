//! `GET /v1/quotas`, `/v1/quotas/{node}` and `/v1/quota-explain`.

use super::{fields as own, views};
use crate::door::{
    Door,
    answer::{Answer, ok},
    fields,
    openapi::{GetProblems, ListProblems},
    problem::Refused,
    query::Params,
    refusal,
    timeout::Timeout,
};
use axum::extract::State;
use hyper::Uri;
use percent_encoding::percent_decode_str;
use sereno_api::{ErrorCode, QuotaExplanation, QuotaNodeRead, QuotaPage};
use sereno_core::{
    self as core,
    command::NodeRef,
    names::{NamespaceName, QuotaName, QuotaPath},
    query::{AccountView, ListNodes, NodeView, ReportView, ShareView},
};
use std::sync::Arc;

/// The folder of quotas.
pub(in crate::door) const QUOTAS: &str = "/v1/quotas/";

/// One node of a quota: its rules, its books, and who uses it.
///
/// The rest of the path is the quota's name and the path in its tree, with or without its slashes encoded. A node that
/// is not there has no limit, which is a limit of 0. (Quotas called like a verb are documented under its path; they are
/// read the same way.)
#[utoipa::path(
    get, path = "/v1/quotas/{node}", operation_id = "getQuota", tag = "quotas",
    params(
        (
            "node" = String, Path,
            description = "The quota, and the path in its tree, as in `gpu` or `gpu/acme/vision`; percent-decoded once.",
            max_length = 255,
            pattern = "^(?!(reserve|begin|commit|release|extend|resize|return|settle|abandon|put-limit|remove-node|\
                report-usage|reconcile|adjust|share-grant|share-return|share-reclaim)$)\
                [A-Za-z0-9._:@+-]{1,64}(/[A-Za-z0-9._:@+-]+){0,8}$",
        ),
        crate::door::openapi::NamespaceParam, super::params::QuotaOwnersParams,
        crate::door::openapi::ConsistencyParam, crate::door::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "The node.", body = QuotaNodeRead), GetProblems)
)]
pub(in crate::door) async fn get_quota(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<QuotaNodeRead>, Refused> {
    let params = Params::parse(uri.query(), &["namespace", "limit", "cursor", "consistency"])?;
    let node = node_of(uri.path())?;
    let namespace = door.namespace_of(&params)?;
    let limit = params.limit()?;
    let after = params.get("cursor").map(|text| fields::person("cursor", text)).transpose()?;
    let after = after.map(|owner| owner.to_string()).unwrap_or_default();
    let (asked, name) = (namespace.clone(), node.clone());
    // One more than asked for tells whether another page follows.
    let read = move |state: &core::State| whole(state, &asked, &name, &after, limit + 1);
    let (read, at) = door.read(params.consistency()?, timeout, read).await?;
    let whole = read.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let whole = whole.ok_or_else(|| no_node(&node))?;
    let (owners, rest) = whole.owners.split_at(whole.owners.len().min(limit));
    let last = owners.last().filter(|_| !rest.is_empty());
    Ok(ok(QuotaNodeRead {
        node: views::node(&whole.node),
        owners: owners.iter().map(views::owner_use).collect(),
        next_cursor: last.map(|view| view.owner.to_string()),
        reports: whole.reports.iter().map(views::report).collect(),
        shares: whole.shares.iter().map(views::share).collect(),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

/// All that one read tells of a node.
struct Whole {
    node: NodeView,
    owners: Vec<AccountView>,
    reports: Vec<ReportView>,
    shares: Vec<ShareView>,
}

/// The outer `None`: there is no such namespace.
fn whole(
    state: &core::State,
    namespace: &NamespaceName,
    name: &NodeRef,
    after: &str,
    limit: usize,
) -> Option<Option<Whole>> {
    let Some(node) = state.quota_node(namespace, name)? else { return Some(None) };
    let mut shares = state.quota_shares(namespace)?;
    shares.retain(|share| share.node == *name);
    Some(Some(Whole {
        node,
        owners: state.quota_accounts(namespace, name, after, limit)?.unwrap_or_default(),
        reports: state.quota_reports(namespace, name)?.unwrap_or_default(),
        shares,
    }))
}

pub(super) fn no_node(node: &NodeRef) -> Refused {
    let (quota, path) = (&node.quota, &node.path);
    let place = match path.as_str() {
        "" => format!("quota {quota:?}"),
        path => format!("node {path:?} of quota {quota:?}"),
    };
    Refused::new(ErrorCode::NotFound, format!("there is no {place}: its limit is 0"))
}

/// The quota and the path in its tree, which are the rest of the path below the folder.
fn node_of(path: &str) -> Result<NodeRef, Refused> {
    let rest = path.strip_prefix(QUOTAS).unwrap_or("");
    let decoded = percent_decode_str(rest).decode_utf8();
    let text = decoded.map_err(|_| Refused::invalid("quota", "is not UTF-8"))?;
    match text.split_once('/') {
        None => own::node(&text, ""),
        Some((_, "")) => Err(Refused::invalid("path", "has an empty segment")),
        Some((quota, path)) => own::node(quota, path),
    }
}

/// Nodes of one quota by path, or the roots of all quotas by name.
#[utoipa::path(
    get, path = "/v1/quotas", operation_id = "listQuotas", tag = "quotas",
    params(
        crate::door::openapi::NamespaceParam, super::params::ListQuotasParams,
        crate::door::openapi::ConsistencyParam, crate::door::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "One page.", body = QuotaPage), ListProblems)
)]
pub(in crate::door) async fn list_quotas(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<QuotaPage>, Refused> {
    let allowed = ["namespace", "quota", "prefix", "limit", "cursor", "consistency"];
    let params = Params::parse(uri.query(), &allowed)?;
    let namespace = door.namespace_of(&params)?;
    let (prefix, limit, cursor) = (params.prefix()?, params.limit()?, params.get("cursor"));
    let list = match params.get("quota") {
        Some(quota) => {
            let after = cursor.map(|text| {
                let rule = |rule| Refused::invalid("cursor", rule);
                QuotaPath::new(text).map_err(rule).map(|path| path.to_string())
            });
            let after = after.transpose()?;
            List::Nodes(ListNodes { quota: own::quota(quota)?, prefix, limit, after })
        }
        None => {
            let after = cursor
                .map(|text| QuotaName::new(text).map_err(|rule| Refused::invalid("cursor", rule)));
            List::Roots { prefix, limit, after: after.transpose()? }
        }
    };
    let asked = namespace.clone();
    let read = move |state: &core::State| list.page(state, &asked);
    let (page, at) = door.read(params.consistency()?, timeout, read).await?;
    let (rows, next_cursor) = page.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    Ok(ok(QuotaPage {
        nodes: rows.iter().map(views::node).collect(),
        next_cursor,
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

/// Which nodes a list has.
enum List {
    Nodes(ListNodes),
    Roots { prefix: String, limit: usize, after: Option<QuotaName> },
}

impl List {
    /// The rows, and where the next page begins, if one follows. `None`: there is no such namespace.
    fn page(
        &self,
        state: &core::State,
        namespace: &NamespaceName,
    ) -> Option<(Vec<NodeView>, Option<String>)> {
        match self {
            Self::Nodes(list) => {
                let rows = state.list_quota_nodes(namespace, list)?;
                let last = rows.last().filter(|_| rows.len() == list.limit);
                let last = last.map(|view| view.node.path.to_string());
                let rest = ListNodes { limit: 1, after: last.clone(), ..list.clone() };
                let follows =
                    last.is_some() && !state.list_quota_nodes(namespace, &rest)?.is_empty();
                Some((rows, last.filter(|_| follows)))
            }
            Self::Roots { prefix, limit, after } => {
                let root = |quota: &QuotaName| {
                    let node = NodeRef { quota: quota.clone(), path: QuotaPath::root() };
                    state.quota_node(namespace, &node).flatten()
                };
                let names = state.quotas(namespace)?;
                let is_listed = |quota: &&QuotaName| {
                    quota.as_str().starts_with(prefix.as_str())
                        && after.as_ref().is_none_or(|after| *quota > after)
                };
                let mut roots = names.iter().filter(is_listed).filter_map(root);
                let rows: Vec<_> = roots.by_ref().take(*limit).collect();
                let follows = roots.next().is_some();
                let last = rows.last().map(|view| view.node.quota.to_string());
                Some((rows, last.filter(|_| follows)))
            }
        }
    }
}

/// Why a node does not give more: its layers, the last refusal, and who has what of it.
#[utoipa::path(
    get, path = "/v1/quota-explain", operation_id = "explainQuota", tag = "quotas",
    params(
        crate::door::openapi::NamespaceParam, super::params::ExplainParams,
        crate::door::openapi::ConsistencyParam, crate::door::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "The node, and all above it.", body = QuotaExplanation), GetProblems)
)]
pub(in crate::door) async fn explain(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<QuotaExplanation>, Refused> {
    let allowed = ["namespace", "quota", "path", "limit", "consistency"];
    let params = Params::parse(uri.query(), &allowed)?;
    let namespace = door.namespace_of(&params)?;
    let quota = params.get("quota").ok_or_else(|| Refused::invalid("quota", "has to be given"))?;
    let node = own::node(quota, params.get("path").unwrap_or(""))?;
    let limit = params.limit()?;
    let (asked, name) = (namespace.clone(), node.clone());
    let read = move |state: &core::State| state.explain_quota(&asked, &name, limit);
    let (read, at) = door.read(params.consistency()?, timeout, read).await?;
    let read = read.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    let explained = read.ok_or_else(|| no_node(&node))?;
    let holders = explained.holders.iter();
    Ok(ok(QuotaExplanation {
        layers: explained.layers.iter().map(views::node).collect(),
        last_refusal: explained.last_refusal.as_ref().map(views::refusal),
        holders: holders.map(|view| views::reservation(&namespace, view)).collect(),
        has_more: explained.has_more,
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_path_is_a_quota_and_a_path() {
        for (path, node) in [
            ("/v1/quotas/gpu", Some(("gpu", ""))),
            ("/v1/quotas/gpu/acme/vision", Some(("gpu", "acme/vision"))),
            ("/v1/quotas/gpu%2Facme%2Fvision", Some(("gpu", "acme/vision"))),
            ("/v1/quotas/reserve", Some(("reserve", ""))),
            ("/v1/quotas/gpu/", None),
            ("/v1/quotas/", None),
            ("/v1/quotas//acme", None),
            ("/v1/quotas/gpu//acme", None),
            ("/v1/quotas/gpu/..", None),
            ("/v1/quotas/a%252F", None),
            ("/v1/quotas/%ff", None),
        ] {
            let read = node_of(path).ok();
            let read = read.as_ref().map(|node| (node.quota.as_str(), node.path.as_str()));
            assert_eq!(read, node, "{path}");
        }
    }
}
