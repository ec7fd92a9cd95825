//! L1 and L2, measured once a run when all is healed: these are bounds of time, so a miss is told, and only a service
//! that does not come back at all is a violation.

use crate::{
    clock::now,
    cluster::{Cluster, Host},
    eyes::Eyes,
    history::{Heard, Op},
};
use std::time::{Duration, Instant};

/// The longest anybody waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);
const TTL: Duration = Duration::from_secs(5);
/// L1: beyond the TTL.
const HANDOVER: Duration = Duration::from_secs(1);
/// L2.
const TAKEOVER: Duration = Duration::from_secs(3);

/// One measurement.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Of what.
    pub what: &'static str,
    /// How long it took.
    pub took: Duration,
    /// How long it should take.
    pub bound: Duration,
}

impl Measured {
    /// Longer than promised.
    pub fn is_late(&self) -> bool {
        self.took > self.bound
    }
}

/// A holder dies; the leader dies; both die.
///
/// # Errors
/// The service does not come back.
pub fn measure(cluster: &mut Cluster, eyes: &Eyes) -> Result<Vec<Measured>, String> {
    let holder_dies = waiter_gets_it(cluster, eyes, false)?;
    let leader_dies = somebody_leads(cluster, eyes)?;
    let both_die = waiter_gets_it(cluster, eyes, true)?;
    Ok(vec![
        Measured { what: "L1 holder dies", took: holder_dies, bound: TTL + HANDOVER },
        Measured { what: "L2 leader dies", took: leader_dies, bound: TAKEOVER },
        Measured { what: "L1 both die", took: both_die, bound: TTL + HANDOVER + TAKEOVER },
    ])
}

fn acquire(what: &str, wait: Duration) -> Op {
    let (ttl_ms, wait_ms) = (TTL.as_millis() as u64, wait.as_millis() as u64);
    let request = format!("harness-{what}-{}", now());
    Op::Acquire { resource: format!("liveness/{what}"), request, wait_ms, ttl_ms }
}

/// Asks the nodes in turn until the lock is granted.
fn granted(eyes: &Eyes, nodes: &[usize], op: &Op) -> Result<(), String> {
    let begun = Instant::now();
    for node in nodes.iter().cycle() {
        match eyes.block_on(eyes.door.call("harness", *node, op)) {
            Heard::Granted(_) => return Ok(()),
            Heard::Waiting(_) => {}
            heard if begun.elapsed() > PATIENCE => {
                return Err(format!("L1, L2: after {PATIENCE:?} still {heard:?}"));
            }
            // A node without a leader says so at once.
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    Err("there are no nodes".into())
}

fn kill_leader(cluster: &mut Cluster, eyes: &Eyes) -> Result<(Host, Vec<usize>), String> {
    let leader = eyes.leader().ok_or("nobody leads")?;
    drop(cluster.hosts.remove(&Host::Node(leader)));
    Ok((Host::Node(leader), (0..eyes.door.nodes()).filter(|node| *node != leader).collect()))
}

fn restart(cluster: &mut Cluster, eyes: &Eyes, host: Host) -> Result<(), String> {
    cluster.start(host)?;
    eyes.wait_ready(PATIENCE).map(drop)
}

fn somebody_leads(cluster: &mut Cluster, eyes: &Eyes) -> Result<Duration, String> {
    let (killed, others) = kill_leader(cluster, eyes)?;
    let begun = Instant::now();
    granted(eyes, &others, &acquire("leader", Duration::ZERO))?;
    let took = begun.elapsed();
    restart(cluster, eyes, killed)?;
    Ok(took)
}

/// The holder is silent from its grant on: that is what a dead one is.
fn waiter_gets_it(cluster: &mut Cluster, eyes: &Eyes, kills: bool) -> Result<Duration, String> {
    let all: Vec<_> = (0..eyes.door.nodes()).collect();
    let what = if kills { "both" } else { "holder" };
    granted(eyes, &all, &acquire(what, Duration::ZERO))?;
    let begun = Instant::now();
    let waits = acquire(what, PATIENCE);
    let (killed, others) = match kills {
        false => (None, all),
        true => {
            // In the queue before the leader dies.
            let waiting = eyes.block_on(eyes.door.call("harness", 0, &waits));
            if !matches!(waiting, Heard::Waiting(_)) {
                return Err(format!("L1: a waiter is told {waiting:?}"));
            }
            let (killed, others) = kill_leader(cluster, eyes)?;
            (Some(killed), others)
        }
    };
    granted(eyes, &others, &waits)?;
    let took = begun.elapsed();
    killed.map_or(Ok(()), |killed| restart(cluster, eyes, killed))?;
    Ok(took)
}
