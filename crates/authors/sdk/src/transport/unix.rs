//! Calls over a Unix socket: one JSON text per line.

use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::lines::lines;
use super::{Error, Link, Options};

/// Connects to whoever listens on a socket.
///
/// ```no_run
/// use wharf_sdk::transport::{Options, unix};
/// use wharf_sdk::Scope;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let link = unix::connect("/run/tools.sock", &Options::default()).await?;
/// let scope = Scope::root().with_transport(link);
/// # Ok(()) }
/// ```
pub async fn connect(path: impl AsRef<Path>, options: &Options) -> Result<Link, Error> {
    let path = path.as_ref();
    let address = || path.display().to_string();
    let connected = tokio::time::timeout(options.connect_max, UnixStream::connect(path)).await;
    let stream = connected.map_err(|_| Error::Timeout { address: address() })?;
    let stream = stream.map_err(|source| Error::Connect { address: address(), source })?;
    Ok(accept(stream, options))
}

/// Makes a link of a socket that is connected already, at either end.
#[must_use]
pub fn accept(stream: UnixStream, options: &Options) -> Link {
    Link::new(lines(stream, options.limits.frame_bytes_max), !options.plain, false, options)
}

/// Listens on a socket. Its file is removed when the listener is dropped.
///
/// ```
/// use wharf_sdk::{Scope, operative, transport::{Options, unix}};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("tools.sock");
/// let mut listener = unix::Listener::bind(&path, Options::default())?;
/// let client = unix::connect(&path, &Options::default()).await?;
/// let server = listener.accept().await?;
/// let scope = Scope::root();
/// let serving = operative::serve(&scope, &server);
/// client.close().await;
/// serving.await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    options: Options,
}

impl Listener {
    /// Begins to listen. Whatever stood at the path must have been removed.
    pub fn bind(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let listener = UnixListener::bind(&path).map_err(Error::Listen)?;
        Ok(Self { listener, path, options })
    }

    /// Waits for the next connection.
    pub async fn accept(&mut self) -> Result<Link, Error> {
        let (stream, _) = self.listener.accept().await.map_err(Error::Listen)?;
        Ok(accept(stream, &self.options))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have removed it before.
        let _ = std::fs::remove_file(&self.path);
    }
}
