//! Fields of requests as the core's types; an error names the field and the rule.

use super::{Door, problem::Refused};
use crate::{time, wire};
use sereno_api as api;
use sereno_core::{
    command::LeaseRef,
    ids::{LeaseId, Slot, Token},
    limits,
    names::{Labels, NamespaceName, Owner, Reason, RequestId, ResourceName, Value},
    policy::Fencing,
};

impl Door {
    pub(super) fn namespace(&self, text: &str) -> Result<NamespaceName, Refused> {
        if text == NamespaceName::DEFAULT {
            return Ok(self.names.default.clone());
        }
        NamespaceName::new(text).map_err(|rule| Refused::invalid("namespace", rule))
    }
}

pub(super) fn resource(field: &str, text: &str) -> Result<ResourceName, Refused> {
    ResourceName::new(text).map_err(|rule| Refused::invalid(field, rule))
}

pub(super) fn request_id(text: &str) -> Result<RequestId, Refused> {
    RequestId::new(text).map_err(|rule| Refused::invalid("requestId", rule))
}

pub(super) fn owner(text: &str) -> Result<Owner, Refused> {
    Owner::new(text).map_err(|rule| Refused::invalid("owner", rule))
}

/// An owner by another name: a candidate, a guard.
pub(super) fn person(field: &str, text: &str) -> Result<Owner, Refused> {
    Owner::new(text).map_err(|rule| Refused::invalid(field, rule))
}

pub(super) fn value(text: &str) -> Result<Value, Refused> {
    Value::new(text).map_err(|rule| Refused::invalid("value", rule))
}

/// A UTC instant as RFC 3339, with at most milliseconds.
pub(super) fn slot(text: &str) -> Result<Slot, Refused> {
    let rule = "must be a UTC instant like 2026-12-01T02:00:00Z, with at most milliseconds";
    time::parse_rfc3339(text).map(Slot).ok_or_else(|| Refused::invalid("slot", rule))
}

pub(super) fn reason(text: &str) -> Result<Reason, Refused> {
    Reason::new(text).map_err(|rule| Refused::invalid("reason", rule))
}

pub(super) fn labels(labels: api::Labels) -> Result<Labels, Refused> {
    Labels::new(labels.0).map_err(|rule| Refused::invalid("labels", rule))
}

pub(super) fn token(field: &str, number: u64) -> Result<Token, Refused> {
    if number > limits::TOKEN_MAX {
        return Err(Refused::invalid(field, format!("must be below 2^53, is {number}")));
    }
    Ok(Token(number))
}

/// A lease id is a secret: the error does not repeat it.
pub(super) fn lease_id(field: &str, text: &str) -> Result<LeaseId, Refused> {
    let rule = "must be the leaseId of a grant: 32 lower-case hexadecimal digits";
    LeaseId::from_hex(text).ok_or_else(|| Refused::invalid(field, rule))
}

pub(super) fn lease(resource_text: &str, lease_id_text: &str) -> Result<LeaseRef, Refused> {
    Ok(LeaseRef {
        resource: resource("resource", resource_text)?,
        lease_id: lease_id("leaseId", lease_id_text)?,
    })
}

pub(super) fn fencing(fencing: Option<api::Fencing>) -> Option<Fencing> {
    fencing.map(wire::to_fencing)
}

pub(super) fn millis(duration: Option<api::Millis>) -> Option<u64> {
    duration.map(|millis| millis.0)
}
