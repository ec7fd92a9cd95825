//! Carries out a schedule, and takes all of it back.

use crate::{
    client::guarded_lock,
    clock::{Micros, now},
    cluster::{CLIENTS, Cluster, Host, Mode, ZONES},
    eyes::Eyes,
    history::{Family, Heard, Op},
    schedule::{Fault, Step, Target},
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

/// How a fault ends.
#[derive(Clone, Debug)]
enum Undo {
    Start(Host),
    Resume(Host),
    StartClient(usize),
    ResumeClient(usize),
    Uncut(Vec<(Host, Host)>),
    Calm(Host),
    FreeDisk,
    FastDisk,
    RightClock,
}

/// What has to be done next: a fault's beginning or its end.
#[derive(Clone, Debug)]
enum Due {
    /// A beginning, and how often it has been tried.
    Begin(Step, u32),
    End(Undo),
}

/// Why a fault does not begin.
#[derive(Clone, Debug)]
enum Not {
    /// This machine does not allow it.
    Here(String),
    /// It is not the moment.
    Now(String),
}

/// How often a kind of fault was tried, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// In the schedule.
    pub scheduled: usize,
    /// It came about.
    pub done: usize,
    /// This machine does not allow it.
    pub impossible: usize,
}

/// So often a fault is tried again whose moment it is not.
const TRIES_MAX: u32 = 6;
/// And so long after.
const TRY_AGAIN: Duration = Duration::from_millis(800);

/// The hand behind the faults.
#[derive(Debug)]
pub struct Nemesis<'a> {
    cluster: &'a mut Cluster,
    eyes: &'a Eyes,
    notes: File,
    agenda: Vec<(Duration, Due)>,
    /// What came of the faults, by kind.
    pub tried: BTreeMap<&'static str, Tried>,
    /// Faults that this machine, or the moment, did not allow.
    pub skipped: Vec<String>,
    /// Nodes that ended though nobody killed them.
    pub crashes: Vec<String>,
    /// How often a member ended by itself, or a node because it found no etcd at its start.
    pub gave_up: usize,
}

impl<'a> Nemesis<'a> {
    /// For this cluster; what it does is noted in `dir`.
    ///
    /// # Errors
    /// The notes cannot be written.
    pub fn new(cluster: &'a mut Cluster, eyes: &'a Eyes, dir: &Path) -> Result<Self, String> {
        let notes = File::create(dir.join("faults.jsonl")).map_err(|error| error.to_string())?;
        let (agenda, tried) = (Vec::new(), BTreeMap::new());
        let (skipped, crashes) = (Vec::new(), Vec::new());
        Ok(Self { cluster, eyes, notes, agenda, tried, skipped, crashes, gave_up: 0 })
    }

    fn note(&mut self, what: &str) {
        let line = serde_json::json!({"at": now() as Micros, "what": what});
        // Notes are for people: a run does not fail for want of one.
        let _ = writeln!(self.notes, "{line}");
    }

    /// Runs the whole schedule, and then heals everything.
    ///
    /// # Errors
    /// Something that has nothing to do with the service does not work.
    pub fn run(&mut self, schedule: &[Step], length: Duration) -> Result<(), String> {
        const TICK: Duration = Duration::from_millis(100);
        let begun = Instant::now();
        self.agenda = schedule.iter().map(|step| (step.at, Due::Begin(*step, 0))).collect();
        for step in schedule {
            self.tried.entry(step.fault.kind()).or_default().scheduled += 1;
        }
        while begun.elapsed() < length {
            self.agenda.sort_by_key(|(at, _)| *at);
            while self.agenda.first().is_some_and(|(at, _)| *at <= begun.elapsed()) {
                let (_, due) = self.agenda.remove(0);
                self.carry_out(due, begun)?;
            }
            self.watch_hosts()?;
            std::thread::sleep(TICK);
        }
        self.heal()
    }

    fn carry_out(&mut self, due: Due, begun: Instant) -> Result<(), String> {
        match due {
            Due::End(undo) => self.undo(undo),
            Due::Begin(step, tries) => {
                let begins = self.begin(step.fault)?;
                let tried = self.tried.entry(step.fault.kind()).or_default();
                match begins {
                    Ok((what, undo)) => {
                        tried.done += 1;
                        self.note(&format!("{:?}: {what}", step.fault));
                        self.agenda.push((begun.elapsed() + step.lasts, Due::End(undo)));
                    }
                    Err(Not::Now(why)) if tries < TRIES_MAX => {
                        self.note(&format!("{:?} later: {why}", step.fault));
                        let again = Due::Begin(step, tries + 1);
                        self.agenda.push((begun.elapsed() + TRY_AGAIN, again));
                    }
                    Err(not) => {
                        tried.impossible += usize::from(matches!(not, Not::Here(_)));
                        let (Not::Here(why) | Not::Now(why)) = not;
                        self.note(&format!("{:?} skipped: {why}", step.fault));
                        self.skipped.push(format!("{:?}: {why}", step.fault));
                    }
                }
                Ok(())
            }
        }
    }

