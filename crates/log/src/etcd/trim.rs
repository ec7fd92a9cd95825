//! Trimming, in slices: one large deletion would hold up every append behind it.

use super::Shared;
use crate::LogError;
use etcd_client::{Compare, CompareOp, DeleteOptions, Txn, TxnOp};
use sereno_core::ids::Position;

/// Entries removed by one transaction.
const SLICE: u64 = 1_000;

impl Shared {
    pub(super) async fn trim(&self, up_to: Position) -> Result<Position, LogError> {
        loop {
            let log = self.survey().await?;
            let (Some(pointer), Some(value)) = (log.pointer, log.pointer_value) else {
                return Ok(log.first);
            };
            let Some(older) = pointer.older else { return Ok(log.first) };
            let Some(count) = slice(log.first, up_to.min(older.head.position)) else {
                return Ok(log.first);
            };
            let (first, end) = self.keys.slots(log.first, count);
            let delete = TxnOp::delete(first, Some(DeleteOptions::new().with_range(end)));
            // Whoever has moved the pointer, or has set the store back: what may go is looked at again.
            let unmoved = Compare::value(self.keys.pointer(), CompareOp::Equal, value);
            self.change(Txn::new().when([unmoved]).and_then([delete])).await?;
        }
    }
}

/// How many entries to remove from `first` on when all up to `end` may go.
fn slice(first: Position, end: Position) -> Option<u64> {
    let left = (end.0 + 1).checked_sub(first.0)?;
    (left > 0).then_some(left.min(SLICE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trim_goes_in_slices_and_ends() {
        let slice = |first, end| super::slice(Position(first), Position(end));
        assert_eq!(slice(1, 0), None);
        assert_eq!(slice(6, 5), None);
        assert_eq!(slice(9, 5), None);
        assert_eq!(slice(5, 5), Some(1));
        assert_eq!(slice(1, 1_000), Some(1_000));
        assert_eq!(slice(1, 5_000), Some(1_000));
    }
}
