//! Sereno: server.
