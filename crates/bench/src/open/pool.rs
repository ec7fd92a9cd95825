//! Connections and the calls that wait for one.

use super::{
    book::Mark,
    calls::{Call, Job, perform},
    line::Line,
    names::Name,
    settings::duration,
    world::World,
};
use crate::{
    stats::{Operation, Verdict},
    target::LeaseId,
};
use std::{
    cell::{RefCell, RefMut},
    rc::Rc,
    time::{Duration, Instant},
};

/// A connection idle for this long is looked at before it is used: the server may have closed it.
const LOOK_AFTER: Duration = Duration::from_secs(3);

/// The world as all calls of a load share it, on one thread.
#[derive(Clone, Debug)]
pub(super) struct Shared(Rc<RefCell<World>>);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Rc::new(RefCell::new(world)))
    }

    /// Not to be kept over an `.await`.
    pub(super) fn world(&self) -> RefMut<'_, World> {
        self.0.borrow_mut()
    }

    /// Longest a call without a wait may take.
    pub(super) fn limit(&self) -> Duration {
        duration(self.world().settings.timeout)
    }

    /// Sends a call on a free connection, or a new one, or when one becomes free.
    pub(super) fn submit(&self, call: Call) {
        let mut world = self.world();
        world.book.offer(call.mark);
        let line = world.idle_line();
        if line.is_none() && world.connections >= world.settings.connections {
            world.queue.push_back(call);
            return;
        }
        if line.is_none() {
            world.connections += 1;
        }
        world.running += 1;
        drop(world);
        let shared = self.clone();
        tokio::task::spawn_local(async move { shared.carry_on(line, call).await });
    }

    /// Takes back a request: due now, for nobody planned it.
    pub(super) fn abandon(&self, name: Name, request_id: LeaseId, phase: usize) {
        let mark = Mark { operation: Operation::Abandon, phase, due: Instant::now() };
        self.submit(Call { job: Job::Abandon { name, request_id }, mark });
    }

    /// A call, and then those that wait for a connection.
    async fn carry_on(self, mut line: Option<Line>, mut call: Call) {
        loop {
            line = perform(&self, line, call).await;
            let mut world = self.world();
            match world.next_queued(Instant::now()) {
                Some(next) => call = next,
                None => {
                    world.running -= 1;
                    match line {
                        Some(line) => world.idle.push((line, Instant::now())),
                        None => world.connections -= 1,
                    }
                    return;
                }
            }
        }
    }
}

impl World {
    /// The connection that was used last, for it is the least likely to be closed.
    fn idle_line(&mut self) -> Option<Line> {
        while let Some((line, since)) = self.idle.pop() {
            if since.elapsed() < LOOK_AFTER || line.is_usable() {
                return Some(line);
            }
            self.connections -= 1;
        }
        None
    }

    /// The next call that is still worth sending; the others are dropped. An abandon always is.
    fn next_queued(&mut self, now: Instant) -> Option<Call> {
        loop {
            let call = self.queue.pop_front()?;
            let late = now.saturating_duration_since(call.mark.due);
            if late <= duration(self.settings.drop_after) || matches!(call.job, Job::Abandon { .. })
            {
                return Some(call);
            }
            self.drop_call(call, now);
        }
    }

    fn drop_call(&mut self, call: Call, now: Instant) {
        self.undo(call.job);
        self.book.count(call.mark, Verdict::Dropped, now);
    }

    /// Drops all calls that still wait for a connection: the load is over.
    pub(super) fn drop_queued(&mut self) {
        let now = Instant::now();
        while let Some(call) = self.queue.pop_front() {
            self.drop_call(call, now);
        }
    }

    /// A call was never sent: all is as if it had not been due.
    pub(super) fn undo(&mut self, job: Job) {
        match job {
            Job::Acquire { name } | Job::Wait { name, .. } => self.names.unclaim(name),
            Job::Release { holding } => self.holdings.add(holding.name, holding.lease),
            Job::Renew { leases } => self.not_renewed(&leases),
            Job::Abandon { name, .. } => self.bury(name, Instant::now()),
        }
    }
}
