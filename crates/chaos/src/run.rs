//! One seed: a cluster, a load, a schedule of faults, and then everything is looked at.

use crate::{
    check::{self, Checked, Violation},
    client::{door::Door, elections, quotas, replicas, shop},
    clock::{Micros, now},
    cluster::{CLIENTS, Cluster, From, Host, Mode, Port, Programs, ZONES},
    eyes::Eyes,
    history::{self, Family, Heard, History, Op, QuotaHeard, QuotaOp, Recorder},
    liveness::{self, Measured, PATIENCE},
    nemesis::{Nemesis, Tried},
    resource::{self, Visit},
    schedule::Step,
    tail::{self, End, Tail},
    truth::Truth,
};
use sereno_api::ErrorCode;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    sync::PoisonError,
    time::Duration,
};
use tokio::runtime::{Handle, Runtime};

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// What the checkers say.
    pub checked: Checked,
    /// How often which answer was given.
    pub answers: Vec<(String, usize)>,
    /// L1 and L2.
    pub measured: Vec<Measured>,
    /// What came of the faults, by kind.
    pub faults: BTreeMap<&'static str, Tried>,
    /// How often a member ended by itself, or a node because it found no etcd.
    pub gave_up: usize,
    /// Why others did not.
    pub skipped: Vec<String>,
    /// How often somebody began to lead.
    pub leaders: usize,
    /// Entries of the log.
    pub entries: u64,
}

/// Runs one seed in `dir`, where everything that it leaves is.
///
/// # Errors
/// In words: the run itself did not come to its end.
pub fn run(
    dir: &Path,
    programs: &Programs,
    mode: Mode,
    seed: u64,
    schedule: &[Step],
    length: Duration,
) -> Result<Report, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut cluster = Cluster::new(dir, programs.clone(), mode, seed)?;
    let (eyes, begun) = (eyes(&cluster, dir, runtime.handle())?, now());
    boot(&mut cluster, &eyes)?;
    let url = cluster.log_url(From::Clients, 0);
    let tail = runtime.block_on(Tail::start(&url, dir))?;
    let served = runtime.block_on(resource::serve(cluster.network.harness()));
    let (address, resource) = served.map_err(|error| format!("the resource: {error}"))?;
    cluster.set_resource(&address.to_string());
    (0..CLIENTS).try_for_each(|index| cluster.start_client(index))?;

    let mut nemesis = Nemesis::new(&mut cluster, &eyes, dir)?;
    nemesis.run(schedule, length)?;
    let (faults, gave_up) = (nemesis.tried, nemesis.gave_up);
    let (skipped, crashes) = (nemesis.skipped, nemesis.crashes);
    let mut violations: Vec<_> = crashes.iter().map(|it| violation("no crash", it)).collect();

    let late = settle(&mut cluster, &eyes).err();
    let ended = now();
    let measured = match &late {
        Some(_) => Ok(Vec::new()),
        None => liveness::measure(&mut cluster, &eyes),
    };
    violations.extend(late.iter().map(|late| violation("L1, L2", late)));
    let measured = measured.unwrap_or_else(|error| {
        violations.push(violation("L1, L2", &error));
        Vec::new()
    });
    final_reads(&eyes);
    final_books(&eyes, begun, ended);

    let end = runtime.block_on(End::read(&url))?;
    runtime.block_on(tail.finish(end.head.position))?;
    let visits =
        std::mem::take(&mut resource.lock().unwrap_or_else(PoisonError::into_inner).visits);
    save_visits(dir, &visits)?;
    let (mut checked, history, truth) = check_folder(dir)?;
    let changed = runtime.block_on(end.compare(&truth)).err();
    violations.extend(changed.iter().map(|it| violation("S1, S5", it)));
    checked.violations.extend(violations);
    Ok(Report {
        answers: check::answers(&history).into_iter().collect(),
        checked,
        measured,
        faults,
        gave_up,
        skipped,
        leaders: truth.leaders(),
        entries: truth.head().position.0,
    })
}

fn violation(promise: &'static str, message: &str) -> Violation {
    Violation { promise, message: message.to_owned() }
}

fn eyes(cluster: &Cluster, dir: &Path, runtime: &Handle) -> Result<Eyes, String> {
    let path = dir.join("history").join("harness.jsonl");
    let recorder = Recorder::create(&path).map_err(|error| error.to_string())?;
    let door = Door::new(cluster.servers(), recorder).map_err(|error| error.to_string())?;
    let member = |index| cluster.network.outside(Host::Etcd(index), Port::Main, From::Clients);
    let members = (0..ZONES).map(|index| member(index).to_string()).collect();
    Eyes::new(runtime.clone(), cluster.servers(), members, door)
}

