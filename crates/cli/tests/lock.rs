//! `sereno lock` as a process, against a scripted service: exit codes, the environment, and above all that the
//! command's whole group is gone before its lease can end.

#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

#[path = "../../client/tests/stub/mod.rs"]
mod stub;
#[path = "support/wait.rs"]
mod wait;

use serde_json::json;
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};
use stub::{
    Asked, Say, Stub, granted, grants_all, not_renewed, problem, released, renewed, waiting,
};
use wait::{alive, until};

const ACQUIRE: &str = "/v1/locks/acquire";
const RENEW: &str = "/v1/locks/renew-many";
const RELEASE: &str = "/v1/locks/release";
const ABANDON: &str = "/v1/locks/abandon";

/// Writes its own and its child's number, then both sleep; `trap` is what the shell does on TERM.
fn family(trap: &str) -> String {
    format!(
        "trap '{trap}' TERM; sleep 60 & echo $! > child; echo $$ > self; while :; do wait; done"
    )
}

struct Scene {
    folder: tempfile::TempDir,
    stub: Stub,
}

/// A wrapper that is killed when the test ends early.
struct Wrapper(Child);

impl Drop for Wrapper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Scene {
    fn new(script: impl FnMut(&Asked) -> Say + Send + 'static) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), stub: Stub::start(script) }
    }

    fn command(&self, options: &[&str], shell: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sereno"));
        command
            .args(["lock", "job/1", "--server", &self.stub.url])
            .args(options)
            .args(["--", "sh", "-c", shell])
            .current_dir(self.folder.path())
            .env_remove("SERENO_SERVER")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, options: &[&str], shell: &str) -> Output {
        self.command(options, shell).output().unwrap()
    }

    fn start(&self, options: &[&str], shell: &str) -> Wrapper {
        Wrapper(self.command(options, shell).stderr(Stdio::null()).spawn().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The number in a file that the command writes.
    fn pid(&self, name: &str) -> i32 {
        let path = self.path(name);
        let read = || fs::read_to_string(&path).ok()?.trim().parse().ok();
        until(name, Duration::from_secs(10), || read().is_some());
        read().unwrap()
    }

    fn family(&self) -> [i32; 2] {
        [self.pid("self"), self.pid("child")]
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

fn kill(signal: &str, pid: i32) {
    let done = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success());
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<i32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    fs::read_to_string(path).unwrap().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The watchdog among them.
fn watchdog(wrapper: &Wrapper) -> Option<i32> {
    let is_watchdog = |pid: &i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("__watchdog") && alive(*pid)
    };
    children(wrapper.0.id()).into_iter().find(is_watchdog)
}

/// Grants for this long and then, or once there is the file, never says anything again.
fn then_silence(ttl_ms: u64) -> impl FnMut(&Asked) -> Say + Send + 'static {
    move |asked| if asked.path == ACQUIRE { granted(asked, 7, ttl_ms) } else { Say::Silence }
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let scene = Scene::new(grants_all(30_000));
    assert_eq!(code(&scene.run(&[], "exit 0")), 0);
    assert_eq!(code(&scene.run(&[], "exit 7")), 7);
    assert_eq!(code(&scene.run(&[], "kill -9 $$")), 128 + 9);
    assert_eq!(scene.stub.asked_on(RELEASE).len(), 3, "each time it is released");
}

#[test]
fn the_command_finds_its_token_and_its_streams() {
    let scene = Scene::new(grants_all(30_000));
    let mut command = scene
        .command(&[], "read line; echo $line $SERENO_TOKEN $SERENO_RESOURCE $SERENO_FENCE_KEY");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "hello 7 job/1 default/lock/job/1\n");
}

#[test]
fn nothing_of_ours_is_open_in_the_command() {
    let scene = Scene::new(grants_all(30_000));
    let list = "ls /proc/self/fd";
    let bare = Command::new("sh").args(["-c", list]).stdin(Stdio::null()).output().unwrap();
    let text = |output: Output| String::from_utf8(output.stdout).unwrap();
    assert_eq!(text(scene.run(&[], list)), text(bare));
}

#[test]
fn what_cannot_be_run_is_told_apart() {
    let scene = Scene::new(grants_all(30_000));
    let run = |program: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sereno"));
        command.args(["lock", "a", "--server", &scene.stub.url, "--"]).arg(program);
        command.output().unwrap()
    };
    let missing = run(&scene.path("missing"));
    assert_eq!(code(&missing), 127);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("missing"));
    fs::write(scene.path("plain"), "").unwrap();
    assert_eq!(code(&run(&scene.path("plain"))), 126);
}

