//! The language of the specs: one line is one thing that happens. A line is echoed, and what came of it follows,
//! indented. Requests, leases and tokens go by short names: `id:1` is a request, `#1` the lease that it was granted,
//! `T1` the first token of the script, `T2` the second, which is larger.
//!
//! ```text
//! acquire a id:1 by:w1 ttl:10s wait:5s hold:1m fencing:enforced label:k=v     one command in an entry of its own
//! acquire-all a,b id:1 …       renew a #1 ttl:20s          renew-many a#1,b#2     release a #1
//! abandon id:1                 force-release a T1 id:9     desert id:1 asked:r3   namespace shop v:0 maxHold:1m …
//! token-floor +1h id:9         raise-level 1               hold-trim
//! … in:shop caller:bob born:-31s              everywhere: the namespace, who asks, when the call was born
//! { 1s  …  }                   all commands between the braces in one entry, which is stamped so much later
//! pass 3s                      time in heartbeats          step 1s                time in one entry
//! lead n2 clock:-1h            resign                      snapshot               restore pause:1m floor:+5m
//! get a                        shows a resource            due                    shows what is due and unswept
//! fill 1500 ttl:5s             many leases, elsewhere      fill-waits a 1500 wait:5s   many waiters
//! events                       shows events from here on   -- text                is printed as it is
//! ```

use super::{
    line::{Line, owner, parse_ms, policy, resources, shifted},
    print::{Names, ms},
};
use sereno_core::{
    Applied, State,
    command::{
        Abandon, Acquire, AcquireAll, Command, EndDeserted, ForceRelease, LeaseRef, Operation,
        PutHome, PutNamespace, Release, Renew, RenewMany, SetTokenFloor,
    },
    entry::Body,
    ids::{ClusterTime, LeaseId, LogId, Revision, Token},
    names::{Caller, NamespaceName, Reason, RegionName, ResourceName},
    query::FaceView,
    testing::{Scribe, lease_id},
};
use std::fmt::Write;

/// A log that a script writes, and what it has printed.
pub(super) struct World {
    pub(super) scribe: Scribe,
    pub(super) names: Names,
    /// Commands of an open brace.
    group: Option<Group>,
    drawn: u64,
    /// After the last entry.
    revision: u64,
    printed: String,
}

fn face(face: &FaceView) -> String {
    match face {
        FaceView::Plain | FaceView::Hold { begun: false } => String::new(),
        FaceView::Leader { value, version } => format!(", says {value:?} in version {version}"),
        FaceView::Hold { begun: true } => ", begun".into(),
    }
}

/// The commands of one entry, each with its line, and how much later than the one before it is stamped.
#[derive(Default)]
struct Group {
    after_ms: u64,
    commands: Vec<Command>,
    echoes: Vec<String>,
}

impl World {
    pub(super) fn new() -> Self {
        let mut scribe = Scribe::new();
        scribe.keep = true;
        let (names, printed) = (Names::default(), String::new());
        Self { scribe, names, group: None, drawn: 0, revision: 0, printed }
    }

    /// Raises the level without a word: revisions count from there.
    pub(super) fn raise(&mut self, level: u32) {
        self.scribe.run(Operation::RaiseLevel { level });
        self.revision = self.scribe.state.revision().0;
    }

    pub(super) fn printed(&self) -> &str {
        &self.printed
    }

