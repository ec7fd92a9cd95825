//! All histories of up to five commands over two clients and one resource, with the passing of time as one of the
//! choices: each entry's outcomes, settled waits and events are the reference's, and the invariants hold after it.

use super::{acts, reference::Reference};
use sereno_core::{
    Applied, State,
    command::{
        Acquire, Command, EndDeserted, Family, ForceRelease, LeaseRef, Operation, PutNamespace,
        Release, Renew,
    },
    entry::Body,
    ids::{LeaseId, ObjectId, Token},
    names::{Caller, Labels, NamespaceName, Owner, Reason, RequestId},
    outcome::Done,
    policy::Policy,
    testing::{Scribe, default_namespace, lease_id},
};

/// One of the clients: each has a request that waits and one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    A,
    B,
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Acquire(Client),
    AcquireWaiting(Client),
    Renew(Client),
    Release(Client),
    Abandon(Client),
    AbandonWaiting(Client),
    ForceRelease,
    Desert,
    UntilJustBeforeTheNextDeadline,
    UntilTheNextDeadline,
}

use Choice::*;
use Client::*;

const CHOICES: [Choice; 15] = [
    Acquire(A),
    Acquire(B),
    AcquireWaiting(A),
    AcquireWaiting(B),
    Renew(A),
    Renew(B),
    Release(A),
    Release(B),
    Abandon(A),
    AbandonWaiting(A),
    AbandonWaiting(B),
    ForceRelease,
    Desert,
    UntilJustBeforeTheNextDeadline,
    UntilTheNextDeadline,
];

const LENGTH: u32 = 5;

/// What a history has come to.
struct Run {
    scribe: Scribe,
    reference: Reference,
    drawn: u64,
    /// The lease granted last to each client.
    leases: [Option<LeaseId>; 2],
    /// The token granted last to anybody.
    token: Token,
    claim: ObjectId,
}

fn caller(client: Client) -> Caller {
    Caller::new(if client == A { "a" } else { "b" }).expect("a caller")
}

impl Run {
    fn new(policy: &Policy) -> Self {
        let scribe = Scribe::new();
        let mut reference = Reference::new();
        reference.apply(&Scribe::genesis());
        let (leases, token, claim) = ([None; 2], Token(1), ObjectId(0));
        let mut run = Self { scribe, reference, drawn: 0, leases, token, claim };
        let (namespace, policy) = (default_namespace(), policy.clone());
        let put = PutNamespace { namespace, expected_version: 1, policy };
        run.command(A, Operation::PutNamespace(put));
        run
    }

    fn choose(&mut self, choice: Choice) {
        let namespace = default_namespace();
        match choice {
            Acquire(client) => self.acquire(client, false),
            AcquireWaiting(client) => self.acquire(client, true),
            Renew(client) => {
                let lease = self.lease(client);
                self.command(
                    client,
                    Operation::Renew(Renew { namespace, lease, lease_ttl_ms: None }),
                );
            }
            Release(client) => {
                let lease = self.lease(client);
                self.command(client, Operation::Release(Release { namespace, lease }));
            }
            Abandon(client) => self.abandon(client, namespace, false),
            AbandonWaiting(client) => self.abandon(client, namespace, true),
            ForceRelease => {
                self.drawn += 1;
                let operation = Operation::ForceRelease(ForceRelease {
                    namespace,
                    resource: acts::resource(0),
                    token: self.token,
                    request_id: request_id(&format!("forced-{:03}", self.drawn)),
                    reason: Reason::new("stuck").expect("a reason"),
                });
                self.command(A, operation);
            }
            Desert => {
                let claim = self.claim;
                let asked_at = self.scribe.state.asked_at(claim).unwrap_or_default();
                self.command(A, Operation::EndDeserted(EndDeserted { claim, asked_at }));
            }
            UntilJustBeforeTheNextDeadline => self.pass(1),
            UntilTheNextDeadline => self.pass(0),
        }
    }

