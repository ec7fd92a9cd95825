//! Plain typed calls about elections: reads, operators' writes, and those of a leader by its lease id.

use crate::{
    client::Client,
    core::random_id,
    error::Error,
    owed::Release,
    plain::Query,
    tenure,
    transport::{Ask, escape},
};
use sereno_api::{
    Election, ElectionPage, Family, ForceReleased, ForceResignRequest, HandedOff, HandoffRequest,
    LeaseRef, Reason, Released,
};

/// Which elections with a leader to list: the oldest term first.
#[derive(Clone, Debug, Default)]
pub struct ListElections {
    /// `None`: the client's namespace.
    pub namespace: Option<String>,
    /// Only names that begin so.
    pub prefix: String,
    /// Only those that this candidate leads.
    pub candidate: Option<String>,
    /// Rows of a page.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// An election: who leads and who waits. A vacant one is an answer too.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn get_election(
        &self,
        namespace: Option<&str>,
        election: &str,
    ) -> Result<Election, Error> {
        let query = Query::default().with("namespace", Some(self.namespace_or(namespace))).0;
        self.get(format!("/v1/elections/{}{query}", escape(election, "/:@+"))).await
    }

    /// One page of elections that have a leader.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn list_elections(&self, list: &ListElections) -> Result<ElectionPage, Error> {
        let query = Query::default()
            .with("namespace", Some(self.namespace_or(list.namespace.as_deref())))
            .with("prefix", Some(&list.prefix).filter(|prefix| !prefix.is_empty()))
            .with("owner", list.candidate.as_ref())
            .with("limit", list.limit)
            .with("cursor", list.cursor.as_ref());
        self.get(format!("/v1/elections{}", query.0)).await
    }

    /// Resigns a term that no [`crate::Leadership`] of this process has: `lease_id` is the secret from its grant.
    ///
    /// # Errors
    /// As for every call: [`Error`].
    pub async fn resign_term(
        &self,
        namespace: Option<&str>,
        election: &str,
        lease_id: &str,
    ) -> Result<Release, Error> {
        let namespace = self.namespace_or(namespace);
        let lease = LeaseRef { resource: election.into(), lease_id: lease_id.into() };
        let ask = move |born_at| tenure::end(Family::Election, &namespace, &lease, born_at);
        let released: Released = self.core().run_call(ask).await?;
        Ok(match released.released {
            true => Release::Now,
            false => Release::Before(released.reason.unwrap_or(Reason::Unknown)),
        })
    }

    /// Hands such a term over to a candidate who waits.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_FOUND` where nobody of that name waits.
    pub async fn hand_off_term(
        &self,
        namespace: Option<&str>,
        election: &str,
        lease_id: &str,
        to: &str,
    ) -> Result<HandedOff, Error> {
        let namespace = self.namespace_or(namespace);
        self.core().run_call(handoff(&namespace, election, lease_id, to)).await
    }

    /// Ends this term, and no other, in an operator's name. `reason` goes into the audit trail.
    ///
    /// # Errors
    /// [`Error::Refused`] with `NOT_HOLDER` when nobody leads with that term.
    pub async fn force_resign(
        &self,
        namespace: Option<&str>,
        election: &str,
        term: u64,
        reason: &str,
    ) -> Result<ForceReleased, Error> {
        let request = ForceResignRequest {
            namespace: self.namespace_or(namespace),
            election: election.into(),
            term,
            request_id: random_id(),
            reason: reason.into(),
            born_at: None,
        };
        let ask = move |born_at| {
            let request = ForceResignRequest { born_at, ..request.clone() };
            Ask::post("/v1/elections/force-release", &request)
        };
        self.core().run_call(ask).await
    }
}

/// One hand-off, however often it is sent.
pub(super) fn handoff(
    namespace: &str,
    election: &str,
    lease_id: &str,
    to: &str,
) -> impl Fn(Option<u64>) -> Ask + Send + Sync + use<> {
    let request = HandoffRequest {
        namespace: namespace.into(),
        election: election.into(),
        lease_id: lease_id.into(),
        to: to.into(),
        request_id: random_id(),
        born_at: None,
    };
    move |born_at| {
        Ask::post("/v1/elections/handoff", &HandoffRequest { born_at, ..request.clone() })
    }
}
