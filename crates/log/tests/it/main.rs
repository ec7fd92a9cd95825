//! The engines: what each promises (`conformance`), and what is its own.

#[path = "../common/mod.rs"]
mod common;

#[path = "../etcd_support/mod.rs"]
mod etcd_support;

mod damage;
mod etcd;
mod etcd_access;
mod etcd_outages;
mod etcd_store;
mod folder;
mod memory;
mod sqlite;
