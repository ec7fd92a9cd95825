//! Names that buyers send: they become names of holds and keys of rows, so they are checked at the door.

use serde::Deserialize;

/// 1 to 64 letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Name(String);

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match text.len() {
            1..=64 if text.chars().all(is_fine) && text != "." && text != ".." => Ok(Self(text)),
            _ => Err(format!("{text:?} is no name: 1 to 64 letters, digits, - _ .")),
        }
    }
}
