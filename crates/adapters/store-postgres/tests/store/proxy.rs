//! A connection that can be cut at any message of the protocol: between the store and the server.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream, tcp, unix};
use tokio::sync::watch;

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Client,
    Server,
}

/// Where the next transaction is cut: so many messages of one side after its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) from: From,
    pub(crate) after: usize,
}

/// Listens on loopback and passes everything on to the socket of a server.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<Mutex<CutState>>,
}

#[derive(Debug, Default)]
struct CutState {
    /// What the next connection that begins a transaction is cut at.
    armed: Option<Cut>,
    /// The connection that has begun one since.
    begun_by: Option<usize>,
    connections: usize,
    cuts: usize,
}

impl CutState {
    /// A connection begins a transaction; says whether it is cut before that.
    fn begin(&mut self, connection: usize) -> bool {
        if self.armed.is_some() && self.begun_by.is_none() {
            self.begun_by = Some(connection);
        }
        self.is_over(connection)
    }

    /// A message was passed on; says whether the connection is cut behind it.
    fn count(&mut self, connection: usize, from: From) -> bool {
        match &mut self.armed {
            Some(cut) if self.begun_by == Some(connection) && cut.from == from => cut.after -= 1,
            _ => return false,
        }
        self.is_over(connection)
    }

    fn is_over(&mut self, connection: usize) -> bool {
        let over =
            self.begun_by == Some(connection) && self.armed.is_some_and(|cut| cut.after == 0);
        if over {
            (self.armed, self.begun_by) = (None, None);
            self.cuts += 1;
        }
        over
    }
}

impl Proxy {
    pub(crate) async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(CutState::default()));
        let watched = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = UnixStream::connect(&socket).await {
                    tokio::spawn(Passage::open(&watched).pass(client, server));
                }
            }
        });
        Self { port, state }
    }

    /// Cuts the next transaction, once.
    pub(crate) fn arm(&self, cut: Cut) {
        self.state.lock().armed = Some(cut);
    }

    /// Says how many connections were cut so far, and cuts none any more.
    pub(crate) fn disarm(&self) -> usize {
        let mut state = self.state.lock();
        (state.armed, state.begun_by) = (None, None);
        state.cuts
    }
}

/// One connection.
struct Passage {
    number: usize,
    state: Arc<Mutex<CutState>>,
    cut: watch::Sender<bool>,
}

impl Passage {
    fn open(state: &Arc<Mutex<CutState>>) -> Self {
        let number = {
            let mut state = state.lock();
            state.connections += 1;
            state.connections
        };
        Self { number, state: Arc::clone(state), cut: watch::Sender::new(false) }
    }

    /// Passes messages on until there are no more or the connection is cut. Then the client hears
    /// nothing any more, and the server works off what it was sent before it finds nobody there.
    async fn pass(self, client: TcpStream, server: UnixStream) {
        // Each message leaves by itself, and must not wait for the one before to be confirmed.
        client.set_nodelay(true).expect("a connection");
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::join!(self.forth(from_client, to_server), self.back(from_server, to_client));
    }

    /// Counts a message that was passed on.
    fn count(&self, from: From) {
        if self.state.lock().count(self.number, from) {
            self.cut.send_replace(true);
        }
    }

    async fn forth(&self, mut client: tcp::OwnedReadHalf, mut server: unix::OwnedWriteHalf) {
        let (mut cut, mut has_type) = (self.cut.subscribe(), false);
        loop {
            let message = tokio::select! {
                message = read_message(&mut client, has_type) => message,
                () = until_cut(&mut cut) => None,
            };
            let Some(message) = message else { return };
            has_type = true;
            if message == BEGIN && self.state.lock().begin(self.number) {
                self.cut.send_replace(true);
                return;
            }
            if server.write_all(&message).await.is_err() {
                return;
            }
            self.count(From::Client);
        }
    }

    async fn back(&self, mut server: unix::OwnedReadHalf, mut client: tcp::OwnedWriteHalf) {
        let mut cut = self.cut.subscribe();
        loop {
            let message = tokio::select! {
                biased;
                () = until_cut(&mut cut) => break,
                message = read_message(&mut server, true) => message,
            };
            let Some(message) = message else { return };
            if client.write_all(&message).await.is_err() {
                return;
            }
            self.count(From::Server);
        }
        drop(client);
        let _ = tokio::io::copy(&mut server, &mut tokio::io::sink()).await;
    }
}

async fn until_cut(cut: &mut watch::Receiver<bool>) {
    let _ = cut.wait_for(|cut| *cut).await;
}

/// The simple query that begins every group.
const BEGIN: &[u8] = b"Q\0\0\0\x0aBEGIN\0";

/// One message as it is sent: a type, except for the first of a client, a length, and the rest.
async fn read_message(from: &mut (impl AsyncRead + Unpin), has_type: bool) -> Option<Vec<u8>> {
    let head = if has_type { 5 } else { 4 };
    let mut message = vec![0; head];
    from.read_exact(&mut message).await.ok()?;
    let length: [u8; 4] = message[head - 4..].try_into().ok()?;
    let rest = usize::try_from(u32::from_be_bytes(length)).ok()?.checked_sub(4)?;
    message.resize(head + rest, 0);
    from.read_exact(&mut message[head..]).await.ok()?;
    Some(message)
}
