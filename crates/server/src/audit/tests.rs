//! The trail through crashes, gaps and damage.

use super::{
    testing::{batch, booked, ended, granted, wait_ended},
    *,
};
use sereno_api::AuditKind;
use sereno_core::{event::Event, limits};
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

/// Compared with a log that was killed and has no snapshot after `durable`.
fn compared(
    bench: &Bench,
    log_id: LogId,
    durable: u64,
    batches: impl IntoIterator<Item = EventBatch>,
) -> Comparison {
    let (after, durable) = (Position(0), Position(durable));
    let expected = Expected { log_id, after, durable, complete: false };
    compare(bench.folder.path(), expected, batches).unwrap()
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
    assert_eq!(verify(bench.folder.path()).unwrap().findings, []);
    assert_eq!(compared(&bench, LOG, 0, story(1..=8)).findings, []);
}

/// A node that follows makes no snapshots, and hours may pass without an event. Its trail knows how far it has seen the
/// log all the same: a start from a snapshot after the last event has then missed nothing.
#[tokio::test]
async fn a_trail_of_a_quiet_log_has_no_gap() {
    let quiet =
        |positions: std::ops::RangeInclusive<u64>| positions.map(|at| batch(at, Vec::new()));
    let mut bench = Bench::new();
    let gaps = |lines: &[AuditLine]| -> Vec<_> {
        lines.iter().filter_map(|line| Some((line.gap_from?, line.position))).collect()
    };
    bench.start(LOG, 0);
    bench.apply(story(1..=2));
    bench.apply(quiet(3..=1_000));
    bench.stop().await;
    // After 2 it was told of 258, 514 and 770: from there on nobody knows.
    assert_eq!(bench.start(LOG, 770).seen(LOG), Some(Position(770)));
    assert_eq!(gaps(&bench.lines().await), []);
    bench.apply(quiet(771..=1_000));
    bench.apply(story(1_001..=1_001));
    assert_eq!(events(&bench.lines().await), [expected(1..=2), expected(1_001..=1_001)].concat());
    bench.stop().await;
    bench.start(LOG, 1_100);
    assert_eq!(gaps(&bench.lines().await), [(1_001, 1_100)], "that much was missed");
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).unwrap().findings, []);
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
        assert_eq!(verify(bench.folder.path()).unwrap().findings, [], "cut at {length}");
        assert!(fs::read(bench.last_file()).unwrap().starts_with(&whole), "cut at {length}");
    }
}

#[tokio::test]
async fn a_power_cut_may_leave_anything_at_the_end_and_nothing_whole_after_it() {
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
        torn[at..].fill(0);
        fs::write(bench.last_file(), &torn).unwrap();
        bench.start(LOG, 2);
        bench.apply(story(3..=5));
        assert_eq!(events(&bench.lines().await), expected(1..=5), "zeros from {at} on");
        bench.stop().await;
    }
    // The last line, with its end.
    let last = memchr::memrchr(b'\n', &whole[..whole.len() - 1]).unwrap() + 1;
    let mut torn = whole.clone();
    torn[last + 20] ^= 0x01;
    fs::write(bench.last_file(), &torn).unwrap();
    bench.start(LOG, 2);
    bench.apply(story(3..=5));
    assert_eq!(events(&bench.lines().await), expected(1..=5), "a damaged last line");
    bench.stop().await;
}

