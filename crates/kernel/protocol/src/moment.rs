//! Now, as the owner of a session tells it.

use wharf_vocab::Timestamp;

/// A moment on two clocks. Deadlines use the first, which only ever goes forward; the second is
/// written into messages and never decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds on a clock that never goes back, from any origin.
    pub ms: u64,
    /// What the calendar says.
    pub at: Timestamp,
}

impl Moment {
    /// A moment.
    #[must_use]
    pub fn new(ms: u64, at: Timestamp) -> Self {
        Self { ms, at }
    }
}