fn boot(cluster: &mut Cluster, eyes: &Eyes) -> Result<(), String> {
    (0..ZONES).try_for_each(|index| cluster.start(Host::Etcd(index)))?;
    let begun = std::time::Instant::now();
    while eyes.etcd_leader().is_none() {
        if begun.elapsed() > PATIENCE {
            return Err("etcd does not come up: see its logs".into());
        }
    }
    (0..ZONES).try_for_each(|index| cluster.start(Host::Node(index)))?;
    eyes.wait_ready(PATIENCE)?;
    eyes.put_namespace()?;
    let jobs = (0..replicas::RETRIES.len()).map(replicas::put);
    let trees = quotas::puts(|node| format!("harness-{}/{}", node.quota, node.path));
    jobs.chain(trees).try_for_each(|op| put(eyes, &op))
}

/// At the first node that takes it: a new log needs a moment until all of its nodes are known to understand it.
fn put(eyes: &Eyes, op: &Op) -> Result<(), String> {
    let begun = std::time::Instant::now();
    for node in (0..ZONES).cycle() {
        match eyes.block_on(eyes.door.call("harness", node, op)) {
            Heard::JobPut(_) | Heard::Quota(QuotaHeard::Put(_)) => return Ok(()),
            Heard::Problem(it) if it.code == ErrorCode::VersionConflict => return Ok(()),
            heard if begun.elapsed() > PATIENCE => {
                return Err(format!("nobody takes {op:?}: {heard:?}"));
            }
            _ => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    Err("there are no nodes".into())
}

/// All nodes serve again, and every client brings to an end what it has begun.
fn settle(cluster: &mut Cluster, eyes: &Eyes) -> Result<(), String> {
    eyes.wait_ready(PATIENCE)?;
    cluster.clients.values_mut().for_each(|client| client.tell_no_more());
    for (index, mut client) in std::mem::take(&mut cluster.clients) {
        match client.wait(PATIENCE) {
            Some(how) if how.ends_with(" 0") => {}
            how => return Err(format!("client {index} did not come to its end: {how:?}")),
        }
    }
    eyes.wait_ready(PATIENCE).map(drop)
}

/// What every node says in the end is compared with the log like any other answer.
fn final_reads(eyes: &Eyes) {
    let locks = (0..3).map(|it| format!("hot/{it}")).chain((0..12).map(|it| format!("warm/{it}")));
    let names = locks.map(|name| (Family::Lock, name));
    let names = names
        .chain((0..elections::ELECTIONS).map(|it| (Family::Election, elections::election(it))))
        .chain((0..shop::THINGS).map(|it| (Family::Hold, shop::thing(it))))
        .chain((0..replicas::RETRIES.len()).map(|it| (Family::Job, replicas::job(it))));
    for (family, resource) in names {
        for node in 0..ZONES {
            let op = Op::Get { family, resource: resource.clone() };
            let _: Heard = eyes.block_on(eyes.door.call("harness", node, &op));
        }
    }
}

/// What every node of every tree shows, when the deadlines of all reservations have passed.
fn final_books(eyes: &Eyes, begun: Micros, ended: Micros) {
    let over = ended + quotas::QUIET;
    std::thread::sleep(Duration::from_micros(over.saturating_sub(now())));
    for (index, (quota, path)) in quotas::nodes(begun, ended).into_iter().enumerate() {
        let op = Op::Quota(QuotaOp::Node { quota, path });
        let _: Heard = eyes.block_on(eyes.door.call("harness", index % ZONES, &op));
    }
}

fn visits_of(dir: &Path) -> PathBuf {
    dir.join("resource.jsonl")
}

fn save_visits(dir: &Path, visits: &[Visit]) -> Result<(), String> {
    let file = File::create(visits_of(dir)).map_err(|error| error.to_string())?;
    let mut file = BufWriter::new(file);
    for visit in visits {
        let line = serde_json::to_string(visit).map_err(|error| error.to_string())?;
        writeln!(file, "{line}").map_err(|error| error.to_string())?;
    }
    file.flush().map_err(|error| error.to_string())
}

/// Checks what a run has left in its folder.
///
/// # Errors
/// In words: it cannot be read.
pub fn check_folder(dir: &Path) -> Result<(Checked, History, Truth), String> {
    let history = history::read_folder(&dir.join("history"))?;
    let truth = tail::read_export(dir)?;
    let file = File::open(visits_of(dir)).map_err(|error| error.to_string())?;
    let read = |line: std::io::Result<String>| {
        let line = line.map_err(|error| error.to_string())?;
        serde_json::from_str::<Visit>(&line).map_err(|error| format!("{error}: {line}"))
    };
    let visits: Vec<_> = BufReader::new(file).lines().map(read).collect::<Result<_, _>>()?;
    Ok((check::all(&history, &truth, &visits), history, truth))
}

/// Moves what a failed run has left to where it stays.
///
/// # Errors
/// It cannot be moved: it is where it was.
pub fn keep(dir: &Path, to: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    let to = to.join(dir.file_name().unwrap_or_default());
    for name in ["history", "logs"] {
        copy_folder(&dir.join(name), &to.join(name)).map_err(|error| error.to_string())?;
    }
    for file in [tail::export(dir), visits_of(dir), dir.join("faults.jsonl")] {
        if file.exists() {
            let target = to.join(file.file_name().unwrap_or_default());
            fs::copy(&file, target).map_err(|error| error.to_string())?;
        }
    }
    Ok(to)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
