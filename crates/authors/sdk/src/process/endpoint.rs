//! Where the core is, and the token that lets the agent in.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, RawFd};
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use wharf_socket::lend;
use wharf_wire::agent_v1::SessionToken;

use crate::Error;

const SOCKET: &str = "OPENSENTIENCE_SOCKET";
const TOKEN: &str = "OPENSENTIENCE_SESSION_TOKEN";
/// What an agent sends for a token that inherited its connection and was given none.
const INHERITED: &str = "inherited";
const AGENT_ID: &str = "OPENSENTIENCE_AGENT_ID";

/// Where the core is, and the token that lets the agent in. The token is never shown.
///
/// ```
/// use wharf_sdk::process::Endpoint;
///
/// let endpoint = Endpoint::new("/run/wharf/agents.sock", "a token").expect("a path");
/// assert!(!format!("{endpoint:?}").contains("a token"));
/// assert!(Endpoint::new("tcp:not an address", "a token").is_err());
/// ```
#[derive(Debug)]
pub struct Endpoint {
    place: EndpointAddress,
    token: SessionToken,
    agent_id: Option<String>,
}

#[derive(Debug)]
enum EndpointAddress {
    Unix(PathBuf),
    Tcp(SocketAddr),
    /// A connection that the process was started with.
    Inherited(RawFd),
}

/// A connection of either kind.
pub(super) trait EndpointStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> EndpointStream for T {}

impl Endpoint {
    /// A socket's path, `tcp:` and a loopback address, or `fd:` and the number of a descriptor
    /// that is connected already; and a token.
    pub fn new(address: &str, token: impl Into<String>) -> Result<Self, Error> {
        if let Some(number) = address.strip_prefix("fd:") {
            let number: RawFd = number.parse().map_err(|_| unusable(address))?;
            if number < 0 {
                return Err(unusable(address));
            }
            let (place, token) = (EndpointAddress::Inherited(number), SessionToken::new(token));
            return Ok(Self { place, token, agent_id: None });
        }
        let place = match address.strip_prefix("tcp:") {
            Some(address) => {
                let parsed: SocketAddr = address.parse().map_err(|_| unusable(address))?;
                // The token would travel in the open on any other network.
                if !parsed.ip().is_loopback() {
                    return Err(unusable(address));
                }
                EndpointAddress::Tcp(parsed)
            }
            None if address.is_empty() => return Err(unusable(address)),
            None => EndpointAddress::Unix(PathBuf::from(address)),
        };
        Ok(Self { place, token: SessionToken::new(token), agent_id: None })
    }

    /// What the core wrote into the environment of this process.
    pub fn from_env() -> Result<Self, Error> {
        let set = |variable| match env::var(variable) {
            Ok(value) if !value.is_empty() => Ok(value),
            _ => Err(Error::Environment { variable }),
        };
        let socket = set(SOCKET)?;
        let token = match set(TOKEN) {
            // Whoever holds the connection needs no other proof.
            Err(_) if socket.starts_with("fd:") => INHERITED.to_owned(),
            token => token?,
        };
        let mut endpoint = Self::new(&socket, token)?;
        endpoint.agent_id = set(AGENT_ID).ok();
        Ok(endpoint)
    }

    /// The token, if the agent is the one that the core wanted to start.
    pub(super) fn token_for(&self, own: &str) -> Result<SessionToken, Error> {
        match &self.agent_id {
            Some(wanted) if wanted != own => {
                Err(Error::OtherAgent { own: own.to_owned(), wanted: wanted.clone() })
            }
            _ => Ok(self.token.clone()),
        }
    }

    pub(super) async fn connect(&self) -> io::Result<Box<dyn EndpointStream>> {
        Ok(match &self.place {
            EndpointAddress::Unix(path) => Box::new(UnixStream::connect(path).await?),
            EndpointAddress::Inherited(number) => Box::new(inherited(*number)?),
            EndpointAddress::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}

fn unusable(address: &str) -> Error {
    let why = "the address of the core is a path, `tcp:` with a loopback address and port, or `fd:` \
               with a number";
    Error::Address { address: address.to_owned(), why }
}

/// The connection that the process was started with, as an own descriptor. What the process
/// starts in turn does not inherit it.
fn inherited(number: RawFd) -> io::Result<UnixStream> {
    let lent = lend(number)?;
    rustix::io::fcntl_setfd(lent.as_fd(), rustix::io::FdFlags::CLOEXEC)?;
    let stream = std::os::unix::net::UnixStream::from(lent.as_fd().try_clone_to_owned()?);
    // Anything but a connected socket is a mistake that is better told here.
    stream.peer_addr()?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
