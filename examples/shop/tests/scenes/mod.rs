//! The scenes: what the tests hold true, and what the play shows.

#![allow(dead_code, unreachable_pub)] // The tests and the play each use their part.
#![allow(clippy::unwrap_used)] // The lint spares test functions, not their helpers.

pub mod crashes;
pub mod crowds;
pub mod two;
mod world;

/// What to call it, and how to play it.
pub type Scene = (&'static str, fn() -> std::pin::Pin<Box<dyn Future<Output = ()>>>);

/// All of them, in the order of the play.
pub const ALL: &[Scene] = &[
    ("two buyers, one pair", || Box::pin(two::two_buyers())),
    ("she forgets it in her basket", || Box::pin(two::forgotten())),
    ("a payment that comes too late", || Box::pin(two::late_payment())),
    ("a payment that comes late, and nobody minds", || Box::pin(two::late_and_nobody_came())),
    ("a card that is refused", || Box::pin(two::declined())),
    ("plenty of them", || Box::pin(two::plenty())),
    ("the shop is killed while she pays", || Box::pin(crashes::instance_killed())),
    ("and she does not come back", || Box::pin(crashes::nobody_comes_back())),
    ("Sereno is killed while she pays", || Box::pin(crashes::sereno_killed())),
    ("500 buyers, 42 pairs", || Box::pin(crowds::crowd())),
    ("500 buyers, 42 pairs, and Sereno is killed", || Box::pin(crowds::crowd_without_sereno())),
];
