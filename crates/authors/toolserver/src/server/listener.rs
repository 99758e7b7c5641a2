//! Where connections come from.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};

use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::net::sockopt::socket_acceptconn;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, lookup_host};
use tokio_util::either::Either;
use wharf_socket::lend;
use wharf_wire::run_v1::Handover;

use super::{Error, Listen};
use crate::worker::receive_with;

/// A socket that is listened on.
#[derive(Debug)]
pub(super) enum ServerListener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
    /// One that somebody else has made, and its number there.
    Inherited(UnixListener, RawFd),
}

/// A connection, before anything was said.
pub(super) type ClientStream = Either<TcpStream, UnixStream>;

impl ServerListener {
    /// Begins to listen, and says what was handed over with the socket, if it was made by somebody
    /// else. Without a token only this machine may connect.
    pub(super) async fn bind(
        listen: &Listen,
        has_token: bool,
    ) -> Result<(Self, Option<Handover>), Error> {
        let failed = |source| Error::Bind { address: listen.to_string(), source };
        let listener = match listen {
            Listen::Tcp(address) => {
                let addresses: Vec<SocketAddr> =
                    lookup_host(address).await.map_err(failed)?.collect();
                let is_open = addresses.iter().any(|address| !address.ip().is_loopback());
                if is_open && !has_token {
                    return Err(Error::Open(address.clone()));
                }
                TcpListener::bind(addresses.as_slice()).await.map(Self::Tcp).map_err(failed)?
            }
            Listen::Unix(path) => {
                clear(path).await.map_err(failed)?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                let owner_only = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(path, owner_only).map_err(failed)?;
                Self::Unix(listener, SocketFile(path.clone()))
            }
            Listen::Inherited(number) => {
                let (listener, handover) = receive(*number).map_err(failed)?;
                return Ok((Self::Inherited(listener, *number), Some(handover)));
            }
        };
        Ok((listener, None))
    }

    /// Where it listens, as a client writes it.
    pub(super) fn address(&self) -> Listen {
        match self {
            Self::Tcp(listener) => Listen::Tcp(
                listener.local_addr().map_or_else(|_| String::new(), |address| address.to_string()),
            ),
            Self::Unix(_, file) => Listen::Unix(file.0.clone()),
            Self::Inherited(_, number) => Listen::Inherited(*number),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<ClientStream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                // A peer that vanished is noticed although nothing says so.
                let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, 60_000);
                Ok(ClientStream::Left(stream))
            }
            Self::Unix(listener, _) | Self::Inherited(listener, _) => {
                Ok(ClientStream::Right(listener.accept().await?.0))
            }
        }
    }
}

/// Takes what a core hands to the server that it launches, under this number: where to listen, a
/// secret, and which tool. It is there already, or never comes.
///
/// The core makes the socket outside the server's fence, so that nothing inside can move it, take
/// its place or lead the core elsewhere. All of it arrives over a connection that this process
/// inherits, and no process that is started here inherits any of it.
fn receive(number: RawFd) -> io::Result<(UnixListener, Handover)> {
    let lent = lend(number)?;
    let connection = lent.as_fd();
    fcntl_setfd(connection, FdFlags::CLOEXEC)?;
    ioctl_fionbio(connection, true)?;
    let mut text = vec![0; Handover::BYTES_MAX];
    let (read, descriptors) = receive_with(connection, &mut text)?;
    let Ok([socket]) = <[_; 1]>::try_from(descriptors) else {
        return Err(io::Error::other("no socket was handed over"));
    };
    if !socket_acceptconn(&socket)? {
        return Err(io::Error::other("what was handed over does not listen"));
    }
    let listener = StdUnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok((UnixListener::from_std(listener)?, serde_json::from_slice(&text[..read])?))
}

/// Removes a socket that a server left behind; one that is listened on stays.
async fn clear(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => match UnixStream::connect(path).await {
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(_) => std::fs::remove_file(path),
        },
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

/// A socket in the file system, which goes with its server.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
