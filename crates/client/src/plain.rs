//! Plain typed calls: reads and operators' writes.

use crate::{
    client::Client,
    core::random_id,
    error::Error,
    owed::Release,
    transport::{Ask, escape},
};
use hyper::Method;
use sereno_api::{
    AuditPage, ForceReleaseRequest, ForceReleased, GuardReportRequest, GuardReported, LevelRaised,
    Lock, LockPage, Namespace, NamespacePage, NamespacePut, Policy, PutNamespaceRequest,
    RaiseLevelRequest, Reason, ReleaseRequest, Released, Status, TokenFloorRequest, TokenFloorSet,
};

/// Which held locks to list: oldest grant first.
#[derive(Clone, Debug, Default)]
pub struct ListLocks {
    /// `None`: the client's namespace.
    pub namespace: Option<String>,
    /// Only names that begin so.
    pub prefix: String,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Rows of a page.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// A query string that leaves out what has no value.
#[derive(Default)]
pub(crate) struct Query(pub(crate) String);

impl Query {
    pub(crate) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.0.push(if self.0.is_empty() { '?' } else { '&' });
            self.0.push_str(name);
            self.0.push('=');
            self.0.push_str(&escape(&value.to_string(), "/:"));
        }
        self
    }
}

impl Client {
    /// One lock: its holder and its queue. A free one is an answer too.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn get_lock(&self, namespace: Option<&str>, resource: &str) -> Result<Lock, Error> {
        let query = Query::default().with("namespace", Some(self.namespace_or(namespace))).0;
        self.get(format!("/v1/locks/{}{query}", escape(resource, "/:@+"))).await
    }

    /// One page of held locks.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn list_locks(&self, list: &ListLocks) -> Result<LockPage, Error> {
        let query = Query::default()
            .with("namespace", Some(self.namespace_or(list.namespace.as_deref())))
            .with("prefix", Some(&list.prefix).filter(|prefix| !prefix.is_empty()))
            .with("owner", list.owner.as_ref())
            .with("limit", list.limit)
            .with("cursor", list.cursor.as_ref());
        self.get(format!("/v1/locks{}", query.0)).await
    }

    /// Releases a lease that no guard of this process has: `lease_id` is the secret from its grant.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn release_lease(
        &self,
        namespace: Option<&str>,
        resource: &str,
        lease_id: &str,
    ) -> Result<Release, Error> {
        let namespace = self.namespace_or(namespace);
        let (resource, lease_id) = (resource.to_string(), lease_id.to_string());
        let ask = move |born_at| {
            let request = ReleaseRequest {
                namespace: namespace.clone(),
                resource: resource.clone(),
                lease_id: lease_id.clone(),
                born_at,
            };
            Ask::post("/v1/locks/release", &request)
        };
        let released: Released = self.core().run_call(ask).await?;
        Ok(match released.released {
            true => Release::Now,
            false => Release::Before(released.reason.unwrap_or(Reason::Unknown)),
        })
    }

    /// Ends the lease with this token, and no other, in an operator's name. `reason` goes into the audit trail.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_HOLDER` when nobody holds the lock with that token.
    pub async fn force_release(
        &self,
        namespace: Option<&str>,
        resource: &str,
        fencing_token: u64,
        reason: &str,
    ) -> Result<ForceReleased, Error> {
        let request = ForceReleaseRequest {
            namespace: self.namespace_or(namespace),
            resource: resource.into(),
            fencing_token,
            request_id: random_id(),
            reason: reason.into(),
            born_at: None,
        };
        let ask = move |born_at| {
            let mut request = request.clone();
            request.born_at = born_at;
            Ask::post("/v1/locks/force-release", &request)
        };
        self.core().run_call(ask).await
    }

    /// One page of namespaces, by name.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn list_namespaces(&self, cursor: Option<&str>) -> Result<NamespacePage, Error> {
        let query = Query::default().with("cursor", cursor);
        self.get(format!("/v1/namespaces{}", query.0)).await
    }

    /// A namespace: its policy and its counters.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_FOUND` where there is none of that name.
    pub async fn get_namespace(&self, name: &str) -> Result<Namespace, Error> {
        self.get(format!("/v1/namespaces/{}", escape(name, ""))).await
    }

    /// Creates a namespace (`expected_version` 0) or replaces its policy.
    ///
    /// # Errors
    /// [`Error::Refused`] with `VERSION_CONFLICT` when it has another version by now. After a lost answer that may
    /// be the version that this very call has made.
    pub async fn put_namespace(
        &self,
        name: &str,
        expected_version: u64,
        policy: Policy,
    ) -> Result<NamespacePut, Error> {
        self.put_in_namespace(name, expected_version, Some(policy), None).await
    }

    /// Says which region decides about a namespace (`None`: any), and creates it with `expected_version` 0.
    ///
    /// # Errors
    /// As of [`Self::put_namespace`].
    pub async fn put_home(
        &self,
        name: &str,
        expected_version: u64,
        home: Option<&str>,
    ) -> Result<NamespacePut, Error> {
        let home = home.unwrap_or_default().to_owned();
        self.put_in_namespace(name, expected_version, None, Some(home)).await
    }

    async fn put_in_namespace(
        &self,
        name: &str,
        expected_version: u64,
        policy: Option<Policy>,
        home: Option<String>,
    ) -> Result<NamespacePut, Error> {
        let path = format!("/v1/namespaces/{}", escape(name, ""));
        let ask = move |born_at| {
            let (policy, home) = (policy.clone(), home.clone());
            let request = PutNamespaceRequest { expected_version, policy, home, born_at };
            Ask::json(Method::PUT, path.clone(), &request)
        };
        self.core().run_call(ask).await
    }

    /// The audit trail from line `from` on.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn audit(&self, from: u64, limit: Option<usize>) -> Result<AuditPage, Error> {
        let query = Query::default().with("from", Some(from)).with("limit", limit);
        self.get(format!("/v1/audit{}", query.0)).await
    }

    /// The condition of the node that answers.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn status(&self) -> Result<Status, Error> {
        self.get("/v1/status".into()).await
    }

    /// Makes every token to come at least `floor`.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn set_token_floor(&self, floor: u64) -> Result<TokenFloorSet, Error> {
        let request_id = random_id();
        let ask = move |born_at| {
            let request = TokenFloorRequest { request_id: request_id.clone(), floor, born_at };
            Ask::post("/v1/admin/token-floor", &request)
        };
        self.core().run_call(ask).await
    }

    /// Has all nodes behave by this level, which every one that is there has to understand.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn raise_level(&self, level: u32) -> Result<LevelRaised, Error> {
        let ask = move |born_at| {
            Ask::post("/v1/admin/raise-level", &RaiseLevelRequest { level, born_at })
        };
        self.core().run_call(ask).await
    }

    /// Tells the service that the fence guard `guard` (a name for people) checks the tokens of `fence_key`; with
    /// `token`, that it refused a write with this one, for `highest` was accepted before.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn report_guard(
        &self,
        fence_key: &str,
        guard: &str,
        token: Option<u64>,
        highest: Option<u64>,
    ) -> Result<GuardReported, Error> {
        let request = GuardReportRequest {
            fence_key: fence_key.into(),
            guard: guard.into(),
            token,
            highest,
            request_id: random_id(),
            born_at: None,
        };
        let ask = move |born_at| {
            Ask::post("/v1/guards/report", &GuardReportRequest { born_at, ..request.clone() })
        };
        self.core().run_call(ask).await
    }

    pub(crate) async fn get<T: serde::de::DeserializeOwned + Send + 'static>(
        &self,
        path: String,
    ) -> Result<T, Error> {
        self.core().run_call(move |_| Ask::get(path.clone())).await
    }

    pub(crate) fn namespace_or(&self, namespace: Option<&str>) -> String {
        namespace.unwrap_or(&self.core().settings.namespace).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_leaves_out_what_has_no_value() {
        let query =
            Query::default().with("a", None::<u8>).with("b", Some("x y&z")).with("c", Some(7));
        assert_eq!(query.0, "?b=x%20y%26z&c=7");
        assert_eq!(Query::default().0, "");
    }
}