    fn acquire(&mut self, client: Client, waits: bool) {
        self.drawn += 1;
        let name = caller(client);
        let operation = Operation::Acquire(Acquire {
            namespace: default_namespace(),
            resource: acts::resource(0),
            request_id: own_request(client, waits),
            owner: Owner::new(name.as_str()).expect("an owner"),
            lease_id: lease_id(self.drawn),
            lease_ttl_ms: Some(if client == A { 1_000 } else { 2_000 }),
            wait_timeout_ms: if waits { 1_500 } else { 0 },
            max_hold_ms: None,
            fencing: None,
            labels: Labels::default(),
        });
        self.command(client, operation);
    }

    fn abandon(&mut self, client: Client, namespace: NamespaceName, waits: bool) {
        let request_id = own_request(client, waits);
        let abandon = sereno_core::command::Abandon { namespace, family: Family::Lock, request_id };
        self.command(client, Operation::Abandon(abandon));
    }

    fn lease(&self, client: Client) -> LeaseRef {
        let lease_id = self.leases[client as usize].unwrap_or(lease_id(u64::MAX));
        LeaseRef { resource: acts::resource(0), lease_id }
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

    fn command(&mut self, client: Client, operation: Operation) {
        let born_at = self.scribe.state.time();
        let applied = self
            .entry(0, Body::Batch(vec![Command { caller: caller(client), born_at, operation }]));
        if let Ok(Done::Granted(grant)) = &applied.outcomes[0].result {
            self.leases[client as usize] = Some(grant.lease_id);
        }
    }

    fn entry(&mut self, after_ms: u64, body: Body) -> Applied {
        let entry = self.scribe.entry(after_ms, body);
        let hash = entry.seal(self.scribe.state.log_id()).head.hash;
        let expected = self.reference.apply(&entry);
        let applied = self.scribe.push(entry, hash);
        assert_eq!(applied, expected);
        self.scribe.state.check_invariants();
        let outcomes = applied.settled.iter().map(|settled| &settled.outcome);
        for outcome in applied.outcomes.iter().chain(outcomes) {
            match &outcome.result {
                Ok(Done::Granted(grant)) => {
                    (self.token, self.claim) = (grant.holdings[0].1, grant.claim);
                    // A hand-over's owner learns of it too.
                    let of = self.reference.by_object(grant.claim.0).expect("it holds");
                    let is_a = self.reference.requests[of].scope.1 == caller(A);
                    self.leases[usize::from(!is_a)] = Some(grant.lease_id);
                }
                Ok(Done::Waiting(waiting)) => self.claim = waiting.claim,
                _ => {}
            }
        }
        applied
    }
}

fn request_id(text: &str) -> RequestId {
    RequestId::new(text).expect("a request id")
}

fn own_request(client: Client, waits: bool) -> RequestId {
    request_id(&format!("{client:?}-{}", if waits { "waiting" } else { "at-once" }))
}

/// Plays history number `number` of `length` choices; some go on from a snapshot in the middle.
fn play(mut number: usize, length: u32, policy: &Policy) {
    let first = number;
    let mut run = Run::new(policy);
    for at in 0..length {
        run.choose(CHOICES[number % CHOICES.len()]);
        number /= CHOICES.len();
        if at == length / 2 && first.is_multiple_of(61) {
            let bytes = run.scribe.state.to_snapshot();
            run.scribe.state = State::from_snapshot(&bytes).expect("a snapshot");
        }
    }
}

/// All histories of one length; their prefixes are all shorter ones. Names the history that fails.
fn play_all(length: u32, policy: &Policy) {
    let histories = CHOICES.len().pow(length);
    let describe = |mut number: usize| {
        let choice = |_| {
            let choice = CHOICES[number % CHOICES.len()];
            number /= CHOICES.len();
            choice
        };
        (0..length).map(choice).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        for part in 0..2 {
            scope.spawn(move || {
                for number in (part..histories).step_by(2) {
                    let played = std::panic::catch_unwind(|| play(number, length, policy));
                    assert!(played.is_ok(), "history {:?}", describe(number));
                }
            });
        }
    });
}

#[test]
fn every_history_of_five_commands() {
    play_all(LENGTH, &Policy::default());
}

#[test]
fn every_history_of_four_commands_with_a_lock_delay_and_a_max_hold() {
    let policy = Policy { lock_delay_ms: 700, max_hold_ms: Some(1_500), ..Policy::default() };
    play_all(LENGTH - 1, &policy);
}
