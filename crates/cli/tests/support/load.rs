//! Work that must go on, whatever happens to the nodes, and what its clients saw.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

use crate::support::zones::{PATIENCE, decide};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

pub fn acquire(resource: &str, request: &str) -> Value {
    json!({"resource": resource, "requestId": request, "owner": "test", "leaseTtl": "30s"})
}

/// Entries of 100 KiB that change nothing, so that the log grows and is trimmed.
pub fn grow(urls: &[String], entries: usize) {
    let lease = json!({"resource": "r".repeat(250), "leaseId": "0".repeat(32)});
    let renewals = json!({"leases": vec![lease; 350]});
    for _ in 0..entries {
        assert_eq!(decide(urls, "renew-many", &renewals).0, 200);
    }
}

/// One grant, as its client saw it: it was held at least between these moments.
#[derive(Clone, Debug)]
struct Grant {
    token: u64,
    from: Instant,
    until: Instant,
}

/// Clients that take the same lock in turn, at any node, and record it: until told to stop.
pub struct Load {
    stop: Arc<AtomicBool>,
    grants: Arc<Mutex<Vec<Grant>>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    pub fn start(urls: &[String]) -> Self {
        let (stop, grants) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let client = |number: usize| {
            let (stop, grants, urls) = (stop.clone(), grants.clone(), urls.to_vec());
            thread::spawn(move || {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let request = format!("client-{number}-round-{round:06}");
                    let (status, answer) =
                        decide(&urls, "acquire", &acquire("contended", &request));
                    assert_ne!(status, 400, "an honest call is not called wrong: {answer}");
                    if status != 200 {
                        thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                    let token = answer["fencingToken"].as_u64().unwrap();
                    let from = Instant::now();
                    let lease = json!({"resource": "contended", "leaseId": answer["leaseId"]});
                    thread::sleep(Duration::from_millis(2));
                    let until = Instant::now();
                    let (status, answer) = decide(&urls, "release", &lease);
                    assert_eq!(status, 200, "{answer}");
                    grants.lock().unwrap().push(Grant { token, from, until });
                }
            })
        };
        let threads = (0..4).map(client).collect();
        Self { stop, grants, threads }
    }

    fn count(&self) -> usize {
        self.grants.lock().unwrap().len()
    }

    /// Waits until work goes on.
    pub fn goes_on(&self) -> Duration {
        let (before, begun) = (self.count(), Instant::now());
        while self.count() < before + 3 {
            assert!(begun.elapsed() < PATIENCE, "the service does not come back");
            thread::sleep(Duration::from_millis(20));
        }
        begun.elapsed()
    }

    /// No two held it at a time, and each later holder has the larger token.
    pub fn check(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        let mut grants = self.grants.lock().unwrap().clone();
        grants.sort_by_key(|grant| grant.token);
        for pair in grants.windows(2) {
            assert!(pair[0].token < pair[1].token, "a token is granted once: {pair:?}");
            assert!(pair[0].until <= pair[1].from, "two held it at a time: {pair:?}");
        }
        grants.len()
    }
}
