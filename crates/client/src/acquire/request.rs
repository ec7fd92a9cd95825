//! What is asked for, as wire types, and what was granted.

use super::drive::Wanted;
use crate::{
    client::Inner,
    clock::Moment,
    core::{Core, Heard},
    guard::Guard,
    lease::{NotRenewed, Term},
    tenure,
    transport::Ask,
};
use sereno_api::{
    AcquireAllRequest, AcquireRequest, CampaignRequest, Elected, Family, Fencing, Granted,
    GrantedAll, Labels, LeaseRef, Millis,
};
use std::{sync::Arc, time::Duration};

/// One resource, several at once, or an election with what its leader proclaims.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    One(String),
    All(Vec<String>),
    Campaign { election: String, value: Option<String> },
}

impl Shape {
    pub(crate) fn family(&self) -> Family {
        match self {
            Self::One(_) | Self::All(_) => Family::Lock,
            Self::Campaign { .. } => Family::Election,
        }
    }
}

/// Everything about a request but its id.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub namespace: String,
    pub shape: Shape,
    pub owner: String,
    pub lease_ttl: Option<Duration>,
    pub max_hold: Option<Duration>,
    pub fencing: Option<Fencing>,
    pub labels: Labels,
}

/// What the service granted, without the state that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The namespace.
    pub namespace: String,
    /// The locked resources in the order asked for; one, unless they were acquired all at once.
    pub holdings: Vec<Holding>,
    /// Who checks the tokens.
    pub fencing: Fencing,
    /// Where in the service's total order it was granted.
    pub revision: u64,
    pub(crate) family: Family,
    pub(crate) lease_id: String,
    pub(crate) term: Term,
    /// Of an election: the version of its record.
    pub(crate) version: u64,
}

/// One locked resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The resource.
    pub resource: String,
    /// Under what a protected resource remembers the highest token.
    pub fence_key: String,
    /// Larger than every token granted before.
    pub fencing_token: u64,
}

impl Grant {
    /// Each resource with the secret that proves its ownership.
    pub(crate) fn leases(&self) -> Vec<LeaseRef> {
        let lease = |holding: &Holding| LeaseRef {
            resource: holding.resource.clone(),
            lease_id: self.lease_id.clone(),
        };
        self.holdings.iter().map(lease).collect()
    }
}

impl Wanted for Wish {
    type Grant = Grant;
    type Held = Guard;

    fn family(&self) -> Family {
        self.shape.family()
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn grant(&self, sent: Moment, body: &[u8]) -> Result<Grant, String> {
        match self.read(sent, body) {
            Ok(grant) if grant.holdings.is_empty() => Err("a grant of nothing".into()),
            Ok(grant) => Ok(grant),
            Err(error) => Err(format!("the answer was not understood: {error}")),
        }
    }

    fn confirming(&self, core: &Core, _: &str, grant: &Grant) -> Ask {
        tenure::renew(core, grant.family, &grant.namespace, grant.leases())
    }

    fn confirm(&self, grant: &mut Grant, asked: Moment, heard: &Heard) -> Result<(), NotRenewed> {
        grant.term = tenure::verdict(grant.family, &grant.leases(), asked, heard)?;
        Ok(())
    }

    fn hold(self, inner: Arc<Inner>, grant: Grant) -> Guard {
        Guard::new(inner, grant)
    }

    fn ask(&self, request_id: &str, wait: Option<Duration>, born_at: Option<u64>) -> Ask {
        let lease_ttl = self.lease_ttl.map(Millis::from);
        let max_hold = self.max_hold.map(Millis::from);
        match &self.shape {
            Shape::One(resource) => Ask::post(
                "/v1/locks/acquire",
                &AcquireRequest {
                    namespace: self.namespace.clone(),
                    resource: resource.clone(),
                    request_id: request_id.into(),
                    owner: self.owner.clone(),
                    lease_ttl,
                    wait_timeout: wait.map(Millis::from),
                    max_hold,
                    fencing: self.fencing,
                    labels: self.labels.clone(),
                    born_at,
                },
            ),
            Shape::All(resources) => Ask::post(
                "/v1/locks/acquire-all",
                &AcquireAllRequest {
                    namespace: self.namespace.clone(),
                    resources: resources.clone(),
                    request_id: request_id.into(),
                    owner: self.owner.clone(),
                    lease_ttl,
                    max_hold,
                    fencing: self.fencing,
                    labels: self.labels.clone(),
                    born_at,
                },
            ),
            Shape::Campaign { election, value } => Ask::post(
                "/v1/elections/campaign",
                &CampaignRequest {
                    namespace: self.namespace.clone(),
                    election: election.clone(),
                    candidate: self.owner.clone(),
                    value: value.clone(),
                    request_id: request_id.into(),
                    lease_ttl,
                    wait_timeout: wait.map(Millis::from),
                    max_hold,
                    fencing: self.fencing,
                    labels: self.labels.clone(),
                    born_at,
                },
            ),
        }
    }
}

impl Wish {
    fn read(&self, sent: Moment, body: &[u8]) -> Result<Grant, serde_json::Error> {
        let term = |expires_in_ms: u64, final_in_ms: Option<u64>| Term {
            sent,
            expires_in: Duration::from_millis(expires_in_ms),
            final_in: final_in_ms.map(Duration::from_millis),
        };
        match &self.shape {
            Shape::One(_) => serde_json::from_slice(body).map(|granted: Granted| Grant {
                namespace: self.namespace.clone(),
                family: Family::Lock,
                version: 0,
                fencing: granted.fencing,
                revision: granted.original_revision.unwrap_or(granted.revision),
                lease_id: granted.lease_id,
                term: term(granted.expires_in_ms, granted.final_deadline_in_ms),
                holdings: vec![Holding {
                    resource: granted.resource,
                    fence_key: granted.fence_key,
                    fencing_token: granted.fencing_token,
                }],
            }),
            Shape::All(_) => serde_json::from_slice(body).map(|granted: GrantedAll| Grant {
                namespace: self.namespace.clone(),
                family: Family::Lock,
                version: 0,
                fencing: granted.fencing,
                revision: granted.original_revision.unwrap_or(granted.revision),
                lease_id: granted.lease_id,
                term: term(granted.expires_in_ms, granted.final_deadline_in_ms),
                holdings: granted.locks.into_iter().map(holding).collect(),
            }),
            Shape::Campaign { .. } => serde_json::from_slice(body).map(|elected: Elected| Grant {
                namespace: self.namespace.clone(),
                family: Family::Election,
                version: elected.version,
                fencing: elected.fencing,
                revision: elected.original_revision.unwrap_or(elected.revision),
                lease_id: elected.lease_id,
                term: term(elected.expires_in_ms, elected.final_deadline_in_ms),
                holdings: vec![Holding {
                    resource: elected.election,
                    fence_key: elected.fence_key,
                    fencing_token: elected.term,
                }],
            }),
        }
    }
}

fn holding(lock: sereno_api::GrantedLock) -> Holding {
    Holding {
        resource: lock.resource,
        fence_key: lock.fence_key,
        fencing_token: lock.fencing_token,
    }
}