#[tokio::test]
async fn a_changed_line_with_a_whole_one_after_it_is_damage_even_without_a_checkpoint() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=3));
    bench.stop().await;
    let whole = fs::read(bench.last_file()).unwrap();
    assert_eq!(memchr::memmem::find(&whole, b"\"checkpoint\""), None);
    let last = memchr::memrchr(b'\n', &whole[..whole.len() - 1]).unwrap();
    for at in (0..=last).step_by(11) {
        for change in [|byte: &mut u8| *byte ^= 0x01, |byte: &mut u8| *byte = 0] {
            let mut edited = whole.clone();
            change(&mut edited[at]);
            fs::write(bench.last_file(), &edited).unwrap();
            let error = bench.open_error();
            assert!(error.contains("damaged") && error.contains("move it away"), "{at}: {error}");
            assert_eq!(fs::read(bench.last_file()).unwrap(), edited, "it is left as it is");
        }
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
        assert_ne!(verify(bench.folder.path()).unwrap().findings, [], "{at}");
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
        assert_ne!(verify(bench.folder.path()).unwrap().findings, [], "{what}");
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
    assert_eq!(compared(&bench, LOG, 0, honest()).findings, []);
    let findings = compared(&bench, LOG, 0, forged()).findings;
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
    assert_eq!(verify(bench.folder.path()).unwrap().gaps, []);
    // Snapshot beyond it: somebody has taken files away.
    bench.start(LOG, 20);
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).unwrap().gaps, [(8, 20)]);
    // Another log: told apart, and its own past is missing too.
    bench.start(LogId([2; 16]), 3);
    bench.apply(story(4..=4));
    let lines = bench.lines().await;
    let kinds: Vec<_> = lines.iter().map(|line| line.kind).collect();
    let tail = [AuditKind::Log, AuditKind::Gap, AuditKind::Granted, AuditKind::Ended];
    assert!(kinds.ends_with(&tail), "{kinds:?}");
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).unwrap().gaps, [(8, 20), (1, 3)]);
    assert_eq!(compared(&bench, LogId([2; 16]), 0, story(4..=4)).findings, []);
}

/// A node that was away for longer than the log goes back begins again with a snapshot.
#[tokio::test]
async fn positions_that_a_node_did_not_see_are_a_gap() {
    let mut bench = Bench::new();
    let audit = bench.start(LOG, 0);
    audit.applied(&Arc::new(batch(1, vec![granted("a", 1)])));
    audit.durable(Position(3)).await.unwrap();
    audit.jumped(Position(3)); // It has seen all of that.
    audit.jumped(Position(9));
    audit.applied(&Arc::new(batch(10, vec![ended("a", 1)])));
    let kinds: Vec<_> = bench.lines().await.iter().map(|line| line.kind).collect();
    assert!(kinds.ends_with(&[AuditKind::Gap, AuditKind::Ended]), "{kinds:?}");
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).unwrap().gaps, [(4, 9)]);
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
    let verdict = verify(bench.folder.path()).unwrap();
    assert_eq!(verdict.findings, []);
    bench.start(LOG, 0);
    bench.apply(story(1..=101));
    let lines = bench.lines().await;
    assert_eq!(events(&lines).last(), Some(&(101, 4)));
    let page = bench.audit.as_ref().unwrap().read(lines[5].seq, 3).await.unwrap();
    assert_eq!(page, lines[5..8]);
    bench.stop().await;
    assert_eq!(compared(&bench, LOG, 0, story(1..=101)).findings, []);
    fs::remove_file(&files::list(bench.folder.path()).unwrap()[2].path).unwrap();
    let findings = verify(bench.folder.path()).unwrap().findings;
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
    let ahead = compared(&bench, LOG, 0, story(1..=2)).findings;
    assert!(ahead.len() == 2 && ahead[0].what.contains("lost entries"), "{ahead:?}");
    let killed = compared(&bench, LOG, 0, story(1..=4));
    assert_eq!(
        (killed.findings, killed.unwritten),
        (vec![], 2),
        "a crash may lose what is after the snapshot"
    );
    let lost = compared(&bench, LOG, 4, story(1..=4)).findings;
    let whats: Vec<_> = lost.iter().map(|finding| finding.what.as_str()).collect();
    assert!(whats.len() == 2 && whats[0].contains("lacks 2 events"), "{whats:?}");
    assert!(whats[1].contains("ends at position 3"), "{whats:?}");
}

