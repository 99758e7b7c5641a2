//! What can be wrong with the way tools and agents are put together.

/// What can be wrong with the way tools and agents are put together. All of it is told before
/// anything is called.
///
/// ```
/// use wharf_sdk::{Error, Scope, Tool};
///
/// const BAD: Tool<(), ()> = Tool::new("not a name", "Has spaces in its name.");
///
/// let error = Scope::root().provide(&BAD, |_, _cx| async { Ok(()) }).unwrap_err();
/// assert_eq!(error, Error::ToolName { name: "not a name".to_owned() });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
}
