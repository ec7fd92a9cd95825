//! An acquire-all grants all that it asks for, in the order given and under one lease, or nothing.

use sereno_core::{
    command::AcquireAll,
    event::{Event, EventKind},
    ids::Token,
    names::ResourceName,
    outcome::{Code, Detail, Done, Outcome},
};

/// `events`: those of the outcome's revision.
pub(super) fn outcome<'a>(
    op: &AcquireAll,
    outcome: &Outcome,
    events: impl Iterator<Item = &'a Event>,
) {
    let grant = |event: &'a Event| match event.kind {
        EventKind::Granted { token, waited_ms: None } => Some((event.resource.clone()?, token)),
        _ => None,
    };
    let granted: Vec<(ResourceName, Token)> = events.filter_map(grant).collect();
    let is_fresh = outcome.replayed.is_none();
    match &outcome.result {
        Ok(Done::Granted(grant)) => {
            let names: Vec<_> = grant.holdings.iter().map(|(name, _)| name).collect();
            assert!(
                names.iter().copied().eq(&op.resources),
                "acquire-all grants all that it asks for: {names:?} of {:?}",
                op.resources
            );
            assert!(
                !is_fresh || granted == grant.holdings,
                "acquire-all answers what it grants: {granted:?}, {grant:?}"
            );
        }
        Err(refusal) => {
            assert!(granted.is_empty(), "acquire-all grants nothing where it refuses: {granted:?}");
            let names_some = matches!(&refusal.detail, Detail::Locked(some) if !some.is_empty());
            assert!(
                refusal.code != Code::Locked || !is_fresh || names_some,
                "acquire-all names what is in the way"
            );
        }
        Ok(other) => panic!("acquire-all does not wait: {other:?}"),
    }
}
