//! The fence of a file, within one process. Between processes: the tests of `sereno guard file`.

use super::*;
use std::{fs, sync::mpsc};

const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(30);
const KEY: &str = "default/lock/report";

fn fence(folder: &tempfile::TempDir) -> FileFence {
    FileFence::at(folder.path().join("report.csv")).unwrap()
}

fn refused(result: Result<FileGuard, FileFenceError>) -> Refused {
    match result {
        Err(FileFenceError::Refused(refused)) => refused,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_accepts_higher_and_equal_and_refuses_lower() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    assert_eq!(fence.highest().unwrap(), None);
    assert!(fence.check(1).is_ok());
    let guard = fence.enter(7, Some(KEY), NOW).unwrap();
    assert!(guard.is_new_owner());
    drop(guard);
    let guard = fence.enter(7, Some(KEY), NOW).unwrap();
    assert!(!guard.is_new_owner(), "the same owner again");
    drop(guard);
    let expected = Refused { key: KEY.into(), token: 6, highest: 7 };
    assert_eq!(refused(fence.enter(6, Some(KEY), NOW)), expected);
    assert_eq!(refused(fence.enter(6, None, NOW)), expected, "the known key is told");
    assert!(matches!(fence.check(6), Err(FileFenceError::Refused(_))));
    assert!(fence.enter(8, None, NOW).unwrap().is_new_owner());
    assert_eq!(fence.highest().unwrap(), Some((8, Some(KEY.into()))));
}

#[test]
fn one_path_has_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    drop(fence.enter(5, None, NOW).unwrap());
    drop(fence.enter(6, Some(KEY), NOW).unwrap());
    let error = fence.enter(7, Some("default/lock/other"), NOW).unwrap_err();
    assert!(matches!(error, FileFenceError::OtherKey { .. }), "{error}");
    assert!(error.to_string().contains(KEY) && error.to_string().contains("other"), "{error}");
    assert_eq!(fence.highest().unwrap().unwrap().0, 6, "nothing was changed");
}

#[test]
fn a_newer_token_counts_from_when_it_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    let older = fence.enter(5, Some(KEY), NOW).unwrap();
    let error = fence.enter(7, Some(KEY), NOW).unwrap_err();
    let said = error.to_string();
    assert!(
        matches!(error, FileFenceError::Busy { .. }) && said.contains("token 5, process "),
        "{said}"
    );
    // The older one works on, and is told if it asks; it does not begin anew.
    assert!(fence.check(5).is_err());
    drop(older);
    assert_eq!(refused(fence.enter(5, Some(KEY), NOW)).highest, 7);
    assert!(fence.enter(7, Some(KEY), NOW).is_ok());
}

#[test]
fn a_newer_one_waits_and_one_that_was_overtaken_meanwhile_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    let first = fence.enter(5, Some(KEY), NOW).unwrap();
    let (done, results) = mpsc::channel();
    let enter = |token| {
        let (fence, done) = (fence.clone(), done.clone());
        thread::spawn(move || done.send((token, fence.enter(token, Some(KEY), LONG))).unwrap());
    };
    enter(6);
    until(|| fence.highest().unwrap().unwrap().0 == 6);
    enter(7);
    until(|| fence.highest().unwrap().unwrap().0 == 7);
    // At once, though the first still works.
    let overtaken = results.recv().unwrap();
    assert!(results.try_recv().is_err());
    drop(first);
    let (six, seven) = (overtaken, results.recv().unwrap());
    assert_eq!((six.0, refused(six.1).highest), (6, 7));
    assert!(seven.0 == 7 && seven.1.is_ok());
}

