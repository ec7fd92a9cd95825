//! What a job's ledger may forget (DESIGN.md section 9: the watermark), and what that must never cost.

use sereno_core::{
    command::{
        Abandon, ClaimRun, Family, FinishRun, JobCommand, JobDefinition, LeaseRef, Missed,
        Operation, PutJob, RunResult, SlotOfJob,
    },
    ids::Slot,
    limits::RUNS_CLOSED_KEPT,
    names::{Labels, Owner, Reason, RequestId, ResourceName, ScheduleText, ZoneName},
    outcome::{Code, Done, Outcome},
    query::JobView,
    testing::{Scribe, TOKEN_CLOCK_US, default_namespace, lease_id, resource_name},
};

const KEPT: u64 = RUNS_CLOSED_KEPT as u64;

/// A job with one slot a second, and whoever runs it.
struct World {
    scribe: Scribe,
    job: ResourceName,
    requests: u64,
}

impl World {
    fn new(missed: Missed) -> Self {
        let mut scribe = Scribe::new();
        scribe.run(Operation::RaiseLevel { level: 3 });
        let mut world = Self { scribe, job: resource_name("j"), requests: 0 };
        let definition = JobDefinition {
            schedule: ScheduleText::new("* * * * * *").expect("a schedule"),
            zone: ZoneName::new("UTC").expect("a zone"),
            missed,
            overlap: false,
            retries: 0,
            max_run_ms: 60_000,
        };
        let (namespace, job) = (default_namespace(), world.job.clone());
        let put = PutJob { namespace, job, expected_version: 0, definition };
        world.decide(JobCommand::Put(put)).result.expect("a job");
        world
    }

    fn decide(&mut self, command: JobCommand) -> Outcome {
        self.requests += 1;
        let outcome = self.scribe.run(Operation::Job(command));
        self.scribe.state.check_invariants();
        outcome
    }

    fn request_id(&self) -> RequestId {
        RequestId::new(&format!("request-{:06}", self.requests)).expect("an id")
    }

    fn of_slot(&self, slot: Slot) -> SlotOfJob {
        SlotOfJob {
            namespace: default_namespace(),
            job: self.job.clone(),
            slot,
            request_id: self.request_id(),
            reason: Reason::new("why").expect("a reason"),
        }
    }

    fn skip(&mut self, slot: Slot) -> Outcome {
        let skip = self.of_slot(slot);
        self.decide(JobCommand::Skip(skip))
    }

    fn claim(&mut self, slot: Slot) -> Result<Done, Code> {
        let claim = ClaimRun {
            namespace: default_namespace(),
            job: self.job.clone(),
            job_version: 1,
            slot,
            request_id: self.request_id(),
            owner: Owner::new("worker").expect("an owner"),
            lease_id: lease_id(self.requests),
            lease_ttl_ms: Some(10_000),
            labels: Labels::default(),
        };
        self.decide(JobCommand::ClaimRun(claim)).result.map_err(|refusal| refusal.code)
    }

    /// Claims the slot and finishes it.
    fn do_it(&mut self, slot: Slot) {
        let lease_id = lease_id(self.requests);
        self.claim(slot).unwrap_or_else(|code| panic!("{slot:?} is refused: {code:?}"));
        let finish = FinishRun {
            namespace: default_namespace(),
            lease: LeaseRef { resource: self.job.clone(), lease_id },
            result: RunResult::Succeeded,
            request_id: self.request_id(),
        };
        self.decide(JobCommand::FinishRun(finish)).result.expect("it is finished");
    }

    /// An extra run, asked for now; its slot.
    fn ask(&mut self) -> Slot {
        let run_now = self.of_slot(slot(0));
        match self.decide(JobCommand::RunNow(run_now)).result {
            Ok(Done::JobChanged { slot: Some(slot), .. }) => slot,
            other => panic!("asked for a run: {other:?}"),
        }
    }

    fn view(&self) -> JobView {
        let view = self.scribe.state.job_view(&default_namespace(), &self.job);
        view.flatten().expect("the job")
    }

