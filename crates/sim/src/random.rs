//! The one source of chance. Of this crate's own, so that a seed means the same for ever.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x005e_7e40)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// 128 bits that never come twice.
    pub(crate) fn id(&mut self) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.bits().to_le_bytes());
        id[8..].copy_from_slice(&self.bits().to_le_bytes());
        id
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "a range has a beginning and an end");
        low + self.bits() % (high - low + 1)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.between(0, count as u64 - 1) as usize
    }

    /// True so often in a thousand.
    pub(crate) fn in_1000(&mut self, times: u64) -> bool {
        self.between(0, 999) < times
    }

    /// Most often near `low`, now and then near `high`: as delays are.
    pub(crate) fn skewed(&mut self, low: u64, high: u64) -> u64 {
        let high = if self.in_1000(30) { high } else { low + (high - low) / 8 };
        self.between(low, high)
    }
}