/// One that waits and finds the way free has not been told that a newer one was shown just before.
#[test]
fn one_that_finds_the_way_free_looks_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    let mut first = fence.enter(5, Some(KEY), NOW).unwrap();
    // While the other one sleeps between two looks: so once is not enough.
    for round in 0..5 {
        let (waits, token) = (fence.clone(), 10 * round + 6);
        let waiting = thread::spawn(move || waits.enter(token, Some(KEY), LONG));
        until(|| fence.highest().unwrap().unwrap().0 == token);
        // As one does whose process dies before it works.
        fence.show(token + 1, Some(KEY), Instant::now() + LONG).unwrap();
        drop(first);
        assert_eq!(refused(waiting.join().unwrap()).highest, token + 1);
        first = fence.enter(token + 2, Some(KEY), NOW).unwrap();
    }
}

/// Waits for what another thread does: a file has no events here.
fn until(true_now: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !true_now() {
        assert!(Instant::now() < end);
        thread::yield_now();
    }
}

#[test]
fn many_at_once_never_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    let file = fence.target().to_path_buf();
    thread::scope(|scope| {
        for token in (1..=40).rev() {
            let (fence, file) = (&fence, &file);
            scope.spawn(move || match fence.enter(token, Some(KEY), LONG) {
                Ok(guard) => {
                    let before = fs::read_to_string(file).unwrap_or_default();
                    let last = before.lines().last().map_or(0, |line| line.parse().unwrap());
                    assert!(last < token, "{last} was here before {token}");
                    guard.replace(format!("{before}{token}\n").as_bytes()).unwrap();
                }
                Err(FileFenceError::Refused(refused)) => assert!(refused.highest > token),
                Err(error) => panic!("{error}"),
            });
        }
    });
    let all = fs::read_to_string(&file).unwrap();
    assert!(all.ends_with("40\n"), "{all:?}");
}

#[test]
fn a_damaged_memory_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    drop(fence.enter(5, Some(KEY), NOW).unwrap());
    let record = fence.folder().join("token");
    for damage in ["", "sereno-fence 1\ntoken 4", "\u{0}\u{0}"] {
        fs::write(&record, damage).unwrap();
        let error = fence.enter(9, Some(KEY), NOW).unwrap_err();
        assert!(matches!(error, FileFenceError::Damaged { .. }), "{error}");
        assert_eq!(fs::read_to_string(&record).unwrap(), damage, "it is left as it is");
    }
}

#[test]
fn what_a_crash_leaves_behind_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    // Killed after the folder was made, and while a new record was written.
    fs::create_dir(fence.folder()).unwrap();
    fs::write(fence.folder().join(".token.sereno-new"), "sereno-fe").unwrap();
    drop(fence.enter(5, Some(KEY), NOW).unwrap());
    assert_eq!(fence.highest().unwrap().unwrap().0, 5);
}

#[test]
fn a_fence_is_beside_what_it_protects() {
    for (path, folder) in
        [("a/b", "a/b.sereno-fence"), ("a/b/", "a/b.sereno-fence"), ("b", "b.sereno-fence")]
    {
        assert_eq!(FileFence::at(path).unwrap().folder(), Path::new(folder), "{path}");
    }
    for path in ["/", "..", "a/.."] {
        assert!(matches!(FileFence::at(path), Err(FileFenceError::Invalid(_))), "{path}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (token, key) in [(0, None), (1, Some("")), (1, Some("a b"))] {
        let error = fence(&folder).enter(token, key, NOW).unwrap_err();
        assert!(matches!(error, FileFenceError::Invalid(_)), "{error}");
    }
}

#[test]
fn replacing_keeps_the_mode() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let fence = fence(&folder);
    let guard = fence.enter(5, Some(KEY), NOW).unwrap();
    let mode = || fs::metadata(fence.target()).unwrap().permissions().mode() & 0o7777;
    guard.replace(b"one").unwrap();
    assert_eq!(mode(), 0o644);
    fs::set_permissions(fence.target(), fs::Permissions::from_mode(0o640)).unwrap();
    guard.replace(b"two").unwrap();
    assert_eq!((mode(), fs::read(fence.target()).unwrap()), (0o640, b"two".to_vec()));
    let private = fs::metadata(fence.folder()).unwrap().permissions().mode() & 0o7777;
    assert_eq!(private, 0o700);
}
