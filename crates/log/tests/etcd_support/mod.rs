//! An etcd for the tests of a file: one cluster for all of them, a prefix of its own for each log.
#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

pub mod proxy;

use sereno_etcd_dev::{Cluster, Options};
use sereno_log::etcd::{self, EtcdLog, EtcdOptions, EtcdUrl};
use std::{
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};
use tempfile::TempDir;

/// A cluster that no test does harm to.
pub fn shared() -> &'static Cluster {
    static SHARED: LazyLock<Cluster> =
        LazyLock::new(|| start(&shared_folder(), Options::default()));
    &SHARED
}

/// Named after this process. What is never dropped removes nothing either: so the first to come removes what
/// processes that have ended left behind.
fn shared_folder() -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("etcd");
    std::fs::create_dir_all(&all).expect("a folder can be made");
    for folder in std::fs::read_dir(&all).expect("it lists") {
        let folder = folder.expect("it lists");
        if !Path::new("/proc").join(folder.file_name()).exists() {
            // Somebody else may remove it just now.
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
    all.join(std::process::id().to_string())
}

fn start(folder: &Path, options: Options) -> Cluster {
    let started = Cluster::start(folder, options);
    started.expect("etcd starts (Debian packages etcd-server and etcd-client)")
}

/// A cluster of one test.
pub struct Own {
    pub cluster: Cluster,
    /// After the cluster: its processes have ended by then.
    pub folder: TempDir,
}

impl Own {
    pub fn start(options: Options) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        Self { cluster: start(folder.path(), options), folder }
    }
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
