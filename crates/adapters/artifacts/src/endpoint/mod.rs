//! The embedded artifact store over HTTP, as S3: reading and writing of one object by a signed
//! address, and nothing else.
//!
//! Every request must bear a valid signature of version 4. There are no lists, no removals and no
//! buckets to make: who may see what is decided by the core, which makes the addresses.

mod backend;
mod body;
mod checksum;
mod conn;
mod options;
mod patient;
mod service;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use rusty_s3::{Bucket, UrlStyle};
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_ports::{AddressGate, Trouble, TroubleOver};
use wharf_tls::Acceptor;

pub use options::EndpointOptions;
pub use wharf_tls::CertFiles;

use self::backend::{Access, Auth, Backend, SharedAddressGate};
use self::conn::Conn;
use self::service::Requests;
use crate::presign::Presigner;
use crate::{EmbeddedObjects, FileObjects};

/// The only bucket.
const BUCKET: &str = "wharf";
/// The region that addresses name. It has no meaning here.
const REGION: &str = "us-east-1";

/// The embedded store's endpoint, bound to its address but not yet answering.
pub struct Endpoint {
    listener: TcpListener,
    addr: SocketAddr,
    options: EndpointOptions,
    tls: Option<Acceptor>,
    service: S3Service,
    objects: Arc<EmbeddedObjects>,
    gate: SharedAddressGate,
}

impl Endpoint {
    /// Takes the address; requests are answered from [`serve`](Self::serve) on.
    pub async fn bind(files: Arc<FileObjects>, options: EndpointOptions) -> io::Result<Self> {
        let tls = options.tls.clone().map(Acceptor::open).transpose();
        let tls = tls.map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        let listener = TcpListener::bind(options.listen).await?;
        let addr = listener.local_addr()?;
        let url = match &options.public_url {
            Some(url) => options::public(url)?,
            None => own_url(addr, tls.is_some())?,
        };
        let bucket = Bucket::new(url, UrlStyle::Path, BUCKET, REGION).map_err(io::Error::other)?;
        let keys = &options.credentials;
        let keys = rusty_s3::Credentials::new(&keys.key_id, &keys.secret);
        let presigner = Presigner::new(bucket, keys);
        let gate = SharedAddressGate::default();
        let backend = Backend::new(Arc::clone(&files), Arc::clone(&gate));
        let mut service = S3ServiceBuilder::new(backend);
        service.set_auth(Auth::new(options.credentials.clone()));
        service.set_access(Access);
        let service = service.build();
        let objects = Arc::new(EmbeddedObjects::new(files, presigner));
        Ok(Self { listener, addr, options, tls, service, objects, gate })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The store whose addresses lead here.
    #[must_use]
    pub fn objects(&self) -> Arc<EmbeddedObjects> {
        Arc::clone(&self.objects)
    }

    /// Lets this gate say from now on which objects may be read and written by an address. Without
    /// one, every valid address may be used until its time is over. Only the first gate counts.
    pub fn set_gate(&self, gate: Arc<dyn AddressGate>) {
        if self.gate.set(gate).is_err() {
            tracing::warn!("the artifact store has a gate already, which it keeps");
        }
    }

    /// Answers requests until it is told to stop or what it returns is dropped.
    #[must_use]
    pub fn serve(self) -> RunningEndpoint {
        let stop = CancellationToken::new();
        let cut = CancellationToken::new();
        let tasks = TaskTracker::new();
        let addr = self.addr;
        let stop_grace = self.options.stop_grace;
        if let Some(tls) = self.tls.clone() {
            let stop = stop.clone();
            tasks.spawn(async move {
                tokio::select! {
                    () = tls.follow(|_| {}) => {}
                    () = stop.cancelled() => {}
                }
            });
        }
        tasks.spawn(self.accept(tasks.clone(), stop.clone(), cut.clone()));
        tasks.close();
        RunningEndpoint { addr, stop, cut, tasks, stop_grace }
    }

    async fn accept(self, tasks: TaskTracker, stop: CancellationToken, cut: CancellationToken) {
        let permits = Arc::new(Semaphore::new(self.options.connections_max));
        let options = Arc::new(self.options);
        let requests = Requests::new(self.service, Arc::clone(&options), tasks.clone());
        let conn = Conn { requests, tls: self.tls, options, stop: stop.clone(), cut };
        let conn = Arc::new(conn);
        let mut trouble = Trouble::default();
        loop {
            // Whoever comes when there are enough connections waits to be accepted.
            let accepted = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (self.listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                () = stop.cancelled() => return,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    if let Some(TroubleOver { failed, seconds }) = trouble.calm() {
                        tracing::info!(failed, seconds, "the artifact store is reached again");
                    }
                    let conn = Arc::clone(&conn);
                    tasks.spawn(async move {
                        conn.serve(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    if let Some(failed) = trouble.failed() {
                        let what = "failed to accept a connection to the artifact store";
                        tracing::warn!(%error, failed, "{what}");
                    }
                    // Too many open files do not become fewer by trying again at once.
                    tokio::time::sleep(conn.accept_pause()).await;
                }
            }
        }
    }
}

/// An endpoint that answers requests.
#[derive(Debug)]
pub struct RunningEndpoint {
    addr: SocketAddr,
    stop: CancellationToken,
    cut: CancellationToken,
    tasks: TaskTracker,
    stop_grace: std::time::Duration,
}

impl RunningEndpoint {
    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes no more requests, lets those end that are under way, and cuts those that take too
    /// long.
    pub async fn stop(self) {
        self.stop.cancel();
        if tokio::time::timeout(self.stop_grace, self.tasks.wait()).await.is_err() {
            self.cut.cancel();
            self.tasks.wait().await;
        }
    }
}

impl Drop for RunningEndpoint {
    fn drop(&mut self) {
        self.stop.cancel();
        self.cut.cancel();
    }
}

/// The address under which this machine reaches the listener.
fn own_url(addr: SocketAddr, tls: bool) -> io::Result<Url> {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let scheme = if tls { "https" } else { "http" };
    let url = format!("{scheme}://{}", SocketAddr::new(ip, addr.port()));
    Url::parse(&url).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
}