    pub(super) fn run(&mut self, script: &str) {
        for text in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.line(text);
        }
        assert!(self.group.is_none(), "a brace is left open");
    }

    fn line(&mut self, text: &str) {
        if text.starts_with("--") {
            writeln!(self.printed, "{text}").expect("strings take all");
            return;
        }
        let line = Line::new(text);
        let echo = text.to_string();
        let applied = match line.word(0) {
            "{" => {
                let after_ms = line.plain.get(1).map_or(0, |word| parse_ms(word));
                self.group = Some(Group { after_ms, ..Group::default() });
                writeln!(self.printed, "{echo}").expect("strings take all");
                return;
            }
            "}" => {
                let group = self.group.take().expect("a brace was opened");
                return self.commands(group);
            }
            "pass" => self.scribe.pass(parse_ms(line.word(1))),
            "step" => vec![self.scribe.write(parse_ms(line.word(1)), Body::Batch(Vec::new()))],
            "resign" => vec![self.scribe.write(0, Body::Resign)],
            "lead" => {
                let wall_us =
                    shifted(self.scribe.wall_us(), line.get("clock").unwrap_or("+0s"), 1_000);
                vec![self.scribe.lead(line.word(1), wall_us)]
            }
            "snapshot" => {
                self.snapshot();
                Vec::new()
            }
            "restore" => {
                self.restore(&line);
                Vec::new()
            }
            "get" => return self.get(&echo, &line),
            "show" => {
                let said = self.show_job(&line);
                writeln!(self.printed, "{echo}\n    {said}").expect("strings take all");
                return;
            }
            "due" => {
                let due = self.scribe.state.due();
                let said = format!("{} due, the oldest for {}", due.objects, ms(due.oldest_ms));
                writeln!(self.printed, "{echo}\n    {said}").expect("strings take all");
                return;
            }
            "book" => return self.tell(&echo, Self::book(self, &line)),
            "who" => {
                let said = self.who(&line);
                return self.tell(&echo, said);
            }
            "fill" | "fill-waits" => return self.fill(&echo, &line),
            "events" => {
                self.names.events = true;
                return;
            }
            _ => {
                let command = self.command(&line);
                let mut alone = Group::default();
                let group = self.group.as_mut().unwrap_or(&mut alone);
                group.commands.push(command);
                group.echoes.push(echo);
                if self.group.is_none() {
                    self.commands(alone);
                }
                return;
            }
        };
        writeln!(self.printed, "{echo}").expect("strings take all");
        for applied in applied {
            self.after(applied);
        }
    }

    fn tell(&mut self, echo: &str, said: String) {
        writeln!(self.printed, "{echo}\n    {said}").expect("strings take all");
    }

    /// The number of the next thing that is drawn at random.
    pub(super) fn next_draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// Many requests of one kind, in one entry and not printed one by one.
    fn fill(&mut self, echo: &str, line: &Line) {
        let count: u64 = line.plain.last().and_then(|word| word.parse().ok()).expect("a count");
        let waits = line.word(0) == "fill-waits";
        let text = |n: u64| {
            let resource = if waits { line.word(1).to_string() } else { format!("fill/{n}") };
            let (ttl, wait) = (line.get("ttl").unwrap_or("30s"), line.get("wait").unwrap_or("0s"));
            let namespace = line.get("in").unwrap_or("default");
            format!("acquire {resource} id:fill-{n} ttl:{ttl} wait:{wait} in:{namespace}")
        };
        let first = self.drawn;
        let command = |world: &mut Self, n| world.command(&Line::new(&text(n)));
        let commands: Vec<_> = (first..first + count).map(|n| command(self, n)).collect();
        let applied = self.scribe.write(0, Body::Batch(commands));
        self.revision = self.scribe.state.revision().0;
        let done = applied.outcomes.iter().filter(|outcome| outcome.result.is_ok()).count();
        writeln!(self.printed, "{echo}\n    {done} of {count}").expect("strings take all");
        self.scribe.state.check_invariants();
    }

    fn commands(&mut self, group: Group) {
        let Group { after_ms, commands, echoes } = group;
        let applied = self.scribe.write(after_ms, Body::Batch(commands.clone()));
        for ((echo, outcome), command) in echoes.iter().zip(&applied.outcomes).zip(&commands) {
            self.names.learn(&command.operation, outcome);
            let said = self.names.outcome(outcome);
            writeln!(self.printed, "{echo}\n    {said}").expect("strings take all");
        }
        self.after(applied);
    }

    /// Prints what else an entry did, and checks the state.
    fn after(&mut self, applied: Applied) {
        let now = self.scribe.state.revision().0;
        let ended = now - self.revision - applied.outcomes.len() as u64;
        self.revision = now;
        if ended > 0 {
            writeln!(self.printed, "    ({ended} due ended)").expect("strings take all");
        }
        let (named, others): (Vec<_>, Vec<_>) =
            applied.settled.iter().partition(|settled| self.names.knows(settled.claim));
        for settled in named {
            let said = self.names.settled(settled);
            writeln!(self.printed, "    {said}").expect("strings take all");
        }
        if !others.is_empty() {
            writeln!(self.printed, "    ~ {} others", others.len()).expect("strings take all");
        }
        let shown = self.names.events;
        for event in applied.events.iter().filter(|_| shown) {
            let said = self.names.event(event);
            writeln!(self.printed, "    {said}").expect("strings take all");
        }
        self.scribe.state.check_invariants();
    }

    /// Goes on with what a snapshot gives back, which has to be the same.
    fn snapshot(&mut self) {
        let bytes = self.scribe.state.to_snapshot();
        self.scribe.state = State::from_snapshot(&bytes).expect("a snapshot");
        assert_eq!(
            self.scribe.state.to_snapshot(),
            bytes,
            "a snapshot gives back all of the state"
        );
    }

    fn restore(&mut self, line: &Line) {
        let state = std::mem::take(&mut self.scribe.state);
        let floor = shifted(self.scribe.wall_us(), line.get("floor").expect("floor:…"), 1_000);
        let pause_ms = line.ms("pause").expect("pause:…");
        self.scribe.state = state.restored(LogId([8; 16]), Token(floor), pause_ms);
        self.revision = self.scribe.state.revision().0;
        self.scribe.state.check_invariants();
    }

    fn get(&mut self, echo: &str, line: &Line) {
        let name = ResourceName::new(line.word(1)).expect("a resource");
        let family = super::faces::family(line.get("family").unwrap_or("lock"));
        let view = self.scribe.state.leased(family, &line.namespace(), &name);
        let view = view.expect("a namespace");
        let said = match &view.holder {
            Some(holder) => self.names.holder(&holder.holder) + &face(&holder.face),
            None if view.lock_delay_ms > 0 => format!("delayed, {} left", ms(view.lock_delay_ms)),
            None => "free".into(),
        };
        let queue: Vec<_> = view.queue.iter().map(|waiter| waiter.owner.to_string()).collect();
        writeln!(self.printed, "{echo}\n    {said}; queue {queue:?}").expect("strings take all");
    }

    fn command(&mut self, line: &Line) -> Command {
        let now = self.scribe.state.time();
        let born_at = line.get("born").map_or(now.0, |text| shifted(now.0, text, 1));
        let caller = Caller::new(line.get("caller").unwrap_or("")).expect("a caller");
        Command { caller, born_at: ClusterTime(born_at), operation: self.operation(line) }
    }

    fn operation(&mut self, line: &Line) -> Operation {
        let namespace = line.namespace();
        let lease_ttl_ms = line.ms("ttl");
        match line.word(0) {
            "acquire" => Operation::Acquire(Acquire {
                namespace,
                resource: ResourceName::new(line.word(1)).expect("a resource"),
                request_id: line.request_id(),
                owner: owner(line),
                lease_id: self.draw(line),
                lease_ttl_ms,
                wait_timeout_ms: line.ms("wait").unwrap_or(0),
                max_hold_ms: line.ms("hold"),
                fencing: line.fencing(),
                labels: line.labels(),
            }),
            "acquire-all" => Operation::AcquireAll(AcquireAll {
                namespace,
                resources: resources(line.plain.get(1).unwrap_or(&"")),
                request_id: line.request_id(),
                owner: owner(line),
                lease_id: self.draw(line),
                lease_ttl_ms,
                max_hold_ms: line.ms("hold"),
                fencing: line.fencing(),
                labels: line.labels(),
            }),
            "renew" => {
                let lease = self.lease(line.word(1), line.word(2));
                Operation::Renew(Renew { namespace, lease, lease_ttl_ms })
            }
            "renew-many" => {
                let named = line.plain.get(1).unwrap_or(&"").split_terminator(',');
                let lease = |text: &str| {
                    let at = text.find('#').expect("resource#request");
                    self.lease(&text[..at], &text[at..])
                };
                let leases = named.map(lease).collect();
                Operation::RenewMany(RenewMany { namespace, leases, lease_ttl_ms })
            }
            "release" => {
                let lease = self.lease(line.word(1), line.word(2));
                Operation::Release(Release { namespace, lease })
            }
            "abandon" => {
                let family = super::faces::family(line.get("family").unwrap_or("lock"));
                Operation::Abandon(Abandon { namespace, family, request_id: line.request_id() })
            }
            "force-release" => Operation::ForceRelease(ForceRelease {
                namespace,
                resource: ResourceName::new(line.word(1)).expect("a resource"),
                token: self.names.token_named(line.word(2)),
                request_id: line.request_id(),
                reason: Reason::new(line.get("reason").unwrap_or("stuck")).expect("a reason"),
            }),
            "desert" => {
                let claim = self.names.claim_named(line.get("id").expect("id:…"));
                let asked_at = match line.get("asked") {
                    Some(revision) => Revision(revision[1..].parse().expect("asked:r3")),
                    None => self.scribe.state.asked_at(claim).unwrap_or_default(),
                };
                Operation::EndDeserted(EndDeserted { claim, asked_at })
            }
            "namespace" => {
                let namespace = NamespaceName::new(line.word(1)).expect("a namespace");
                let expected_version = line.number("v").expect("v:…");
                let policy = policy(line);
                Operation::PutNamespace(PutNamespace { namespace, expected_version, policy })
            }
            "token-floor" => {
                let floor = Token(shifted(self.scribe.wall_us(), line.word(1), 1_000));
                Operation::SetTokenFloor(SetTokenFloor { request_id: line.request_id(), floor })
            }
            "raise-level" => {
                Operation::RaiseLevel { level: line.word(1).parse().expect("a level") }
            }
            "hold-trim" => Operation::HoldTrim,
            "region" => {
                let region = RegionName::new(line.word(1)).expect("a region");
                Operation::SetRegion { region: Some(region) }
            }
            "home" => Operation::PutHome(PutHome {
                namespace: NamespaceName::new(line.word(1)).expect("a namespace"),
                home: line.plain.get(2).map(|text| RegionName::new(text).expect("a region")),
                expected_version: line.number("v").expect("v:…"),
            }),
            _ => self.face_operation(line),
        }
    }

    /// A lease id as a node draws one for each call, copies included; `lease:0` forces one.
    pub(super) fn draw(&mut self, line: &Line) -> LeaseId {
        match line.get("lease") {
            Some("0") => LeaseId::default(),
            Some(of) => self.names.lease_of(of).expect("a lease granted before"),
            None => {
                self.drawn += 1;
                lease_id(self.drawn)
            }
        }
    }

    /// `#1`: the lease granted to request 1, or one that nobody has ever heard of.
    pub(super) fn lease(&self, resource: &str, lease: &str) -> LeaseRef {
        let request = lease.strip_prefix('#').expect("#request");
        let lease_id = self.names.lease_of(request).unwrap_or_else(|| lease_id(u64::MAX));
        LeaseRef { resource: ResourceName::new(resource).expect("a resource"), lease_id }
    }
}
