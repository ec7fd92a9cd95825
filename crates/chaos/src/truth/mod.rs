//! The truth: the log, read out of etcd and applied anew.

mod quota_view;
mod view;

pub use quota_view::QuotaView;
pub use view::View;

use crate::history::Family;
use sereno_core::{
    Applied, State,
    command::{self, ElectionCommand, HoldCommand, JobCommand, Operation, QuotaCommand},
    entry::{Body, Entry, EntryHash, Head, SealedEntry},
    event::{Event, EventKind},
    ids::{ObjectId, ReservationId, Token},
    names::{NamespaceName, RequestId, ResourceName},
    outcome::{Done, Outcome},
};
use std::collections::{BTreeMap, BTreeSet};

/// One answer that the log decided.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The command.
    pub operation: Operation,
    /// Its outcome; of a wait that is over, the last one.
    pub outcome: Outcome,
}

/// A request that asks for a lease or a reservation: its family, and its id.
type Asked = (Family, String);

/// All that the log says.
#[derive(Debug, Default)]
pub struct Truth {
    state: State,
    decided: BTreeMap<u64, Vec<Decided>>,
    /// What each place looks like from a revision on, at the ends of entries: that is what reads see.
    views: BTreeMap<String, BTreeMap<u64, View>>,
    /// The same of nodes and reservations of quotas.
    quota_views: BTreeMap<String, BTreeMap<u64, QuotaView>>,
    requests: BTreeSet<Asked>,
    granted: BTreeMap<Asked, u64>,
    tokens: BTreeMap<u64, String>,
    /// Who asked for each claim.
    claims: BTreeMap<ObjectId, Operation>,
    hashes: Vec<EntryHash>,
    chains: BTreeMap<u64, EntryHash>,
    leaders: usize,
}

