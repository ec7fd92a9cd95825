//! A client of Sereno's HTTP door, as thin as a load generator needs it.
//!
//! The SDK is not used here on purpose: its guards and renewals would cost more than what is measured.

use super::{Acquired, LeaseId, Released, Renewals, answers};
use crate::{
    error::Error,
    wire::{
        Fault, Link,
        http::{Answer, Head, Http},
    },
};
use sereno_api::{
    AbandonRequest, AcquireRequest, Labels, LeaseRef, Millis, ReleaseRequest, RenewManyRequest,
    RenewRequest,
};
use std::{net::SocketAddr, sync::Arc};

/// What the requests of a run have in common.
#[derive(Clone, Debug)]
pub struct Wording {
    /// In this namespace …
    pub namespace: String,
    /// … by this owner …
    pub owner: String,
    /// … with this TTL.
    pub lease_ttl: Millis,
}

/// A server, and how to word requests to it.
#[derive(Clone, Debug)]
pub struct SerenoTarget {
    address: SocketAddr,
    heads: Arc<Heads>,
    wording: Arc<Wording>,
}

#[derive(Debug)]
struct Heads {
    acquire: Head,
    renew: Head,
    renew_many: Head,
    release: Head,
    abandon: Head,
}

/// One acquire.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The name to lock.
    pub resource: &'a str,
    /// The request's id; on Redis the value.
    pub request_id: &'a LeaseId,
    /// How long to queue.
    pub wait: Option<Millis>,
}

impl SerenoTarget {
    /// A server by its address.
    pub fn new(address: SocketAddr, wording: Wording) -> Self {
        let head =
            |verb: &str| Head::new("POST", &format!("/v1/locks/{verb}"), &address.to_string());
        let heads = Heads {
            acquire: head("acquire"),
            renew: head("renew"),
            renew_many: head("renew-many"),
            release: head("release"),
            abandon: head("abandon"),
        };
        Self { address, heads: Arc::new(heads), wording: Arc::new(wording) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// One connection. Requests are kept and only their changing fields written anew.
#[derive(Debug)]
pub struct Sereno {
    link: Link,
    heads: Arc<Heads>,
    body: Vec<u8>,
    acquire: AcquireRequest,
    renew: RenewRequest,
    renew_many: RenewManyRequest,
    release: ReleaseRequest,
    close: bool,
}

impl Sereno {
    /// Connects.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn connect(target: &SerenoTarget) -> Result<Self, Fault> {
        let Wording { namespace, owner, lease_ttl } = &*target.wording;
        let (namespace, lease_ttl) = (namespace.clone(), Some(*lease_ttl));
        Ok(Self {
            link: Link::connect(target.address).await?,
            heads: target.heads.clone(),
            body: Vec::with_capacity(512),
            acquire: AcquireRequest {
                namespace: namespace.clone(),
                resource: String::new(),
                request_id: String::new(),
                owner: owner.clone(),
                lease_ttl,
                wait_timeout: None,
                max_hold: None,
                fencing: None,
                labels: Labels::default(),
                born_at: None,
            },
            renew: RenewRequest {
                namespace: namespace.clone(),
                resource: String::new(),
                lease_id: String::new(),
                lease_ttl: None,
                born_at: None,
            },
            renew_many: RenewManyRequest {
                namespace: namespace.clone(),
                leases: Vec::new(),
                lease_ttl: None,
                born_at: None,
            },
            release: ReleaseRequest {
                namespace,
                resource: String::new(),
                lease_id: String::new(),
                born_at: None,
            },
            close: false,
        })
    }

    /// Whether the server has still got it open: asks the kernel.
    pub fn is_usable(&self) -> bool {
        self.link.is_open()
    }

    /// Whether the server said that it closes this connection.
    pub fn is_closing(&self) -> bool {
        self.close
    }

    /// `POST /v1/locks/acquire`
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn acquire(&mut self, ask: &Ask<'_>) -> Result<Acquired, Fault> {
        set(&mut self.acquire.resource, ask.resource);
        set(&mut self.acquire.request_id, ask.request_id.as_str());
        self.acquire.wait_timeout = ask.wait;
        write(&mut self.link.output, &mut self.body, &self.heads.acquire, &self.acquire)?;
        let answer = self.exchange().await?;
        let body = &self.link.input()[answer.body];
        match answer.status {
            200 => answers::granted(body).map(Acquired::Granted).map_err(Fault::Silent),
            202 => Ok(Acquired::Waiting),
            status => Ok(match refusal(status, body)? {
                Some(code) => Acquired::Refused(code),
                None => Acquired::Unknown,
            }),
        }
    }

    /// `POST /v1/locks/release`
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn release(&mut self, resource: &str, lease: &LeaseId) -> Result<Released, Fault> {
        set(&mut self.release.resource, resource);
        set(&mut self.release.lease_id, lease.as_str());
        write(&mut self.link.output, &mut self.body, &self.heads.release, &self.release)?;
        let answer = self.exchange().await?;
        let body = &self.link.input()[answer.body];
        if answer.status != 200 {
            return Ok(refusal(answer.status, body)?.map_or(Released::Unknown, Released::Refused));
        }
        let reason = answers::not_released(body).map_err(Fault::Silent)?;
        Ok(reason.map_or(Released::Done, Released::Refused))
    }

    /// `POST /v1/locks/renew` for one lease, `renew-many` for several. An unknown outcome is a [`Fault::Silent`].
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn renew<'a>(
        &mut self,
        leases: impl ExactSizeIterator<Item = (&'a str, &'a LeaseId)>,
        many: bool,
    ) -> Result<Renewals, Fault> {
        let count = leases.len();
        if many {
            let blank = || LeaseRef { resource: String::new(), lease_id: String::new() };
            self.renew_many.leases.resize_with(count, blank);
            for (slot, (resource, lease)) in self.renew_many.leases.iter_mut().zip(leases) {
                set(&mut slot.resource, resource);
                set(&mut slot.lease_id, lease.as_str());
            }
            write(&mut self.link.output, &mut self.body, &self.heads.renew_many, &self.renew_many)?;
        } else {
            for (resource, lease) in leases {
                set(&mut self.renew.resource, resource);
                set(&mut self.renew.lease_id, lease.as_str());
            }
            write(&mut self.link.output, &mut self.body, &self.heads.renew, &self.renew)?;
        }
        let answer = self.exchange().await?;
        let body = &self.link.input()[answer.body];
        match answer.status {
            200 if many => answers::renewals(body).map_err(Fault::Silent),
            200 => Ok(vec![None]),
            status => match refusal(status, body)? {
                Some(code) => Ok(vec![Some(code); count]),
                None => Err(Fault::Silent("an unknown outcome".into())),
            },
        }
    }

    /// `POST /v1/locks/abandon`: `None` if done, else why not.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn abandon(&mut self, request_id: &LeaseId) -> Result<Option<&'static str>, Fault> {
        let request = AbandonRequest {
            namespace: self.acquire.namespace.clone(),
            request_id: request_id.as_str().into(),
            born_at: None,
        };
        write(&mut self.link.output, &mut self.body, &self.heads.abandon, &request)?;
        let answer = self.exchange().await?;
        match (answer.status, &self.link.input()[answer.body]) {
            (200, _) => Ok(None),
            (status, body) => match refusal(status, body)? {
                Some(code) => Ok(Some(code)),
                None => Err(Fault::Silent("an unknown outcome".into())),
            },
        }
    }

