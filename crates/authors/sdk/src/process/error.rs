//! Why an agent cannot work, said so that its author or operator knows what to do.

/// Why an agent cannot work.
///
/// ```
/// use wharf_sdk::process::{AgentProcess, Error};
///
/// let error = AgentProcess::new("", "1.0.0").build().unwrap_err();
/// assert!(matches!(error, Error::AgentId));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent's id is not one.
    #[error("an agent's id has 1 to 200 letters, digits, dots, dashes and underscores")]
    AgentId,
    /// A tool's name is not one.
    #[error(
        "{name:?} cannot name a tool; use 1 to 128 letters, digits, dots, dashes and underscores"
    )]
    ToolName {
        /// The name.
        name: String,
    },
    /// Two tools have one name.
    #[error("two tools are called {name:?}; give each its own name")]
    SameName {
        /// The name.
        name: String,
    },
    /// Input or output of a tool is no object, or its schema cannot be used.
    #[error("the {what} of the tool {name:?} cannot be used: {why}")]
    Schema {
        /// The tool.
        name: String,
        /// `input` or `output`.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The tools of the agent that is served cannot be used.
    #[error(transparent)]
    Tools(#[from] crate::Error),
    /// The core did not say where it is or how to be let in.
    #[error("{variable} is not set; agents are started by the core, see `wharf agents start`")]
    Environment {
        /// The variable that is missing.
        variable: &'static str,
    },
    /// The core started this program for another agent.
    #[error("this program is the agent {own}, and it was started as {wanted}; check the manifest")]
    OtherAgent {
        /// What the program says.
        own: String,
        /// What the core says.
        wanted: String,
    },
    /// The address of the core is none.
    #[error(
        "the address of the core must be a path, `tcp:` with a loopback address and port, or `fd:` with a number"
    )]
    Address,
    /// The core cannot be reached.
    #[error("the core cannot be reached: {0}")]
    Unreachable(std::io::Error),
    /// The process lacks something it needs.
    #[error("the agent cannot work in this process: {0}")]
    Process(std::io::Error),
    /// The core did not let the agent in.
    #[error("the core did not let the agent in ({code}); start it again with the core")]
    Refused {
        /// The code the core gave.
        code: String,
    },
    /// The session ended other than in order.
    #[error("the connection to the core ended: {why}")]
    Session {
        /// What happened.
        why: &'static str,
    },
}