impl Truth {
    /// The next entry.
    ///
    /// # Errors
    /// It does not follow.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let after = self.head().position;
        let entry = Entry::decode(bytes).map_err(|error| format!("after {after}: {error}"))?;
        let hash = EntryHash::of(bytes);
        let applied = self.state.apply(&entry, hash).map_err(|misfit| misfit.to_string())?;
        self.hashes.push(hash);
        self.chains.insert(self.head().position.0, self.state.outcome_chain());
        let commands = match entry.body {
            Body::Batch(commands) => commands,
            Body::Announce(_) => {
                self.leaders += 1;
                Vec::new()
            }
            Body::Resign => Vec::new(),
        };
        for (command, outcome) in commands.into_iter().zip(&applied.outcomes) {
            self.decide(command.operation, outcome.clone());
        }
        self.settle(&applied);
        Ok(())
    }

    /// Waits that have ended, and what is to be seen now.
    fn settle(&mut self, applied: &Applied) {
        for settled in &applied.settled {
            if let Some(operation) = self.claims.get(&settled.claim).cloned() {
                self.put(Decided { operation, outcome: settled.outcome.clone() });
            }
        }
        let changed: BTreeSet<_> = applied.events.iter().filter_map(subject).collect();
        for event in &applied.events {
            if let (EventKind::Granted { token, .. }, Some((family, _, name))) =
                (&event.kind, subject(event))
            {
                self.tokens.insert(token.0, family.place(name.as_str()));
            }
        }
        let revision = self.revision();
        for (family, namespace, name) in changed {
            if let Some(view) = View::of(&self.state, family, namespace, name) {
                let views = self.views.entry(family.place(name.as_str())).or_default();
                views.insert(revision, view);
            }
        }
        self.look_at_quotas(applied);
    }

    /// What is to be seen of the quotas that something has happened to.
    fn look_at_quotas(&mut self, applied: &Applied) {
        let of_quotas = |it: &&Event| it.family == command::Family::Quota;
        let events: Vec<_> = applied.events.iter().filter(of_quotas).collect();
        let namespaces: BTreeSet<_> =
            events.iter().filter_map(|it| it.namespace.as_ref()).collect();
        for namespace in namespaces {
            for (key, view) in quota_view::nodes(&self.state, namespace) {
                self.see(key, view);
            }
            let own = events.iter().filter(|it| it.namespace.as_ref() == Some(namespace));
            // An event about a node has that for its subject.
            let names: BTreeSet<_> = own
                .filter_map(|it| ReservationId::from_hex(it.resource.as_ref()?.as_str()))
                .collect();
            for name in names {
                let view = quota_view::reservation(&self.state, namespace, name);
                self.see(quota_view::reservation_key(&name.to_hex()), view);
            }
        }
    }

    fn see(&mut self, key: String, view: QuotaView) {
        let revision = self.revision();
        let views = self.quota_views.entry(key).or_default();
        if views.last_key_value().is_none_or(|(_, last)| *last != view) {
            views.insert(revision, view);
        }
    }

    fn decide(&mut self, operation: Operation, outcome: Outcome) {
        if let Some((family, request)) = asked(&operation) {
            self.requests.insert((family, request.to_string()));
            let claim = match &outcome.result {
                Ok(Done::Waiting(waiting)) => Some(waiting.claim),
                Ok(done) => done.held_by(),
                Err(_) => None,
            };
            claim.map(|claim| self.claims.entry(claim).or_insert_with(|| operation.clone()));
        }
        self.put(Decided { operation, outcome });
    }

    fn put(&mut self, decided: Decided) {
        let holds = decided.outcome.result.as_ref().ok().and_then(Done::held_by);
        if let (Some(_), Some((family, request))) = (holds, asked(&decided.operation)) {
            let revision = decided.outcome.revision.0;
            let first = self.granted.entry((family, request.to_string())).or_insert(revision);
            *first = revision.min(*first);
        }
        self.decided.entry(decided.outcome.revision.0).or_default().push(decided);
    }

    /// Where the log ends.
    pub fn head(&self) -> Head {
        self.state.head()
    }

    /// Its revision.
    pub fn revision(&self) -> u64 {
        self.state.revision().0
    }

    /// The last token granted.
    pub fn last_token(&self) -> Token {
        self.state.last_token()
    }

    /// How often somebody began to lead.
    pub fn leaders(&self) -> usize {
        self.leaders
    }

    /// What was decided at a revision: a command, and the waits that ended with it.
    pub fn at(&self, revision: u64) -> &[Decided] {
        self.decided.get(&revision).map_or(&[], Vec::as_slice)
    }

    /// What a read shows of a name after a revision.
    pub fn view(&self, family: Family, name: &str, revision: u64) -> View {
        let views = self.views.get(&family.place(name));
        let last = views.and_then(|views| views.range(..=revision).next_back());
        last.map_or_else(View::unknown, |(_, view)| view.clone())
    }

    /// What a read shows of a node after a revision.
    pub fn node_view(&self, quota: &str, path: &str, revision: u64) -> QuotaView {
        self.quota_view(&quota_view::node_key(quota, path), revision)
    }

    /// What a read shows of a reservation after a revision.
    pub fn reservation_view(&self, name: &str, revision: u64) -> QuotaView {
        self.quota_view(&quota_view::reservation_key(name), revision)
    }

    fn quota_view(&self, key: &str, revision: u64) -> QuotaView {
        let views = self.quota_views.get(key);
        let last = views.and_then(|views| views.range(..=revision).next_back());
        last.map_or(QuotaView::Nothing, |(_, view)| view.clone())
    }

    /// Whether this request for a lease or a reservation is in the log.
    pub fn has_request(&self, family: Family, request: &str) -> bool {
        self.requests.contains(&(family, request.to_owned()))
    }

    /// The revision of the grant to this request.
    pub fn granted_at(&self, family: Family, request: &str) -> Option<u64> {
        self.granted.get(&(family, request.to_owned())).copied()
    }

    /// The place that was granted with this token.
    pub fn granted_with(&self, token: u64) -> Option<&str> {
        self.tokens.get(&token).map(String::as_str)
    }

    /// Whether an entry read later is the one applied here.
    pub fn is_same(&self, sealed: &SealedEntry) -> bool {
        let index = usize::try_from(sealed.head.position.0).ok().and_then(|it| it.checked_sub(1));
        index.and_then(|it| self.hashes.get(it)) == Some(&sealed.head.hash)
    }

    /// The hash over all entries and outcomes up to a position.
    pub fn outcome_chain(&self, position: u64) -> Option<EntryHash> {
        self.chains.get(&position).copied()
    }
}

/// The request for a lease or a reservation, if it is one.
fn asked(operation: &Operation) -> Option<(Family, &RequestId)> {
    match operation {
        Operation::Acquire(it) => Some((Family::Lock, &it.request_id)),
        Operation::Election(ElectionCommand::Campaign(it)) => {
            Some((Family::Election, &it.request_id))
        }
        Operation::Hold(HoldCommand::Hold(it)) => Some((Family::Hold, &it.request_id)),
        Operation::Job(JobCommand::ClaimRun(it)) => Some((Family::Job, &it.request_id)),
        Operation::Quota(QuotaCommand::Reserve(it)) => Some((Family::Quota, &it.request_id)),
        _ => None,
    }
}

/// The name that an event is about.
fn subject(event: &Event) -> Option<(Family, &NamespaceName, &ResourceName)> {
    let family = Family::leased(event.family)?;
    Some((family, event.namespace.as_ref()?, event.resource.as_ref()?))
}
