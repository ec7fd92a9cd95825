//! Sereno: api.
