//! A network that consists of a loopback device, and on it the way to the core's proxy.
//!
//! The first process of the namespace listens there and passes each connection on to the proxy's
//! Unix socket outside. What the proxy lets through is the proxy's business.

use std::io;
use std::net::{Ipv4Addr, TcpListener as StdTcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{Resource, getrlimit};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;

use super::view;

/// Connections that are passed on at once; more wait.
const CONNECTIONS_MAX: u64 = 64;
/// Each takes two descriptors, and some are for other things.
const DESCRIPTORS_ELSE: u64 = 16;
/// How long to wait after a connection could not be accepted.
const BEFORE_NEXT: Duration = Duration::from_millis(100);
/// The loopback device is the first one of every network.
const LOOPBACK: i32 = 1;
/// The kernel's numbers for "change a device", "answer me", and "it is up".
const NEW_LINK: u16 = 16;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
const UP: u32 = 1;

/// Switches the loopback device on, which gives it its addresses.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // The first of its protocols is the one for devices.
        None,
    )?;
    let mut request = Vec::with_capacity(32);
    request.extend(32_u32.to_ne_bytes());
    request.extend(NEW_LINK.to_ne_bytes());
    request.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([0; 4]);
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(UP.to_ne_bytes());
    request.extend(UP.to_ne_bytes());
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut answer = [0; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // After the header of 16 bytes stands an error number, negative, or zero.
    match answer.get(16..20).filter(|_| length >= 20).and_then(|bytes| bytes.try_into().ok()) {
        Some(bytes) => match i32::from_ne_bytes(bytes) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        },
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Holds on to a proxy's socket, whatever root this process moves to.
#[derive(Debug)]
pub(crate) struct Egress {
    socket: OwnedFd,
}

impl Egress {
    pub(crate) fn hold(path: &Path) -> io::Result<Self> {
        Ok(Self { socket: view::open(path)? })
    }

    /// Begins to listen; answers with the port.
    pub(crate) fn listen(self) -> io::Result<(u16, Passage)> {
        let listener = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        Ok((port, Passage { listener, socket: self.socket }))
    }
}

/// The way from the program's network to the proxy, not yet open.
#[derive(Debug)]
pub(crate) struct Passage {
    listener: StdTcpListener,
    socket: OwnedFd,
}

impl Passage {
    /// Passes connections on, on a thread of its own, for as long as this process lives.
    pub(crate) fn open(self) -> io::Result<()> {
        thread::Builder::new().name("wharf-egress".into()).spawn(move || self.serve())?;
        Ok(())
    }

    fn serve(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.socket.as_raw_fd()));
        self.listener.set_nonblocking(true)?;
        runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            let free = Arc::new(Semaphore::new(connections_max()));
            loop {
                let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return Ok(()) };
                // Refused connections and used up descriptors pass; the next one may do better.
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(BEFORE_NEXT).await;
                    continue;
                };
                let path = path.clone();
                tokio::spawn(async move {
                    let _ = pass_on(stream, &path).await;
                    drop(permit);
                });
            }
        })
    }
}

/// As many as there are descriptors for.
fn connections_max() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = descriptors.saturating_sub(DESCRIPTORS_ELSE) / 2;
    usize::try_from(most.clamp(1, CONNECTIONS_MAX)).unwrap_or(1)
}

async fn pass_on(mut inner: TcpStream, path: &Path) -> io::Result<()> {
    let _ = inner.set_nodelay(true);
    let mut outer = UnixStream::connect(path).await?;
    copy_bidirectional(&mut inner, &mut outer).await?;
    Ok(())
}
