//! Names that callers choose. Each type can only hold what its rule allows, wherever it comes from.

use crate::limits;
use borsh::{BorshDeserialize, BorshSerialize};
use std::{borrow::Borrow, fmt, io, sync::Arc};

/// A value that breaks a rule: the field as callers know it, and the rule in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, BorshSerialize, BorshDeserialize)]
#[error("{field}: {rule}")]
pub struct Invalid {
    /// The field's name in the HTTP interface.
    pub field: String,
    /// What the field has to be, and what is wrong with this value.
    pub rule: String,
}

impl Invalid {
    /// `field` breaks `rule`.
    pub fn new(field: &str, rule: impl Into<String>) -> Self {
        Self { field: field.into(), rule: rule.into() }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text` by the rule of this type; the error names the rule, not the field.
            pub fn new(text: &str) -> Result<Self, String> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl BorshSerialize for $name {
            fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
                self.0.as_ref().serialize(writer)
            }
        }

        impl BorshDeserialize for $name {
            fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
                let text = String::deserialize_reader(reader)?;
                Self::new(&text).map_err(|rule| io::Error::new(io::ErrorKind::InvalidData, rule))
            }
        }
    };
}

name! {
    /// 1 to 64 bytes of `a-z 0-9 . _ -`.
    NamespaceName, check_namespace
}
name! {
    /// 1 to 256 bytes of `A-Z a-z 0-9 . _ : / @ + -`; no empty segment, no segment `.` or `..`.
    ResourceName, check_resource
}
name! {
    /// 8 to 64 bytes of the resource alphabet, drawn at random by the caller.
    RequestId, check_request_id
}
name! {
    /// Who asks, in the caller's words: 1 to 128 bytes without control characters.
    Owner, check_owner
}
name! {
    /// Who asks, as authenticated by the door: at most 128 bytes; empty is anonymous.
    Caller, check_caller
}
name! {
    /// Why an operator acted: 1 to 512 bytes without control characters.
    Reason, check_reason
}

name! {
    /// What a leader proclaims: at most 4,096 bytes of UTF-8.
    Value, check_value
}
name! {
    /// A job's schedule in the words of cron: 1 to 256 bytes without control characters. The state does not read it.
    ScheduleText, check_schedule
}
name! {
    /// The IANA name of a time zone: 1 to 64 bytes of `A-Z a-z 0-9 _ + - /`. The state does not look it up.
    ZoneName, check_zone
}

name! {
    /// What a quota counts (`gpu`, `bytes`): 1 to 64 bytes of `A-Z a-z 0-9 . _ : @ + -`.
    QuotaName, check_quota
}
name! {
    /// A node of a quota's tree: 0 to 8 segments of a resource's alphabet, at most 190 bytes; empty is the root.
    QuotaPath, check_quota_path
}
name! {
    /// Where a service runs: 1 to 64 bytes of `a-z 0-9 . _ -`.
    RegionName, check_namespace
}

impl QuotaPath {
    /// The path of a tree's root.
    pub fn root() -> Self {
        Self::new("").expect("the empty path is the root")
    }

    /// From the top: each name below the root.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.as_str().split('/').filter(|segment| !segment.is_empty())
    }

    /// How far below the root.
    pub fn depth(&self) -> usize {
        self.segments().count()
    }

    /// The same cut after so many segments: an ancestor, or itself.
    pub fn ancestor(&self, depth: usize) -> Self {
        let text = self.as_str();
        let mut ends = text.match_indices('/').map(|(at, _)| at).chain([text.len()]);
        let end = if depth == 0 { 0 } else { ends.nth(depth - 1).unwrap_or(text.len()) };
        Self::new(&text[..end]).expect("a part of a path is a path")
    }
}

impl NamespaceName {
    /// The namespace of requests that name none.
    pub const DEFAULT: &'static str = "default";
}

fn check_length(text: &str, min: usize, max: usize) -> Result<(), String> {
    match text.len() {
        length if (min..=max).contains(&length) => Ok(()),
        length => Err(format!("must have {min} to {max} bytes, has {length}")),
    }
}

fn check_alphabet(text: &str, allowed: fn(char) -> bool, alphabet: &str) -> Result<(), String> {
    match text.char_indices().find(|&(_, character)| !allowed(character)) {
        None => Ok(()),
        Some((at, wrong)) => Err(format!("has {wrong:?} at byte {at}; allowed are {alphabet}")),
    }
}

fn check_text(text: &str) -> Result<(), String> {
    check_alphabet(text, |c| !c.is_control(), "all characters but control characters")
}

fn is_resource_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._:/@+-".contains(c)
}

const RESOURCE_ALPHABET: &str = "A-Z a-z 0-9 . _ : / @ + -";

fn check_namespace(text: &str) -> Result<(), String> {
    check_length(text, 1, limits::NAMESPACE_BYTES_MAX)?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    check_alphabet(text, allowed, "a-z 0-9 . _ -")
}

fn check_resource(text: &str) -> Result<(), String> {
    check_length(text, 1, limits::RESOURCE_BYTES_MAX)?;
    check_alphabet(text, is_resource_character, RESOURCE_ALPHABET)?;
    match text.split('/').find(|segment| ["", ".", ".."].contains(segment)) {
        None => Ok(()),
        Some("") => Err("has an empty segment (a slash at an end, or two in a row)".into()),
        Some(dots) => Err(format!("has the segment {dots:?}, which paths would swallow")),
    }
}

fn check_quota(text: &str) -> Result<(), String> {
    check_length(text, 1, limits::QUOTA_BYTES_MAX)?;
    let allowed = |c: char| is_resource_character(c) && c != '/';
    check_alphabet(text, allowed, "A-Z a-z 0-9 . _ : @ + -")
}

fn check_quota_path(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    check_length(text, 1, limits::QUOTA_PATH_BYTES_MAX)?;
    check_resource(text)?;
    match text.split('/').count() {
        depth if depth <= limits::QUOTA_DEPTH_MAX => Ok(()),
        depth => {
            Err(format!("must have at most {} segments, has {depth}", limits::QUOTA_DEPTH_MAX))
        }
    }
}

fn check_request_id(text: &str) -> Result<(), String> {
    check_length(text, limits::REQUEST_ID_BYTES_MIN, limits::REQUEST_ID_BYTES_MAX)?;
    check_alphabet(text, is_resource_character, RESOURCE_ALPHABET)
}

fn check_owner(text: &str) -> Result<(), String> {
    check_length(text, 1, limits::OWNER_BYTES_MAX)?;
    check_text(text)
}

fn check_caller(text: &str) -> Result<(), String> {
    check_length(text, 0, limits::CALLER_BYTES_MAX)?;
    check_text(text)
}

fn check_reason(text: &str) -> Result<(), String> {
    check_length(text, 1, limits::REASON_BYTES_MAX)?;
    check_text(text)
}

fn check_value(text: &str) -> Result<(), String> {
    check_length(text, 0, limits::VALUE_BYTES_MAX)
}

fn check_schedule(text: &str) -> Result<(), String> {
    check_length(text, 1, limits::SCHEDULE_BYTES_MAX)?;
    check_text(text)
}

fn check_zone(text: &str) -> Result<(), String> {
    check_length(text, 1, limits::ZONE_BYTES_MAX)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_+-/".contains(c);
    check_alphabet(text, allowed, "A-Z a-z 0-9 _ + - /")
}

/// Free key-value notes on a request, shown in reads, never in the audit trail. Sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize)]
pub struct Labels(Vec<(String, String)>);

impl BorshDeserialize for Labels {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
        let invalid = |rule| io::Error::new(io::ErrorKind::InvalidData, rule);
        let pairs = Vec::deserialize_reader(reader)?;
        if !pairs.is_sorted() {
            return Err(invalid("labels are sorted by key".into()));
        }
        Self::new(pairs).map_err(invalid)
    }
}

impl Labels {
    /// At most 16 distinct keys of 1 to 64 bytes with values of at most 256 bytes.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, String> {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort();
        if pairs.len() > limits::LABELS_MAX {
            return Err(format!("at most {}, there are {}", limits::LABELS_MAX, pairs.len()));
        }
        if let Some(twice) = pairs.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(format!("key {:?} twice", twice[0].0));
        }
        for (key, value) in &pairs {
            check_length(key, 1, limits::LABEL_KEY_BYTES_MAX)
                .and_then(|()| check_text(key))
                .map_err(|rule| format!("key {key:?} {rule}"))?;
            check_length(value, 0, limits::LABEL_VALUE_BYTES_MAX)
                .and_then(|()| check_text(value))
                .map_err(|rule| format!("value of {key:?} {rule}"))?;
        }
        Ok(Self(pairs))
    }

    /// The pairs, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_names_follow_the_rule_and_errors_name_the_character() {
        for good in ["a", "orders/42", "A:b@c+d-e_f.g/..h", &"x".repeat(256)] {
            assert!(ResourceName::new(good).is_ok(), "{good}");
        }
        for (bad, said) in [
            ("", "1 to 256"),
            (&*"x".repeat(257), "has 257"),
            ("a b", "' '"),
            ("caf\u{e9}", "'\u{e9}'"),
            ("a//b", "empty segment"),
            ("/a", "empty segment"),
            ("a/", "empty segment"),
            ("a/./b", "\".\""),
            ("..", "\"..\""),
        ] {
            let error = ResourceName::new(bad).unwrap_err();
            assert!(error.contains(said), "{bad:?}: {error}");
        }
    }

    #[test]
    fn other_names_have_their_bounds() {
        assert!(NamespaceName::new("team-a.prod_1").is_ok());
        assert!(NamespaceName::new("Team").is_err());
        assert!(RequestId::new("1234567").is_err());
        assert!(RequestId::new("12345678").is_ok());
        assert!(Owner::new("worker 7, zone ä").is_ok());
        assert!(Owner::new("a\nb").is_err());
        assert!(Caller::new("").is_ok());
    }

    #[test]
    fn paths_are_cut_at_their_segments() {
        let path = QuotaPath::new("acme/vision/anna").unwrap();
        let cut = |depth| path.ancestor(depth).to_string();
        assert_eq!([cut(0), cut(1), cut(2)], ["", "acme", "acme/vision"]);
        assert_eq!((path.ancestor(3), path.ancestor(9), path.depth()), (path.clone(), path, 3));
        assert_eq!(QuotaPath::root().depth(), 0);
        assert!(QuotaPath::new("a/b/c/d/e/f/g/h").is_ok());
        assert!(QuotaPath::new("a/b/c/d/e/f/g/h/i").unwrap_err().contains("at most 8"));
        assert!(QuotaPath::new("a//b").is_err() && QuotaName::new("a/b").is_err());
    }

    #[test]
    fn decoding_checks_the_rule_again() {
        let bytes = borsh::to_vec("a b").unwrap();
        assert!(borsh::from_slice::<ResourceName>(&bytes).is_err());
        for wrong in [vec![("b", ""), ("a", "")], vec![("a", "1"), ("a", "2")], vec![("", "")]] {
            let bytes = borsh::to_vec(&wrong).unwrap();
            assert!(borsh::from_slice::<Labels>(&bytes).is_err(), "{wrong:?}");
        }
        let bytes = borsh::to_vec(&[("a", "2"), ("b", "1")].to_vec()).unwrap();
        assert_eq!(borsh::from_slice::<Labels>(&bytes).unwrap().iter().count(), 2);
    }

    #[test]
    fn labels_are_sorted_and_bounded() {
        let pair = |k: &str, v: &str| (k.to_string(), v.to_string());
        let labels = Labels::new([pair("b", "2"), pair("a", "1")]).unwrap();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert!(Labels::new([pair("a", "1"), pair("a", "2")]).unwrap_err().contains("twice"));
        assert!(Labels::new((0..17).map(|i| pair(&i.to_string(), ""))).is_err());
    }
}