#[test]
fn without_the_lock_the_command_does_not_run() {
    let refusing = |status, word: &'static str, retry: Option<&'static str>| {
        Scene::new(move |_| problem(status, word, retry))
    };
    for (scene, options, expected) in [
        (refusing(409, "LOCKED", Some("newRequestId")), &[][..], 120),
        (refusing(409, "LOCKED", Some("newRequestId")), &["--skip-if-held"][..], 121),
        (refusing(409, "WAIT_TIMEOUT", Some("newRequestId")), &["--wait", "1s"][..], 120),
        (refusing(403, "FENCING_REQUIRED", None), &["--fencing", "best-effort"][..], 125),
    ] {
        let output = scene.run(options, "touch ran");
        assert_eq!(code(&output), expected, "{output:?}");
        assert!(!output.stderr.is_empty() && !scene.path("ran").exists());
    }
    let scene = Scene::new(|_| Say::Cut);
    let unreachable = Command::new(env!("CARGO_BIN_EXE_sereno"))
        .args(["lock", "a", "--server", "http://127.0.0.1:1", "--", "touch", "ran"])
        .current_dir(scene.folder.path())
        .output()
        .unwrap();
    assert_eq!(code(&unreachable), 122);
    assert!(String::from_utf8_lossy(&unreachable.stderr).contains("sereno serve"));
    assert!(!scene.path("ran").exists());
}

#[test]
fn options_reach_the_service() {
    let scene = Scene::new(|asked| match asked.path.as_str() {
        ACQUIRE => problem(409, "LOCKED", Some("newRequestId")),
        _ => stub::abandoned(),
    });
    let options = [
        "--ttl",
        "20s",
        "--wait",
        "5s",
        "--max-hold",
        "1m",
        "--namespace",
        "n",
        "--owner",
        "me",
        "--fencing",
        "enforced",
        "--label",
        "a=b",
    ];
    // It is told LOCKED although it wanted to wait, so it goes on asking; the first time is enough here.
    let _wrapper = scene.start(&options, "true");
    let body = scene.stub.until_asked_on(ACQUIRE).body;
    for (field, value) in [
        ("leaseTtl", "20s"),
        ("maxHold", "1m"),
        ("namespace", "n"),
        ("owner", "me"),
        ("fencing", "enforced"),
    ] {
        assert_eq!(body[field], value);
    }
    assert_eq!(body["labels"], json!({"a": "b"}));
}

#[test]
fn in_a_partition_the_whole_group_is_gone_before_the_lease_is() {
    let scene = Scene::new(then_silence(2_000));
    let mut wrapper = scene.start(&[], &family(""));
    let family = scene.family();
    let granted_at = scene.stub.asked_on(ACQUIRE)[0].at;
    until("the group's end", Duration::from_secs(5), || !family.iter().any(|&pid| alive(pid)));
    let gone_after = granted_at.elapsed();
    assert!(gone_after < Duration::from_millis(2_000), "KILL came late: {gone_after:?}");
    assert!(gone_after > Duration::from_millis(1_500), "it has most of its lease: {gone_after:?}");
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(123));
}

#[test]
fn a_command_that_heeds_term_has_its_grace() {
    let scene = Scene::new(then_silence(2_000));
    let output = scene.run(&[], "trap 'echo cleaned > cleaned; exit 0' TERM; sleep 60 & wait");
    assert_eq!(code(&output), 123, "the lock was lost, whatever the command says: {output:?}");
    assert!(scene.path("cleaned").exists());
}

#[test]
fn a_stopped_wrapper_cannot_keep_the_command_past_the_lease() {
    let scene = Scene::new(grants_all(2_000));
    let mut wrapper = scene.start(&[], &family(""));
    let family = scene.family();
    let pid = i32::try_from(wrapper.0.id()).unwrap();
    let renewals = || scene.stub.asked_on(RENEW);
    until("a renewal", Duration::from_secs(5), || !renewals().is_empty());
    kill("-STOP", pid);
    until("the group's end", Duration::from_secs(5), || !family.iter().any(|&pid| alive(pid)));
    let gone_after = renewals().last().unwrap().at.elapsed();
    assert!(gone_after < Duration::from_millis(2_000), "{gone_after:?}");
    kill("-CONT", pid);
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(123));
}

#[test]
fn a_killed_wrapper_takes_the_group_with_it() {
    let scene = Scene::new(grants_all(4_000));
    let mut wrapper = scene.start(&[], &family(""));
    let family = scene.family();
    let granted_at = scene.stub.asked_on(ACQUIRE)[0].at;
    let watchdog = watchdog(&wrapper).unwrap();
    wrapper.0.kill().unwrap();
    wrapper.0.wait().unwrap();
    until("the group's end", Duration::from_secs(5), || !family.iter().any(|&pid| alive(pid)));
    assert!(granted_at.elapsed() < Duration::from_millis(4_000));
    until("the watchdog's end", Duration::from_secs(5), || !alive(watchdog));
}

