//! One agent's door: its socket, and everything that passes through it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use wharf_ports::launcher::EgressDoor;
use wharf_ports::{Trouble, TroubleOver};
use wharf_vocab::{Code, Fault};

use crate::connection;
use crate::gate::Gate;
use crate::meter::Traffic;
use crate::refusal::ProxyRefusal;

/// Connections that wait to be taken.
const BACKLOG: u32 = 128;
/// How long to wait when no connection can be taken, for example for want of descriptors.
const BREATH: Duration = Duration::from_millis(100);

/// A door. When it goes, so do its socket and all its connections.
#[derive(Debug)]
pub(crate) struct Door {
    traffic: Arc<Traffic>,
    _socket: SocketFile,
    _serving: AbortOnDropHandle<()>,
}

impl Door {
    /// Opens a door on a socket in a folder that exists.
    pub(crate) fn open(path: PathBuf, gate: Gate) -> Result<Self, Fault> {
        let (listener, socket) = listen(path).map_err(|(path, error)| {
            let agent = gate.agent();
            let message = format!(
                "The way out for the agent {agent} cannot be opened at {}: {error}.",
                path.display()
            );
            Fault::new(Code::AgentStartFailed, message)
        })?;
        let traffic = Arc::new(Traffic::default());
        let serving = tokio::spawn(serve(listener, gate, Arc::clone(&traffic)));
        Ok(Self { traffic, _socket: socket, _serving: AbortOnDropHandle::new(serving) })
    }
}

impl EgressDoor for Door {
    fn bytes(&self) -> (u64, u64) {
        self.traffic.bytes()
    }
}

/// Takes connections for ever. They live in here, so that they end with it.
async fn serve(listener: UnixListener, gate: Gate, traffic: Arc<Traffic>) {
    let gate = Arc::new(gate);
    let places = Arc::new(Semaphore::new(gate.limits().connections_max));
    // Whoever finds no place is told so, as long as that does not become a burden itself.
    let refusals = Arc::new(Semaphore::new(gate.limits().connections_max));
    let mut connections = JoinSet::new();
    let mut trouble = Trouble::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let stream = match accepted {
            Ok((stream, _)) => {
                if let Some(TroubleOver { failed, seconds }) = trouble.calm() {
                    let provider = gate.agent();
                    tracing::info!(%provider, failed, seconds, "a way out takes connections again");
                }
                stream
            }
            Err(error) => {
                if let Some(failed) = trouble.failed() {
                    let provider = gate.agent();
                    tracing::warn!(%provider, %error, failed, "a way out takes no connection");
                }
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let (gate, traffic) = (Arc::clone(&gate), Arc::clone(&traffic));
            connections.spawn(async move {
                connection::serve(stream, &gate, traffic).await;
                drop(place);
            });
        } else if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
            connections.spawn(no_place(stream, gate.limits().connections_max, place));
        }
    }
}

async fn no_place(mut stream: UnixStream, most: usize, _place: OwnedSemaphorePermit) {
    let message = format!("There are {most} connections through this proxy; close some first.");
    ProxyRefusal::new(Code::CoreBusy, message).send(&mut stream).await;
}

/// The file of a socket, which goes when this goes.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and number, to tell it from a later one of the same name.
    id: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            // The folder may be gone already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn listen(path: PathBuf) -> Result<(UnixListener, SocketFile), (PathBuf, io::Error)> {
    let bind = |path: &Path| {
        remove_stale(path)?;
        let socket = UnixSocket::new_stream()?;
        socket.bind(path)?;
        // Nobody can connect before it listens, so nobody slips in before it is closed to others.
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok((socket.listen(BACKLOG)?, id_of(path)?))
    };
    match bind(&path) {
        Ok((listener, id)) => Ok((listener, SocketFile { path, id })),
        Err(error) => Err((path, error)),
    }
}

/// Removes a socket that was left behind, and nothing else.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        _ => Ok(()),
    }
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}
