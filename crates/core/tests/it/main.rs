//! The tests of the core, in one binary: the rules of DESIGN.md as scripts (`spec`).

mod spec;
