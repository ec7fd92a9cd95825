//! All short histories of an election, of a hold and of a job: few names, few commands, the passing of time as one of the
//! choices. As in `exhaustive`, each entry's outcomes, settled waits and events are the reference's.

use super::{compare::comparable, reference::Reference};
use sereno_core::{
    State,
    command::{
        self, BeginHold, ClaimRun, Command, ElectionCommand, Family, FinishRun, ForceRelease,
        HoldCommand, HoldRef, JobCommand, JobDefinition, LeaseRef, Missed, Operation,
        PutHoldPolicy, PutJob, PutNamespace, Release, ReleaseHold, RenewHold, RunResult, SlotOfJob,
    },
    entry::Body,
    ids::{LeaseId, Slot, Token},
    names::{
        Caller, Labels, Owner, Reason, RequestId, ResourceName, ScheduleText, Value, ZoneName,
    },
    outcome::Done,
    policy::{HoldPolicy, Policy},
    testing::{Scribe, TOKEN_CLOCK_US, default_namespace, lease_id, resource_name},
};

#[derive(Clone, Copy, Debug)]
enum Choice {
    /// By a candidate, who waits or does not.
    Campaign(usize, bool),
    /// Of the last leader but so many, to a candidate.
    Handoff(usize, usize),
    Resign(usize),
    /// Of these names, for a buyer, in place of that name of theirs.
    Hold(&'static [usize], usize, Option<usize>),
    Begin(usize, usize),
    /// With the fence of the last hold but so many, or without one.
    GiveBack(usize, usize, Option<usize>),
    Extend(usize, usize, Option<usize>),
    /// Of a slot.
    Claim(u64),
    /// By the last attempt but so many.
    Finish(usize, RunResult),
    Skip(u64),
    RunNow,
    Retries(u32),
    /// The last request of its family.
    Abandon(Family),
    /// The last request once more.
    Again,
    Force(Family),
    UntilJustBeforeTheNextDeadline,
    UntilTheNextDeadline,
}

use Choice::*;

const ELECTION: [Choice; 11] = [
    Campaign(0, false),
    Campaign(0, true),
    Campaign(1, true),
    Handoff(0, 1),
    Handoff(1, 0),
    Resign(0),
    Abandon(Family::Election),
    Again,
    Force(Family::Election),
    UntilJustBeforeTheNextDeadline,
    UntilTheNextDeadline,
];

const HOLD: [Choice; 15] = [
    Hold(&[0], 0, None),
    Hold(&[0, 1], 0, None),
    Hold(&[1], 0, Some(0)),
    Hold(&[0], 1, None),
    Begin(0, 0),
    GiveBack(0, 0, None),
    GiveBack(0, 0, Some(0)),
    GiveBack(0, 0, Some(1)),
    Extend(0, 0, Some(0)),
    Extend(0, 0, Some(1)),
    Abandon(Family::Hold),
    Again,
    Force(Family::Hold),
    UntilJustBeforeTheNextDeadline,
    UntilTheNextDeadline,
];

const JOB: [Choice; 14] = [
    Claim(1),
    Claim(2),
    Finish(0, RunResult::Succeeded),
    Finish(0, RunResult::Failed),
    Finish(1, RunResult::Succeeded),
    Finish(1, RunResult::Failed),
    Skip(1),
    RunNow,
    Retries(0),
    Retries(1),
    Abandon(Family::Job),
    Again,
    Force(Family::Job),
    UntilTheNextDeadline,
];

const NAMES: [&str; 2] = ["a", "b"];

/// What a history has come to.
struct Run {
    scribe: Scribe,
    reference: Reference,
    drawn: u64,
    /// What was granted, the newest last.
    granted: Vec<(LeaseId, Token)>,
    /// What asked for a lease last, and its request.
    last: Option<(Operation, RequestId)>,
    version: u64,
}

fn name(number: usize) -> ResourceName {
    resource_name(NAMES[number])
}

fn owner(number: usize) -> Owner {
    Owner::new(["anna", "bert"][number]).expect("an owner")
}

fn reason() -> Reason {
    Reason::new("why").expect("a reason")
}

impl Run {
    fn new(rules: &HoldPolicy) -> Self {
        let scribe = Scribe::new();
        let mut reference = Reference::new();
        reference.apply(&Scribe::genesis());
        let (granted, last) = (Vec::new(), None);
        let mut run = Self { scribe, reference, drawn: 0, granted, last, version: 0 };
        run.command(Operation::RaiseLevel { level: 3 });
        let (namespace, policy) = (default_namespace(), Policy::default());
        let put = PutNamespace { namespace, expected_version: 1, policy };
        let holds = rules.clone();
        run.command(Operation::Hold(HoldCommand::PutPolicy(PutHoldPolicy { put, holds })));
        run.put_job(0);
        run
    }

    fn request_id(&mut self) -> RequestId {
        self.drawn += 1;
        RequestId::new(&format!("request-{}", self.drawn)).expect("an id")
    }

