//! The intake: calls that wait for the next entry. Bounded, fair over (namespace, caller); renewals nearest to
//! expiry first, then releases and abandons, then the node's own, then the rest in turn.

use crate::{clock::Mono, node::CallId};
use sereno_core::{
    command::{Command, ElectionCommand, HoldCommand, JobCommand, Operation, QuotaCommand},
    ids::ClusterTime,
    limits,
    names::{Caller, NamespaceName},
};
use std::collections::{BTreeMap, VecDeque};

/// One queued command.
#[derive(Debug)]
pub(crate) struct Pending {
    /// `None`: the node's own.
    pub(crate) call: Option<CallId>,
    pub(crate) command: Command,
    pub(crate) bytes: usize,
}

/// Whose turn it is.
type Tenant = (Option<NamespaceName>, Caller);

#[derive(Debug, Default)]
pub(crate) struct Intake {
    /// The node's own commands: few, and never refused.
    own: VecDeque<Pending>,
    /// By the deadline of the lease, then as arrived.
    renewals: BTreeMap<(ClusterTime, u64), Pending>,
    /// Releases and abandons: they free something, and are never dropped.
    endings: VecDeque<Pending>,
    ordinary: BTreeMap<Tenant, VecDeque<Pending>>,
    /// Tenants with something queued, in turn.
    turns: VecDeque<Tenant>,
    ordinary_len: usize,
    arrivals: u64,
}

/// The intake has no room for a call of this kind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Intake {
    pub(crate) fn len(&self) -> usize {
        self.own.len() + self.renewals.len() + self.endings.len() + self.ordinary_len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues one of the node's own commands.
    pub(crate) fn push_own(&mut self, pending: Pending) {
        self.own.push_back(pending);
    }

    /// Queues a call. `lease_deadline` orders renewals.
    ///
    /// # Errors
    /// [`Full`]: each kind has its own bound.
    pub(crate) fn push(
        &mut self,
        pending: Pending,
        lease_deadline: ClusterTime,
    ) -> Result<(), Full> {
        self.arrivals += 1;
        let kind = kind(&pending.command.operation);
        if self.len_of(kind) >= kind.max() {
            return Err(Full);
        }
        match kind {
            Kind::Renewal => {
                self.renewals.insert((lease_deadline, self.arrivals), pending);
            }
            Kind::Ending => self.endings.push_back(pending),
            Kind::Ordinary => self.push_ordinary(pending),
        }
        Ok(())
    }

    fn len_of(&self, kind: Kind) -> usize {
        match kind {
            Kind::Renewal => self.renewals.len(),
            Kind::Ending => self.endings.len(),
            Kind::Ordinary => self.ordinary_len,
        }
    }

    /// Puts what is never dropped back to the front: the append that carried it has failed for certain.
    pub(crate) fn put_back(&mut self, kept: Vec<Pending>) {
        for pending in kept.into_iter().rev() {
            match pending.call {
                None if !is_ending(&pending.command.operation) => self.own.push_front(pending),
                _ => self.endings.push_front(pending),
            }
        }
    }

    fn push_ordinary(&mut self, pending: Pending) {
        let namespace = pending.command.operation.namespace().cloned();
        let tenant = (namespace, pending.command.caller.clone());
        let queue = self.ordinary.entry(tenant.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(tenant);
        }
        queue.push_back(pending);
        self.ordinary_len += 1;
    }

    fn pop(&mut self) -> Option<Pending> {
        if let Some((_, renewal)) = self.renewals.pop_first() {
            return Some(renewal);
        }
        let first = self.endings.pop_front().or_else(|| self.own.pop_front());
        first.or_else(|| self.pop_ordinary())
    }

    fn pop_ordinary(&mut self) -> Option<Pending> {
        let tenant = self.turns.pop_front()?;
        let queue = self.ordinary.get_mut(&tenant).expect("a tenant with a turn has a queue");
        let pending = queue.pop_front().expect("a tenant with a turn has something queued");
        self.ordinary_len -= 1;
        if queue.is_empty() {
            self.ordinary.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        Some(pending)
    }

    /// Takes the next batch. `keep` says whether a call is still worth it; releases and abandons are, always.
    pub(crate) fn take_batch(&mut self, mut keep: impl FnMut(&Pending) -> bool) -> Vec<Pending> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < limits::BATCH_COMMANDS_MAX {
            // The largest command fits into what this leaves.
            if bytes + limits::COMMAND_BYTES_MAX > limits::BATCH_BYTES_MAX {
                break;
            }
            let Some(pending) = self.pop() else { break };
            if is_kept(&pending) || keep(&pending) {
                bytes += pending.bytes;
                batch.push(pending);
            }
        }
        batch
    }

    /// Lets go of queued calls to which nobody listens any more, but for those that are never dropped: while the log is
    /// away their repeats would fill it up.
    pub(crate) fn forget_unheard(&mut self, is_open: impl Fn(CallId) -> bool) {
        let keep = |pending: &Pending| is_kept(pending) || pending.call.is_some_and(&is_open);
        self.renewals.retain(|_, pending| keep(pending));
        self.ordinary.retain(|_, queue| {
            queue.retain(&keep);
            !queue.is_empty()
        });
        self.turns.retain(|tenant| self.ordinary.contains_key(tenant));
        self.ordinary_len = self.ordinary.values().map(VecDeque::len).sum();
    }

    /// Everything that is queued, for a node that stops.
    pub(crate) fn drain(&mut self) -> Vec<Pending> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}

