//! Where a lease is: a name of its family in its namespace.

use sereno_core::{
    command::Family,
    names::{NamespaceName, ResourceName},
};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) family: Family,
    pub(crate) namespace: NamespaceName,
    pub(crate) resource: ResourceName,
}

impl Place {
    pub(crate) fn new(family: Family, namespace: &NamespaceName, resource: &ResourceName) -> Self {
        Self { family, namespace: namespace.clone(), resource: resource.clone() }
    }
}

/// As a fence key.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.family.as_str(), self.resource)
    }
}
