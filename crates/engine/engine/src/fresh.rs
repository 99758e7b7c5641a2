//! Unique text and chance from one seed, so that a shard is deterministic.

use uuid::Builder;
use wharf_domain::Fresh;
use wharf_vocab::Timestamp;

/// A seeded source of ids and random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Seeded {
    state: u64,
    now: Timestamp,
}

impl Seeded {
    /// A source that repeats itself for the same seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed, now: Timestamp(0) }
    }

    /// Ids made from now on carry this moment.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }
}

impl Fresh for Seeded {
    fn unique(&mut self) -> String {
        let mut random = [0_u8; 10];
        random[..8].copy_from_slice(&self.random().to_be_bytes());
        random[8..].copy_from_slice(&self.random().to_be_bytes()[..2]);
        Builder::from_unix_timestamp_millis(self.now.0, &random).into_uuid().to_string()
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