    /// The grant before the last so many.
    fn before(&self, back: usize) -> (LeaseId, Token) {
        let at = self.granted.len().checked_sub(back + 1);
        at.map_or((lease_id(u64::MAX), Token(1)), |at| self.granted[at])
    }

    fn lease(&self, back: usize) -> LeaseRef {
        LeaseRef { resource: name(0), lease_id: self.before(back).0 }
    }

    fn choose(&mut self, choice: Choice) {
        match choice {
            UntilJustBeforeTheNextDeadline => self.pass(1),
            UntilTheNextDeadline => self.pass(0),
            Retries(retries) => self.put_job(retries),
            _ => {
                let operation = self.operation(choice);
                self.command(operation);
            }
        }
    }

    fn operation(&mut self, choice: Choice) -> Operation {
        match choice {
            Campaign(..) | Handoff(..) | Resign(_) => Operation::Election(self.election(choice)),
            Hold(..) | Begin(..) | GiveBack(..) | Extend(..) => Operation::Hold(self.hold(choice)),
            Abandon(family) => {
                let request_id = match &self.last {
                    Some((_, request_id)) => request_id.clone(),
                    None => RequestId::new("request-unseen").expect("an id"),
                };
                let namespace = default_namespace();
                Operation::Abandon(command::Abandon { namespace, family, request_id })
            }
            Again => match self.last.clone() {
                Some((operation, _)) => self.anew(operation),
                None => Operation::RaiseLevel { level: 3 },
            },
            Force(family) => {
                let op = ForceRelease {
                    namespace: default_namespace(),
                    resource: name(0),
                    token: self.before(0).1,
                    request_id: self.request_id(),
                    reason: reason(),
                };
                match family {
                    Family::Election => Operation::Election(ElectionCommand::ForceRelease(op)),
                    Family::Hold => Operation::Hold(HoldCommand::ForceRelease(op)),
                    _ => Operation::Job(JobCommand::ForceRelease(op)),
                }
            }
            _ => Operation::Job(self.job(choice)),
        }
    }

    /// The same request, from another door.
    fn anew(&mut self, mut operation: Operation) -> Operation {
        self.drawn += 1;
        let drawn = lease_id(self.drawn);
        match &mut operation {
            Operation::Election(ElectionCommand::Campaign(op)) => op.lease_id = drawn,
            Operation::Hold(HoldCommand::Hold(op)) => op.lease_id = drawn,
            Operation::Job(JobCommand::ClaimRun(op)) => op.lease_id = drawn,
            _ => {}
        }
        operation
    }

    fn election(&mut self, choice: Choice) -> ElectionCommand {
        let namespace = default_namespace();
        match choice {
            Campaign(candidate, waits) => {
                let request_id = self.request_id();
                ElectionCommand::Campaign(command::Campaign {
                    namespace,
                    election: name(0),
                    candidate: owner(candidate),
                    value: Value::new("").expect("a value"),
                    request_id,
                    lease_id: lease_id(self.drawn),
                    lease_ttl_ms: Some(2_000),
                    wait_timeout_ms: if waits { 1_500 } else { 0 },
                    max_hold_ms: None,
                    fencing: None,
                    labels: Labels::default(),
                })
            }
            Handoff(back, to) => {
                let (lease, to, request_id) = (self.lease(back), owner(to), self.request_id());
                let handoff = command::Handoff { namespace, lease, to, request_id };
                ElectionCommand::Handoff(handoff)
            }
            Resign(back) => ElectionCommand::Resign(Release { namespace, lease: self.lease(back) }),
            other => unreachable!("{other:?} is not about an election"),
        }
    }

    fn hold_ref(&self, of: usize, fence: Option<usize>) -> HoldRef {
        HoldRef { resource: name(of), fence: fence.map(|back| self.before(back).1) }
    }

    fn hold(&mut self, choice: Choice) -> HoldCommand {
        let (namespace, request_id) = (default_namespace(), self.request_id());
        match choice {
            Hold(names, buyer, replaced) => {
                let replaces = replaced.map(|of| self.hold_ref(of, None));
                HoldCommand::Hold(command::Hold {
                    namespace,
                    resources: names.iter().map(|&number| name(number)).collect(),
                    owner: owner(buyer),
                    request_id,
                    lease_id: lease_id(self.drawn),
                    ttl_ms: 2_000,
                    max_hold_ms: Some(3_000),
                    replaces: replaces.into_iter().collect(),
                    labels: Labels::default(),
                })
            }
            Begin(of, buyer) => {
                let (hold, owner) = (self.hold_ref(of, None), owner(buyer));
                HoldCommand::Begin(BeginHold { namespace, hold, owner, ttl_ms: 4_000, request_id })
            }
            GiveBack(of, buyer, fence) => {
                let (hold, owner) = (self.hold_ref(of, fence), owner(buyer));
                HoldCommand::Release(ReleaseHold { namespace, hold, owner, request_id })
            }
            Extend(of, buyer, fence) => {
                let (hold, owner) = (self.hold_ref(of, fence), owner(buyer));
                HoldCommand::Renew(RenewHold { namespace, hold, owner, ttl_ms: None, request_id })
            }
            other => unreachable!("{other:?} is not about a hold"),
        }
    }

