//! A client of a core that answers by script.

pub(crate) use wharf_testkit::scripted::{Reply, Request, Scripted};

use crate::{Client, Locator};

/// Finds a scripted core by its home.
pub(crate) trait ScriptedClient {
    fn client(&self) -> Client;
}

impl ScriptedClient for Scripted {
    fn client(&self) -> Client {
        Client::new(Locator::of_home(self.home())).expect("a client")
    }
}
