//! Outcomes and events in few words, with short names for leases and tokens.

use sereno_core::{
    Settled,
    command::{ElectionCommand, HoldCommand, JobCommand, Operation, QuotaCommand},
    event::{Event, EventKind},
    ids::{LeaseId, ObjectId, ReservationId, Token},
    outcome::{
        AbandonedWas, Detail, Done, Grant, Holder, InTheWay, NotReleased, Outcome, Refusal,
        Renewed, WaitEnd,
    },
    policy::Fencing,
};
use std::{collections::BTreeMap, fmt::Debug};

/// What has got a short name so far.
#[derive(Default)]
pub(super) struct Names {
    /// Whether events are shown.
    pub(super) events: bool,
    /// In the order seen, which has to be the rising one (S2).
    tokens: Vec<Token>,
    /// Claims by the short name of their request, and back.
    claims: BTreeMap<String, ObjectId>,
    requests: BTreeMap<ObjectId, String>,
    leases: BTreeMap<ObjectId, LeaseId>,
    /// Of each request the name that counts.
    pub(super) reservations: BTreeMap<String, ReservationId>,
    /// In the order seen.
    pub(super) commits: Vec<ObjectId>,
}

/// A duration in its largest whole unit.
pub(super) fn ms(ms: u64) -> String {
    match ms {
        0 => "0s".into(),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

/// `WaitTimeout` as `waitTimeout`.
fn word(value: impl Debug) -> String {
    let mut text = format!("{value:?}");
    text[..1].make_ascii_lowercase();
    text
}

impl Names {
    /// Remembers which claim belongs to which request.
    pub(super) fn learn(&mut self, operation: &Operation, outcome: &Outcome) {
        let request_id = match operation {
            Operation::Acquire(acquire) => &acquire.request_id,
            Operation::AcquireAll(acquire) => &acquire.request_id,
            Operation::Election(ElectionCommand::Campaign(campaign)) => &campaign.request_id,
            Operation::Hold(HoldCommand::Hold(hold)) => &hold.request_id,
            Operation::Job(JobCommand::ClaimRun(claim)) => &claim.request_id,
            Operation::Quota(QuotaCommand::Reserve(reserve)) => &reserve.request_id,
            _ => return,
        };
        let name = request_id.as_str().trim_start_matches("request-").to_string();
        let claim = match &outcome.result {
            Ok(Done::Waiting(waiting)) => waiting.claim,
            Ok(done) if done.held_by().is_some() => done.held_by().expect("it was just seen"),
            _ => return,
        };
        self.claims.insert(name.clone(), claim);
        self.requests.insert(claim, name);
    }

    pub(super) fn claim_named(&self, request: &str) -> ObjectId {
        self.claims.get(request).copied().unwrap_or_default()
    }

    pub(super) fn lease_of(&self, request: &str) -> Option<LeaseId> {
        self.leases.get(self.claims.get(request)?).copied()
    }

    pub(super) fn token_named(&self, name: &str) -> Token {
        let number: usize = name.strip_prefix('T').and_then(|n| n.parse().ok()).expect("T1");
        self.tokens.get(number - 1).copied().unwrap_or(Token(1))
    }

    pub(super) fn token(&mut self, token: Token) -> String {
        let known = self.tokens.iter().position(|&known| known == token);
        let index = known.unwrap_or_else(|| {
            assert!(self.tokens.iter().all(|&known| known < token), "tokens rise (S2)");
            self.tokens.push(token);
            self.tokens.len() - 1
        });
        format!("T{}", index + 1)
    }

    pub(super) fn outcome(&mut self, outcome: &Outcome) -> String {
        let said = match &outcome.result {
            Ok(done) => self.done(done),
            Err(refusal) => self.refusal(refusal),
        };
        match outcome.replayed {
            Some(first) => format!("r{} as r{first}: {said}", outcome.revision),
            None => format!("r{}: {said}", outcome.revision),
        }
    }

    pub(super) fn settled(&mut self, settled: &Settled) -> String {
        let said = self.outcome(&settled.outcome);
        format!("~ id:{} {said}", self.requests[&settled.claim])
    }

    /// Whether the script has named this claim's request.
    pub(super) fn knows(&self, claim: ObjectId) -> bool {
        self.requests.contains_key(&claim)
    }

    fn done(&mut self, done: &Done) -> String {
        match done {
            Done::Granted(grant) => self.grant(grant),
            Done::Waiting(waiting) => {
                format!("waiting at {}, {} left", waiting.place, ms(waiting.wait_expires_in_ms))
            }
            Done::Renewed(renewed) => self.renewed(renewed),
            Done::RenewedMany(results) => {
                let one = |result: &Result<Renewed, Refusal>| match result {
                    Ok(renewed) => self.renewed(renewed),
                    Err(refusal) => self.refusal(refusal),
                };
                results.iter().map(one).collect::<Vec<_>>().join(" | ")
            }
            Done::Released { already: None } => "released".into(),
            Done::Released { already: Some(NotReleased::Ended(end)) } => {
                format!("not released: {}", end.as_str())
            }
            Done::Released { already: Some(NotReleased::Unknown) } => {
                "not released: unknown".into()
            }
            Done::Abandoned { was } => match was {
                AbandonedWas::Ended(end) => format!("abandoned, was ended: {}", end.as_str()),
                AbandonedWas::Refused(code) => format!("abandoned, was refused: {code:?}"),
                other => format!("abandoned, was {}", word(other)),
            },
            Done::ForceReleased { token } => format!("force-released {}", self.token(*token)),
            Done::NamespacePut { version } => format!("version {version}"),
            Done::DesertedEnded(true) => "ended".into(),
            Done::DesertedEnded(false) => "left alone".into(),
            Done::TokenFloorSet { .. } => "floor set".into(),
            Done::LevelRaised { level } => format!("level {level}"),
            Done::TrimHeld => "trim held".into(),
            Done::Elected(elected) => {
                let granted = self.grant(&elected.grant);
                format!("leads: {granted}, says {:?} in version {}", elected.value, elected.version)
            }
            Done::Proclaimed { version } => format!("proclaimed as version {version}"),
            Done::HandedOff { term } => format!("handed off to {}", self.token(*term)),
            Done::Held(held) => {
                let yours = if held.yours { "yours already: " } else { "" };
                let begun = if held.begun { ", begun" } else { "" };
                format!("{yours}{} to {}{begun}", self.grant(&held.grant), held.owner)
            }
            Done::HoldExtended(extended) => {
                let begun = if extended.begun { ", begun" } else { "" };
                format!("{}{begun}", self.renewed(&extended.renewed))
            }
            Done::HoldReleased { released: true } => "hold released".into(),
            Done::HoldReleased { released: false } => "no such hold".into(),
            Done::JobPut { version } => format!("job version {version}"),
            Done::RunClaimed(run) => {
                format!("attempt {}: {}", run.attempt, self.grant(&run.grant))
            }
            Done::RunFinished(run) => {
                format!("finished attempt {}: {:?}", run.attempt, run.state)
            }
            Done::JobChanged { paused, slot } => {
                let slot = slot.map(|slot| ms(slot.0 - super::faces::SLOT_ZERO_MS));
                let slot = slot.map_or(String::new(), |slot| format!(", slot {slot}"));
                format!("{}{slot}", if *paused { "paused" } else { "not paused" })
            }
            Done::GuardReported => "on record".into(),
            Done::Quota(done) => self.quota_done(done),
            Done::RegionSet => "region set".into(),
        }
    }

    fn grant(&mut self, grant: &Grant) -> String {
        let of = grant.lease_id;
        let known = self.leases.insert(grant.claim, of);
        assert!(known.is_none_or(|known| known == of), "a request has one lease id (S6)");
        let holdings = grant.holdings.iter();
        let holdings: Vec<_> =
            holdings.map(|(name, token)| format!("{name} {}", self.token(*token))).collect();
        let fencing = match grant.fencing {
            Fencing::Enforced => " enforced",
            Fencing::BestEffort => "",
        };
        let left = ms(grant.expires_in_ms);
        let at_most = at_most(grant.final_deadline_in_ms);
        format!("granted {} for {left}{at_most}{fencing}", holdings.join(", "))
    }

    fn renewed(&mut self, renewed: &Renewed) -> String {
        let (left, token) = (ms(renewed.expires_in_ms), self.token(renewed.token));
        let clipped = if renewed.clipped { ", clipped" } else { "" };
        format!("renewed {token} for {left}{}{clipped}", at_most(renewed.final_deadline_in_ms))
    }

    pub(super) fn holder(&mut self, holder: &Holder) -> String {
        let Holder { owner, token, held_for_ms, expires_in_ms } = holder;
        let (held, left) = (ms(*held_for_ms), ms(*expires_in_ms));
        format!("{owner} {} held {held}, {left} left", self.token(*token))
    }

    fn refusal(&mut self, refusal: &Refusal) -> String {
        let detail = match &refusal.detail {
            Detail::None => String::new(),
            Detail::Invalid(invalid) => format!(" {invalid}"),
            Detail::Locked(all) => {
                let all: Vec<_> = all.iter().map(|one| self.in_the_way(one)).collect();
                format!(" [{}]", all.join("; "))
            }
            Detail::Ended { end, token } => format!(" {} {}", end.as_str(), self.token(*token)),
            Detail::Wait(WaitEnd::TimedOut) => " timed out".into(),
            Detail::Wait(why) => format!(" {}", word(why)),
            Detail::FinalDeadline { in_ms, token } => {
                format!(" {} ends in {}", self.token(*token), ms(*in_ms))
            }
            Detail::Version { current } => format!(" version is {current}"),
            Detail::Limit { limit, max, sweep_pending } => {
                let pending = if *sweep_pending { ", sweep pending" } else { "" };
                format!(" {limit} is {max}{pending}")
            }
            Detail::Paused => " paused".into(),
            Detail::BornAt => " bornAt".into(),
            Detail::Missing(what) => format!(" no such {}", word(what)),
            Detail::Level { needed } => format!(" needs level {needed}"),
            Detail::Run { holder } => {
                holder.as_ref().map_or(" delayed".into(), |of| format!(" {}", self.holder(of)))
            }
            other => self.quota_detail(other),
        };
        let retry =
            refusal.retry_after_ms.map_or(String::new(), |wait| format!(", retry in {}", ms(wait)));
        format!("{:?}{detail}{retry}", refusal.code)
    }

    fn in_the_way(&mut self, one: &InTheWay) -> String {
        let InTheWay { resource, holder, lock_delay_ms, waiters } = one;
        let holder = match holder {
            Some(holder) => self.holder(holder),
            None => format!("delayed, {} left", ms(*lock_delay_ms)),
        };
        format!("{resource}: {holder}, {waiters} waiting")
    }

    pub(super) fn event(&mut self, event: &Event) -> String {
        let kind = match &event.kind {
            EventKind::Granted { token, waited_ms } => {
                let waited =
                    waited_ms.map_or(String::new(), |wait| format!(" waited {}", ms(wait)));
                format!("granted {}{waited}", self.token(*token))
            }
            EventKind::Ended { token, end, held_ms, reason } => {
                let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                let token = self.token(*token);
                format!("ended {token} {} held {}{reason}", end.as_str(), ms(*held_ms))
            }
            EventKind::WaitEnded { why, waited_ms } => {
                let why = why.map_or("abandoned".into(), word);
                format!("wait ended {why} after {}", ms(*waited_ms))
            }
            EventKind::Queued => "queued".into(),
            EventKind::Refused { code } => format!("refused {code:?}"),
            EventKind::NamespacePut { version } => format!("namespace put, version {version}"),
            EventKind::TokenFloorSet { .. } => "token floor set".into(),
            EventKind::LevelRaised { level } => format!("level {level}"),
            EventKind::TrimHeld => "trim held".into(),
            EventKind::Proclaimed { term, version } => {
                format!("{} proclaimed version {version}", self.token(*term))
            }
            EventKind::Begun { token } => format!("begun {}", self.token(*token)),
            EventKind::JobPut { version } => format!("job put, version {version}"),
            EventKind::JobPaused { paused: true, reason } => format!("paused: {reason}"),
            EventKind::JobPaused { paused: false, reason } => format!("resumed: {reason}"),
            EventKind::RunAsked { reason, .. } => format!("run asked for: {reason}"),
            EventKind::RunClaimed { attempt, token, .. } => {
                format!("attempt {attempt} {}", self.token(*token))
            }
            EventKind::RunChanged { attempt, state, .. } => {
                format!("run {state:?} after {attempt} attempts")
            }
            EventKind::GuardSeen => "guard seen".into(),
            EventKind::FenceRefused { token, .. } => {
                format!("fence refused {}", self.token(*token))
            }
            EventKind::Quota(event) => self.quota_event(event),
            EventKind::RegionSet { region } => format!("region {region:?}"),
            EventKind::HomePut { home } => format!("home {home:?}"),
        };
        let mut subject = event.family.as_str().to_string();
        let namespace = event.namespace.as_ref().map(ToString::to_string);
        let is_drawn = matches!(&event.kind, EventKind::Quota(of) if of.reservation.is_some());
        let resource = event.resource.as_ref().map(ToString::to_string);
        let resource = resource.filter(|name| !is_drawn && !self.is_reservation(name));
        let names = [namespace, resource];
        names.iter().flatten().for_each(|name| subject.extend(["/", name]));
        let owner = event.owner.as_ref().map_or(String::new(), |owner| format!(" {owner}"));
        let caller = match event.caller.as_str() {
            "" => String::new(),
            caller => format!(" by {caller}"),
        };
        format!("* r{} {subject}{owner}: {kind}{caller}", event.revision)
    }
}

fn at_most(final_deadline_in_ms: Option<u64>) -> String {
    final_deadline_in_ms.map_or(String::new(), |left| format!(" of at most {}", ms(left)))
}
