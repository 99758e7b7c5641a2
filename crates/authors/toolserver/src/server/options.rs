//! How a server is set up.

use std::fmt;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use wharf_protocol::run::server::{Limits, Profile};
use wharf_tls::CertFiles;
use wharf_wire::run_v1::ToolName;

use super::Error;
use crate::transfer::Policy;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: Listen,
    /// Which dialect it writes.
    pub profile: Profile,
    /// A file with the tokens that callers show, one per line. Without it only callers on this
    /// machine can connect.
    pub token_file: Option<PathBuf>,
    /// The certificate and key, for callers who connect encrypted.
    pub tls: Option<CertFiles>,
    /// Which files runs may fetch and write.
    pub files: Policy,
    /// The tool that is served. A request that names another one is refused; without it none is.
    pub tool: Option<ToolName>,
    /// What its health says is served; the handler's own digest when absent.
    pub digest: Option<String>,
    /// How many connections may watch runs at once.
    pub connections_max: usize,
    /// How many runs are executed at once.
    pub concurrency: usize,
    /// How many runs may wait for their turn.
    pub queue: usize,
    /// How large the requests of all runs that are not over may be together.
    pub requests_bytes_max: usize,
    /// How long a run may take.
    pub timeout: Duration,
    /// How long a run that is to stop may take for that.
    pub cancel_grace: Duration,
    /// How long runs may go on once the server is to stop.
    pub drain: Duration,
    /// What the protocol bounds.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            listen: Listen::Tcp("127.0.0.1:8000".to_owned()),
            profile: Profile::Default,
            token_file: None,
            tls: None,
            files: Policy::default(),
            tool: None,
            digest: None,
            connections_max: 1024,
            concurrency: (cores * 8).max(16),
            queue: 256,
            requests_bytes_max: 128 * 1024 * 1024,
            timeout: Duration::from_secs(600),
            cancel_grace: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            limits: Limits::default(),
        }
    }
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A host and a port; port 0 takes a free one.
    Tcp(String),
    /// A socket in the file system, for its owner only.
    Unix(PathBuf),
    /// A socket that was made by whoever launched this process. It comes over the connection that
    /// is inherited under this number, together with the secret that callers must show and the
    /// name of the tool.
    Inherited(RawFd),
}

impl FromStr for Listen {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        if let Some(number) = text.strip_prefix("fd:") {
            let number = number.parse().ok().filter(|number| *number > 2);
            return number.map(Self::Inherited).ok_or_else(|| Error::Address(text.to_owned()));
        }
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        match port.and_then(|(_, port)| port.parse::<u16>().ok()) {
            Some(_) => Ok(Self::Tcp(text.to_owned())),
            None => Err(Error::Address(text.to_owned())),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Inherited(number) => write!(f, "fd:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_to_listen_are_read_and_written() {
        for text in ["127.0.0.1:8000", "localhost:0", "[::1]:9", "unix:/tmp/x.sock", "fd:3"] {
            assert_eq!(text.parse::<Listen>().expect(text).to_string(), text);
        }
        for text in [
            "",
            "8000",
            ":8000",
            "127.0.0.1",
            "host:http",
            "host:70000",
            "unix:",
            "fd:",
            "fd:2",
            "fd:-1",
            "fd:x",
        ] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }

    #[test]
    fn t020_the_usual_numbers() {
        let options = Options::default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(options.concurrency >= 16 && options.concurrency >= cores * 8);
        assert_eq!(options.queue, 256);
        assert_eq!(options.cancel_grace, Duration::from_secs(5));
        assert_eq!(options.drain, Duration::from_secs(30));
    }
}
