//! Acquiring: options, the plan that decides how to go on after each answer, and the driver that carries it out.

mod builder;
mod drive;
mod plan;
mod request;
mod standing;

pub use builder::Acquire;
pub(crate) use drive::{Wanted, acquire};
pub(crate) use plan::Terms;
pub(crate) use request::Shape;
pub use request::{Grant, Holding};
pub use standing::Standing;
pub(crate) use standing::Teller;
