//! An etcd for the tests of a file: one cluster for all of them, a prefix of its own for each log.
#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

mod frames;
pub mod proxy;

use sereno_core::entry::SealedEntry;
use sereno_etcd_dev::{Cluster, Options};
use sereno_log::{
    Append, Log, Slot,
    conformance::Chain,
    etcd::{self, EtcdLog, EtcdOptions, EtcdUrl},
};
use std::{
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// A cluster that no test does harm to.
pub fn shared() -> &'static Cluster {
    static SHARED: LazyLock<Cluster> = LazyLock::new(|| start(&scratch(), Options::default()));
    &SHARED
}

/// A cluster of one test.
pub struct Own {
    pub cluster: Cluster,
    pub folder: PathBuf,
}

impl Own {
    pub fn start(options: Options) -> Self {
        let folder = scratch();
        Self { cluster: start(&folder, options), folder }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        (0..self.cluster.endpoints().len()).for_each(|member| self.cluster.kill(member));
        // If it stays, a later test removes it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn scratch() -> PathBuf {
    sereno_etcd_dev::scratch_folder().expect("a folder can be made")
}

fn start(folder: &Path, options: Options) -> Cluster {
    let started = Cluster::start(folder, options);
    started.expect("etcd starts (Debian packages etcd-server and etcd-client)")
}

/// A prefix that no other log of this cluster has.
pub fn fresh_prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("test/{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn fresh_url(cluster: &Cluster) -> EtcdUrl {
    cluster.log_url(&fresh_prefix()).parse().expect("it is a URL")
}

pub async fn open(url: &EtcdUrl) -> EtcdLog {
    open_with(url, EtcdOptions::default()).await
}

pub async fn open_with(url: &EtcdUrl, options: EtcdOptions) -> EtcdLog {
    etcd::open(url, options).await.expect("it opens")
}

/// How an append that was sent until its outcome was known came out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub unknown: usize,
    pub not_appended: usize,
}

/// Appends as a node does: sends it again until it is known to have landed.
pub async fn insist(log: &EtcdLog, chain: &mut Chain, entry: SealedEntry) -> Sent {
    let mut sent = Sent::default();
    let begun = std::time::Instant::now();
    loop {
        assert!(begun.elapsed().as_secs() < 60, "an append did not land in a minute");
        match log.append(chain.head(), entry.clone()).await {
            Append::Committed => break,
            Append::Conflict(conflict) => {
                assert!(sent.unknown > 0, "nobody else appends: {conflict:?}");
                assert_eq!(conflict.slot, Slot::Entry(entry.head.hash));
                break;
            }
            Append::NotAppended(_) => sent.not_appended += 1,
            Append::Unknown(_) => sent.unknown += 1,
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    chain.push(entry);
    sent
}

/// Appends until the log has so many.
pub async fn insist_until(log: &EtcdLog, chain: &mut Chain, count: usize) -> Sent {
    let mut sent = Sent::default();
    while chain.entries().len() < count {
        let entry = chain.next(0);
        let one = insist(log, chain, entry).await;
        sent.unknown += one.unknown;
        sent.not_appended += one.not_appended;
    }
    sent
}
