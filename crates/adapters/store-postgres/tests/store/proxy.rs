//! A connection that can be cut at a message: between the store and the server, byte by byte.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// When the next connection that commits is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before the server has heard of the commit.
    BeforeCommit,
    /// After it has, and before its answer arrives.
    AfterCommit,
}

/// Listens on loopback and passes everything on to the socket of a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    armed: Arc<AtomicU8>,
}

impl Proxy {
    pub(crate) async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let port = listener.local_addr().expect("an address").port();
        let armed = Arc::new(AtomicU8::new(0));
        let watched = Arc::clone(&armed);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&socket).await;
                if let Ok(server) = server {
                    tokio::spawn(pass(client, server, Arc::clone(&watched)));
                }
            }
        });
        Self { port, armed }
    }

    /// Cuts the next connection that commits, once.
    pub(crate) fn arm(&self, cut: Cut) {
        self.armed.store(if cut == Cut::BeforeCommit { 1 } else { 2 }, Ordering::SeqCst);
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::SeqCst) != 0
    }
}

async fn pass(client: TcpStream, server: UnixStream, armed: Arc<AtomicU8>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (cut, mut is_cut) = tokio::sync::watch::channel(false);
    let back = tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = tokio::select! {
                read = from_server.read(&mut buffer) => read,
                _ = is_cut.changed() => {
                    // The server goes on for itself: its answer is read to the end, and lost.
                    while from_server.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
                    return;
                }
            };
            match read {
                Ok(count) if count > 0 => {
                    if to_client.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count) = from_client.read(&mut buffer).await
        && count > 0
    {
        let commits = buffer[..count].windows(7).any(|bytes| bytes == b"COMMIT\0");
        let armed = if commits { armed.swap(0, Ordering::SeqCst) } else { 0 };
        if armed == 1 {
            back.abort();
            return;
        }
        if armed == 2 {
            let _ = cut.send(true);
        }
        if to_server.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        if armed == 2 {
            return;
        }
    }
}
