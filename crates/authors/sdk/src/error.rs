//! What can be wrong with tools, with the ways they are served, and with connections.

use std::io;

/// What can be wrong with tools, with the ways they are served, and with connections. What a call
/// fails with is a [`Fault`](crate::Fault) instead.
///
/// ```
/// use wharf_sdk::{Error, Scope, Tool};
///
/// const BAD: Tool<(), ()> = Tool::new("not a name", "Has spaces in its name.");
///
/// let error = Scope::root().provide(&BAD, |_, _cx| async { Ok(()) }).unwrap_err();
/// assert_eq!(error, Error::ToolName { name: "not a name".to_owned() });
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tool's name is not one.
    #[error(
        "{name:?} cannot name a tool; use 1 to 128 letters, digits, dots, dashes and underscores"
    )]
    ToolName {
        /// The name.
        name: String,
    },
    /// A tool's name means something else on the wire.
    #[error("{name:?} cannot name a tool, because questions, messages or models are called so")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two tools of one scope have one name.
    #[error("two tools are called {name:?} in one scope; give each its own name")]
    SameName {
        /// The name.
        name: String,
    },
    /// A tool is served that nobody provided.
    #[error("nobody provided the tool {name:?}, so it cannot be served; give it an implementation")]
    NotServed {
        /// The name.
        name: String,
    },
    /// The scope is closed, so nothing can be added to it.
    #[error("the scope is closed, so nothing can be added to it")]
    Closed,
    /// A schema of a tool cannot be used.
    #[error("the {what} of the tool {name:?} cannot be used: {why}")]
    Schema {
        /// The tool.
        name: String,
        /// `input`, `output` or `progress`.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The configuration of an agent does not fit.
    #[error("the configuration of the agent {agent:?} does not fit at {path}: {why}")]
    Config {
        /// The agent.
        agent: String,
        /// Where, as a JSON pointer.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// The id of an agent process is not one.
    #[error("an agent's id has 1 to 200 letters, digits, dots, dashes and underscores")]
    AgentId,
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
    /// The core that started an agent process cannot be reached.
    #[error("the core cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// The core did not let the agent process in.
    #[error("the core did not let the agent in ({code}); start it again with the core")]
    NotAdmitted {
        /// The code the core gave.
        code: String,
    },
    /// The session of an agent process ended other than in order.
    #[error("the connection to the core ended: {why}")]
    Session {
        /// What happened.
        why: &'static str,
    },
    /// The reference of a tool server is none.
    #[error("{0:?} is no reference of a tool; write it as ns/name@1")]
    Reference(String),
    /// An argument of a tool server is not understood.
    #[error(
        "{0}; the arguments are --port N, --listen HOST:PORT|unix:PATH, --artifacts DIR, \
             --allow-origin URL, --token-file FILE and --schema"
    )]
    Argument(String),
    /// A tool server cannot serve.
    #[cfg(feature = "toolserver")]
    #[error(transparent)]
    Server(#[from] wharf_toolserver::server::Error),
    /// The process lacks something it needs.
    #[error("the tools cannot be served in this process: {0}")]
    Process(#[from] io::Error),
    /// The address is none that can be connected to.
    #[error("{address:?} cannot be connected to: {why}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nobody answered at the address.
    #[error("failed to connect to {address}")]
    Connect {
        /// The address.
        address: String,
        /// What went wrong.
        source: io::Error,
    },
    /// It took too long.
    #[error("{address} did not answer in time")]
    Timeout {
        /// The address.
        address: String,
    },
    /// Somebody answered and does not want to be connected to.
    #[error("the connection was refused with status {status}: {message}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What was said about it.
        message: String,
    },
    /// Somebody answered who does not speak the protocol.
    #[error("whoever answered does not speak the protocol: {why}")]
    Protocol {
        /// What is wrong.
        why: String,
    },
    /// A socket could not be listened on.
    #[error("failed to listen")]
    Listen(#[source] io::Error),
    /// What was offered was not taken.
    #[error("the tools were not taken: {message} ({code})")]
    Offer {
        /// The error's code.
        code: String,
        /// What is wrong.
        message: String,
    },
    /// The connection ended before it could be used.
    #[error("the connection ended before it could be used")]
    Lost,
}

impl Error {
    /// Whether trying again later may help. A refusal does not go away by itself, unless whoever
    /// refused is busy or about to stop.
    ///
    /// ```
    /// use wharf_sdk::Error;
    ///
    /// assert!(Error::Lost.is_passing());
    /// assert!(!Error::Refused { status: 401, message: String::new() }.is_passing());
    /// ```
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 409 | 425 | 429 | 500..),
            Self::Connect { .. } | Self::Timeout { .. } | Self::Lost => true,
            _ => false,
        }
    }
}

/// Two errors are the same if they say the same.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
