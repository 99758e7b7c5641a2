//! The way in: connections that arrive on a Unix socket of the core are passed on to the port on
//! which a program listens.
//!
//! The core opens the socket and hands it to the shim. Whoever is in the program's network serves
//! it: the first process of the program's namespaces, or the warden where there are none. So
//! nobody else holds it, and it ends with the launch. Who says what is not looked at here.

use std::fs::{self, Permissions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::{Resource, getrlimit};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Connections that are passed on at once; more wait.
const CONNECTIONS_MAX: u64 = 256;
/// Each takes two descriptors, and as many again are for other things.
const DESCRIPTORS_EACH: u64 = 4;
/// Connections that may wait to be passed on.
const WAITING_MAX: i32 = 128;
/// How long to wait after a connection could not be accepted.
const BEFORE_NEXT: Duration = Duration::from_millis(100);
/// Only this user may connect.
const MODE: u32 = 0o600;

/// The socket's name outside. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct InboundSocketFile {
    path: PathBuf,
}

impl InboundSocketFile {
    /// Opens a socket for this user only where nothing is yet; whoever connects waits for
    /// somebody to serve it.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, OwnedFd)> {
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        // On Linux the name then never has another mode, not even for a moment.
        let _ = rustix::fs::fchmod(&socket, Mode::from_raw_mode(MODE));
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        let door = Self { path: path.to_owned() };
        fs::set_permissions(path, Permissions::from_mode(MODE))?;
        rustix::net::listen(&socket, WAITING_MAX)?;
        Ok((door, socket))
    }
}

impl Drop for InboundSocketFile {
    fn drop(&mut self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "a launch's socket cannot be removed");
            }
            _ => {}
        }
    }
}

/// The socket, and where it leads in the network of this process.
#[derive(Debug)]
pub(crate) struct InboundSocket {
    socket: OwnedFd,
    port: u16,
}

impl InboundSocket {
    pub(crate) fn new(socket: OwnedFd, port: u16) -> Self {
        Self { socket, port }
    }

    /// Passes connections on, on a thread of its own, for as long as this process lives.
    #[cfg(target_os = "linux")]
    pub(crate) fn open(self) -> io::Result<()> {
        std::thread::Builder::new().name("wharf-inbound".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(self.serve())
        })?;
        Ok(())
    }

    /// Passes connections on until this is given up.
    pub(crate) async fn serve(self) -> io::Result<()> {
        let listener = StdUnixListener::from(self.socket);
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let free = Arc::new(Semaphore::new(connections_max()));
        loop {
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return Ok(()) };
            // Used up descriptors pass; the next one may do better.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(BEFORE_NEXT).await;
                continue;
            };
            tokio::spawn(async move {
                // Whoever connected learns of a failure by the connection's end.
                let _ = pass_on(stream, self.port).await;
                drop(permit);
            });
        }
    }
}

/// As many as there are descriptors for.
fn connections_max() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = (descriptors / DESCRIPTORS_EACH).clamp(1, CONNECTIONS_MAX);
    usize::try_from(most).unwrap_or(1)
}

async fn pass_on(mut outer: UnixStream, port: u16) -> io::Result<()> {
    let mut inner = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    inner.set_nodelay(true)?;
    copy_bidirectional(&mut outer, &mut inner).await?;
    Ok(())
}