/// What a call is worth under overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// It keeps a lease, or turns what is reserved into use.
    Renewal,
    /// It ends something, which may not stay.
    Ending,
    /// It asks for something new.
    Ordinary,
}

impl Kind {
    /// So many of it may be under way.
    pub(crate) fn max(self) -> usize {
        match self {
            Self::Renewal => limits::INTAKE_RENEWALS_MAX,
            Self::Ending => limits::INTAKE_ENDINGS_MAX,
            Self::Ordinary => limits::INTAKE_ORDINARY_MAX,
        }
    }
}

/// Of which kind an operation is.
pub(crate) fn kind(operation: &Operation) -> Kind {
    match operation {
        Operation::Renew(_)
        | Operation::RenewMany(_)
        | Operation::Election(ElectionCommand::Renew(_))
        | Operation::Hold(HoldCommand::Renew(_) | HoldCommand::Begin(_))
        | Operation::Job(JobCommand::RenewRun(_))
        | Operation::Quota(
            QuotaCommand::Extend(_) | QuotaCommand::Begin(_) | QuotaCommand::Commit(_),
        ) => Kind::Renewal,
        Operation::Release(_)
        | Operation::Abandon(_)
        | Operation::Election(ElectionCommand::Resign(_) | ElectionCommand::Handoff(_))
        | Operation::Hold(HoldCommand::Release(_))
        | Operation::Job(JobCommand::FinishRun(_))
        | Operation::Quota(
            QuotaCommand::Release(_)
            | QuotaCommand::Return(_)
            | QuotaCommand::Settle(_)
            | QuotaCommand::ShareReturn(_),
        ) => Kind::Ending,
        _ => Kind::Ordinary,
    }
}

/// Releases and abandons: what they end may not stay.
pub(crate) fn is_ending(operation: &Operation) -> bool {
    kind(operation) == Kind::Ending
}

/// What keeps a lease.
pub(crate) fn is_renewal(operation: &Operation) -> bool {
    kind(operation) == Kind::Renewal
}

/// Whether it is appended whoever listens: releases, abandons, and the node's own.
pub(crate) fn is_kept(pending: &Pending) -> bool {
    pending.call.is_none() || is_ending(&pending.command.operation)
}

/// Whether the namespace's request rate applies: renewals, releases and abandons only keep or free what was
/// granted within the rate, and a runaway tenant must not lock the operator out.
pub(crate) fn is_rated(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Acquire(_)
            | Operation::AcquireAll(_)
            | Operation::Election(ElectionCommand::Campaign(_))
            | Operation::Hold(HoldCommand::Hold(_))
            | Operation::Job(JobCommand::ClaimRun(_))
            | Operation::Quota(QuotaCommand::Reserve(_))
    )
}

/// Whether its answer may be held back until its turn comes.
pub(crate) fn may_wait(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Acquire(_)
            | Operation::Election(ElectionCommand::Campaign(_))
            | Operation::Quota(QuotaCommand::Reserve(_))
    )
}

/// Request rates of namespaces: each allows its number per second, and as much at once after a pause.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    buckets: BTreeMap<NamespaceName, Bucket>,
}

/// Filled continuously; in billionths of a request, so that small rates fill without rounding.
#[derive(Debug)]
struct Bucket {
    nano_requests: u64,
    filled_at: Mono,
}

impl Rates {
    /// Counts one request.
    ///
    /// # Errors
    /// Milliseconds until there is room for one more.
    pub(crate) fn take(
        &mut self,
        namespace: &NamespaceName,
        per_second: u64,
        now: Mono,
    ) -> Result<(), u64> {
        const ONE: u64 = 1_000_000_000;
        let full = per_second * ONE;
        let bucket = self
            .buckets
            .entry(namespace.clone())
            .or_insert_with(|| Bucket { nano_requests: full, filled_at: now });
        // A second fills it: longer pauses count as one, which also keeps the product small.
        let elapsed_ns = now.since_ns(bucket.filled_at).min(ONE);
        bucket.filled_at = now;
        bucket.nano_requests = (bucket.nano_requests + elapsed_ns * per_second).min(full);
        if bucket.nano_requests >= ONE {
            bucket.nano_requests -= ONE;
            return Ok(());
        }
        Err((ONE - bucket.nano_requests).div_ceil(per_second).div_ceil(1_000_000))
    }
}
