//! Regions (DESIGN.md section 11): where this service runs, and which region decides about a namespace. Elsewhere
//! nothing is granted and nothing renewed; what was held can be given back.

use super::State;
use crate::{
    command::{Family, Operation, PutHome},
    event::EventKind,
    names::{Caller, RegionName},
    outcome::{Code, Detail, Done, Outcome, Refusal},
};

impl State {
    pub(super) fn set_region(&mut self, caller: &Caller, region: Option<&RegionName>) -> Outcome {
        self.next_revision();
        if self.region.as_ref() != region {
            self.region = region.cloned();
            self.service_event(caller, EventKind::RegionSet { region: region.cloned() });
        }
        self.decided(None, Ok(Done::RegionSet))
    }

    pub(super) fn put_home(&mut self, caller: &Caller, op: &PutHome) -> Outcome {
        self.next_revision();
        let Some(id) = self.namespace_id(&op.namespace) else {
            return self.decided(None, Err(Refusal::new(Code::NotFound)));
        };
        let namespace = &mut self.namespaces[id as usize];
        let current = namespace.version;
        if current != op.expected_version {
            let refusal = Refusal::new(Code::VersionConflict).with(Detail::Version { current });
            return self.decided(None, Err(refusal));
        }
        namespace.version += 1;
        namespace.home.clone_from(&op.home);
        let version = namespace.version;
        self.event(caller, id, Family::Admin, None, EventKind::HomePut { home: op.home.clone() });
        self.decided(None, Ok(Done::NamespacePut { version }))
    }

    /// The region that has to be asked instead, for anything but giving back.
    pub(super) fn home_elsewhere(&self, operation: &Operation) -> Option<&RegionName> {
        self.region.as_ref()?;
        let gives_back = match operation {
            Operation::Release(_) | Operation::Abandon(_) | Operation::ForceRelease(_) => true,
            Operation::PutNamespace(_) | Operation::PutHome(_) => true,
            Operation::Election(op) => op.gives_back(),
            Operation::Hold(op) => op.gives_back(),
            Operation::Job(op) => op.gives_back(),
            Operation::Quota(op) => op.gives_back(),
            _ => false,
        };
        if gives_back {
            return None;
        }
        let namespace = self.namespace_id(operation.namespace()?)?;
        self.away(self.namespaces[namespace as usize].home.as_ref())
    }

    /// A home, if it is not here.
    pub(super) fn away<'a>(&self, home: Option<&'a RegionName>) -> Option<&'a RegionName> {
        let here = self.region.as_ref()?;
        home.filter(|home| *home != here)
    }
}

/// Another region decides.
pub(super) fn wrong_region(home: &RegionName) -> Refusal {
    Refusal::new(Code::WrongRegion).with(Detail::Home { home: home.clone() })
}
