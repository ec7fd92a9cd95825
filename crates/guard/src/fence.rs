//! What a write carries: under which key, with which token.

use std::fmt;

/// The longest fence key, in bytes.
pub const FENCE_KEY_BYTES_MAX: usize = 400;
/// The highest token: every JSON number up to here is exact everywhere.
pub const TOKEN_MAX: u64 = (1 << 53) - 1;

/// A fence key with a token of its owner, as a grant tells them in `fenceKey` and `fencingToken`.
///
/// Ordered by key, then by token: the order in which several are shown, so that two owners never wait for each other
/// crosswise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    key: String,
    token: u64,
}

/// Why something is no fence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {rule}")]
pub struct InvalidFence {
    /// `fence key` or `token`.
    pub field: &'static str,
    /// The rule that it breaks.
    pub rule: String,
}

impl Fence {
    /// Checks both.
    ///
    /// # Errors
    /// A key that is empty, longer than 400 bytes, or has anything but visible ASCII characters; a token that is 0 or
    /// above 2^53 - 1. A guard believes every token: a wrong one that is too high would lock all owners out.
    pub fn new(key: impl Into<String>, token: u64) -> Result<Self, InvalidFence> {
        let key = check_key(key.into())?;
        if !(1..=TOKEN_MAX).contains(&token) {
            let rule = format!("must be 1 to {TOKEN_MAX}, and is {token}");
            return Err(InvalidFence { field: "token", rule });
        }
        Ok(Self { key, token })
    }

    /// `namespace/family/name`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The token.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Refused, for this token was accepted before.
    pub fn refused(&self, highest: u64) -> Refused {
        Refused { key: self.key.clone(), token: self.token, highest }
    }
}

/// A key by itself.
pub(crate) fn check_key(key: String) -> Result<String, InvalidFence> {
    let wrong = |rule: String| Err(InvalidFence { field: "fence key", rule });
    if key.is_empty() {
        return wrong("must not be empty".into());
    }
    if key.len() > FENCE_KEY_BYTES_MAX {
        return wrong(format!("must have at most {FENCE_KEY_BYTES_MAX} bytes, not {}", key.len()));
    }
    match key.chars().find(|character| !character.is_ascii_graphic()) {
        Some(character) => wrong(format!("must have visible ASCII only, not {character:?}")),
        None => Ok(key),
    }
}

/// A newer owner's token was accepted before: whoever shows this one has lost its lease, and has to stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// The fence key.
    pub key: String,
    /// The token that was shown.
    pub token: u64,
    /// The highest that was accepted.
    pub highest: u64,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, token, highest } = self;
        write!(
            f,
            "token {token} for {key} is stale: {highest} was accepted, another owner has taken over"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_grant_tells_is_a_fence() {
        let fence = Fence::new("default/job/settle/2026-12-01T02:00:00Z", TOKEN_MAX).unwrap();
        assert_eq!((fence.key().len(), fence.token()), (39, TOKEN_MAX));
        assert!(Fence::new("k".repeat(400), 1).is_ok());
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for (key, token, said) in [
            (String::new(), 1, "fence key must not be empty"),
            ("k".repeat(401), 1, "at most 400"),
            ("a b".into(), 1, "' '"),
            ("a\nb".into(), 1, "'\\n'"),
            ("é".into(), 1, "'é'"),
            ("k".into(), 0, "token must be 1"),
            ("k".into(), TOKEN_MAX + 1, "token must be 1 to 9007199254740991"),
        ] {
            let error = Fence::new(key, token).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn several_are_shown_in_the_order_of_their_keys() {
        let fence = |key, token| Fence::new(key, token).unwrap();
        let mut all = [fence("b", 1), fence("a", 9), fence("a", 2)];
        all.sort();
        assert_eq!(all, [fence("a", 2), fence("a", 9), fence("b", 1)]);
    }
}