    fn job(&mut self, choice: Choice) -> JobCommand {
        let (namespace, job, request_id) = (default_namespace(), name(0), self.request_id());
        let slot = |minutes: u64| Slot(TOKEN_CLOCK_US / 1_000 + minutes * 60_000);
        match choice {
            Claim(minutes) => JobCommand::ClaimRun(ClaimRun {
                namespace,
                job,
                job_version: self.version,
                slot: slot(minutes),
                request_id,
                owner: owner(0),
                lease_id: lease_id(self.drawn),
                lease_ttl_ms: Some(2_000),
                labels: Labels::default(),
            }),
            Finish(back, result) => {
                let lease = self.lease(back);
                JobCommand::FinishRun(FinishRun { namespace, lease, result, request_id })
            }
            Skip(minutes) => {
                let (slot, reason) = (slot(minutes), reason());
                JobCommand::Skip(SlotOfJob { namespace, job, slot, request_id, reason })
            }
            RunNow => {
                let (slot, reason) = (slot(1), reason());
                JobCommand::RunNow(SlotOfJob { namespace, job, slot, request_id, reason })
            }
            other => unreachable!("{other:?} is not about a job"),
        }
    }

    fn put_job(&mut self, retries: u32) {
        let definition = JobDefinition {
            schedule: ScheduleText::new("daily").expect("a schedule"),
            zone: ZoneName::new("UTC").expect("a zone"),
            missed: Missed::Latest,
            overlap: false,
            retries,
            max_run_ms: 3_000,
        };
        let (namespace, job, expected_version) = (default_namespace(), name(0), self.version);
        self.version += 1;
        let put = PutJob { namespace, job, expected_version, definition };
        self.command(Operation::Job(JobCommand::Put(put)));
    }

    fn pass(&mut self, before_ms: u64) {
        let now = self.scribe.state.time();
        let next = self.scribe.state.next_deadline().map_or(500, |at| now.until(at));
        let mut left = next.saturating_sub(before_ms);
        while left > 0 {
            let step = left.min(1_000);
            self.entry(step, Body::Batch(Vec::new()));
            left -= step;
        }
    }

    fn command(&mut self, operation: Operation) {
        let asked = super::told::content(&operation);
        if let (true, Some((_, _, request_id, _))) = (is_ask(&operation), asked) {
            self.last = Some((operation.clone(), request_id));
        }
        let (caller, born_at) = (Caller::new("").expect("a caller"), self.scribe.state.time());
        self.entry(0, Body::Batch(vec![Command { caller, born_at, operation }]));
    }

    fn entry(&mut self, after_ms: u64, body: Body) {
        let entry = self.scribe.entry(after_ms, body);
        let hash = entry.seal(self.scribe.state.log_id()).head.hash;
        let expected = self.reference.apply(&entry);
        let applied = self.scribe.push(entry.clone(), hash);
        self.scribe.state.check_invariants();
        let settled = applied.settled.iter().map(|settled| &settled.outcome);
        for outcome in applied.outcomes.iter().chain(settled) {
            if let Some(grant) = outcome.result.as_ref().ok().and_then(Done::grant) {
                let it = (grant.lease_id, grant.holdings[0].1);
                if !self.granted.contains(&it) {
                    self.granted.push(it);
                }
            }
        }
        assert_eq!(comparable(&entry, applied), comparable(&entry, expected));
    }
}

fn is_ask(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Election(ElectionCommand::Campaign(_))
            | Operation::Hold(HoldCommand::Hold(_))
            | Operation::Job(JobCommand::ClaimRun(_))
    )
}

/// All histories of one length; their prefixes are all shorter ones. Names the history that fails.
fn play_all(choices: &[Choice], length: u32, rules: &HoldPolicy) {
    for number in 0..choices.len().pow(length) {
        let chosen: Vec<_> =
            (0..length).map(|at| choices[number / choices.len().pow(at) % choices.len()]).collect();
        let played = std::panic::catch_unwind(|| {
            let mut run = Run::new(rules);
            for (at, choice) in chosen.iter().enumerate() {
                run.choose(*choice);
                if at == chosen.len() / 2 && number.is_multiple_of(61) {
                    let bytes = run.scribe.state.to_snapshot();
                    let state = State::from_snapshot(&bytes);
                    run.scribe.state = state.expect("a snapshot");
                }
            }
        });
        assert!(played.is_ok(), "history {chosen:?}");
    }
}

#[test]
fn every_short_history_of_an_election() {
    play_all(&ELECTION, 5, &HoldPolicy::default());
}

#[test]
fn every_short_history_of_a_hold() {
    play_all(&HOLD, 4, &HoldPolicy::default());
}

#[test]
fn every_short_history_of_a_hold_where_nobody_may_hoard() {
    play_all(&HOLD, 4, &HoldPolicy { per_owner: Some(1), cooldown_ms: 700 });
}

#[test]
fn every_short_history_of_a_job() {
    play_all(&JOB, 5, &HoldPolicy::default());
}
