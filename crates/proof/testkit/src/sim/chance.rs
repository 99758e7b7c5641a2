//! Chance from one number (SplitMix64), so that everything random can be repeated.

/// A source of random numbers that repeats itself for the same seed.
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring lives.
        let mut chance = Self(seed ^ 0x5851_F42D_4C95_7F2D);
        chance.next();
        chance
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` up to and with `high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// An index of something that has `len` parts.
    pub(super) fn index(&mut self, len: usize) -> usize {
        let len = u64::try_from(len.max(1)).unwrap_or(1);
        usize::try_from(self.next() % len).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub(super) fn percent(&mut self, cases: u64) -> bool {
        self.next() % 100 < cases
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        let at = self.index(from.len());
        from.get(at)
    }
}
