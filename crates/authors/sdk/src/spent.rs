//! What a call has cost so far.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wharf_vocab::Micro;

/// What a call has cost so far, in millionths of a dollar, as whoever executes it says. Cheap to
/// clone; all clones tell the same.
///
/// ```
/// use wharf_sdk::transport::Spent;
///
/// let spent = Spent::default();
/// spent.raise(500);
/// spent.raise(200); // What was spent stays spent.
/// assert_eq!(spent.micro(), 500);
/// ```
#[derive(Clone, Default)]
pub struct Spent(Arc<AtomicU64>);

impl Spent {
    /// What it is now.
    #[must_use]
    pub fn micro(&self) -> Micro {
        self.0.load(Ordering::Relaxed)
    }

    /// Says what it is in all; a smaller number than before changes nothing.
    pub fn raise(&self, so_far_micro: Micro) {
        self.0.fetch_max(so_far_micro, Ordering::Relaxed);
    }
}

impl fmt::Debug for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spent").field(&self.micro()).finish()
    }
}