/// A command that ends with 5 when something is written to its fifo.
fn until_told(scene: &Scene) -> (Wrapper, i32) {
    let made = Command::new("mkfifo").arg(scene.path("fifo")).status().unwrap();
    assert!(made.success());
    let wrapper = scene.start(&[], "echo $$ > self; read line < fifo; exit 5");
    let command = scene.pid("self");
    (wrapper, command)
}

#[test]
fn nobody_has_to_read_what_is_said() {
    let scene = Scene::new(grants_all(4_000));
    let mut command = scene.command(&[], &family(""));
    let mut wrapper = Wrapper(command.stderr(Stdio::piped()).spawn().unwrap());
    let family = scene.family();
    drop(wrapper.0.stderr.take());
    wrapper.0.kill().unwrap();
    until("the group's end", Duration::from_secs(5), || !family.iter().any(|&pid| alive(pid)));

    let scene = Scene::new(then_silence(1_000));
    let mut command = scene.command(&[], "sleep 60");
    let mut wrapper = Wrapper(command.stderr(Stdio::piped()).spawn().unwrap());
    drop(wrapper.0.stderr.take());
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(123));
}

#[test]
fn a_watchdog_that_dies_is_replaced() {
    let scene = Scene::new(grants_all(30_000));
    let (mut wrapper, command) = until_told(&scene);
    let first = watchdog(&wrapper).unwrap();
    kill("-KILL", first);
    until("another watchdog", Duration::from_secs(5), || {
        watchdog(&wrapper).is_some_and(|second| second != first)
    });
    assert!(alive(command));
    fs::write(scene.path("fifo"), "go\n").unwrap();
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(5));
}

#[test]
fn a_watchdog_that_is_stopped_is_replaced() {
    let scene = Scene::new(grants_all(30_000));
    let log = scene.path("log");
    let mut wrapper = scene.command(&[], "echo $$ > self; sleep 60");
    let wrapper = wrapper.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let mut wrapper = Wrapper(wrapper);
    let command = scene.pid("self");
    let first = watchdog(&wrapper).unwrap();
    kill("-STOP", first);
    // Only then it knows what to watch.
    let is_told = || fs::read_to_string(&log).unwrap().contains("another one watches now");
    until("another watchdog", Duration::from_secs(30), is_told);
    assert!(!alive(first) && watchdog(&wrapper).is_some() && alive(command));
    // The new one does what it is for.
    wrapper.0.kill().unwrap();
    until("the command's end", Duration::from_secs(30), || !alive(command));
}

#[test]
fn in_a_partition_the_group_is_gone_in_time_whatever_became_of_the_watchdog() {
    for signal in ["-KILL", "-STOP"] {
        let scene = Scene::new(then_silence(2_000));
        let mut wrapper = scene.start(&[], &family(""));
        let family = scene.family();
        kill(signal, watchdog(&wrapper).unwrap());
        let granted_at = scene.stub.asked_on(ACQUIRE)[0].at;
        let gone = || !family.iter().any(|&pid| alive(pid));
        until("the group's end", Duration::from_secs(5), gone);
        let gone_after = granted_at.elapsed();
        assert!(gone_after < Duration::from_millis(2_000), "{signal}: {gone_after:?}");
        assert_eq!(wrapper.0.wait().unwrap().code(), Some(123), "{signal}");
    }
}

#[test]
fn a_watchdog_that_hangs_does_no_harm() {
    let scene = Scene::new(grants_all(30_000));
    let (mut wrapper, _) = until_told(&scene);
    kill("-STOP", watchdog(&wrapper).unwrap());
    fs::write(scene.path("fifo"), "go\n").unwrap();
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(5));
}

#[test]
fn what_a_command_leaves_behind_is_gone_before_the_release() {
    let folder = tempfile::tempdir().unwrap();
    let child = folder.path().join("child");
    let lives = child.clone();
    let mut others = grants_all(30_000);
    let scene = Scene {
        folder,
        stub: Stub::start(move |asked| {
            if asked.path == RELEASE {
                let pid: i32 = fs::read_to_string(&lives).unwrap().trim().parse().unwrap();
                assert!(!alive(pid), "released while it still runs");
            }
            others(asked)
        }),
    };
    let output =
        scene.run(&["--grace", "300ms"], "(trap '' TERM; sleep 60) & echo $! > child; exit 3");
    assert_eq!(code(&output), 3);
    assert_eq!(scene.stub.asked_on(RELEASE).len(), 1);
}

