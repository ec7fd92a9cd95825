//! Regions (DESIGN.md section 11): where this service runs, and which region decides about a namespace. Elsewhere
//! nothing is granted and nothing renewed; what was held can be given back.

use super::State;
use crate::{
    command::{Family, Operation, PutHome},
    event::EventKind,
    names::{Caller, RegionName},
    outcome::{Code, Detail, Done, Outcome, Refusal},
    policy::Policy,
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
        let result = self.try_put_home(caller, op);
        self.decided(None, result)
    }

    fn try_put_home(&mut self, caller: &Caller, op: &PutHome) -> Result<Done, Refusal> {
        let id = match self.namespace_id(&op.namespace) {
            Some(id) => {
                let namespace = &mut self.namespaces[id as usize];
                let current = namespace.version;
                if current != op.expected_version {
                    let detail = Detail::Version { current };
                    return Err(Refusal::new(Code::VersionConflict).with(detail));
                }
                namespace.version += 1;
                id
            }
            // So it has its home before anybody can ask for anything in it.
            None if op.expected_version == 0 => {
                self.create_namespace(&op.namespace, &Policy::default())?
            }
            None => return Err(Refusal::new(Code::NotFound)),
        };
        let namespace = &mut self.namespaces[id as usize];
        namespace.home.clone_from(&op.home);
        let version = namespace.version;
        self.event(caller, id, Family::Admin, None, EventKind::HomePut { home: op.home.clone() });
        Ok(Done::NamespacePut { version })
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
