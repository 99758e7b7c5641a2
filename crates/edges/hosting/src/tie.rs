//! What ties a launch to the task that speaks with it.

use std::sync::Arc;

use wharf_vocab::LaunchId;

use crate::command::Closed;
use crate::live::Live;

/// Held by the task that speaks with a launch. When that is gone and has not said why, by a panic
/// or because it was dropped, the launch counts as disconnected: it must not be left to wait for
/// somebody who will never speak with it.
#[derive(Debug)]
pub struct Tie {
    live: Arc<Live>,
    launch: LaunchId,
}

impl Tie {
    /// Ties a launch to whoever holds this.
    #[must_use]
    pub fn new(live: &Arc<Live>, launch: &LaunchId) -> Self {
        Self { live: Arc::clone(live), launch: launch.clone() }
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        if self.live.connection(&self.launch).1.is_none() {
            let why = "the core lost its connection".to_owned();
            self.live.disconnect(&self.launch, Closed::Because(why));
        }
    }
}
