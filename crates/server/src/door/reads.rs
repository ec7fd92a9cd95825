//! `GET /v1/locks` and `GET /v1/locks/{resource}`.

use super::{
    Door,
    answer::{Answer, ok},
    fields,
    openapi::{GetProblems, ListProblems},
    problem::Refused,
    query::Params,
    refusal,
    timeout::Timeout,
    views,
};
use crate::metrics::{Kind, Mode, OK};
use axum::extract::State;
use hyper::Uri;
use percent_encoding::percent_decode_str;
use sereno_api::{Lock, LockPage};
use sereno_core::{self as core, ids::Token, names::NamespaceName, query::ListLocks};
use sereno_node::handle::{Consistency, ReadAt};
use std::sync::Arc;

/// The folder of locks.
pub(super) const LOCKS: &str = "/v1/locks/";

impl Door {
    /// Reads the state and counts the answer.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        consistency: Consistency,
        timeout: Timeout,
        read: impl FnOnce(&core::State) -> T + Send + 'static,
    ) -> Result<(T, ReadAt), Refused> {
        let result = self.node.read(consistency, timeout.deadline(), read).await;
        let result = result.map_err(refusal::undecided);
        let code = result.as_ref().map_or_else(|refused| refused.code().as_str(), |_| OK);
        self.metrics.calls.answered(Kind::Read, Mode::Now, code, timeout.elapsed());
        result
    }

    /// The parameter `namespace`, or the default.
    pub(super) fn namespace_of(&self, params: &Params) -> Result<NamespaceName, Refused> {
        self.namespace(params.get("namespace").unwrap_or(NamespaceName::DEFAULT))
    }
}

/// One lock: its holder and its queue.
///
/// The resource is the rest of the path, with or without its slashes encoded. A free name is 200 too. (Resources
/// called like a verb are documented under its path; they are read the same way.)
#[utoipa::path(
    get, path = "/v1/locks/{resource}", operation_id = "getLock", tag = "locks",
    params(
        (
            "resource" = String, Path, description = "The resource: the rest of the path, percent-decoded once.",
            max_length = 256,
            pattern = "^(?!(acquire|acquire-all|renew|renew-many|release|abandon|force-release)$)\
                [A-Za-z0-9._:@+-]+(/[A-Za-z0-9._:@+-]+)*$",
        ),
        super::openapi::NamespaceParam, super::openapi::ConsistencyParam, super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "Held, free, or in its lock delay.", body = Lock), GetProblems)
)]
pub(super) async fn get_lock(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<Lock>, Refused> {
    let params = Params::parse(uri.query(), &["namespace", "consistency"])?;
    let resource = name_of(LOCKS, "resource", uri.path())?;
    let namespace = door.namespace_of(&params)?;
    let (asked, name) = (namespace.clone(), resource.clone());
    let read = move |state: &core::State| state.lock(&asked, &name);
    let (view, at) = door.read(params.consistency()?, timeout, read).await?;
    let view = view.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    Ok(ok(Lock {
        state: views::state(&view),
        fence_key: views::fence_key(&namespace, resource.as_str()),
        resource: resource.to_string(),
        holder: view.holder.as_ref().map(views::holder),
        lock_delay_ms: (view.lock_delay_ms > 0).then_some(view.lock_delay_ms),
        waiters: view.waiters,
        queue: view.queue.iter().map(views::waiter).collect(),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

/// The rest of the path below a folder, percent-decoded once.
pub(super) fn name_of(
    folder: &str,
    field: &str,
    path: &str,
) -> Result<core::names::ResourceName, Refused> {
    let rest = path.strip_prefix(folder).unwrap_or("");
    let decoded = percent_decode_str(rest).decode_utf8();
    let text = decoded.map_err(|_| Refused::invalid(field, "is not UTF-8"))?;
    fields::resource(field, &text)
}

/// Which leased names to list, as the parameters of a list say.
pub(super) fn list_of(
    namespace: &NamespaceName,
    params: &Params,
    owner: &str,
) -> Result<ListLocks, Refused> {
    Ok(ListLocks {
        namespace: namespace.clone(),
        prefix: params.prefix()?,
        owner: params.get(owner).map(|text| fields::person(owner, text)).transpose()?,
        limit: params.limit()?,
        after: Token(params.number("cursor", 0, 0, core::limits::TOKEN_MAX)?),
    })
}

/// Held locks, oldest grant first.
#[utoipa::path(
    get, path = "/v1/locks", operation_id = "listLocks", tag = "locks",
    params(
        super::openapi::NamespaceParam, super::openapi::ListParams, super::openapi::ConsistencyParam,
        super::openapi::TimeoutHeader,
    ),
    responses((status = 200, description = "One page.", body = LockPage), ListProblems)
)]
pub(super) async fn list_locks(
    State(door): State<Arc<Door>>,
    timeout: Timeout,
    uri: Uri,
) -> Result<Answer<LockPage>, Refused> {
    let allowed = ["namespace", "prefix", "owner", "limit", "cursor", "consistency"];
    let params = Params::parse(uri.query(), &allowed)?;
    let namespace = door.namespace_of(&params)?;
    let list = list_of(&namespace, &params, "owner")?;
    let read = move |state: &core::State| state.list_locks(&list);
    let (page, at) = door.read(params.consistency()?, timeout, read).await?;
    let page = page.ok_or_else(|| refusal::no_namespace(namespace.as_str()))?;
    Ok(ok(LockPage {
        locks: page.locks.iter().filter_map(|view| views::row(&namespace, view)).collect(),
        next_cursor: page.next.map(|token| token.to_string()),
        revision: at.revision.0,
        cluster_time_ms: at.time.0,
        age_ms: at.age_ms,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_path_is_decoded_once() {
        for (path, resource) in [
            ("/v1/locks/orders/42", Some("orders/42")),
            ("/v1/locks/orders%2F42", Some("orders/42")),
            ("/v1/locks/a+b@c:d", Some("a+b@c:d")),
            ("/v1/locks/acquire", Some("acquire")),
            ("/v1/locks/a%252F", None),
            ("/v1/locks/a%2", None),
            ("/v1/locks/a//b", None),
            ("/v1/locks/", None),
            ("/v1/locks/%ff", None),
        ] {
            let read = name_of(LOCKS, "resource", path).ok().map(|name| name.to_string());
            assert_eq!(read.as_deref(), resource, "{path}");
        }
    }
}
