//! What a core hands to the server that it launches: where to listen, a secret, and which tool.
//!
//! The core makes the socket outside the server's fence, so that nothing inside can move it, take
//! its place or lead the core elsewhere. All of it arrives over a connection that this process
//! inherits, and no process that is started here inherits any of it.

use std::io;
use std::os::fd::{AsFd as _, RawFd};
use std::os::unix::net::UnixListener as StdUnixListener;

use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::net::sockopt::socket_acceptconn;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixListener;
use wharf_wire::run_v1::Handover;

use crate::worker::receive_with;

/// Takes what was handed over under this number. It is there already, or never comes.
pub(super) fn receive(number: RawFd) -> io::Result<(UnixListener, Handover)> {
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

/// A descriptor by its number, if it is open. It belongs to this process from its start, and
/// nothing here ever closes it, so it stays open as long as it is lent.
#[expect(
    deprecated,
    reason = "the sound ways from a number to a descriptor all need unsafe code in the caller"
)]
fn lend(number: RawFd) -> io::Result<AsyncFd<RawFd>> {
    AsyncFd::new(number)
}
