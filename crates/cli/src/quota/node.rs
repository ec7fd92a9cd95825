//! How nodes of quotas, and amounts at them, are written on the command line.

use crate::values;
use clap::ValueEnum;
use sereno_client::api::{OnExpiry, QuotaItem};
use sereno_core::{
    limits,
    names::{QuotaName, QuotaPath},
};
use std::fmt;

/// `gpu/acme/vision`: a quota, and where in its tree. `gpu` is its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub quota: String,
    /// Empty: the root.
    pub path: String,
}

/// `gpu/acme/vision=4`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub node: Node,
    pub amount: u64,
}

impl Node {
    pub(super) fn of(quota: &str, path: &str) -> Self {
        Self { quota: quota.into(), path: path.into() }
    }

    /// The layers from the root to this node.
    pub(super) fn layers(&self) -> Vec<Self> {
        let path = &self.path;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let below = ends.filter(|end| *end > 0).map(|end| Self::of(&self.quota, &path[..end]));
        std::iter::once(Self::of(&self.quota, "")).chain(below).collect()
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.quota)?;
        match self.path.is_empty() {
            true => Ok(()),
            false => write!(f, "/{}", self.path),
        }
    }
}

impl Amount {
    /// As the client takes it.
    pub(super) fn triple(self) -> (String, String, u64) {
        (self.node.quota, self.node.path, self.amount)
    }
}

/// A node.
pub(super) fn node(text: &str) -> Result<Node, String> {
    let (quota, path) = text.split_once('/').unwrap_or((text, ""));
    if path.is_empty() && text.ends_with('/') {
        return Err("ends in a slash: the root is the quota's name alone".into());
    }
    QuotaName::new(quota).map_err(|rule| format!("the quota {rule}"))?;
    QuotaPath::new(path).map_err(|rule| format!("the path {rule}"))?;
    Ok(Node::of(quota, path))
}

/// What is asked for at a node: at least 1.
pub(super) fn amount(text: &str) -> Result<Amount, String> {
    amount_of(text, 1)
}

/// What is named at a node, where nothing is an amount too.
pub(super) fn any_amount(text: &str) -> Result<Amount, String> {
    amount_of(text, 0)
}

fn amount_of(text: &str, least: u64) -> Result<Amount, String> {
    let (name, amount) = text.split_once('=').ok_or("must be NODE=AMOUNT, as gpu/acme=4")?;
    let amount = values::number(least, limits::QUOTA_AMOUNT_MAX)(amount)?;
    Ok(Amount { node: node(name)?, amount })
}

/// A whole number of the quota's own unit.
pub(super) fn units(text: &str) -> Result<u64, String> {
    values::number(0, limits::QUOTA_AMOUNT_MAX)(text)
}

/// A reservation's or a share's name.
pub(super) fn id(text: &str) -> Result<String, String> {
    let is_one =
        text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match is_one {
        true => Ok(text.into()),
        false => Err("must be 32 lower-case hexadecimal digits".into()),
    }
}

/// Amounts at nodes for people: `gpu/acme=4 bytes=100`.
pub(super) fn spelled(items: &[QuotaItem]) -> String {
    let one = |item: &QuotaItem| format!("{}={}", Node::of(&item.quota, &item.path), item.amount);
    match items {
        [] => "nothing".into(),
        items => items.iter().map(one).collect::<Vec<_>>().join(" "),
    }
}

/// See [`OnExpiry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnExpiryArg {
    /// Its capacity is free again; for an hour it can be committed late.
    Release,
    /// All of it counts as used.
    Commit,
    /// It keeps its capacity until an operator settles it.
    Quarantine,
}

impl From<OnExpiryArg> for OnExpiry {
    fn from(fate: OnExpiryArg) -> Self {
        match fate {
            OnExpiryArg::Release => Self::Release,
            OnExpiryArg::Commit => Self::Commit,
            OnExpiryArg::Quarantine => Self::Quarantine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_quota_and_a_path() {
        assert_eq!(node("gpu"), Ok(Node::of("gpu", "")));
        let vision = node("gpu/acme/vision").unwrap();
        assert_eq!(vision, Node::of("gpu", "acme/vision"));
        let layers: Vec<_> = vision.layers().iter().map(Node::to_string).collect();
        assert_eq!(layers, ["gpu", "gpu/acme", "gpu/acme/vision"]);
        assert_eq!(node("gpu").unwrap().layers(), [Node::of("gpu", "")]);
        for (wrong, why) in [
            ("", "quota"),
            ("gpu/", "ends in a slash"),
            ("gpu//a", "path"),
            ("g pu", "' '"),
            ("gpu/1/2/3/4/5/6/7/8/9", "at most 8"),
        ] {
            let error = node(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn an_amount_is_at_a_node() {
        let four = Amount { node: Node::of("gpu", "acme"), amount: 4 };
        assert_eq!(amount("gpu/acme=4"), Ok(four.clone()));
        assert_eq!(four.triple(), ("gpu".into(), "acme".into(), 4));
        assert!(amount("gpu/acme").unwrap_err().contains("NODE=AMOUNT"));
        assert!(amount("gpu=0").unwrap_err().contains("1 to"));
        assert_eq!(any_amount("gpu=0").map(|it| it.amount), Ok(0));
        assert!(amount("gpu=many").unwrap_err().contains("whole number"));
    }

    #[test]
    fn names_of_reservations_are_hexadecimal() {
        assert!(id("00112233445566778899aabbccddeeff").is_ok());
        for wrong in ["", "00112233445566778899AABBCCDDEEFF", "0011"] {
            assert!(id(wrong).is_err(), "{wrong}");
        }
    }
}