    /// The inner error: it cannot be done here, or now.
    fn begin(&mut self, fault: Fault) -> Result<Result<(String, Undo), Not>, String> {
        let here = |why: &str| Err(Not::Here(why.to_owned()));
        Ok(match fault {
            Fault::Kill(target) => self.strike(target, true).map_err(Not::Now),
            Fault::Pause(target) => self.strike(target, false).map_err(Not::Now),
            Fault::PauseHolder => self.stop_holder().map_err(Not::Now),
            Fault::PartitionNode(node) => Ok(self.cut(&[Host::Node(node)])?),
            Fault::PartitionZone(zone) => Ok(self.cut(&[Host::Node(zone), Host::Etcd(zone)])?),
            Fault::OneWay(from, to) => {
                self.cluster.weather.cuts.insert((from, to));
                self.cluster.set_weather()?;
                Ok((String::new(), Undo::Uncut(vec![(from, to)])))
            }
            Fault::Delay(host, ms) => {
                let lag = (Duration::from_millis(ms), Duration::from_millis(ms / 2));
                self.cluster.weather.delays.insert(host, lag);
                self.cluster.set_weather()?;
                Ok((String::new(), Undo::Calm(host)))
            }
            Fault::Loss(..) if self.cluster.network.mode == Mode::Loopback => {
                here("packets are lost between namespaces only")
            }
            Fault::Loss(host, percent) => {
                self.cluster.weather.losses.insert(host, percent);
                self.cluster.set_weather()?;
                Ok((String::new(), Undo::Calm(host)))
            }
            Fault::DiskFull | Fault::DiskSlow => self.spoil_disk(fault)?,
            Fault::Clock(_) if !self.cluster.has_faketime() => here("there is no libfaketime"),
            Fault::Clock(seconds) => {
                self.cluster.set_clock(seconds)?;
                Ok((format!("node-{}", self.cluster.skewed), Undo::RightClock))
            }
        })
    }

    fn spoil_disk(&mut self, fault: Fault) -> Result<Result<(String, Undo), Not>, String> {
        const PAUSE: Duration = Duration::from_millis(400);
        const REST: Duration = Duration::from_millis(150);
        let Some(disk) = &mut self.cluster.disk else {
            return Ok(Err(Not::Here("no small disk can be mounted".into())));
        };
        let undo = match fault {
            Fault::DiskFull => {
                disk.fill()?;
                Undo::FreeDisk
            }
            _ => {
                disk.slow(PAUSE, REST)?;
                Undo::FastDisk
            }
        };
        Ok(Ok((String::new(), undo)))
    }

    /// Nothing passes between `inside` and the others.
    fn cut(&mut self, inside: &[Host]) -> Result<(String, Undo), String> {
        let outside = Host::all().filter(|host| !inside.contains(host));
        let both = |far| inside.iter().flat_map(move |&near| [(near, far), (far, near)]);
        let cuts: Vec<_> = outside.flat_map(both).collect();
        self.cluster.weather.cuts.extend(&cuts);
        self.cluster.set_weather()?;
        Ok((String::new(), Undo::Uncut(cuts)))
    }

    /// Whoever holds a guarded lock is stopped; it is theirs still, so the stop came before the release.
    fn stop_holder(&mut self) -> Result<(String, Undo), String> {
        const LOOKS: usize = 8;
        for look in 0..LOOKS {
            let (resource, node) = (guarded_lock(look).to_owned(), look % ZONES);
            let Some((index, token)) = self.holder(&resource, node) else { continue };
            let Some(client) = self.cluster.clients.get(&index) else { continue };
            client.pause();
            if self.holder(&resource, node) == Some((index, token)) {
                let what = format!("client {index}, which holds {resource} by {token}");
                return Ok((what, Undo::ResumeClient(index)));
            }
            self.cluster.clients.get(&index).into_iter().for_each(|client| client.resume());
        }
        Err("nobody was seen to hold a guarded lock".into())
    }

