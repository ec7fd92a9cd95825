//! A client of Redis that locks as everybody does: `SET k v NX PX`, and compare-and-delete by script.

use super::{Acquired, Ask, LeaseId, Released};
use crate::{
    error::Error,
    wire::{
        Fault, Link,
        resp::{Reply, Resp, write_command},
    },
};
use std::{net::SocketAddr, sync::Arc};

/// The release that Redis' own documentation gives.
const RELEASE: &[u8] =
    b"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// A server with the release script loaded.
#[derive(Clone, Debug)]
pub struct RedisTarget {
    address: SocketAddr,
    script: Arc<str>,
    ttl_ms: Arc<str>,
}

impl RedisTarget {
    /// Loads the script, and makes sure that the server fsyncs before it answers.
    ///
    /// # Errors
    /// It does not answer as Redis does, or is set up otherwise.
    pub async fn prepare(address: SocketAddr, ttl_ms: u64) -> Result<Self, Error> {
        let mut link = Link::connect(address).await.map_err(failed("connect"))?;
        let script = command(&mut link, &[b"SCRIPT", b"LOAD", RELEASE]).await?;
        let Reply::Bulk(digest) = script else { return Err(odd("SCRIPT LOAD", &script)) };
        let script = String::from_utf8_lossy(&link.input()[digest]).into();
        for (option, wanted) in [("appendonly", "yes"), ("appendfsync", "always"), ("save", "")] {
            let reply = command(&mut link, &[b"CONFIG", b"GET", option.as_bytes()]).await?;
            match &reply {
                Reply::Array(pair) => match pair.as_slice() {
                    [_, Reply::Bulk(value)]
                        if &link.input()[value.clone()] == wanted.as_bytes() => {}
                    _ => return Err(odd(option, &reply)),
                },
                _ => return Err(odd(option, &reply)),
            }
        }
        Ok(Self { address, script, ttl_ms: ttl_ms.to_string().into() })
    }
}

async fn command(link: &mut Link, words: &[&[u8]]) -> Result<Reply, Error> {
    write_command(&mut link.output, words);
    link.exchange::<Resp>().await.map_err(failed(&String::from_utf8_lossy(words[0])))
}

fn failed(call: &str) -> impl FnOnce(Fault) -> Error {
    move |fault| Error::Service { call: format!("redis: {call}"), why: fault.to_string() }
}

fn odd(call: &str, reply: &Reply) -> Error {
    Error::Service { call: format!("redis: {call}"), why: format!("not expected: {reply:?}") }
}

/// One connection.
#[derive(Debug)]
pub struct Redis {
    link: Link,
    target: RedisTarget,
}

impl Redis {
    /// Connects.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn connect(target: &RedisTarget) -> Result<Self, Fault> {
        Ok(Self { link: Link::connect(target.address).await?, target: target.clone() })
    }

    /// `SET resource request-id NX PX ttl`. It cannot wait: `ask.wait` is not looked at.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn acquire(&mut self, ask: &Ask<'_>) -> Result<Acquired, Fault> {
        let (key, value) = (ask.resource.as_bytes(), ask.request_id.as_str().as_bytes());
        let words: [&[u8]; 6] = [b"SET", key, value, b"NX", b"PX", self.target.ttl_ms.as_bytes()];
        write_command(&mut self.link.output, &words);
        Ok(match self.link.exchange::<Resp>().await? {
            Reply::Simple(_) => Acquired::Granted(*ask.request_id),
            Reply::Nil => Acquired::Refused("LOCKED"),
            _ => Acquired::Refused("ERROR"),
        })
    }

    /// The script by its digest.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn release(&mut self, resource: &str, value: &LeaseId) -> Result<Released, Fault> {
        let (key, value) = (resource.as_bytes(), value.as_str().as_bytes());
        let words: [&[u8]; 5] = [b"EVALSHA", self.target.script.as_bytes(), b"1", key, value];
        write_command(&mut self.link.output, &words);
        Ok(match self.link.exchange::<Resp>().await? {
            Reply::Number(1) => Released::Done,
            Reply::Number(_) => Released::Refused("not released: unknown"),
            _ => Released::Refused("ERROR"),
        })
    }
}