    fn closed(&self) -> Vec<Slot> {
        let view = self.view();
        let mut closed: Vec<_> =
            view.runs.iter().filter(|run| !run.state.is_open()).map(|run| run.slot).collect();
        closed.sort_unstable();
        closed
    }
}

/// Counted from when the job was put.
fn slot(number: u64) -> Slot {
    Slot(TOKEN_CLOCK_US / 1_000 + number * 1_000)
}

#[test]
fn the_oldest_finished_slots_are_forgotten_and_stay_finished() {
    for missed in [Missed::All, Missed::Latest] {
        let mut world = World::new(missed);
        (0..KEPT + 5).for_each(|number| world.do_it(slot(number)));
        assert_eq!(world.closed(), (5..KEPT + 5).map(slot).collect::<Vec<_>>());
        for number in 0..KEPT + 5 {
            assert_eq!(world.claim(slot(number)), Err(Code::RunFinished), "{number}");
        }
    }
}

/// Each of them would push the watermark over slots that nobody has run.
#[test]
fn what_is_left_out_ahead_loses_no_slot_before_it() {
    for missed in [Missed::All, Missed::Latest] {
        let mut world = World::new(missed);
        for number in 0..KEPT {
            world.skip(slot(30 + number)).result.expect("it is left out");
        }
        let refused = world.skip(slot(500)).result.expect_err("too many are");
        assert_eq!(refused.code, Code::LimitReached);
        // An extra run is none of them.
        let asked = world.ask();
        world.skip(asked).result.expect("it is left out");
        assert_eq!(world.claim(asked), Err(Code::RunFinished));
        // All before them is run, though the ledger is full all the time.
        (0..30).for_each(|number| world.do_it(slot(number)));
        assert_eq!(world.claim(slot(30)), Err(Code::RunFinished));
        assert_eq!(world.claim(slot(29 + KEPT)), Err(Code::RunFinished));
        // Their turn is over as soon as a later one is run: there is room again.
        world.do_it(slot(30 + KEPT));
        for number in 0..KEPT {
            world.skip(slot(200 + number)).result.expect("it is left out");
        }
        assert_eq!(world.claim(slot(30)), Err(Code::RunFinished), "for ever");
        (131..200).for_each(|number| world.do_it(slot(number)));
    }
}

#[test]
fn extra_runs_lose_no_slot_and_run_once_however_many_they_are() {
    for missed in [Missed::All, Missed::Latest] {
        let mut world = World::new(missed);
        let mut extra = Vec::new();
        for _ in 0..2 * KEPT {
            let asked = world.ask();
            world.do_it(asked);
            extra.push(asked);
        }
        assert_eq!(world.closed().len() as u64, KEPT);
        for asked in extra {
            assert_eq!(world.claim(asked), Err(Code::RunFinished), "{asked:?}");
        }
        (0..5).for_each(|number| world.do_it(slot(number)));
    }
}

/// Or else one of them would be taken for the other.
#[test]
fn an_extra_run_never_lies_on_a_slot_of_the_schedule() {
    let mut world = World::new(Missed::Latest);
    let asked = world.ask();
    assert_eq!(asked, Slot(slot(0).0 + 1));
    assert_eq!(world.claim(Slot(asked.0 + 1)), Err(Code::RunFinished), "nobody asked for it");
    world.do_it(asked);
    world.do_it(slot(0));
}

#[test]
fn an_attempt_that_was_given_back_had_its_turn() {
    let mut world = World::new(Missed::All);
    for number in 0..KEPT {
        world.skip(slot(1 + number)).result.expect("it is left out");
    }
    // What was left out before it may be forgotten from now on, whatever becomes of the attempt.
    let request_id = world.request_id();
    world.claim(slot(1 + KEPT)).expect("it is claimed");
    let abandon = Abandon { namespace: default_namespace(), family: Family::Job, request_id };
    world.scribe.run(Operation::Abandon(abandon)).result.expect("it is abandoned");
    for number in 0..KEPT {
        world.skip(slot(200 + number)).result.expect("it is left out");
    }
    assert_eq!(world.claim(slot(1)), Err(Code::RunFinished));
    (101..110).for_each(|number| world.do_it(slot(number)));
}
