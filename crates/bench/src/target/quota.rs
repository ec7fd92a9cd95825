//! A client that reserves and commits at one node of a quota, over Sereno's HTTP door.

use super::{
    Acquired, Ask, LeaseId, Released, answers, ask_json,
    sereno::{refusal, set, write},
};
use crate::{
    error::Error,
    wire::{
        Fault, Link,
        http::{Head, Http},
    },
};
use sereno_api::{
    CommitRequest, Labels, LimitPut, Millis, PutLimitRequest, QuotaItem, ReserveRequest,
};
use std::{net::SocketAddr, sync::Arc};

const NAMESPACE: &str = "default";
/// The hot one.
const QUOTA: &str = "hot";

/// A server with the quota in it.
#[derive(Clone, Debug)]
pub struct QuotaTarget {
    address: SocketAddr,
    reserve: Arc<Head>,
    commit: Arc<Head>,
    ttl: Millis,
}

impl QuotaTarget {
    /// Puts the limit.
    ///
    /// # Errors
    /// The service does not answer, or refuses it.
    pub async fn prepare(address: SocketAddr, limit: u64, ttl: Millis) -> Result<Self, Error> {
        let request = PutLimitRequest {
            namespace: NAMESPACE.into(),
            quota: QUOTA.into(),
            path: String::new(),
            limit,
            burst: 0,
            guaranteed: 0,
            weight: 1,
            owner_reserved_max: None,
            patience: None,
            home: None,
            expected_version: 0,
            refuse_debt: false,
            request_id: "sereno-bench-limit".into(),
            born_at: None,
        };
        let body = serde_json::to_vec(&request).map_err(std::io::Error::from);
        let body = body.map_err(Error::io("write a limit"))?;
        ask_json::<LimitPut>(address, "POST", "/v1/quotas/put-limit", &body).await?;
        let head = |verb| Head::new("POST", &format!("/v1/quotas/{verb}"), &address.to_string());
        Ok(Self {
            address,
            reserve: Arc::new(head("reserve")),
            commit: Arc::new(head("commit")),
            ttl,
        })
    }
}

/// One connection. Requests are kept and only their changing fields written anew.
#[derive(Debug)]
pub struct Quota {
    link: Link,
    target: QuotaTarget,
    body: Vec<u8>,
    reserve: ReserveRequest,
    commit: CommitRequest,
}

impl Quota {
    /// Connects.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn connect(target: &QuotaTarget) -> Result<Self, Fault> {
        Ok(Self {
            link: Link::connect(target.address).await?,
            target: target.clone(),
            body: Vec::with_capacity(512),
            reserve: ReserveRequest {
                namespace: NAMESPACE.into(),
                owner: String::new(),
                items: vec![QuotaItem { quota: QUOTA.into(), path: String::new(), amount: 1 }],
                request_id: String::new(),
                ttl: target.ttl,
                max_lifetime: None,
                on_expiry: None,
                priority: None,
                wait_timeout: None,
                labels: Labels::default(),
                born_at: None,
            },
            commit: CommitRequest {
                namespace: NAMESPACE.into(),
                reservation_id: String::new(),
                fence: None,
                items: None,
                is_final: true,
                late: None,
                request_id: String::new(),
                born_at: None,
            },
        })
    }

    /// `POST /v1/quotas/reserve` of one, for the owner `ask.resource`.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn reserve(&mut self, ask: &Ask<'_>) -> Result<Acquired, Fault> {
        set(&mut self.reserve.owner, ask.resource);
        set(&mut self.reserve.request_id, ask.request_id.as_str());
        self.reserve.wait_timeout = ask.wait;
        write(&mut self.link.output, &mut self.body, &self.target.reserve, &self.reserve)?;
        let answer = self.link.exchange::<Http>().await?;
        let body = &self.link.input()[answer.body];
        match answer.status {
            200 => answers::reserved(body).map(Acquired::Granted).map_err(Fault::Silent),
            202 => Ok(Acquired::Waiting),
            status => Ok(refusal(status, body)?.map_or(Acquired::Unknown, Acquired::Refused)),
        }
    }

    /// `POST /v1/quotas/commit` of all of it.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn commit(&mut self, reservation: &LeaseId) -> Result<Released, Fault> {
        set(&mut self.commit.reservation_id, reservation.as_str());
        // One commit for each reservation: its name will do for the request's.
        set(&mut self.commit.request_id, reservation.as_str());
        write(&mut self.link.output, &mut self.body, &self.target.commit, &self.commit)?;
        let answer = self.link.exchange::<Http>().await?;
        let body = &self.link.input()[answer.body];
        match answer.status {
            200 => answers::committed(body).map(|()| Released::Done).map_err(Fault::Silent),
            status => Ok(refusal(status, body)?.map_or(Released::Unknown, Released::Refused)),
        }
    }
}