#[test]
fn signals_are_passed_on_and_the_lock_is_released_after() {
    let scene = Scene::new(grants_all(30_000));
    let mut signals = vec![("-TERM", 41), ("-INT", 42), ("-HUP", 43)];
    // A shell cannot trap what was ignored when it began: under nohup, that is HUP.
    if is_hup_ignored() {
        signals.pop();
    }
    for (signal, expected) in &signals {
        let _ = fs::remove_file(scene.path("self"));
        let shell = "trap 'exit 41' TERM; trap 'exit 42' INT; trap 'exit 43' HUP; sleep 60 & echo $$ > self; wait";
        let mut wrapper = scene.start(&[], shell);
        scene.pid("self");
        kill(signal, i32::try_from(wrapper.0.id()).unwrap());
        assert_eq!(wrapper.0.wait().unwrap().code(), Some(*expected));
    }
    assert_eq!(scene.stub.asked_on(RELEASE).len(), signals.len());
}

fn is_hup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() & 1 == 1
}

#[test]
fn a_signal_during_the_wait_gives_the_place_up() {
    let scene =
        Scene::new(|asked| if asked.path == ACQUIRE { waiting(asked) } else { stub::abandoned() });
    let mut wrapper = scene.start(&["--wait", "5m"], "touch ran");
    scene.stub.until_asked_on(ACQUIRE);
    kill("-TERM", i32::try_from(wrapper.0.id()).unwrap());
    assert_eq!(wrapper.0.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(scene.stub.asked_on(ABANDON).len(), 1);
    assert!(!scene.path("ran").exists());
}

#[test]
fn being_told_of_a_forced_release_stops_the_command() {
    let scene = Scene::new(|asked| match asked.path.as_str() {
        ACQUIRE => granted(asked, 7, 3_000),
        RENEW => not_renewed(asked, "LEASE_ENDED", &json!({"reason": "forced"})),
        _ => released(),
    });
    let output = scene.run(&[], "sleep 60");
    assert_eq!(code(&output), 123);
    assert!(String::from_utf8_lossy(&output.stderr).contains("forced"));
    let first_renewal = scene.stub.asked_on(RENEW)[0].at;
    assert!(first_renewal.elapsed() < Duration::from_millis(1_500));
}

#[test]
fn at_the_end_of_the_longest_hold_the_command_is_stopped() {
    let begun = Instant::now();
    let scene = Scene::new(move |asked| {
        let left = 2_500 - u64::try_from(begun.elapsed().as_millis()).unwrap();
        match asked.path.as_str() {
            ACQUIRE => granted(asked, 7, 1_000),
            RENEW if left > 1_000 => renewed(asked, 1_000),
            RENEW => not_renewed(asked, "MAX_HOLD_REACHED", &json!({"finalDeadlineInMs": left})),
            _ => released(),
        }
    });
    let output = scene.run(&["--max-hold", "2500ms"], "sleep 60");
    assert_eq!(code(&output), 124, "{output:?}");
    assert!(begun.elapsed() > Duration::from_millis(1_800));
    assert!(scene.stub.asked_on(RELEASE)[0].at - begun < Duration::from_millis(2_500));
}

#[test]
fn hold_at_least_keeps_the_lock_after_a_quick_command() {
    let scene = Scene::new(grants_all(30_000));
    let output = scene.run(&["--hold-at-least", "1s"], "exit 4");
    assert_eq!(code(&output), 4);
    let held = scene.stub.asked_on(RELEASE)[0].at - scene.stub.asked_on(ACQUIRE)[0].at;
    assert!(held >= Duration::from_secs(1), "{held:?}");
}

#[test]
fn a_namespaces_longest_hold_that_cuts_hold_at_least_is_named() {
    let begun = Instant::now();
    let scene = Scene::new(move |asked| {
        let left = 1_500_u64.saturating_sub(u64::try_from(begun.elapsed().as_millis()).unwrap());
        match asked.path.as_str() {
            ACQUIRE => granted(asked, 7, 1_000),
            RENEW if left > 1_000 => renewed(asked, 1_000),
            RENEW => not_renewed(asked, "MAX_HOLD_REACHED", &json!({"finalDeadlineInMs": left})),
            _ => released(),
        }
    });
    let output = scene.run(&["--hold-at-least", "10s"], "exit 4");
    assert_eq!(code(&output), 4, "the command was done");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("and not for 10s") && said.contains("the namespace's max-hold"),
        "{said}"
    );
    assert!(!said.contains("(released)"), "{said}");
}

#[test]
fn usage_is_explained() {
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_sereno")).args(arguments).output().unwrap()
    };
    let help = String::from_utf8(run(&["lock", "--help"]).stdout).unwrap();
    for word in ["SERENO_TOKEN", "--skip-if-held", "--hold-at-least", "120", "127"] {
        assert!(help.contains(word), "{word} is missing in {help}");
    }
    assert!(!help.contains("__watchdog"));
    assert_eq!(code(&run(&["lock", "a"])), 2);
    assert_eq!(code(&run(&["lock", "a", "--ttl", "30", "--", "true"])), 2);
}
