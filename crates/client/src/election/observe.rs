//! Observing an election: its record, and each change of it, over lost connections and nodes.

use crate::{
    error::Error,
    follow::{Following, Story},
    plain::Query,
    sse::SentEvent,
    transport::escape,
};
use sereno_api::Election;

/// One thing that an observation says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed {
    /// The record: first as it is, then after each change. A vacant election has a record too: that is how the loss
    /// of a leader is told, also of one whose successor leads already. Resumed, the changes since come first.
    Record {
        /// Who leads, since when, with what term and value; or that nobody does.
        record: Box<Election>,
        /// For [`crate::Campaign::observe_from`], to go on after it.
        cursor: Option<String>,
        /// Changes before this one may be missing: leaders and values that came and went faster than they could be
        /// told, or all that a lost connection could not be resumed for.
        missed: bool,
    },
    /// No node tells anything at present: what was told last may be out of date. Said once; the next record ends it.
    Silent {
        /// What it looks like.
        why: String,
    },
}

/// A running observation; ends when dropped.
pub struct Observation {
    following: Following<Observed>,
}

impl Observation {
    pub(super) fn new(following: Following<Observed>) -> Self {
        Self { following }
    }

    /// The next item; waits for it as long as it takes. Lost connections are made anew, at another node where there is
    /// one, and resumed.
    ///
    /// # Errors
    /// When the service refuses the observation; it is over then.
    pub async fn next(&mut self) -> Result<Observed, Error> {
        self.following.next().await
    }
}

pub(super) struct Observer {
    path: String,
    namespace: String,
    from: Option<String>,
    has_told: bool,
    has_missed: bool,
}

impl Observer {
    pub(super) fn new(namespace: String, election: String, from: Option<String>) -> Self {
        let path = format!("/v1/elections/{}", escape(&election, "/:@+"));
        Self { path, namespace, from, has_told: false, has_missed: false }
    }
}

impl Story for Observer {
    type Item = Observed;

    fn path(&self) -> String {
        let query = Query::default()
            .with("namespace", Some(&self.namespace))
            .with("observe", Some(true))
            .with("from", self.from.as_deref());
        format!("{}{}", self.path, query.0)
    }

    fn take(&mut self, sent: SentEvent) -> Option<Observed> {
        // A node that is gone on with may begin with what was told last.
        let is_known =
            self.has_told && !self.has_missed && sent.id.is_some() && sent.id == self.from;
        if sent.id.is_some() {
            self.from.clone_from(&sent.id);
        }
        let record = serde_json::from_str::<Election>(&sent.data).ok()?;
        if is_known && !record.missed {
            return None;
        }
        self.has_told = true;
        let missed = std::mem::take(&mut self.has_missed) || record.missed;
        Some(Observed::Record { record: Box::new(record), cursor: sent.id, missed })
    }

    /// Begun anew it tells the present record first, so there is nothing to look up.
    fn resync(&mut self, _: String) -> Option<Observed> {
        self.from = None;
        self.has_missed = true;
        None
    }

    fn silent(&mut self, why: &str) -> Option<Observed> {
        // The next record ends the silence, also one that was told before it.
        self.has_told = false;
        Some(Observed::Silent { why: why.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(id: &str, state: &str) -> SentEvent {
        let data = format!(
            r#"{{"state":"{state}","election":"e","fenceKey":"n/election/e","waiters":0,"queue":[],
                "revision":1,"clusterTimeMs":1,"ageMs":0}}"#
        );
        SentEvent { event: "leader".into(), id: Some(id.into()), data }
    }

    fn observer() -> Observer {
        Observer::new("n".into(), "a/b c".into(), None)
    }

    #[test]
    fn it_goes_on_where_it_was() {
        let mut observer = observer();
        assert_eq!(observer.path(), "/v1/elections/a/b%20c?namespace=n&observe=true");
        assert!(observer.take(sent("c-1", "vacant")).is_some());
        let heartbeat = SentEvent { id: Some("c-4".into()), ..SentEvent::default() };
        assert_eq!(observer.take(heartbeat), None);
        assert!(observer.path().ends_with("&from=c-4"));
        assert_eq!(observer.take(sent("c-4", "vacant")), None, "told already");
        assert!(observer.take(sent("c-5", "vacant")).is_some());
    }

    #[test]
    fn what_the_service_left_out_is_said_and_a_silence_ends() {
        let mut observer = observer();
        assert!(observer.take(sent("c-1", "vacant")).is_some());
        let mut folded = sent("c-7", "leading");
        folded.data = folded.data.replacen('{', r#"{"missed":true,"#, 1);
        assert!(matches!(observer.take(folded), Some(Observed::Record { missed: true, .. })));
        let next = observer.take(sent("c-8", "vacant"));
        assert!(matches!(next, Some(Observed::Record { missed: false, .. })));
        assert!(observer.silent("no answer").is_some());
        assert!(observer.take(sent("c-8", "vacant")).is_some(), "ends the silence");
    }

    #[test]
    fn what_cannot_be_resumed_is_begun_anew_and_says_so() {
        let mut observer = observer();
        assert!(observer.take(sent("c-1", "vacant")).is_some());
        assert_eq!(observer.resync("d-9".into()), None);
        assert!(!observer.path().contains("from="));
        let missed = |item| matches!(item, Some(Observed::Record { missed: true, .. }));
        assert!(missed(observer.take(sent("d-9", "leading"))));
        assert!(!missed(observer.take(sent("d-10", "vacant"))));
    }
}
