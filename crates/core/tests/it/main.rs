//! The tests of the core, in one binary: the rules of DESIGN.md as scripts (`spec`), random and exhaustive histories
//! against a naive reference (`model`), and hostile bytes (`codec`).

mod codec;
mod large;
mod model;
mod spec;
