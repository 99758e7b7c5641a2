//! How an order gets from the core to the warden and on to the process that carries it out.
//!
//! The order lies in a file that exists only in memory and is sealed before it is passed on: who
//! receives its descriptor reads exactly what was written, and nobody can change it afterwards.
//! The descriptor, and those of connections that the program inherits and of the way in, travel
//! over a socket; neither arguments nor environment of any process carry anything of it.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wharf_vocab::limits::LAUNCH_ORDER_BYTES_MAX;

/// Most descriptors in one message.
pub(super) const DESCRIPTORS_MAX: usize = 4;

/// What comes along with an order, as bits of the one byte that is sent.
const WITH_CONNECTION: u8 = 1;
const WITH_WAY_IN: u8 = 2;
const WITH_STDIO: u8 = 4;

/// What is handed over.
#[derive(Debug)]
pub(crate) struct Handover {
    /// The sealed order.
    pub(crate) order: OwnedFd,
    /// The connection that the program inherits.
    pub(crate) connection: Option<OwnedFd>,
    /// The socket on which connections to the program arrive.
    pub(crate) way_in: Option<OwnedFd>,
    /// The connection that is the program's standard input and output.
    pub(crate) stdio: Option<OwnedFd>,
}

impl Handover {
    /// Seals an order. It fails if the order is too large.
    pub(crate) fn seal<T: Serialize>(order: &T) -> io::Result<Self> {
        let text = serde_json::to_vec(order)?;
        if text.len() > LAUNCH_ORDER_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Self { order: sealed(&text)?, connection: None, way_in: None, stdio: None })
    }

    /// Puts it on a socket, where it waits for its reader.
    pub(crate) fn send(&self, socket: impl AsFd) -> io::Result<()> {
        let mut descriptors = vec![self.order.as_fd()];
        let mut with = 0;
        let more = [
            (&self.connection, WITH_CONNECTION),
            (&self.way_in, WITH_WAY_IN),
            (&self.stdio, WITH_STDIO),
        ];
        for (one, bit) in more {
            if let Some(one) = one {
                descriptors.push(one.as_fd());
                with |= bit;
            }
        }
        send_with(socket, &[with], &descriptors)
    }

    /// Waits for what was put on the other end of a socket.
    pub(crate) fn receive(socket: impl AsFd) -> io::Result<Self> {
        let mut with = [0];
        let (read, descriptors) = receive_with(socket, &mut with)?;
        let mut descriptors = descriptors.into_iter();
        let mut next = |bit: u8| {
            let one = (with[0] & bit == bit).then(|| descriptors.next());
            one.map(|one| one.ok_or(io::ErrorKind::UnexpectedEof)).transpose()
        };
        let (order, connection) = (next(0)?, next(WITH_CONNECTION)?);
        let (way_in, stdio) = (next(WITH_WAY_IN)?, next(WITH_STDIO)?);
        match order {
            Some(order) if read == 1 => Ok(Self { order, connection, way_in, stdio }),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The order, if its seal is whole.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> io::Result<T> {
        check_seal(self.order.as_fd())?;
        let file = File::from(self.order.try_clone()?);
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if length > LAUNCH_ORDER_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut text = vec![0; length];
        file.read_exact_at(&mut text, 0)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// Writes bytes and descriptors as one message.
pub(super) fn send_with(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::empty())?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Reads some bytes and the descriptors that came with them; no bytes mean the end.
pub(super) fn receive_with(
    socket: impl AsFd,
    bytes: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    Ok((received.bytes, descriptors))
}

#[cfg(target_os = "linux")]
fn sealed(text: &[u8]) -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};
    let descriptor = memfd_create("wharf-order", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(descriptor);
    file.write_all(text)?;
    fcntl_add_seals(&file, seals())?;
    Ok(file.into())
}

#[cfg(target_os = "linux")]
fn check_seal(order: BorrowedFd<'_>) -> io::Result<()> {
    let whole = rustix::fs::fcntl_get_seals(order)?.contains(seals());
    if whole { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(target_os = "linux")]
fn seals() -> rustix::fs::SealFlags {
    use rustix::fs::SealFlags;
    SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

/// Elsewhere a file without a name must do; only this user could have opened it.
#[cfg(not(target_os = "linux"))]
fn sealed(text: &[u8]) -> io::Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("wharf-order-{}-{number}", std::process::id()));
    let mut options = File::options();
    let mut file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(text)?;
    Ok(file.into())
}

#[cfg(not(target_os = "linux"))]
fn check_seal(_order: BorrowedFd<'_>) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_order_arrives_as_it_was_and_cannot_be_changed() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut handover = Handover::seal(&["a", "b"]).expect("seals");
        handover.connection = Some(File::open("/dev/null").expect("opens").into());
        handover.send(&ours).expect("sends");
        let received = Handover::receive(&theirs).expect("receives");
        assert!(received.connection.is_some() && received.way_in.is_none());
        let Handover { order, connection, .. } = received;
        let received = Handover { order, connection: None, way_in: connection, stdio: None };
        received.send(&ours).expect("sends");
        let received = Handover::receive(&theirs).expect("receives");
        assert!(received.connection.is_none() && received.way_in.is_some());
        let Handover { order, way_in, .. } = received;
        let received = Handover { order, connection: None, way_in: None, stdio: way_in };
        received.send(&ours).expect("sends");
        let received = Handover::receive(&theirs).expect("receives");
        assert!(received.way_in.is_none() && received.stdio.is_some());
        assert_eq!(received.read::<Vec<String>>().expect("reads"), ["a", "b"]);
        let mut file = File::from(received.order.try_clone().expect("clones"));
        assert!(file.write_all(b"x").is_err(), "it is sealed");
        assert!(file.set_len(1).is_err(), "it is sealed");
        assert_eq!(received.read::<Vec<String>>().expect("reads"), ["a", "b"]);
    }

    #[test]
    fn an_order_without_a_whole_seal_is_refused() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
        let descriptor =
            memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("makes");
        fcntl_add_seals(&descriptor, SealFlags::WRITE | SealFlags::SHRINK).expect("seals in part");
        let handover = Handover { order: descriptor, connection: None, way_in: None, stdio: None };
        let error = handover.read::<Vec<String>>().expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_sender_that_is_gone_is_noticed() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        drop(ours);
        assert!(Handover::receive(&theirs).is_err());
    }
}