    /// Which client holds a lock of the SDK's, and by which token.
    fn holder(&self, resource: &str, node: usize) -> Option<(usize, u64)> {
        let op = Op::Get { family: Family::Lock, resource: resource.to_owned() };
        let Heard::Read(lock) = self.eyes.block_on(self.eyes.door.call("harness", node, &op))
        else {
            return None;
        };
        let holder = lock.holder?;
        let index = holder.owner.strip_prefix('c')?.split('-').next()?.parse().ok()?;
        Some((index, holder.fencing_token))
    }

    fn strike(&mut self, target: Target, kills: bool) -> Result<(String, Undo), String> {
        if let Target::Client(index) = target {
            let client = self.cluster.clients.remove(&index).ok_or("it is dead")?;
            if kills {
                return Ok((String::new(), Undo::StartClient(index)));
            }
            client.pause();
            self.cluster.clients.insert(index, client);
            return Ok((String::new(), Undo::ResumeClient(index)));
        }
        let host = match target {
            Target::Leader => Host::Node(self.eyes.leader().ok_or("nobody leads")?),
            Target::Standby => Host::Node(self.eyes.standby().ok_or("nobody stands by")?),
            Target::EtcdLeader => Host::Etcd(self.eyes.etcd_leader().ok_or("etcd has no leader")?),
            Target::Etcd(index) => Host::Etcd(index),
            Target::Client(_) => unreachable!("done above"),
        };
        let process = self.cluster.hosts.remove(&host).ok_or("it is dead")?;
        if kills {
            drop(process);
            return Ok((host.name(), Undo::Start(host)));
        }
        process.pause();
        self.cluster.hosts.insert(host, process);
        Ok((host.name(), Undo::Resume(host)))
    }

    fn undo(&mut self, undo: Undo) -> Result<(), String> {
        self.note(&format!("ends: {undo:?}"));
        let cluster = &mut *self.cluster;
        match undo {
            Undo::Start(host) => return cluster.start(host),
            Undo::StartClient(index) => return cluster.start_client(index),
            Undo::Resume(host) => cluster.hosts.get(&host).into_iter().for_each(|it| it.resume()),
            Undo::ResumeClient(index) => {
                cluster.clients.get(&index).into_iter().for_each(|it| it.resume());
            }
            Undo::Uncut(cuts) => {
                cluster.weather.cuts.retain(|cut| !cuts.contains(cut));
                return cluster.set_weather();
            }
            Undo::Calm(host) => {
                cluster.weather.delays.remove(&host);
                cluster.weather.losses.remove(&host);
                return cluster.set_weather();
            }
            Undo::FreeDisk => cluster.disk.iter().for_each(|disk| disk.free()),
            Undo::FastDisk => cluster.disk.iter_mut().for_each(|disk| disk.fast()),
            Undo::RightClock => return cluster.set_clock(0),
        }
        Ok(())
    }

    /// A member may give up (its disk is full, say) and is started again, and so may a node that finds no etcd when it
    /// starts; a node that has begun to serve never may.
    fn watch_hosts(&mut self) -> Result<(), String> {
        let hosts = self.cluster.hosts.iter_mut();
        let ended = hosts.filter_map(|(host, process)| process.ended().map(|how| (*host, how)));
        let ended: Vec<_> = ended.collect();
        for (host, how) in ended {
            let what = format!("{} has ended by itself: {how}", host.name());
            self.note(&what);
            match host {
                Host::Node(_) if !self.cluster.found_no_etcd(host) => self.crashes.push(what),
                _ => self.gave_up += 1,
            }
            self.cluster.hosts.remove(&host);
            // On a full disk it would only end again.
            let frees = |due: &Due| matches!(due, Due::End(Undo::FreeDisk));
            match self.agenda.iter().find(|(_, due)| frees(due)).map(|(at, _)| *at) {
                Some(at) => self.agenda.push((at, Due::End(Undo::Start(host)))),
                None => self.cluster.start(host)?,
            }
        }
        Ok(())
    }

    /// Takes everything back: all processes run, and all reach one another.
    fn heal(&mut self) -> Result<(), String> {
        self.note("all is healed");
        self.agenda.clear();
        let cluster = &mut *self.cluster;
        if let Some(disk) = &mut cluster.disk {
            disk.free();
            disk.fast();
        }
        cluster.set_clock(0)?;
        cluster.weather = Default::default();
        cluster.set_weather()?;
        cluster.hosts.values().for_each(|process| process.resume());
        cluster.clients.values().for_each(|process| process.resume());
        self.watch_hosts()?;
        for host in Host::all() {
            if !self.cluster.hosts.contains_key(&host) {
                self.cluster.start(host)?;
            }
        }
        for index in 0..CLIENTS {
            if !self.cluster.clients.contains_key(&index) {
                self.cluster.start_client(index)?;
            }
        }
        Ok(())
    }
}
