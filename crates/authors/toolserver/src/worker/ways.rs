//! The sockets and pipes between a server and the processes of one run, and how descriptors pass.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Most descriptors in one message.
const DESCRIPTORS_MAX: usize = 4;

/// The server's ends. Dropping them makes the keeper kill the run's processes.
#[derive(Debug)]
pub(super) struct ServerEnds {
    /// To the keeper.
    pub(super) control: UnixStream,
    /// To the worker.
    pub(super) channel: UnixStream,
    /// What the run prints.
    pub(super) out: pipe::Receiver,
    /// What it prints as errors.
    pub(super) err: pipe::Receiver,
}

/// The other ends.
#[derive(Debug)]
pub(super) struct WorkerEnds {
    pub(super) control: OwnedFd,
    pub(super) channel: OwnedFd,
    pub(super) out: OwnedFd,
    pub(super) err: OwnedFd,
}

/// Makes all of them. No process inherits any by accident.
pub(super) fn ways() -> io::Result<(ServerEnds, WorkerEnds)> {
    let (control, their_control) = socket()?;
    let (channel, their_channel) = socket()?;
    let (out, their_out) = io::pipe()?;
    let (err, their_err) = io::pipe()?;
    let ours = ServerEnds {
        control,
        channel,
        out: pipe::Receiver::from_owned_fd(out.into())?,
        err: pipe::Receiver::from_owned_fd(err.into())?,
    };
    let theirs = WorkerEnds {
        control: their_control,
        channel: their_channel,
        out: their_out.into(),
        err: their_err.into(),
    };
    Ok((ours, theirs))
}

/// A pair of sockets: ours for the runtime, theirs to be passed on.
pub(super) fn socket() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// Sends bytes with descriptors; gives how many bytes went out with them.
pub(super) async fn send_with(
    socket: &UnixStream,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let send = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let data = [IoSlice::new(bytes)];
        Ok(sendmsg(socket, &data, &mut control, SendFlags::NOSIGNAL)?)
    };
    socket.async_io(Interest::WRITABLE, send).await
}

/// Waits for bytes with descriptors.
pub(crate) fn receive_with(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut data = [IoSliceMut::new(bytes)];
    let received = recvmsg(socket, &mut data, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let messages = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((received.bytes, messages.flatten().collect()))
}
