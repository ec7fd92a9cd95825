//! Every planted bug is found, within the seeds that stand beside it: so the silence of all seeds without one says
//! something.

use sereno_core::planted::{self, Planted};
use sereno_sim::{Config, explain, run};

/// Found within so many seeds, from 0 on.
fn seeds(bug: Planted) -> u64 {
    match bug {
        Planted::ActsOnUnknownAnnounce => 20,
        Planted::ActsBeforeOwnAnnounce => 5,
        Planted::UnknownIsCommitted => 20,
        Planted::UnknownIsNotApplied => 20,
        Planted::RefusedAfterUnknown => 300,
        Planted::ConflictIsLost => 20,
        Planted::HeadAloneResolves => 20,
        Planted::StaysLeader => 50,
        // Only one seed in 16 puts a log back.
        Planted::RestoredLogFollowed => 50,
        // Few nodes come to distrust their log.
        Planted::DistrustUntold => 200,
        Planted::SkewIgnored => 20,
        Planted::WallClockAtTakeover => 20,
        Planted::ClampRemoved => 20,
        Planted::ClampCaughtUp => 20,
        Planted::MillisecondsRoundedUp => 5,
        Planted::MillisecondsTruncated => 20,
        Planted::ReadWithoutBarrier => 20,
        Planted::ReadOnAppendInFlight => 20,
        Planted::HeldCallsForgotten => 100,
        Planted::NoFreshGrace => 20,
        Planted::TokenFromWallClock => 5,
        Planted::BornAtIgnored => 20,
        Planted::RenewalOfAnother => 20,
        Planted::ReleaseOfAnother => 20,
        Planted::ForceReleaseOfAnother => 100,
        Planted::HandOverToDue => 100,
        Planted::LeasesCutAtTakeover => 20,
        Planted::MemoryForgottenAtTakeover => 50,
        Planted::AbandonForgotten => 150,
        Planted::HeadCompareSkipped => 20,
        // One seed in 16 puts a log back that a fresh node then leads.
        Planted::RevisionAloneCompared => 50,
        Planted::AnsweredBeforeDurable => 5,
        Planted::TokenReusedAfterRestart => 20,
        Planted::WallClockInApply => 20,
        Planted::WaitOutlivesDeadline => 20,
        // One seed in 7 has a crowd.
        Planted::BargesBeforeSweep => 100,
        Planted::AcquireAllPartly => 20,
        Planted::FloorIgnored => 20,
        Planted::LockDelayIgnored => 20,
        Planted::MaxHoldIgnored => 20,
        Planted::PolicyCutsLeases => 150,
        Planted::FenceIgnored => 20,
        Planted::LevelsMixed => 50,
        Planted::LevelNotChecked => 50,
        Planted::HandOffOfAnother => 200,
        Planted::ReplacedCampaignWaits => 20,
        Planted::HoldFenceIgnored => 300,
        Planted::BegunEndsWithoutFence => 200,
        Planted::YoursForgotten => 200,
        Planted::CoolDownIgnored => 20,
        Planted::FinishedRunsAgain => 20,
        // A slot has to fail more often than its job allows.
        Planted::RetriesIgnored => 600,
        Planted::AbandonedAttemptCounts => 50,
        Planted::AbandonGivesBackTwice => 50,
        Planted::FinishOfAnother => 200,
        // Of the histories of quotas.
        Planted::GuaranteeIgnored => 20,
        Planted::ExpiryForgetsLayer => 5,
        Planted::ReturnCountsTwice => 20,
        Planted::LateCommitUnchecked => 20,
        Planted::ReadmitsTwice => 20,
        Planted::ShrinkKept => 5,
        Planted::PartCommitFreesRest => 5,
        Planted::ReserveRepeats => 5,
        Planted::OwnerBoundIgnored => 20,
        Planted::TimedOutReserveGranted => 50,
        Planted::QuarantineFrees => 5,
    }
}

/// What is planted in quotas, and does nothing elsewhere.
fn is_of_quotas(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::GuaranteeIgnored
            | Planted::ExpiryForgetsLayer
            | Planted::ReturnCountsTwice
            | Planted::LateCommitUnchecked
            | Planted::ReadmitsTwice
            | Planted::ShrinkKept
            | Planted::PartCommitFreesRest
            | Planted::ReserveRepeats
            | Planted::OwnerBoundIgnored
            | Planted::TimedOutReserveGranted
            | Planted::QuarantineFrees
    )
}

/// Bugs of what all families share that histories of quotas find too, within so many seeds.
const SHARED: [(Planted, u64); 5] = [
    (Planted::MemoryForgottenAtTakeover, 50),
    (Planted::AbandonForgotten, 200),
    (Planted::BornAtIgnored, 50),
    (Planted::WaitOutlivesDeadline, 50),
    (Planted::TokenFromWallClock, 5),
];

/// The first seed that fails with this bug planted.
fn found(bug: Planted, seeds: u64, config: fn(u64) -> Config) -> bool {
    planted::plant(Some(bug));
    let found = (0..seeds).find_map(|seed| Some((seed, run(config(seed), u64::MAX).err()?)));
    planted::plant(None);
    if let Some((seed, failure)) = &found {
        println!("{bug:?}: seed {seed}: {}", failure.message);
    }
    found.is_some()
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Planted::ALL.into_iter().filter(|bug| !is_of_quotas(*bug)) {
        if !found(bug, seeds(bug), Config::of) {
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn histories_of_quotas_find_their_planted_bugs() {
    let own = Planted::ALL.into_iter().filter(|bug| is_of_quotas(*bug));
    let all = own.map(|bug| (bug, seeds(bug))).chain(SHARED);
    let missed: Vec<_> = all.filter(|&(bug, seeds)| !found(bug, seeds, Config::quotas)).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// What is printed is enough to see it again: the same run comes to the same end.
#[test]
fn a_failure_can_be_played_again() {
    planted::plant(Some(Planted::MillisecondsRoundedUp));
    let found = (0..5).find_map(|seed| run(Config::of(seed), u64::MAX).err());
    let silent = found.expect("it is found within five seeds");
    let told = explain(silent.config.clone(), u64::MAX, false).expect_err("it is the same run");
    planted::plant(None);
    assert_eq!(
        (told.at_ms, told.events, &told.message),
        (silent.at_ms, silent.events, &silent.message)
    );
    let (text, seed) = (told.to_string(), told.config.seed);
    assert!(told.lines.len() > 60, "{text}");
    let lines: Vec<_> = text.lines().collect();
    let [.., last_event, what, config, again] = lines[..] else { panic!("{text}") };
    assert_eq!(Some(last_event), told.lines.last().map(String::as_str));
    assert!(
        what.contains(&format!("seed {seed} failed")) && what.contains(&told.message),
        "{what}"
    );
    assert!(config.contains(&format!("Config {{ seed: {seed}")), "{config}");
    assert!(again.contains("--features planted -- --planted MillisecondsRoundedUp"), "{again}");
    assert!(again.ends_with(&format!("--seed {seed} --trace")), "{again}");
}
