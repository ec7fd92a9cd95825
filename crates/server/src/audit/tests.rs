//! The trail through crashes, gaps and damage.

use super::{
    testing::{batch, ended, granted, wait_ended},
    *,
};
use sereno_api::AuditKind;
use sereno_core::event::Event;
use std::fs;

const LOG: LogId = LogId([1; 16]);

struct Bench {
    folder: tempfile::TempDir,
    audit: Option<Arc<Audit>>,
}

fn config(folder: &Path) -> AuditConfig {
    AuditConfig { folder: folder.to_owned(), file_bytes: 4_096, files: 4 }
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), audit: None }
    }

    fn start(&mut self, log_id: LogId, after: u64) -> &Audit {
        let on_failure = Box::new(|why| panic!("{why}"));
        let audit = Audit::open(config(self.folder.path()), on_failure).unwrap();
        audit.begin(log_id, Position(after));
        self.audit.insert(audit)
    }

    async fn stop(&mut self) {
        self.audit.take().unwrap().stop().await;
    }

    fn apply(&self, batches: impl IntoIterator<Item = EventBatch>) {
        let audit = self.audit.as_ref().unwrap();
        batches.into_iter().for_each(|batch| audit.applied(&Arc::new(batch)));
    }

    async fn lines(&self) -> Vec<AuditLine> {
        self.audit.as_ref().unwrap().read(0, 10_000).await.unwrap()
    }

    fn last_file(&self) -> PathBuf {
        files::list(self.folder.path()).unwrap().pop().unwrap().path
    }

    fn open_error(&self) -> String {
        let never = Box::new(|why| panic!("{why}"));
        match Audit::open(config(self.folder.path()), never) {
            Ok(_) => panic!("a damaged trail was opened"),
            Err(error) => error.to_string(),
        }
    }
}

fn story(positions: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = EventBatch> {
    positions.map(|position| {
        let events: Vec<Event> =
            vec![wait_ended("w"), granted("a", position), wait_ended("w"), ended("a", position)];
        batch(position, events)
    })
}

fn events(lines: &[AuditLine]) -> Vec<(u64, u64)> {
    lines.iter().filter_map(|line| Some((line.position, line.event?))).collect()
}

fn expected(positions: std::ops::RangeInclusive<u64>) -> Vec<(u64, u64)> {
    positions.flat_map(|position| [(position, 2), (position, 4)]).collect()
}

#[tokio::test]
async fn a_restart_that_replays_writes_nothing_twice_and_misses_nothing() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=5));
    bench.stop().await;
    bench.start(LOG, 0);
    bench.apply(story(1..=8));
    assert_eq!(events(&bench.lines().await), expected(1..=8));
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).findings, []);
    assert_eq!(compare(bench.folder.path(), LOG, Position(0), Position(8), story(1..=8)), []);
}

#[tokio::test]
async fn every_cut_of_the_tail_is_made_good_by_the_replay() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=2));
    bench.stop().await;
    let whole = fs::read(bench.last_file()).unwrap();
    for length in 0..=whole.len() {
        fs::write(bench.last_file(), &whole[..length]).unwrap();
        bench.start(LOG, 0);
        bench.apply(story(1..=3));
        assert_eq!(events(&bench.lines().await), expected(1..=3), "cut at {length}");
        bench.stop().await;
        assert_eq!(verify(bench.folder.path()).findings, [], "cut at {length}");
        assert!(fs::read(bench.last_file()).unwrap().starts_with(&whole), "cut at {length}");
    }
}

#[tokio::test]
async fn a_power_cut_may_leave_anything_after_the_last_checkpoint() {
    let mut bench = Bench::new();
    let audit = bench.start(LOG, 0);
    story(1..=2).for_each(|batch| audit.applied(&Arc::new(batch)));
    audit.durable(Position(2)).await.unwrap();
    bench.apply(story(3..=4));
    bench.stop().await;
    let whole = fs::read(bench.last_file()).unwrap();
    let checkpoint = memchr::memmem::find(&whole, b"\"checkpoint\"").unwrap();
    let after = checkpoint + memchr::memchr(b'\n', &whole[checkpoint..]).unwrap() + 1;
    for at in (after..whole.len()).step_by(7) {
        let mut torn = whole.clone();
        torn[at..].iter_mut().take(50).for_each(|byte| *byte = 0);
        fs::write(bench.last_file(), &torn).unwrap();
        bench.start(LOG, 2);
        bench.apply(story(3..=5));
        assert_eq!(events(&bench.lines().await), expected(1..=5), "zeros at {at}");
        bench.stop().await;
    }
}

