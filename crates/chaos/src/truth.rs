//! The truth: the log, read out of etcd and applied anew.

use sereno_core::{
    State,
    command::Operation,
    entry::{Body, Entry, EntryHash, Head, SealedEntry},
    event::EventKind,
    ids::{ObjectId, Token},
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

/// Who holds a lock from a revision on.
type Holder = Option<(String, u64)>;

/// All that the log says.
#[derive(Debug, Default)]
pub struct Truth {
    state: State,
    decided: BTreeMap<u64, Vec<Decided>>,
    holders: BTreeMap<String, BTreeMap<u64, Holder>>,
    requests: BTreeSet<String>,
    granted: BTreeMap<String, u64>,
    tokens: BTreeMap<u64, String>,
    /// The acquire of each claim.
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
        for (command, outcome) in commands.into_iter().zip(applied.outcomes) {
            self.decide(command.operation, outcome);
        }
        for settled in applied.settled {
            if let Some(operation) = self.claims.get(&settled.claim) {
                let decided = Decided { operation: operation.clone(), outcome: settled.outcome };
                self.put(decided);
            }
        }
        for event in applied.events {
            let resource = event.resource.as_ref().map(ToString::to_string).unwrap_or_default();
            let owner = event.owner.as_ref().map(ToString::to_string).unwrap_or_default();
            let holder = match event.kind {
                EventKind::Granted { token, .. } => {
                    self.granted.insert(owner.clone(), event.revision.0);
                    self.tokens.insert(token.0, resource.clone());
                    Some((owner, token.0))
                }
                EventKind::Ended { .. } => None,
                _ => continue,
            };
            self.holders.entry(resource).or_default().insert(event.revision.0, holder);
        }
        Ok(())
    }

    fn decide(&mut self, operation: Operation, outcome: Outcome) {
        if let Operation::Acquire(acquire) = &operation {
            self.requests.insert(acquire.request_id.to_string());
            let claim = match &outcome.result {
                Ok(Done::Waiting(waiting)) => Some(waiting.claim),
                Ok(Done::Granted(grant)) => Some(grant.claim),
                _ => None,
            };
            claim.map(|claim| self.claims.entry(claim).or_insert_with(|| operation.clone()));
        }
        self.put(Decided { operation, outcome });
    }

    fn put(&mut self, decided: Decided) {
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

    /// Owner and token of the holder after a revision.
    pub fn holder(&self, lock: &str, revision: u64) -> Option<&(String, u64)> {
        self.holders.get(lock)?.range(..=revision).next_back()?.1.as_ref()
    }

    /// Whether an acquire of this request is in the log.
    pub fn has_request(&self, request: &str) -> bool {
        self.requests.contains(request)
    }

    /// The revision of the grant to this request.
    pub fn granted_at(&self, request: &str) -> Option<u64> {
        self.granted.get(request).copied()
    }

    /// What was granted with this token.
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
