//! How much the driver and the node cost a call: closed-loop clients over the memory log, on one thread.
//!
//! `cargo run --release -p sereno-node --example calls_per_second -- [clients] [seconds]`

use sereno_core::{LEVEL_MAX, command::Operation, names::Caller, testing};
use sereno_log::memory::MemoryLog;
use sereno_node::{
    driver::{self, Config},
    handle::{Call, NodeHandle, Reply},
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

fn call(operation: Operation) -> Call {
    Call {
        caller: Caller::new("").expect("anonymous is a caller"),
        operation,
        born_at: None,
        deadline: Instant::now() + Duration::from_secs(60),
        hold: Duration::from_secs(20),
        is_passed: false,
    }
}

/// Locks and releases its own resource until the time is up; gives how often.
async fn client(node: NodeHandle, client: u64, end: Instant) -> u64 {
    let resource = format!("r{client}");
    let mut cycles = 0;
    while Instant::now() < end {
        let n = client * 10_000_000 + cycles;
        let acquire = Operation::Acquire(testing::acquire(&resource, n));
        for operation in [acquire, testing::release(&resource, n)] {
            let reply = node.call(call(operation)).await;
            assert!(matches!(reply, Reply::Decided(_)), "{reply:?}");
        }
        cycles += 1;
    }
    cycles
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse::<u64>().expect("a number"));
    let clients = arguments.next().unwrap_or(256);
    let seconds = arguments.next().unwrap_or(5);
    let config = Config {
        node_id: "n1".into(),
        address: "here".into(),
        min_ttl_ms: 1_000,
        snapshot_interval: Duration::from_secs(300),
        snapshot_bytes: 1 << 40,
        level_max: LEVEL_MAX,
        region: None,
        shared: None,
    };
    let node = driver::start(Arc::new(MemoryLog::new()), config, Vec::new(), Arc::new(())).await;
    let node = node.expect("an empty log is sound");
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..clients).map(|n| tokio::spawn(client(node.clone(), n, end))).collect();
    let mut cycles = 0;
    for task in tasks {
        cycles += task.await.expect("a client goes through");
    }
    let took = begun.elapsed();
    node.stop().await;
    let per_call = took.as_nanos() as u64 / (2 * cycles).max(1);
    println!(
        "{clients} clients: {} calls/s, {per_call} ns a call",
        1_000_000_000 / per_call.max(1)
    );
}
