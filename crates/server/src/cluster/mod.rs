//! A server that shares its log with others: etcd below it, and links to the other nodes.

mod dial;
mod etcd;
mod incoming;

pub(crate) use dial::{HttpDial, authority};
#[cfg(test)]
pub(crate) use etcd::testing;
pub(crate) use etcd::{Room, Seen, Storage, watch_storage};
pub(crate) use incoming::{LINK_PATH, Links};

/// What a link asks an HTTP connection to become.
const PROTOCOL: &str = "sereno-link-1";