#[tokio::test]
async fn a_flipped_byte_before_a_checkpoint_is_damage() {
    let mut bench = Bench::new();
    let audit = bench.start(LOG, 0);
    story(1..=2).for_each(|batch| audit.applied(&Arc::new(batch)));
    audit.durable(Position(2)).await.unwrap();
    bench.apply(story(3..=3));
    bench.stop().await;
    let whole = fs::read(bench.last_file()).unwrap();
    let checkpoint = memchr::memmem::find(&whole, b"\"checkpoint\"").unwrap();
    let checkpoint = memchr::memrchr(b'\n', &whole[..checkpoint]).unwrap();
    for at in (0..=checkpoint).step_by(13) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x01;
        fs::write(bench.last_file(), &flipped).unwrap();
        let error = bench.open_error();
        assert!(error.contains("damaged") && error.contains("line"), "{at}: {error}");
        assert_ne!(verify(bench.folder.path()).findings, [], "{at}");
    }
}

#[tokio::test]
async fn lines_that_are_right_and_in_the_wrong_place_are_damage() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=3));
    bench.stop().await;
    let text = fs::read_to_string(bench.last_file()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (what, wrong) in [
        ("taken out", [&lines[..2], &lines[3..]].concat()),
        ("exchanged", [&lines[..1], &lines[2..3], &lines[1..2], &lines[3..]].concat()),
        ("doubled", [&lines[..2], &lines[1..]].concat()),
    ] {
        fs::write(bench.last_file(), wrong.concat()).unwrap();
        assert!(bench.open_error().contains("damaged"), "{what}");
        assert_ne!(verify(bench.folder.path()).findings, [], "{what}");
    }
}

#[tokio::test]
async fn a_well_made_forgery_is_found_by_the_log() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=1).chain(story(3..=3)));
    bench.stop().await;
    let honest = || story(1..=1).chain(story(3..=3));
    let forged = || story(1..=1).chain([batch(3, vec![wait_ended("w"), granted("b", 3)])]);
    let compare = |batches: Vec<EventBatch>| {
        compare(bench.folder.path(), LOG, Position(0), Position(3), batches)
    };
    assert_eq!(compare(honest().collect()), []);
    let findings = compare(forged().collect());
    assert!(findings[0].what.contains("not what the log says"), "{findings:?}");
    assert!(findings[1].what.contains("lost entries"), "{findings:?}");
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let mut bench = Bench::new();
    let audit = bench.start(LOG, 0);
    audit.applied(&Arc::new(batch(1, vec![granted("a", 1)])));
    audit.durable(Position(7)).await.unwrap();
    bench.stop().await;
    // Snapshot at the checkpoint: nothing is missing.
    bench.start(LOG, 7);
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).gaps, []);
    // Snapshot beyond it: somebody has taken files away.
    bench.start(LOG, 20);
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).gaps, [(8, 20)]);
    // Another log: told apart, and its own past is missing too.
    bench.start(LogId([2; 16]), 3);
    bench.apply(story(4..=4));
    let lines = bench.lines().await;
    let kinds: Vec<_> = lines.iter().map(|line| line.kind).collect();
    let tail = [AuditKind::Log, AuditKind::Gap, AuditKind::Granted, AuditKind::Ended];
    assert!(kinds.ends_with(&tail), "{kinds:?}");
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).gaps, [(8, 20), (1, 3)]);
    assert_eq!(
        compare(bench.folder.path(), LogId([2; 16]), Position(0), Position(4), story(4..=4)),
        []
    );
}

#[tokio::test]
async fn files_are_rotated_bounded_and_chained() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=100));
    bench.stop().await;
    let files = files::list(bench.folder.path()).unwrap();
    assert_eq!(files.len(), 4);
    assert!(files.iter().all(|file| fs::metadata(&file.path).unwrap().len() < 3 * 4_096));
    let verdict = verify(bench.folder.path());
    assert_eq!(verdict.findings, []);
    bench.start(LOG, 0);
    bench.apply(story(1..=101));
    let lines = bench.lines().await;
    assert_eq!(events(&lines).last(), Some(&(101, 4)));
    let page = bench.audit.as_ref().unwrap().read(lines[5].seq, 3).await.unwrap();
    assert_eq!(page, lines[5..8]);
    bench.stop().await;
    assert_eq!(compare(bench.folder.path(), LOG, Position(0), Position(101), story(1..=101)), []);
    fs::remove_file(&files::list(bench.folder.path()).unwrap()[2].path).unwrap();
    let findings = verify(bench.folder.path()).findings;
    assert!(
        findings.iter().any(|finding| finding.what.contains("missing before it")),
        "{findings:?}"
    );
}

#[tokio::test]
async fn the_comparison_finds_strays_and_losses() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=3));
    bench.stop().await;
    let compare = |durable, batches| {
        compare(bench.folder.path(), LOG, Position(0), Position(durable), batches)
    };
    let ahead = compare(0, story(1..=2).collect::<Vec<_>>());
    assert!(ahead.len() == 2 && ahead[0].what.contains("lost entries"), "{ahead:?}");
    assert_eq!(compare(3, story(1..=4).collect()), [], "after the snapshot lines may be missing");
    let lost = compare(4, story(1..=4).collect());
    assert!(lost.len() == 2 && lost[0].what.contains("lacks event 2"), "{lost:?}");
}
