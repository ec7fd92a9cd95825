//! One connection to each member, and which of them is asked.
//!
//! A request goes to one member. When that member fails it, the *next* request goes to another: nothing here sends
//! an append twice. The client library could spread requests over members by itself, but then nobody could say
//! which of them met an error, nor keep a slow one from being chosen again.

use super::{failure::Failure, options::EtcdOptions, url::EtcdUrl};
use etcd_client::{Client, ConnectOptions, Error, KvClient};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::{
    sync::{Mutex, watch},
    time::timeout,
};

/// The largest answer taken. Pages are cut to a small part of it, by what entries were seen to need.
const ANSWER_BYTES_MAX: usize = 64 << 20;

pub(super) struct Cluster {
    members: Vec<Member>,
    /// The member that is asked first.
    current: watch::Sender<usize>,
    connect_options: ConnectOptions,
    connect_timeout: Duration,
    request_timeout: Duration,
    connections: AtomicU64,
}

struct Member {
    address: String,
    /// Held while it is being made: then all wait for the one.
    connection: Mutex<Option<Connection>>,
}

/// A connection that has answered.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) kv: KvClient,
    member: usize,
    number: u64,
}

impl Cluster {
    pub(super) fn new(url: &EtcdUrl, options: &EtcdOptions) -> Self {
        let member =
            |address: &String| Member { address: address.clone(), connection: Mutex::default() };
        Self {
            members: url.endpoints().iter().map(member).collect(),
            current: watch::channel(0).0,
            connect_options: options.connect_options(),
            connect_timeout: options.connect_timeout,
            request_timeout: options.request_timeout,
            connections: AtomicU64::new(0),
        }
    }

    /// Their indexes, the one to ask first in front.
    pub(super) fn in_order(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (*self.current.borrow(), self.members.len());
        (0..count).map(move |offset| (first + offset) % count)
    }

    /// Index of the member that is asked first.
    pub(super) fn current(&self) -> watch::Receiver<usize> {
        self.current.subscribe()
    }

    pub(super) fn address(&self, member: usize) -> &str {
        &self.members[member].address
    }

    /// Asks one member once.
    pub(super) async fn attempt<T, F>(
        &self,
        member: usize,
        request: impl FnOnce(Connection) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let connection = match self.connect(member).await {
            Ok(connection) => connection,
            Err(failure) => {
                self.prefer_another(member, &failure);
                return Err(failure);
            }
        };
        let failure = match timeout(self.request_timeout, request(connection.clone())).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => Failure::of(&error),
            Err(_) => Failure::Unknown(format!("no answer in {:?}", self.request_timeout)),
        };
        if failure.is_of_the_member() {
            self.forget(&connection).await;
            self.prefer_another(member, &failure);
        }
        Err(self.place(member, failure))
    }

    /// Asks one member after the other: for requests that may be carried out twice.
    pub(super) async fn ask<T, F>(&self, request: impl Fn(Connection) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut failed = None;
        for member in self.in_order() {
            match self.attempt(member, &request).await {
                Ok(value) => return Ok(value),
                Err(failure) if failure.is_of_the_member() => failed = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(failed.expect("a URL names at least one member"))
    }

    /// The connection to a member, made and tried out if there is none. A failure is never `Unknown`: no request
    /// of the caller's has been sent.
    pub(super) async fn connect(&self, member: usize) -> Result<Connection, Failure> {
        let mut slot = self.members[member].connection.lock().await;
        if let Some(connection) = &*slot {
            return Ok(connection.clone());
        }
        let address = self.address(member);
        let failure = match timeout(self.connect_timeout, self.try_out(address)).await {
            Ok(Ok(client)) => {
                let number = self.connections.fetch_add(1, Ordering::Relaxed);
                let kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
                let connection = Connection { client, kv, member, number };
                return Ok(slot.insert(connection).clone());
            }
            Ok(Err(error)) => match Failure::of(&error) {
                refused @ Failure::Refused(_) => refused,
                Failure::NotHere(why)
                | Failure::NoSpace(why)
                | Failure::TooMuch(why)
                | Failure::Unknown(why) => Failure::NotHere(why),
            },
            Err(_) => Failure::NotHere(format!("not reached in {:?}", self.connect_timeout)),
        };
        Err(self.place(member, failure))
    }

    /// A connection is made at its first request: this one asks something that every member answers by itself.
    async fn try_out(&self, address: &str) -> Result<Client, Error> {
        let options = Some(self.connect_options.clone());
        let mut client = Client::connect([address], options).await?;
        client.status().await?;
        Ok(client)
    }

    /// The next request makes a new connection, unless somebody has done so already.
    async fn forget(&self, connection: &Connection) {
        let mut slot = self.members[connection.member].connection.lock().await;
        if slot.as_ref().is_some_and(|it| it.number == connection.number) {
            *slot = None;
        }
    }

    /// Others are asked first from now on, unless somebody has seen to that already.
    fn prefer_another(&self, failed: usize, failure: &Failure) {
        if failure.is_of_the_member() {
            let next = (failed + 1) % self.members.len();
            self.current.send_if_modified(|current| {
                let changes = *current == failed && next != failed;
                *current = if changes { next } else { *current };
                changes
            });
        }
    }

    fn place(&self, member: usize, failure: Failure) -> Failure {
        let at = |why: String| format!("etcd at {}: {why}", self.address(member));
        match failure {
            Failure::NotHere(why) => Failure::NotHere(at(why)),
            Failure::Refused(why) => Failure::Refused(at(why)),
            Failure::NoSpace(why) => Failure::NoSpace(at(why)),
            Failure::TooMuch(why) => Failure::TooMuch(at(why)),
            Failure::Unknown(why) => Failure::Unknown(at(why)),
        }
    }

    /// How many members there are.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }
}
