//! Why a tool server does not start.

/// Why a tool server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The reference is none.
    #[error("{0:?} is no reference of a tool; write it as ns/name@1")]
    Reference(String),
    /// There is nothing to serve.
    #[error("there is no handler; give one with `handler`")]
    NoHandler,
    /// The tool of the agent that is served cannot be used.
    #[error(transparent)]
    Tool(crate::Error),
    /// Input or output is no object, or its schema cannot be used.
    #[error("the {what} cannot be used: {why}")]
    Schema {
        /// `input` or `output`.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// An argument is not understood.
    #[error(
        "{0}; the arguments are --port N, --listen HOST:PORT|unix:PATH, --artifacts DIR, \
             --allow-origin URL, --token-file FILE and --schema"
    )]
    Argument(String),
    /// The server cannot serve.
    #[error(transparent)]
    Server(#[from] wharf_toolserver::server::Error),
    /// The process lacks something it needs.
    #[error("the tool server cannot work in this process: {0}")]
    Process(#[from] std::io::Error),
}
