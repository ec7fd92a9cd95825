//! The tests of the core, in one binary: the rules of DESIGN.md as scripts (`spec`), and hostile bytes (`codec`).

mod codec;
mod spec;
