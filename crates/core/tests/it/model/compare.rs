//! What the state says and what the reference says, side by side.

use super::{
    acts::{namespace, resource},
    history::{FAMILIES, JOBS, RESOURCES},
    ledger::Run,
    reference::{At, Face, Reference, Stage},
    world::World,
};
use sereno_core::{
    Applied,
    command::{ElectionCommand, Family, HoldCommand, JobCommand, Operation},
    entry::{Body, Entry},
    ids::{ClusterTime, Revision, Slot, Token},
    names::ResourceName,
    outcome::{Code, Detail, Done, Outcome, Refusal},
    query::{AttemptView, FaceView, ListHolds, RunView},
};

/// Without what is nobody's promise: rules are told in words, and of the families that came with level 3 the figures of
/// a refusal that is told again.
pub(super) fn comparable(entry: &Entry, mut applied: Applied) -> Applied {
    let commands = match &entry.body {
        Body::Batch(commands) => &commands[..],
        _ => &[],
    };
    for (command, outcome) in commands.iter().zip(&mut applied.outcomes) {
        if let Ok(Done::RenewedMany(results)) = &mut outcome.result {
            results.iter_mut().filter_map(|result| result.as_mut().err()).for_each(without_words);
        }
        if outcome.replayed.is_some() {
            without_figures(&command.operation, outcome);
        }
        if let Err(refusal) = &mut outcome.result {
            without_words(refusal);
        }
    }
    applied
}

fn without_words(refusal: &mut Refusal) {
    if refusal.code == Code::InvalidArgument {
        refusal.detail = Detail::None;
    }
}

fn without_figures(operation: &Operation, outcome: &mut Outcome) {
    let Err(refusal) = &mut outcome.result else { return };
    let (is_new, asks) = match operation {
        Operation::Election(op) => (
            !matches!(op, ElectionCommand::Campaign(_)),
            matches!(op, ElectionCommand::Campaign(_)),
        ),
        Operation::Hold(op) => (true, matches!(op, HoldCommand::Hold(_))),
        Operation::Job(op) => (true, matches!(op, JobCommand::ClaimRun(_))),
        _ => (false, false),
    };
    // How a grant ended belongs to the answer.
    let is_end = asks && matches!(refusal.code, Code::LeaseEnded | Code::WaitTimeout);
    if is_new && !is_end {
        *refusal = Refusal::new(refusal.code);
    }
}

impl World {
    /// Everything that can be read.
    pub(super) fn compare(&self) {
        let (state, reference) = (&self.scribe.state, &self.reference);
        assert_eq!(state.revision(), Revision(reference.revision));
        assert_eq!(state.last_token(), Token(reference.last_token));
        assert_eq!((state.leases(), state.waiters()), reference.counts(None));
        assert_eq!(state.reply_records(), reference.requests.len() as u64);
        let next = reference.deadlines().iter().map(|&(deadline, _)| ClusterTime(deadline)).min();
        assert_eq!(state.next_deadline(), next);
        for space in [0, 1] {
            for family in FAMILIES {
                for number in 0..RESOURCES {
                    self.compare_resource(At { space, family }, &resource(number));
                }
            }
            self.compare_holds(space);
            for number in 0..JOBS {
                self.compare_job(space, &resource(number));
            }
        }
        reference.assert_modelled();
    }

    fn compare_resource(&self, at: At, name: &ResourceName) {
        let view = self.scribe.state.leased(at.family, &namespace(at.space), name);
        let view = view.expect("a namespace");
        let reference = &self.reference;
        let place = reference.holder(at, name);
        let holder = place.map(|(index, part)| reference.shown(index, part));
        assert_eq!(view.holder.as_ref().map(|view| &view.holder), holder.as_ref());
        let face = place.map(|(index, _)| face_of(reference, index));
        assert_eq!(view.holder.map(|view| view.face), face);
        let delay = reference.delay(at, name);
        let left = delay.map_or(0, |delay| delay.deadline.saturating_sub(reference.time));
        assert_eq!(view.lock_delay_ms, left);
        let owners = reference.queue(at, name).into_iter();
        let owners: Vec<_> =
            owners.map(|index| reference.requests[index].claim().owner.clone()).collect();
        assert_eq!(view.queue.iter().map(|row| row.owner.clone()).collect::<Vec<_>>(), owners);
    }

    /// The list by name.
    fn compare_holds(&self, space: usize) {
        let (namespace, limit) = (namespace(space), 100);
        let (prefix, after) = (String::new(), String::new());
        let list = ListHolds { namespace, prefix, owner: None, limit, after };
        let page = self.scribe.state.list_holds(&list).expect("a namespace");
        let at = At { space, family: Family::Hold };
        let mut held = Vec::new();
        for request in self.reference.requests.iter().filter(|of| of.stage == Stage::Holding) {
            let claim = request.claim();
            let live = claim.parts.iter().filter(|part| claim.at == at && part.ended.is_none());
            held.extend(live.map(|part| part.resource.clone()));
        }
        held.sort();
        assert_eq!(page.holds.into_iter().map(|view| view.resource).collect::<Vec<_>>(), held);
    }

    fn compare_job(&self, space: usize, name: &ResourceName) {
        let view = self.scribe.state.job_view(&namespace(space), name).expect("a namespace");
        let job = self.reference.job_named(space, name).ok();
        let Some(view) = view else { return assert!(job.is_none(), "{name:?} is a job") };
        let job = job.expect("the state knows it");
        let of = &self.reference.jobs[job];
        assert_eq!((view.version, &view.definition), (of.version, &of.definition));
        assert_eq!((view.paused, view.watermark), (of.paused, Slot(of.watermark)));
        let mut runs: Vec<_> = of.runs.iter().map(|run| self.run_view(job, run)).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.slot));
        assert_eq!(view.runs, runs);
    }

    fn run_view(&self, job: usize, run: &Run) -> RunView {
        let under_way = self.reference.under_way(job);
        let live = under_way.iter().find(|(slot, _)| *slot == run.slot);
        let left = live.map(|&(_, index)| self.reference.shown(index, 0).expires_in_ms);
        let last = run.last.as_ref().map(|last| AttemptView {
            token: last.token,
            owner: last.owner.clone(),
            started_at_ms: last.started_ms,
            ended_at_ms: last.ended_ms,
            end: last.end,
            expires_in_ms: left,
        });
        let (slot, state, attempt) = (Slot(run.slot), run.state, run.attempt);
        RunView { slot, state, attempt, last, reason: run.reason.clone() }
    }
}

fn face_of(reference: &Reference, index: usize) -> FaceView {
    match &reference.requests[index].claim().face {
        Face::Lock | Face::Run { .. } => FaceView::Plain,
        Face::Candidate { value, version } => {
            FaceView::Leader { value: value.clone(), version: *version }
        }
        &Face::Hold { begun } => FaceView::Hold { begun },
    }
}
