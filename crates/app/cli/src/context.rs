//! What every command is given: where to write and how to find the core.

use wharf_client::{Client, Locator};

use crate::failure::Result;
use crate::local::Home;
use crate::output::Output;

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where to write.
    pub(crate) output: Output,
    /// How to find the core.
    pub(crate) locator: Locator,
}

impl Context {
    /// A core to talk to.
    pub(crate) fn client(&self) -> Result<Client> {
        Ok(Client::new(self.locator.clone())?)
    }

    /// The home on this machine.
    pub(crate) fn home(&self) -> Result<Home> {
        Home::resolve(self.locator.home.clone())
    }
}
