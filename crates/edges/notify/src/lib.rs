//! Notifications on their way out: what receivers are owed is posted to them until they take it.
//!
//! What is owed stands in the journal, so that nothing is lost with this core. Each receiver is
//! dealt with by itself: one that is down, slow or hostile costs two connections and what it is
//! owed, which is bounded. No run and no ask waits for any of this.
//!
//! | file | what it is |
//! |---|---|
//! | `postman.rs` | what is owed, what is tried when, what is given up |
//! | `letter.rs` | how a notification is written and signed |
//! | `address.rs` | where letters may go |

mod address;
mod letter;
mod postman;

use std::sync::Arc;

use tokio::task::JoinHandle;
use wharf_engine::Handle;
use wharf_ports::vault::Vault;

use crate::address::Outbound;
use crate::postman::Postman;

/// What notifications are sent with.
pub struct NotifyOptions {
    /// The engine that owes them.
    pub handle: Handle,
    /// Who keeps the addresses and keys of receivers.
    pub vault: Arc<dyn Vault>,
    /// Where the console is, for links.
    pub console: String,
}

/// Sends notifications until it is stopped.
pub struct NotifyEdge(JoinHandle<()>);

impl NotifyEdge {
    /// Begins with what is owed.
    pub fn start(options: NotifyOptions) -> Self {
        let NotifyOptions { handle, vault, console } = options;
        let postman = Postman::new(handle, vault, console, Outbound::system());
        Self(tokio::spawn(postman.work()))
    }

    /// What is on its way is sent again the next time.
    pub fn stop(&self) {
        self.0.abort();
    }
}
