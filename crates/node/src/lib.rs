//! Sereno: node.
