//! Regions (DESIGN.md section 11): where this service runs, and which region decides about a namespace. Elsewhere
//! nothing is granted and nothing renewed; what was held can be given back.

use super::State;
use crate::{
    command::{Family, Operation, PutHome},
    event::EventKind,
    names::{Caller, RegionName},
    outcome::{Code, Detail, Done, Outcome, Refusal, WaitEnd},
    policy::Policy,
};

impl State {
    pub(super) fn set_region(&mut self, caller: &Caller, region: Option<&RegionName>) -> Outcome {
        self.next_revision();
        if self.region.as_ref() != region {
            self.region = region.cloned();
            self.service_event(caller, EventKind::RegionSet { region: region.cloned() });
            for namespace in 0..self.namespaces.len() {
                if self.away(self.namespaces[namespace].home.as_ref()).is_some() {
                    self.end_waits_of(namespace as u32);
                }
            }
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
        if self.away(op.home.as_ref()).is_some() {
            self.end_waits_of(id);
        }
        Ok(Done::NamespacePut { version })
    }

    /// Where nothing is granted any more nobody waits either: a release would hand over to them.
    fn end_waits_of(&mut self, namespace: u32) {
        let waiting: Vec<_> = self.waiting_claims().collect();
        for id in waiting {
            if self.quotas.namespace_of(id) == Some(namespace) {
                self.end_quota_wait(id, Some(WaitEnd::HomeMoved));
            } else if self.claims.get(&id).is_some_and(|claim| claim.namespace == namespace) {
                self.end_wait(id, Some(WaitEnd::HomeMoved));
            }
        }
    }

    /// The region that has to be asked instead, for anything but giving back. What was answered before the home was
    /// moved is answered so again (S6).
    pub(super) fn home_elsewhere(
        &self,
        caller: &Caller,
        operation: &Operation,
    ) -> Option<&RegionName> {
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
        let home = self.away(self.namespaces[namespace as usize].home.as_ref())?;
        (!self.remembers(caller, operation)).then_some(home)
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
