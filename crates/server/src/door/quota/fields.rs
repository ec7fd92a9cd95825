//! Fields of requests about quotas as the core's types.

use crate::door::{Door, fields, problem::Refused};
use sereno_api::{LateCommit, OnExpiry, QuotaItem};
use sereno_core::{
    command::{self, Item, NodeRef, ReservationRef},
    ids::{ObjectId, ReservationId},
    limits,
    names::{QuotaName, QuotaPath, RegionName},
};

pub(super) fn quota(text: &str) -> Result<QuotaName, Refused> {
    QuotaName::new(text).map_err(|rule| Refused::invalid("quota", rule))
}

pub(super) fn path(text: &str) -> Result<QuotaPath, Refused> {
    QuotaPath::new(text).map_err(|rule| Refused::invalid("path", rule))
}

pub(super) fn node(quota_text: &str, path_text: &str) -> Result<NodeRef, Refused> {
    Ok(NodeRef { quota: quota(quota_text)?, path: path(path_text)? })
}

pub(super) fn region(field: &str, text: &str) -> Result<RegionName, Refused> {
    RegionName::new(text).map_err(|rule| Refused::invalid(field, rule))
}

/// 1 to 16 items, each of at least so much. The log's own rules; here the item is named.
pub(super) fn items(items: &[QuotaItem], least: u64) -> Result<Vec<Item>, Refused> {
    let (count, max) = (items.len(), limits::QUOTA_ITEMS_MAX);
    if count == 0 || count > max {
        return Err(Refused::invalid("items", format!("must be 1 to {max}, are {count}")));
    }
    items.iter().enumerate().map(|(index, one)| item(index, one, least)).collect()
}

fn item(index: usize, one: &QuotaItem, least: u64) -> Result<Item, Refused> {
    let field = |name: &str| format!("items[{index}].{name}");
    let quota =
        QuotaName::new(&one.quota).map_err(|rule| Refused::invalid(&field("quota"), rule))?;
    let path = QuotaPath::new(&one.path).map_err(|rule| Refused::invalid(&field("path"), rule))?;
    let (amount, max) = (one.amount, limits::QUOTA_AMOUNT_MAX);
    if !(least..=max).contains(&amount) {
        let rule = format!("must be {least} to {max}, is {amount}");
        return Err(Refused::invalid(&field("amount"), rule));
    }
    Ok(Item { node: NodeRef { quota, path }, amount })
}

pub(super) fn id(field: &str, text: &str) -> Result<ReservationId, Refused> {
    let rule = "must be 32 lower-case hexadecimal digits";
    ReservationId::from_hex(text).ok_or_else(|| Refused::invalid(field, rule))
}

/// 128 bits from the system's secure generator, as carried on by the thread's.
pub(super) fn draw_id() -> ReservationId {
    ReservationId(rand::random())
}

pub(super) fn commit_id(number: u64) -> Result<ObjectId, Refused> {
    fields::token("commitId", number).map(|token| ObjectId(token.0))
}

impl Door {
    pub(super) fn reservation(
        &self,
        namespace: &str,
        reservation_id: &str,
        fence: Option<u64>,
    ) -> Result<ReservationRef, Refused> {
        Ok(ReservationRef {
            namespace: self.namespace(namespace)?,
            reservation: id("reservationId", reservation_id)?,
            fence: fence.map(|fence| fields::token("fence", fence)).transpose()?,
        })
    }
}

pub(super) fn on_expiry(word: OnExpiry) -> Result<command::OnExpiry, Refused> {
    match word {
        OnExpiry::Release => Ok(command::OnExpiry::Release),
        OnExpiry::Commit => Ok(command::OnExpiry::Commit),
        OnExpiry::Quarantine => Ok(command::OnExpiry::Quarantine),
        _ => Err(Refused::invalid("onExpiry", "must be release, commit or quarantine")),
    }
}

pub(super) fn late(word: Option<LateCommit>) -> Result<command::Late, Refused> {
    match word {
        None | Some(LateCommit::Reject) => Ok(command::Late::Reject),
        Some(LateCommit::Readmit) => Ok(command::Late::Readmit),
        _ => Err(Refused::invalid("late", "must be reject or readmit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(result: Result<impl Sized, Refused>) -> Option<String> {
        result.err().and_then(|refused| refused.0.field)
    }

    #[test]
    fn the_item_that_breaks_a_rule_is_named() {
        let item = |quota: &str, path: &str, amount| {
            let (quota, path) = (quota.to_owned(), path.to_owned());
            QuotaItem { quota, path, amount }
        };
        let good = || item("gpu", "acme/vision", 1);
        let told = |wrong: QuotaItem, least| field(items(&[good(), wrong], least));
        assert_eq!(told(good(), 1), None);
        assert_eq!(told(item("", "", 1), 1).as_deref(), Some("items[1].quota"));
        assert_eq!(told(item("gpu/x", "", 1), 1).as_deref(), Some("items[1].quota"));
        assert_eq!(told(item("gpu", "a//b", 1), 1).as_deref(), Some("items[1].path"));
        assert_eq!(told(item("gpu", "a/../b", 1), 1).as_deref(), Some("items[1].path"));
        assert_eq!(told(item("gpu", "a", 0), 1).as_deref(), Some("items[1].amount"));
        assert_eq!(told(item("gpu", "a", 0), 0), None);
        assert_eq!(told(item("gpu", "a", 1 << 52), 0).as_deref(), Some("items[1].amount"));
        assert_eq!(field(items(&[], 1)).as_deref(), Some("items"));
        assert_eq!(field(items(&vec![good(); 17], 1)).as_deref(), Some("items"));
    }

    #[test]
    fn words_of_no_version_are_refused() {
        assert_eq!(field(on_expiry(OnExpiry::Unrecognised)).as_deref(), Some("onExpiry"));
        assert_eq!(field(late(Some(LateCommit::Unrecognised))).as_deref(), Some("late"));
        assert_eq!(field(id("shareId", "AB")).as_deref(), Some("shareId"));
        assert_eq!(field(commit_id(1 << 53)).as_deref(), Some("commitId"));
    }
}