#[tokio::test]
async fn a_trail_that_was_shortened_or_taken_away_is_no_sound_trail() {
    let mut bench = Bench::new();
    let audit = bench.start(LOG, 0);
    story(1..=2).for_each(|batch| audit.applied(&Arc::new(batch)));
    audit.durable(Position(2)).await.unwrap();
    bench.apply(story(3..=4));
    bench.stop().await;
    let file = bench.last_file();
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let expected =
        Expected { log_id: LOG, after: Position(0), durable: Position(2), complete: true };
    let findings = |expected: Expected, batches: std::ops::RangeInclusive<u64>| {
        compare(bench.folder.path(), expected, story(batches)).unwrap().findings
    };
    assert_eq!(findings(expected, 1..=4), []);
    // Whatever was cut from the end: a service that stopped in good order had written it.
    for kept in 0..lines.len() {
        fs::write(&file, lines[..kept].concat()).unwrap();
        assert_ne!(findings(expected, 1..=4), [], "{kept} lines kept");
        // After a kill only what the snapshot has covered must be there.
        let killed = findings(Expected { complete: false, ..expected }, 1..=4);
        let is_durable = kept > lines.iter().position(|line| line.contains("checkpoint")).unwrap();
        assert_eq!(killed.is_empty(), is_durable, "{kept} lines kept: {killed:?}");
        // Nor where the log itself was trimmed below the snapshot, and has nothing left to compare with.
        let trimmed = Expected { after: Position(2), complete: false, ..expected };
        assert_eq!(findings(trimmed, 3..=4).is_empty(), is_durable, "{kept} lines kept");
    }
    fs::remove_file(&file).unwrap();
    let gone = findings(expected, 1..=4);
    assert!(gone[0].what.contains("lacks 8 events"), "{gone:?}");
    fs::remove_dir(bench.folder.path()).unwrap();
    assert_eq!(findings(expected, 1..=4), gone);
}

/// Three full files and a begun one; the bench is stopped.
async fn long_trail() -> (Bench, Vec<files::TrailFile>) {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply(story(1..=100));
    bench.stop().await;
    let files = files::list(bench.folder.path()).unwrap();
    assert_eq!(files.len(), 4);
    (bench, files)
}

#[tokio::test]
async fn damage_in_any_file_is_found_at_the_start() {
    let (mut bench, files) = long_trail().await;
    for file in &files[..3] {
        let whole = fs::read(&file.path).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 7) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x01;
            fs::write(&file.path, &flipped).unwrap();
            let error = bench.open_error();
            assert!(error.contains("damaged") && error.contains(&file.name()), "{at}: {error}");
        }
        fs::write(&file.path, &whole[..whole.len() - 1]).unwrap();
        assert!(bench.open_error().contains("has no end"));
        fs::write(&file.path, &whole).unwrap();
    }
    let middle = fs::read(&files[1].path).unwrap();
    fs::remove_file(&files[1].path).unwrap();
    assert!(bench.open_error().contains("lines are missing"));
    fs::write(&files[1].path, middle).unwrap();
    bench.start(LOG, 0);
    bench.stop().await;
}

#[tokio::test]
async fn a_damaged_line_is_never_given_out() {
    let (mut bench, files) = long_trail().await;
    bench.start(LOG, 0);
    let honest = bench.lines().await;
    let file = &files[1];
    let whole = fs::read_to_string(&file.path).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let read = async |from, limit| bench.audit.as_ref().unwrap().read(from, limit).await;
    // In the first line of a file, in its last, and in between: while the service runs.
    for at in [0, 3, lines.len() - 1] {
        let seq = file.first + at as u64;
        let forged = lines[at].replace("default", "another").replace("1", "2");
        fs::write(&file.path, [&lines[..at], &[&forged], &lines[at + 1..]].concat().concat())
            .unwrap();
        let page = read(0, 10_000).await.unwrap();
        assert_eq!(page.last().map(|line| line.seq), Some(seq - 1), "up to the damage");
        assert_eq!(page, honest[..page.len()]);
        assert!(read(seq, 5).await.unwrap_err().contains("not what was written"), "{at}");
        assert!(read(seq + 1, 5).await.is_err(), "its line before is not there");
        assert_eq!(read(seq + 2, 5).await.unwrap()[0].seq, seq + 2, "{at}");
    }
    // A line that is right by itself and stands where another has been taken out.
    fs::write(&file.path, [&lines[..3], &lines[4..]].concat().concat()).unwrap();
    assert_eq!(read(0, 10_000).await.unwrap().last().unwrap().seq, file.first + 2);
    assert!(read(file.first + 3, 5).await.is_err());
    fs::write(&file.path, &whole).unwrap();
    assert_eq!(read(0, 10_000).await.unwrap(), honest);
    bench.stop().await;
}

