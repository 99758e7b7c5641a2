//! What every command is given: where to write and how to find the core.

use crate::client::Client;
use crate::failure::Result;
use crate::finder::Finder;
use crate::local::Home;
use crate::output::Output;

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where to write.
    pub(crate) output: Output,
    /// How to find the core.
    pub(crate) finder: Finder,
}

impl Context {
    /// A core to talk to.
    pub(crate) fn client(&self) -> Result<Client> {
        Client::new(self.finder.clone())
    }

    /// The home on this machine.
    pub(crate) fn home(&self) -> Result<Home> {
        self.finder.home()
    }
}
