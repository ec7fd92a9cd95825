//! Sereno: bench.