#[tokio::test]
async fn a_trail_that_is_deleted_under_the_process_stops_it() {
    let folder = tempfile::tempdir().unwrap();
    let (tell, told) = tokio::sync::oneshot::channel();
    let on_failure = Box::new(|why| tell.send(why).unwrap());
    let audit = Audit::open(config(folder.path()), on_failure).unwrap();
    audit.begin(LOG, Position(0));
    audit.applied(&Arc::new(batch(1, vec![granted("ana", 1)])));
    assert!(!audit.read(0, 10).await.unwrap().is_empty());
    fs::remove_dir_all(folder.path()).unwrap();
    audit.applied(&Arc::new(batch(2, vec![granted("ben", 2)])));
    let why = told.await.unwrap();
    assert!(why.contains("deleted while it was written"), "{why}");
}

#[tokio::test]
async fn its_files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/audit");
    let never = Box::new(|why| panic!("{why}"));
    let audit = Audit::open(config(&folder), never).unwrap();
    audit.begin(LOG, Position(0));
    audit.stop().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&files::list(&folder).unwrap()[0].path), 0o600);
}

#[tokio::test]
async fn books_that_do_not_go_on_from_where_they_were_are_found() {
    let mut bench = Bench::new();
    bench.start(LOG, 0);
    bench.apply([batch(1, vec![booked(0, 2), booked(2, 5)])]);
    bench.stop().await;
    assert_eq!(verify(bench.folder.path()).unwrap().findings, []);
    bench.start(LOG, 0);
    bench.apply([batch(2, vec![booked(4, 6)]), batch(3, vec![booked(6, 0)])]);
    bench.stop().await;
    let found = verify(bench.folder.path()).unwrap().findings;
    let [found] = &found[..] else { panic!("{found:?}") };
    let what = "finds 0 committed and 4 reserved at gpu in default, where line 3 has left 0 and 5";
    assert_eq!((found.line, found.what.as_str()), (4, what));
}

/// One look goes over so many lines, whether or not anything is found.
#[tokio::test]
async fn a_search_goes_on_where_it_has_stopped() {
    let bench = Bench::new();
    // More lines than one look goes over, in several files, of which all are kept.
    let lines = limits::PAGE_EXAMINED_MAX as u64 + 2_000;
    let config = AuditConfig { file_bytes: 1 << 20, files: 100, ..config(bench.folder.path()) };
    let audit = Audit::open(config, Box::new(|why| panic!("{why}"))).unwrap();
    audit.begin(LOG, Position(0));
    let others = (1..=lines).map(|position| batch(position, vec![granted("a", position)]));
    let own = batch(lines + 1, vec![booked(0, 1)]);
    others.chain([own]).for_each(|batch| audit.applied(&Arc::new(batch)));
    let mut search = Search {
        namespace: "default".into(),
        quota: Some("gpu".into()),
        path: None,
        owner: None,
        since_ms: None,
        until_ms: None,
        from: 1,
        limit: 10,
    };
    let first = audit.search(search.clone()).await.unwrap();
    assert_eq!((first.lines.len(), first.complete), (0, false));
    assert_eq!(first.next_from, limits::PAGE_EXAMINED_MAX as u64 + 1);
    search.from = first.next_from;
    let second = audit.search(search.clone()).await.unwrap();
    assert_eq!((second.lines.len(), second.complete), (1, true));
    // Whoever names a time begins with the file that has it.
    let time = &second.lines[0].time.clone().unwrap();
    let at_ms = crate::time::parse_rfc3339(time).unwrap();
    (search.from, search.since_ms) = (1, Some(at_ms + 10 * 60_000));
    let later = audit.search(search).await.unwrap();
    assert_eq!((later.lines.len(), later.complete), (0, true), "only the last file is read");
    audit.stop().await;
}
