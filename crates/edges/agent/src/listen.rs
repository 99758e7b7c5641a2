//! Where agents connect: a Unix socket of the owner's alone, or a loopback address.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use wharf_hosting::bind_unix;
use wharf_ports::{Trouble, TroubleOver};
use wharf_vocab::{Code, Fault};

use crate::admit::{Origin, OwnLaunch, PeerProcess};
use crate::conn;
use crate::options::Transport;
use crate::shared::AgentHub;

/// Connections that may be open at once.
const CONNECTIONS_MAX: usize = 16_384;
/// Connections that may be open at once on the socket of one launch; one of them is let in.
const OWN_CONNECTIONS_MAX: usize = 8;

/// A socket that is bound.
#[derive(Debug)]
pub(crate) enum AgentListener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl AgentListener {
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

    /// Accepts until it is told to stop.
    pub(crate) async fn run(self, shared: Arc<AgentHub>, stop: CancellationToken) {
        self.accept_all(&shared, None, CONNECTIONS_MAX, stop).await;
        if let Self::Unix(listener) = self {
            drop(listener);
            // Nobody listens on it any more. It may be gone already, with its folder.
            let _ = std::fs::remove_file(&shared.address);
        }
    }

    /// Accepts connections, of one launch if there is one; a permit comes before a connection.
    async fn accept_all(
        &self,
        shared: &Arc<AgentHub>,
        launch: Option<OwnLaunch>,
        most: usize,
        stop: CancellationToken,
    ) {
        let permits = Arc::new(Semaphore::new(most));
        let mut trouble = Trouble::default();
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.accept() => accepted,
            };
            if accepted.is_ok()
                && let Some(TroubleOver { failed, seconds }) = trouble.calm()
            {
                tracing::info!(failed, seconds, "connections of agents are accepted again");
            }
            match accepted {
                Ok(AgentStream::Unix(stream)) => {
                    let origin = Origin { process: peer(&stream), launch: launch.clone() };
                    serve(shared, stream, origin, permit);
                }
                Ok(AgentStream::Tcp(stream)) => serve(shared, stream, Origin::default(), permit),
                Err(error) => {
                    if let Some(failed) = trouble.failed() {
                        tracing::warn!(%error, failed, "an agent's connection could not be accepted");
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn accept(&self) -> std::io::Result<AgentStream> {
        match self {
            Self::Unix(listener) => Ok(AgentStream::Unix(listener.accept().await?.0)),
            Self::Tcp(listener) => {
                let stream = listener.accept().await?.0;
                stream.set_nodelay(true)?;
                Ok(AgentStream::Tcp(stream))
            }
        }
    }
}

enum AgentStream {
    Unix(UnixStream),
    Tcp(tokio::net::TcpStream),
}

/// Who is at the other end. Without an answer nobody is, who could be let in.
fn peer(stream: &UnixStream) -> Option<PeerProcess> {
    let stranger = PeerProcess { uid: u32::MAX, pid: None };
    Some(stream.peer_cred().map_or(stranger, |cred| PeerProcess {
        uid: cred.uid(),
        pid: cred.pid().and_then(|pid| u32::try_from(pid).ok()),
    }))
}

fn serve(
    shared: &Arc<AgentHub>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    origin: Origin,
    permit: OwnedSemaphorePermit,
) {
    let attended = attend(Arc::clone(shared), stream, origin);
    shared.host.tasks().spawn_until_end("a connection", async move {
        attended.await;
        drop(permit);
    });
}

async fn attend(
    shared: Arc<AgentHub>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    origin: Origin,
) {
    metrics::gauge!("wharf_agent_connections").increment(1);
    if let Err(fault) = conn::serve(shared, stream, origin).await {
        tracing::error!(code = %fault.code, "an agent's connection could not be served");
    }
    metrics::gauge!("wharf_agent_connections").decrement(1);
}

/// Serves the socket of one launch until that is over.
pub(crate) async fn run_own(
    shared: Arc<AgentHub>,
    listener: UnixListener,
    own: OwnLaunch,
    over: CancellationToken,
) {
    AgentListener::Unix(listener).accept_all(&shared, Some(own), OWN_CONNECTIONS_MAX, over).await;
}

/// Serves the connection that a launch has from its start.
pub(crate) fn serve_inherited(shared: &Arc<AgentHub>, stream: UnixStream, own: OwnLaunch) {
    let origin = Origin { process: None, launch: Some(own) };
    let attended = attend(Arc::clone(shared), stream, origin);
    shared.host.tasks().spawn_until_end("a connection", attended);
}

fn unusable(place: &str, error: &std::io::Error) -> Fault {
    let message = format!("Agents cannot connect at {place}: {error}.");
    Fault::new(Code::ConfigInvalid, message)
}
