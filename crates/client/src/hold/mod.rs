//! Holds: "we keep the last size 42 for you for ten minutes". A promise to a customer with an end, not a lock of this
//! process: any instance acts for the owner, nothing is renewed by itself, and nothing is released on drop.

mod calls;
mod held;
mod place;
mod plain;
mod refusal;

pub use held::Held;
pub use place::{OnUnavailable, PlaceHold, PlaceHoldOr, Protection};
pub use plain::{HoldName, ListHolds};
pub use refusal::{HoldError, HoldLimit, LimitKind, Taken};
