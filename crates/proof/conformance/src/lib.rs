//! Checks whether peers keep their protocol, from outside.
//!
//! [`run::check`](run/fn.check.html) is for tool servers and the run protocol. The rest is for
//! agents: [`run()`] plays a core against any command and says which requirements of the agent
//! protocol it kept, which it broke, and which did not come up.
//!
//! Each scenario starts the command anew, with the socket, the token and the exact environment a
//! core would give it. Some scenarios behave as a core should, others as none ever would; what
//! is seen on the wire is recorded and judged afterwards by rules that hold for every session.
//! Checks that need a tool are made when the agent offers the tools of the reference agents.
//!
//! Nothing here knows how an agent is written, every wait has an end, and no process that was
//! started is left behind.

mod error;
mod findings;
mod launch;
mod link;
mod report;
mod requirements;
mod rules;
pub mod run;
mod scenarios;
mod session;
mod transcript;

use std::path::PathBuf;
use std::time::Duration;

pub use error::Error;
pub use findings::Verdict;
pub use report::{Report, Row};

/// Which requirements are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// All of them.
    #[default]
    Full,
    /// Those of the original protocol, without Wharf's additions.
    Seed,
}

/// How an agent is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The agent's folder: where the command starts, and where its manifest is looked for.
    pub dir: PathBuf,
    /// The agent's id; read from the manifest in the folder when absent.
    pub agent_id: Option<String>,
    /// Which requirements are checked.
    pub profile: Profile,
    /// The heartbeat interval the agent is told to keep.
    pub heartbeat: Duration,
    /// How long one awaited message may take.
    pub reply: Duration,
    /// What is added to every bound of the protocol, because machines are busy at times.
    pub slack: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("."),
            agent_id: None,
            profile: Profile::Full,
            heartbeat: Duration::from_secs(1),
            reply: Duration::from_secs(10),
            slack: Duration::from_millis(300),
        }
    }
}

/// Checks the agent that `command` starts.
///
/// The first word is a program: looked up in the system's `PATH` if it is a plain name, taken
/// from the agent's folder if it is a relative path.
pub async fn run(command: Vec<String>, options: Options) -> Result<Report, Error> {
    let profile = options.profile;
    let setup = launch::Setup::new(command, options)?;
    let report = Report::new(&requirements::AGENT, scenarios::all(&setup).await?);
    Ok(if profile == Profile::Seed { report.without_additions() } else { report })
}
