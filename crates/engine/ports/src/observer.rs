//! Who is told what becomes of runs, without a say in it.

use wharf_domain::Run;
use wharf_vocab::{AttemptId, LaunchId};

/// Is told of runs on the engine's own path, so no call may block or wait: what cannot be taken at
/// once is lost to whoever observes, and to nobody else.
pub trait RunObserver: Send + Sync + 'static {
    /// A run is over, and that is committed. Runs that only memory keeps count, too.
    fn ended(&self, run: &Run);

    /// An attempt was given to this process.
    fn launched(&self, attempt: &AttemptId, launch: &LaunchId);
}
