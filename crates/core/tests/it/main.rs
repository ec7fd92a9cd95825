//! The tests of the core, in one binary: the rules of DESIGN.md as scripts (`spec`), random and exhaustive histories
//! against naive references (`model`, `quota_model`), committed bytes (`golden`), hostile bytes (`codec`), and size (`large`, `quota_large`).

mod codec;
mod golden;
mod large;
mod model;
mod quota_large;
mod quota_model;
mod spec;
