//! A server that shares its log with others: etcd below it, and links to the other nodes.

mod complaints;
mod dial;
mod etcd;
mod incoming;
mod strangers;

pub(crate) use dial::{HttpDial, authority};
#[cfg(test)]
pub(crate) use etcd::testing;
pub(crate) use etcd::{NO_SPACE, Room, Seen, Storage, watch_storage};
pub(crate) use incoming::{LINK_PATH, Links};

/// What a link asks an HTTP connection to become.
const PROTOCOL: &str = "sereno-link-1";

/// By this header a node says who it is when it asks for a link: for log lines, and believed by nobody.
const NODE_HEADER: &str = "sereno-node";
