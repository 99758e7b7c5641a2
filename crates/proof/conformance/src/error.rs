//! Why a check could not be made at all.

use std::io;
use std::path::PathBuf;

/// Why there is no report. What an agent does wrong is never here but in the report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no command.
    #[error("no command is given; name the program that starts the agent")]
    NoCommand,
    /// The agent's folder cannot be used.
    #[error("the folder {} cannot be used; check that it exists", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The command does not start.
    #[error("{program} cannot be started; check its name and that it may be executed")]
    Start {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// No socket or folder could be made for the agent.
    #[error("no place for the agent's socket could be made; check the temporary folder")]
    Place(#[source] io::Error),
    /// The tool server's address cannot be used.
    #[error("{url} is no address of a tool server; write http://HOST:PORT or unix:PATH")]
    Address {
        /// The address.
        url: String,
    },
    /// Nobody answers at the tool server's address.
    #[error("{url} does not answer; check that the tool server runs")]
    Unreachable {
        /// The address.
        url: String,
    },
    /// HTTP could not be set up.
    #[error("HTTP could not be set up on this machine")]
    Http(#[source] reqwest::Error),
}
