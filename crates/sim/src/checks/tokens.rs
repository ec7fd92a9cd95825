//! S2: every grant carries a token larger than every token granted before it, over leaders, restarts and wiped logs.

use sereno_core::ids::Token;

#[derive(Debug, Default)]
pub(super) struct Tokens {
    last: Token,
}

impl Tokens {
    pub(super) fn granted(&mut self, token: Token) {
        assert!(token > self.last, "S2: tokens rise: {token} after {}", self.last);
        self.last = token;
    }
}
