//! S2: every grant carries a token larger than every token granted before it, over leaders, restarts, wiped logs and
//! restored backups; and none below a floor that an operator has set.

use sereno_core::{event::EventKind, ids::Token};

#[derive(Debug, Default)]
pub(super) struct Tokens {
    last: Token,
    floor: Token,
}

impl Tokens {
    pub(super) fn event(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::Granted { token, .. } => {
                assert!(token > self.last, "S2: tokens rise: {token} after {}", self.last);
                assert!(token >= self.floor, "S2: {token} lies below the floor {}", self.floor);
                self.last = token;
            }
            EventKind::TokenFloorSet { floor } => self.floor = self.floor.max(floor),
            _ => {}
        }
    }
}
