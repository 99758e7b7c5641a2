//! Accepts connections: a permit first, then the socket.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use wharf_engine::Handle;
use wharf_ports::{Trouble, TroubleOver};
use wharf_vocab::{Code, Fault};

use crate::app::{App, StopSignals};
use crate::options::{HttpLimits, HttpOptions, Mount};
use crate::routes::Route;
use crate::{conn, metrics, openapi, routes};

/// Connections the system may queue while none is accepted.
const BACKLOG: u32 = 1024;
/// How long to wait when the system has no more sockets to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket that accepts nothing yet.
#[derive(Debug)]
pub struct HttpListener {
    socket: TcpListener,
    addr: SocketAddr,
}

impl HttpListener {
    /// Binds the address; port 0 lets the system pick one.
    pub fn bind(addr: SocketAddr, limits: &HttpLimits) -> Result<Self, Fault> {
        let bound = || {
            let socket = if addr.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            if let Some(bytes) = limits.send_buffer_bytes {
                socket.set_send_buffer_size(bytes)?;
            }
            socket.bind(addr)?;
            let socket = socket.listen(BACKLOG)?;
            let addr = socket.local_addr()?;
            Ok(Self { socket, addr })
        };
        bound().map_err(|error| cannot_listen(addr, &error))
    }

    /// Takes a socket that listens already, which somebody else has made.
    pub fn adopt(socket: std::net::TcpListener) -> Result<Self, Fault> {
        let adopted = || {
            socket.set_nonblocking(true)?;
            let addr = socket.local_addr()?;
            Ok(Self { socket: TcpListener::from_std(socket)?, addr })
        };
        adopted().map_err(|error: std::io::Error| {
            let message = format!("The socket that was handed over cannot be used: {error}.");
            Fault::new(Code::ConfigInvalid, message)
        })
    }

    /// The address that was bound, with its real port.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Begins to accept.
    #[must_use]
    pub fn serve(self, handle: Handle, options: HttpOptions) -> HttpServer {
        metrics::install();
        let stops = StopSignals::default();
        let (app, routes) = app(handle, options, stops.clone());
        let tasks = TaskTracker::new();
        let router = routes::router(Arc::clone(&app), routes);
        tasks.spawn(accept(self.socket, app, router, tasks.clone()));
        HttpServer { addr: self.addr, stops, tasks }
    }
}

/// A server that accepts requests. One that is dropped goes on until its runtime ends.
#[derive(Debug)]
pub struct HttpServer {
    addr: SocketAddr,
    stops: StopSignals,
    tasks: TaskTracker,
}

impl HttpServer {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Accepts no more connections and answers what waits; event streams go on.
    pub fn drain(&self) {
        self.stops.draining.cancel();
    }

    /// Ends event streams, lets requests that are under way end, at most so long, and cuts off
    /// what is left.
    pub async fn stop(self, at_most: Duration) {
        self.stops.draining.cancel();
        self.stops.closing.cancel();
        self.tasks.close();
        if tokio::time::timeout(at_most, self.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.tasks.len(), "connections were cut off at the end");
            self.stops.aborted.cancel();
            self.tasks.wait().await;
        }
    }
}

/// What every request can reach, and the routes.
pub(crate) fn app(
    handle: Handle,
    options: HttpOptions,
    stops: StopSignals,
) -> (Arc<App>, Vec<Route>) {
    let routes = routes::all();
    let access = routes.iter().map(|route| route.access.clone()).collect();
    let document = |mounts: &[Mount]| openapi::text(&routes::all(), mounts);
    (Arc::new(App::new(handle, options, stops, access, document)), routes)
}

async fn accept(socket: TcpListener, app: Arc<App>, router: Router, tasks: TaskTracker) {
    let permits = Arc::new(Semaphore::new(app.options.limits.connections_max));
    let mut trouble = Trouble::default();
    loop {
        if permits.available_permits() == 0 {
            metrics::connections_full();
        }
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await.ok()?;
            Some((permit, socket.accept().await))
        };
        let accepted = tokio::select! {
            biased;
            () = app.stops.draining.cancelled() => return,
            accepted = next => accepted,
        };
        match accepted {
            Some((permit, Ok((stream, peer)))) => {
                if let Some(TroubleOver { failed, seconds }) = trouble.calm() {
                    tracing::info!(failed, seconds, "connections are accepted again");
                }
                let (router, app) = (router.clone(), Arc::clone(&app));
                tasks.spawn(async move {
                    conn::serve(stream, peer, router, app).await;
                    drop(permit);
                });
            }
            Some((_, Err(error))) if is_of_one_connection(error.kind()) => {}
            Some((_, Err(error))) => {
                if let Some(failed) = trouble.failed() {
                    tracing::warn!(%error, failed, "a connection could not be accepted");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            None => return,
        }
    }
}

fn is_of_one_connection(kind: ErrorKind) -> bool {
    use ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(kind, ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

fn cannot_listen(addr: SocketAddr, error: &std::io::Error) -> Fault {
    let message = match error.kind() {
        ErrorKind::AddrInUse => format!(
            "{addr} is taken, perhaps by another core; stop that program, or choose another \
             address with --listen, such as --listen 127.0.0.1:0 for a free port."
        ),
        ErrorKind::AddrNotAvailable => {
            format!("This machine does not have the address {}; choose another.", addr.ip())
        }
        ErrorKind::PermissionDenied => {
            format!("{addr} may not be used by this account; choose a port above 1023.")
        }
        _ => format!("{addr} cannot be listened on: {error}."),
    };
    Fault::new(Code::ConfigInvalid, message)
}
