//! Where the core is, and the token that lets the agent in.

use std::env;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use wharf_wire::agent_v1::SessionToken;

use crate::Error;

const SOCKET: &str = "OPENSENTIENCE_SOCKET";
const TOKEN: &str = "OPENSENTIENCE_SESSION_TOKEN";
const AGENT_ID: &str = "OPENSENTIENCE_AGENT_ID";

/// Where the core is, and the token that lets the agent in. The token is never shown.
///
/// ```
/// use wharf_sdk::Endpoint;
///
/// let endpoint = Endpoint::new("/run/wharf/agents.sock", "a token").expect("a path");
/// assert!(!format!("{endpoint:?}").contains("a token"));
/// assert!(Endpoint::new("tcp:not an address", "a token").is_err());
/// ```
pub struct Endpoint {
    place: Place,
    token: SessionToken,
    agent_id: Option<String>,
}

#[derive(Debug)]
enum Place {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A connection of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Endpoint {
    /// A socket's path, or `tcp:` and a loopback address; and a token.
    pub fn new(address: &str, token: impl Into<String>) -> Result<Self, Error> {
        let place = match address.strip_prefix("tcp:") {
            Some(address) => {
                let address: SocketAddr = address.parse().map_err(|_| Error::Address)?;
                // The token would travel in the open on any other network.
                if !address.ip().is_loopback() {
                    return Err(Error::Address);
                }
                Place::Tcp(address)
            }
            None if address.is_empty() => return Err(Error::Address),
            None => Place::Unix(PathBuf::from(address)),
        };
        Ok(Self { place, token: SessionToken::new(token), agent_id: None })
    }

    /// What the core wrote into the environment of this process.
    pub fn from_env() -> Result<Self, Error> {
        let set = |variable| match env::var(variable) {
            Ok(value) if !value.is_empty() => Ok(value),
            _ => Err(Error::Environment { variable }),
        };
        let mut endpoint = Self::new(&set(SOCKET)?, set(TOKEN)?)?;
        endpoint.agent_id = set(AGENT_ID).ok();
        Ok(endpoint)
    }

    /// The token, if the agent is the one that the core wanted to start.
    pub(crate) fn token_for(&self, own: &str) -> Result<SessionToken, Error> {
        match &self.agent_id {
            Some(wanted) if wanted != own => {
                Err(Error::OtherAgent { own: own.to_owned(), wanted: wanted.clone() })
            }
            _ => Ok(self.token.clone()),
        }
    }

    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match &self.place {
            Place::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("place", &self.place).finish_non_exhaustive()
    }
}
