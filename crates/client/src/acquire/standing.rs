//! How a request that takes long is doing, for those who want to say so.

use crate::{core::Heard, transport::NoAnswer};
use std::sync::Arc;

/// Where somebody stands who asks and has neither been granted nor refused yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// In the queue.
    Waiting {
        /// 1: next.
        place: u64,
    },
    /// The service is not reached, does not answer or takes nothing now. It is asked again.
    Unanswered {
        /// What it looks like.
        why: String,
    },
}

type Tell = Arc<dyn Fn(&Standing) + Send + Sync>;

/// Tells of each change, on the client's thread.
#[derive(Clone, Default)]
pub(crate) struct Teller {
    tell: Option<Tell>,
    last: Option<Standing>,
    /// Attempts in a row that were not answered.
    unanswered: usize,
}

impl Teller {
    pub(crate) fn new(tell: impl Fn(&Standing) + Send + Sync + 'static) -> Self {
        Self { tell: Some(Arc::new(tell)), ..Self::default() }
    }

    /// One of `servers` addresses was asked. That one of several does not answer is nothing to tell.
    pub(super) fn hear(&mut self, heard: &Heard, servers: usize) {
        let standing = standing(heard);
        self.unanswered = match standing {
            Some(Standing::Unanswered { .. }) => self.unanswered.saturating_add(1),
            _ => 0,
        };
        let (Some(tell), Some(now)) = (&self.tell, standing) else { return };
        let is_known = match (&self.last, &now) {
            // Each address may have another excuse.
            (Some(Standing::Unanswered { .. }), Standing::Unanswered { .. }) => true,
            (_, Standing::Unanswered { .. }) => self.unanswered < servers,
            (last, now) => last.as_ref() == Some(now),
        };
        if !is_known {
            tell(&now);
            self.last = Some(now);
        }
    }
}

fn standing(heard: &Heard) -> Option<Standing> {
    #[derive(serde::Deserialize)]
    struct Queued {
        place: u64,
    }
    match heard {
        Heard::Done(answer) if answer.status == 202 => serde_json::from_slice(&answer.body)
            .ok()
            .map(|Queued { place }| Standing::Waiting { place }),
        Heard::Done(_) => None,
        Heard::Problem(problem) if problem.status >= 500 => {
            Some(Standing::Unanswered { why: format!("{}: {}", problem.code, problem.detail) })
        }
        Heard::Problem(_) => None,
        Heard::Nothing(NoAnswer::NotSent(why) | NoAnswer::Silent(why)) => {
            Some(Standing::Unanswered { why: why.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Moment, transport::Answer};
    use std::sync::Mutex;

    fn queued(place: u64) -> Heard {
        let body = format!("{{\"place\":{place},\"more\":1}}").into();
        Heard::Done(Answer { sent: Moment::now(), status: 202, body })
    }

    fn silence(why: &str) -> Heard {
        Heard::Nothing(NoAnswer::Silent(why.into()))
    }

    #[test]
    fn each_change_is_told_once() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let hears = said.clone();
        let mut teller = Teller::new(move |standing| hears.lock().unwrap().push(standing.clone()));
        let silent = ["a", "b", "c"].map(silence);
        let all = silent.into_iter().chain([queued(3), silence("a"), queued(3), queued(1)]);
        all.for_each(|heard| teller.hear(&heard, 2));
        let waiting = |place| Standing::Waiting { place };
        let expected = [Standing::Unanswered { why: "b".into() }, waiting(3), waiting(1)];
        assert_eq!(*said.lock().unwrap(), expected);
    }
}
