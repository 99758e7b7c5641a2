//! An agent that was checked and can serve a core.

use std::collections::HashMap;
use std::fmt;
use std::io::Write as _;
use std::num::NonZero;
use std::panic;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use wharf_wire::agent_v1::ToolDefinition;

use crate::process::tool::Tool;
use crate::process::{Endpoint, Error, connection};

/// How long threads that a tool still blocks are waited for at the end.
const BLOCKED_MS: u64 = 1_000;
/// Tools may block their thread, so even a small machine gets a few.
const WORKERS_MIN: usize = 4;

/// An agent that was checked and can serve a core.
///
/// Most agents never meet it, since [`AgentProcess::run`](crate::process::AgentProcess::run) does both steps. It is
/// useful in tests and where the core is not found through the environment.
pub struct Service {
    parts: Parts,
}

/// What an agent is made of.
pub(crate) struct Parts {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) definitions: Vec<ToolDefinition>,
    pub(crate) tools: HashMap<String, Tool>,
    pub(crate) calls_max: usize,
    pub(crate) keeps_keys: bool,
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// The ids of the tools, in the order in which they were added.
    pub fn tool_ids(&self) -> impl Iterator<Item = &str> {
        self.parts.definitions.iter().map(|definition| definition.tool_id.as_str())
    }

    /// Connects once, serves until the session is over, and stops everything that runs. Blocks
    /// this thread, which belongs to the connection meanwhile; not to be called from async code.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), wharf_sdk::process::Error> {
    /// use wharf_sdk::process::{AgentProcess, Endpoint};
    ///
    /// let service = AgentProcess::new("dev.example.idle", "1.0.0").build()?;
    /// service.serve(&Endpoint::new("/run/wharf/agents.sock", "a token")?)
    /// # }
    /// ```
    pub fn serve(self, endpoint: &Endpoint) -> Result<(), Error> {
        let token = endpoint.token_for(&self.parts.id)?;
        let workers = thread::available_parallelism().map_or(1, NonZero::get).max(WORKERS_MIN);
        let tools = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("tool")
            .enable_all()
            .build()
            .map_err(Error::Process)?;
        let session = Builder::new_current_thread().enable_all().build().map_err(Error::Process)?;
        let work = connection::serve(self.parts, endpoint, token, tools.handle().clone());
        let served = session.block_on(work);
        tools.shutdown_timeout(Duration::from_millis(BLOCKED_MS));
        served
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("id", &self.parts.id)
            .field("tools", &self.parts.tools.len())
            .finish_non_exhaustive()
    }
}

/// Makes panics say where they happened and not what they said: the text of a panic can quote
/// what a tool was given. Whoever asks for a backtrace gets everything.
pub(crate) fn quiet_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        return;
    }
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        // When standard error is gone there is nobody left to tell.
        let _ = writeln!(std::io::stderr(), "panic at {place}; set RUST_BACKTRACE=1 to see more");
    }));
}

/// Keeps other processes of the same user from reading the token out of this one's environment or
/// memory. Where the system does not know how, nothing is lost that was there before.
pub(crate) fn protect() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn others_of_the_same_user_cannot_look_into_a_protected_process() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        super::protect();
        assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
    }
}