    async fn exchange(&mut self) -> Result<Answer, Fault> {
        let answer = self.link.exchange::<Http>().await?;
        self.close |= answer.close;
        Ok(answer)
    }
}

/// A call that the run itself rests on, not one that is measured: `GET /v1/status` and the like.
///
/// # Errors
/// No answer, or one that is no success; its body is in the message.
pub async fn ask_json<T: serde::de::DeserializeOwned>(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: &[u8],
) -> Result<T, Error> {
    let failed = |why: String| Error::Service { call: format!("{method} {path}"), why };
    let mut link = Link::connect(address).await.map_err(|fault| failed(fault.to_string()))?;
    Head::new(method, path, &address.to_string()).write(&mut link.output, body);
    let answer = link.exchange::<Http>().await.map_err(|fault| failed(fault.to_string()))?;
    let body = &link.input()[answer.body];
    if !(200..300).contains(&answer.status) {
        return Err(failed(format!("{} {}", answer.status, String::from_utf8_lossy(body))));
    }
    serde_json::from_slice(body).map_err(|error| failed(error.to_string()))
}

/// Whether `/readyz` says so.
pub async fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut link) = Link::connect(address).await else { return false };
    Head::new("GET", "/readyz", &address.to_string()).write(&mut link.output, b"");
    link.exchange::<Http>().await.is_ok_and(|answer| answer.status == 200)
}

/// Writes a field anew.
pub(super) fn set(field: &mut String, value: &str) {
    field.clear();
    field.push_str(value);
}

/// Writes a whole request.
pub(super) fn write(
    output: &mut Vec<u8>,
    body: &mut Vec<u8>,
    head: &Head,
    request: &impl serde::Serialize,
) -> Result<(), Fault> {
    body.clear();
    serde_json::to_writer(&mut *body, request)
        .map_err(|error| Fault::NotSent(format!("cannot be written: {error}")))?;
    head.write(output, body);
    Ok(())
}

/// A problem document's code; `None`: an unknown outcome.
pub(super) fn refusal(status: u16, body: &[u8]) -> Result<Option<&'static str>, Fault> {
    answers::refusal(body).map_err(|why| Fault::Silent(format!("status {status}: {why}")))
}
