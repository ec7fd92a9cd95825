//! Sereno: client.
