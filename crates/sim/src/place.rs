//! Where a lock is: a resource in its namespace.

use sereno_core::names::{NamespaceName, ResourceName};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) namespace: NamespaceName,
    pub(crate) resource: ResourceName,
}

impl Place {
    pub(crate) fn new(namespace: &NamespaceName, resource: &ResourceName) -> Self {
        Self { namespace: namespace.clone(), resource: resource.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.resource)
    }
}
