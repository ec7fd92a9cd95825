//! Several locks, taken one after the other in sorted order, so that no two callers can block each other.

use crate::{
    acquire::Acquire,
    clock::Moment,
    error::{Error, NotHeld, RunError},
    guard::{self, Guard},
    lease::Loss,
    owed::Release,
};
use std::{future::Future, pin::Pin, task::Poll, time::Duration};

/// Several guards as one: as good as the worst of them, released in reverse order.
#[must_use = "dropping it releases the locks"]
#[derive(Debug)]
pub struct ManyGuard {
    guards: Vec<Guard>,
}

/// Each resource once, in sorted order.
pub(crate) fn in_order(resources: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    let mut resources: Vec<String> = resources.into_iter().map(Into::into).collect();
    resources.sort();
    resources.dedup();
    resources
}

impl ManyGuard {
    /// `template` says everything but the resource; its time-out is for all together.
    pub(crate) async fn acquire(template: Acquire, resources: Vec<String>) -> Result<Self, Error> {
        let terms = template.terms();
        let start = Moment::now();
        let mut many = Self { guards: Vec::with_capacity(resources.len()) };
        for resource in resources {
            let gone = Moment::now().since(start);
            let mut next = template.for_resource(&resource).wait(terms.wait.saturating_sub(gone));
            if let Some(timeout) = terms.timeout {
                next = next.timeout(timeout.saturating_sub(gone));
            }
            match next.acquire().await {
                Ok(guard) => many.guards.push(guard),
                // Dropping what there is releases it, in reverse order.
                Err(error) => return Err(error),
            }
        }
        Ok(many)
    }

    /// The guards, in the order of their names.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Whether new work may begin: every one of them is held.
    ///
    /// # Errors
    /// The worst that [`Guard::check`] says of any of them.
    pub fn check(&self) -> Result<(), NotHeld> {
        let mut at_risk = Ok(());
        for guard in &self.guards {
            match guard.check() {
                Ok(()) => {}
                Err(NotHeld::AtRisk) => at_risk = Err(NotHeld::AtRisk),
                Err(lost @ NotHeld::Lost(_)) => return Err(lost),
            }
        }
        at_risk
    }

    /// How long all of them are certain without another renewal.
    pub fn remaining(&self) -> Duration {
        self.guards.iter().map(Guard::remaining).min().unwrap_or_default()
    }

    /// Resolves when the first of them is lost.
    pub fn lost(&self) -> impl Future<Output = Loss> + Send + 'static {
        let mut all: Vec<Pin<Box<dyn Future<Output = Loss> + Send>>> = Vec::new();
        for guard in &self.guards {
            all.push(Box::pin(guard.lost()));
        }
        std::future::poll_fn(move |context| {
            for lost in &mut all {
                if let Poll::Ready(loss) = lost.as_mut().poll(context) {
                    return Poll::Ready(loss);
                }
            }
            Poll::Pending
        })
    }

    /// As [`Guard::run`], for all of them.
    ///
    /// # Errors
    /// As [`Guard::run`].
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, RunError<F::Output>> {
        self.check().map_err(RunError::NotBegun)?;
        let loss_now = || match self.check() {
            Err(NotHeld::Lost(loss)) => Some(loss),
            Ok(()) | Err(NotHeld::AtRisk) => None,
        };
        guard::run(self.lost(), loss_now, work).await
    }

    /// Releases all in reverse order. The results are in the order of [`Self::guards`].
    pub async fn release(mut self) -> Vec<Result<Release, Error>> {
        let mut results = Vec::with_capacity(self.guards.len());
        while let Some(guard) = self.guards.pop() {
            results.push(guard.release().await);
        }
        results.reverse();
        results
    }
}

impl Drop for ManyGuard {
    fn drop(&mut self) {
        while let Some(guard) = self.guards.pop() {
            drop(guard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_names_and_each_comes_once() {
        assert_eq!(in_order(["b", "a", "c", "a"]), ["a", "b", "c"]);
    }
}
