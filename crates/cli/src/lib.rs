//! Sereno: cli.
