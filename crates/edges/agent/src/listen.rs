//! Where agents connect: a Unix socket of the owner's alone, or a loopback address.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use wharf_vocab::{Code, Fault};

use crate::conn;
use crate::control::Shared;
use crate::options::Transport;

/// Connections that may be open at once.
const CONNECTIONS_MAX: usize = 16_384;

/// A socket that is bound.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    pub(crate) async fn bind(transport: &Transport) -> Result<(Self, String), Fault> {
        match transport {
            Transport::Unix(path) => {
                let listener = bind_unix(path)
                    .map_err(|error| unusable(&path.display().to_string(), &error))?;
                Ok((Self::Unix(listener), path.display().to_string()))
            }
            Transport::Tcp(addr) if !addr.ip().is_loopback() => {
                let message = format!("Agents may connect by loopback only, not by {addr}.");
                Err(Fault::new(Code::ConfigInvalid, message))
            }
            Transport::Tcp(addr) => {
                let error = |error| unusable(&addr.to_string(), &error);
                let listener = TcpListener::bind(addr).await.map_err(error)?;
                let addr = listener.local_addr().map_err(error)?;
                Ok((Self::Tcp(listener), format!("tcp:{addr}")))
            }
        }
    }

    /// Accepts until it is told to stop; a permit comes before a connection.
    pub(crate) async fn run(self, shared: Arc<Shared>, stop: CancellationToken) {
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = stop.cancelled() => return self.close(&shared),
                accepted = self.accept() => accepted,
            };
            match accepted {
                Ok(Accepted::Unix(stream)) => serve(&shared, stream, permit),
                Ok(Accepted::Tcp(stream)) => serve(&shared, stream, permit),
                Err(error) => {
                    tracing::warn!(%error, "an agent's connection could not be accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Leaves no socket behind that nobody listens on.
    fn close(self, shared: &Shared) {
        if let Self::Unix(listener) = self {
            drop(listener);
            // It may be gone already, with its folder.
            let _ = std::fs::remove_file(&shared.address);
        }
    }

    async fn accept(&self) -> std::io::Result<Accepted> {
        match self {
            Self::Unix(listener) => Ok(Accepted::Unix(listener.accept().await?.0)),
            Self::Tcp(listener) => {
                let stream = listener.accept().await?.0;
                stream.set_nodelay(true)?;
                Ok(Accepted::Tcp(stream))
            }
        }
    }
}

enum Accepted {
    Unix(tokio::net::UnixStream),
    Tcp(tokio::net::TcpStream),
}

fn serve(
    shared: &Arc<Shared>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    permit: OwnedSemaphorePermit,
) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        metrics::gauge!("wharf_agent_connections").increment(1);
        if let Err(fault) = conn::serve(shared, stream).await {
            tracing::error!(code = %fault.code, "an agent's connection could not be served");
        }
        metrics::gauge!("wharf_agent_connections").decrement(1);
        drop(permit);
    });
}

fn bind_unix(path: &Path) -> std::io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    // Only the core that holds the lock on the home comes here, so a socket that is left over
    // belongs to nobody.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn unusable(place: &str, error: &std::io::Error) -> Fault {
    let message = format!("Agents cannot connect at {place}: {error}.");
    Fault::new(Code::ConfigInvalid, message)
}
