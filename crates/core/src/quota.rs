//! The arithmetic of quotas: trees of nodes, what each counts for in its parent, what passes. It knows no
//! requests, no time and no log; `state/quota` decides with it.

mod account;
mod guarantee;
mod tree;
mod trial;

pub(crate) use account::Account;
pub(crate) use tree::{LastRefusal, Node, Posting, Report, Tree, changed, difference, signed};
pub(crate) use trial::{Asked, Kept, Trial, TrialRow, Wanted};

/// Where a node is: its tree in a namespace, and its place in that tree.
pub(crate) type Place = (u32, u32);
