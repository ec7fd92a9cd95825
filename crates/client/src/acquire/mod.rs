//! Acquiring: options, the plan that decides how to go on after each answer, and the driver that carries it out.

mod builder;
mod drive;
mod plan;
mod request;
mod standing;

pub use builder::Acquire;
pub use request::{Grant, Holding};
pub(crate) use request::{Shape, Wish};
pub use standing::Standing;
