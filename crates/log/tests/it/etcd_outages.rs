//! Members that die, stand still, come back, and a store that is set back: nothing acknowledged is lost, nothing is
//! acknowledged without a majority, and the engine goes on by itself.

use crate::etcd_support::{Own, fresh_url, insist, insist_until, open, open_with};
use sereno_core::{entry::Head, ids::Position, limits};
use sereno_etcd_dev::Options;
use sereno_log::{
    Append, Conflict, Log, LogError, Slot,
    conformance::{Chain, entry_after, genesis},
    etcd::{EtcdLog, EtcdOptions, EtcdUrl},
};
use std::time::{Duration, Instant};

/// The URL that names this member first.
fn with_first(own: &Own, member: usize, url: &EtcdUrl) -> EtcdUrl {
    let mut endpoints = own.cluster.endpoints();
    endpoints.swap(0, member);
    format!("etcd://{}/{}", endpoints.join(","), url.prefix()).parse().expect("it is a URL")
}

/// What another client, which has seen nothing of all this, finds.
async fn assert_whole(url: &EtcdUrl, chain: &Chain) {
    chain.assert_is(&open(url).await, 1).await;
}

async fn refuses(log: &EtcdLog, chain: &Chain, tag: u64) -> Append {
    let result = log.append(chain.head(), chain.next(tag)).await;
    assert!(matches!(result, Append::NotAppended(_) | Append::Unknown(_)), "{result:?}");
    result
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_die_one_after_the_other_and_nothing_is_lost() {
    let mut own = Own::start(Options::default());
    let url = fresh_url(&own.cluster);
    let log = open(&url).await;
    let mut chain = Chain::default();
    for member in [0, 1, 2, 0] {
        let count = chain.entries().len() + 20;
        insist_until(&log, &mut chain, count).await;
        own.cluster.kill(member);
        let begun = Instant::now();
        let entry = chain.next(1);
        let sent = insist(&log, &mut chain, entry).await;
        println!("member {member} died: an append after {:?}, {sent:?}", begun.elapsed());
        insist_until(&log, &mut chain, count + 20).await;
        own.cluster.restart(member).expect("it starts again");
        own.cluster.wait_until_healthy().expect("it joins");
    }
    assert_whole(&url, &chain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_leader_of_etcd_delays_and_loses_nothing() {
    let own = Own::start(Options::default());
    let leader = own.cluster.leader().expect("it has a leader");
    let url = with_first(&own, leader, &fresh_url(&own.cluster));
    let log = open(&url).await;
    let mut chain = Chain::default();
    insist_until(&log, &mut chain, 10).await;
    own.cluster.pause(leader);
    let begun = Instant::now();
    let entry = chain.next(1);
    let sent = insist(&log, &mut chain, entry).await;
    println!("the leader stood still: an append after {:?}, {sent:?}", begun.elapsed());
    insist_until(&log, &mut chain, 30).await;
    own.cluster.resume(leader);
    insist_until(&log, &mut chain, 40).await;
    assert_whole(&url, &chain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_follower_is_passed_over() {
    let own = Own::start(Options::default());
    let leader = own.cluster.leader().expect("it has a leader");
    let follower = (leader + 1) % 3;
    let url = with_first(&own, follower, &fresh_url(&own.cluster));
    let log = open(&url).await;
    let mut chain = Chain::default();
    insist_until(&log, &mut chain, 10).await;
    own.cluster.pause(follower);
    let begun = Instant::now();
    insist_until(&log, &mut chain, 12).await;
    // Two seconds for the request that it has swallowed; those after it go elsewhere at once.
    println!("a follower stood still: two appends after {:?}", begun.elapsed());
    assert!(log.head().await.is_ok());
    let status = log.status().await;
    assert_eq!(status.healthy(), 2, "{status:?}");
    own.cluster.resume(follower);
    assert_whole(&url, &chain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_quorum_nothing_is_committed_and_then_it_goes_on() {
    let mut own = Own::start(Options::default());
    let url = fresh_url(&own.cluster);
    let log = open(&url).await;
    let mut chain = Chain::default();
    insist_until(&log, &mut chain, 5).await;
    own.cluster.kill(0);
    own.cluster.kill(2);
    let mut ever_unknown = false;
    for _ in 0..4 {
        ever_unknown |= matches!(refuses(&log, &chain, 1).await, Append::Unknown(_));
    }
    assert!(matches!(log.head().await, Err(LogError::Unreachable(_))));
    assert!(matches!(log.read(Position(1), 100).await, Err(LogError::Unreachable(_))));
    log.wait_past(Position(5)).await; // It ends, as always.
    own.cluster.restart(0).expect("it starts again");
    own.cluster.restart(2).expect("it starts again");
    // The one that was refused is the one that lands: it may have been unknown.
    let entry = chain.next(1);
    let sent = insist_after(&log, &mut chain, entry, ever_unknown).await;
    println!("with a quorum again: {sent} more");
    insist_until(&log, &mut chain, 20).await;
    assert_whole(&url, &chain).await;
}

/// As `insist`, of an entry that was sent before.
async fn insist_after(
    log: &EtcdLog,
    chain: &mut Chain,
    entry: sereno_core::entry::SealedEntry,
    mut ever_unknown: bool,
) -> usize {
    let begun = Instant::now();
    for attempt in 0.. {
        assert!(begun.elapsed().as_secs() < 60, "it did not land in a minute");
        match log.append(chain.head(), entry.clone()).await {
            Append::Committed => return chain_push(chain, entry, attempt),
            Append::Conflict(Conflict { slot, .. }) => {
                assert!(ever_unknown);
                assert_eq!(slot, Slot::Entry(entry.head.hash));
                return chain_push(chain, entry, attempt);
            }
            Append::Unknown(_) => ever_unknown = true,
            Append::NotAppended(_) => {}
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!("it has returned")
}

fn chain_push(chain: &mut Chain, entry: sereno_core::entry::SealedEntry, attempt: usize) -> usize {
    chain.push(entry);
    attempt
}

/// A connection that is refused carries nothing: that is certain, and callers need not wait for an outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_no_member_there_an_append_was_certainly_not_made() {
    let mut own = Own::start(Options { members: 1, ..Options::default() });
    let url = fresh_url(&own.cluster);
    let log = open(&url).await;
    let mut chain = Chain::default();
    insist_until(&log, &mut chain, 3).await;
    own.cluster.kill(0);
    // The first may have gone into the broken connection.
    let first = refuses(&log, &chain, 1).await;
    for _ in 0..3 {
        let result = refuses(&log, &chain, 2).await;
        assert!(matches!(result, Append::NotAppended(_)), "after {first:?}: {result:?}");
    }
    let result = sereno_log::etcd::open(&url, EtcdOptions::default()).await.map(|_| ());
    assert!(matches!(result, Err(LogError::Unreachable(_))), "{result:?}");
    own.cluster.restart(0).expect("it starts again");
    own.cluster.wait_until_healthy().expect("it serves");
    chain.grow(&log, 5).await;
    assert_whole(&url, &chain).await;
}

/// etcd 3.4 counts revisions anew when it is restored, so they come again, and so do positions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_etcd_is_a_conflict_for_who_appended_before() {
    let mut own = Own::start(Options::default());
    let url = fresh_url(&own.cluster);
    let old_leader = open(&url).await;
    let mut chain = Chain::default();
    insist_until(&old_leader, &mut chain, 5).await;
    let backup = own.folder.join("backup.db");
    let save = ["snapshot", "save", backup.to_str().expect("a plain path")];
    own.cluster.ctl_member(0, &save).expect("it saves");
    let mut lost = chain.clone();
    insist_until(&old_leader, &mut lost, 10).await;
    // It stands still here, and knows of position 10.
    own.cluster.restore(&backup).expect("it is restored");
    let ahead = old_leader.append(lost.head(), lost.next(1)).await;
    let resent = match ahead {
        // Its connections were of the old etcd.
        Append::Unknown(_) | Append::NotAppended(_) => {
            old_leader.append(lost.head(), lost.next(1)).await
        }
        result => result,
    };
    let set_back = Conflict { head: chain.head(), slot: Slot::Empty };
    assert_eq!(resent, Append::Conflict(set_back), "a head that is behind its own");
    assert_eq!(old_leader.head().await, Ok(chain.head()));

    // Another leads: other entries at the same positions, and at the same revisions of the store.
    let new_leader = open(&url).await;
    while chain.entries().len() < 15 {
        let entry = entry_after(&chain.head(), 7, 0);
        insist(&new_leader, &mut chain, entry).await;
    }
    for old in 5..10 {
        let entry = entry_after(&lost.head_at(old + 1), 1, 0);
        let result = old_leader.append(lost.head_at(old + 1), entry).await;
        let slot = Slot::Entry(chain.head_at(old + 2).hash);
        assert_eq!(result, Append::Conflict(Conflict { head: chain.head(), slot }), "after {old}");
    }
    assert_whole(&url, &chain).await;
}

/// The member that first notices the end of its space applies the entry and reports an error all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_etcd_is_full_every_append_is_told_right() {
    let arguments = vec!["--quota-backend-bytes".into(), (8 << 20).to_string()];
    let own = Own::start(Options { arguments, ..Options::default() });
    let url = fresh_url(&own.cluster);
    let log = open_with(&url, EtcdOptions { compact: false, ..EtcdOptions::default() }).await;
    let mut chain = Chain::default();
    chain.grow(&log, 1).await;
    let mut refused = 0;
    for tag in 0..100 {
        let entry = entry_after(&chain.head(), tag, 400_000);
        match log.append(chain.head(), entry.clone()).await {
            Append::Committed => chain.push(entry),
            Append::NotAppended(why) => {
                assert!(why.contains("space exceeded"), "{why}");
                refused += 1;
            }
            result => panic!("{result:?}"),
        }
        assert_eq!(log.head().await, Ok(chain.head()), "it reads on");
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3);
    let status = log.status().await;
    assert!(status.no_space(), "{status:?}");
    assert_eq!(status.quota_percent(8 << 20), 100);
    chain.assert_is(&log, 1).await;
    let failed = log.save_snapshot(chain.snapshot(2, 1_000)).await;
    assert!(matches!(failed, Err(LogError::Unreachable(_))), "{failed:?}");
    // As an operator does it. (A larger quota would do, too.)
    let revision = own.cluster.ctl(&["endpoint", "status", "-w", "fields"]).expect("it tells");
    let revision =
        revision.lines().find_map(|it| it.strip_prefix("\"Revision\" : ")).expect("it has one");
    own.cluster.ctl(&["compact", revision]).expect("it compacts");
    own.cluster.ctl(&["del", "--prefix", &format!("{}/@", url.prefix())]).expect("it deletes");
    own.cluster
        .ctl(&["compact", &(revision.parse::<u64>().expect("a number") + 1).to_string()])
        .expect("it compacts");
    own.cluster.ctl(&["defrag"]).expect("it defragments");
    own.cluster.ctl(&["alarm", "disarm"]).expect("it disarms");
    let entry = genesis(9);
    let result = log.append(Head::EMPTY, entry).await;
    assert_eq!(result, Append::Committed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_is_too_large_is_certainly_not_appended() {
    let arguments = vec!["--max-request-bytes".into(), "100000".into()];
    let own = Own::start(Options { members: 1, arguments, ..Options::default() });
    let log = open(&fresh_url(&own.cluster)).await;
    let mut chain = Chain::default();
    chain.grow(&log, 2).await;
    // For etcd as it is set; for its transport; for this engine.
    for padding in [150_000, limits::BATCH_BYTES_MAX, limits::ENTRY_BYTES_MAX] {
        let result = log.append(chain.head(), entry_after(&chain.head(), 1, padding)).await;
        assert!(matches!(result, Append::NotAppended(_)), "{padding}: {result:?}");
    }
    chain.grow(&log, 4).await;
    chain.assert_is(&log, 1).await;
}
