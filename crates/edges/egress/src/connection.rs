//! One connection of an agent: a head, a decision, and then what was asked for.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional_with_sizes, join};
use tokio::net::UnixStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::body::BodyError;
use crate::gate::Gate;
use crate::head::{self, End};
use crate::meter::{ConnectionMeter, MeteredEnd, Traffic};
use crate::request::{Forward, ProxyRequest};
use crate::response;

/// How much is read at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// The way to a host, counted.
struct HostConnection {
    from: MeteredEnd<OwnedReadHalf>,
    to: MeteredEnd<OwnedWriteHalf>,
}

/// Serves a connection to its end.
pub(crate) async fn serve(mut stream: UnixStream, gate: &Gate, traffic: Arc<Traffic>) {
    if let Err(End::Refused(refusal)) = exchange(&mut stream, gate, traffic).await {
        refusal.send(&mut stream).await;
    }
}

async fn exchange(stream: &mut UnixStream, gate: &Gate, traffic: Arc<Traffic>) -> Result<(), End> {
    let head = head::read(stream, gate.limits().head).await?;
    let request = ProxyRequest::parse(&head.bytes)?;
    let reached = gate.reach(request.target()).await?;
    reached.set_nodelay(true)?;
    let (from, to) = reached.into_split();
    let meter = ConnectionMeter::new(traffic);
    let outside = HostConnection {
        from: MeteredEnd { inner: from, meter: Arc::clone(&meter) },
        to: MeteredEnd { inner: to, meter: Arc::clone(&meter) },
    };
    let passing = async {
        match &request {
            ProxyRequest::Tunnel(_) => tunnel(stream, &head.rest, outside).await,
            ProxyRequest::Forward(request) => forward(stream, &head.rest, outside, request).await,
        }
    };
    tokio::select! {
        done = passing => done,
        () = meter.idle(gate.limits().idle) => Err(End::Cut),
    }
}

/// Passes everything both ways until both have ended.
async fn tunnel(stream: &mut UnixStream, rest: &[u8], outside: HostConnection) -> Result<(), End> {
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let (from, to) = stream.split();
    let mut agent = join(rest.chain(from), to);
    let mut outside = join(outside.from, outside.to);
    copy_bidirectional_with_sizes(&mut agent, &mut outside, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok(())
}

/// Sends a request on and its answer back. The answer may come before the request is complete.
/// What the agent sends after its request goes nowhere.
async fn forward(
    stream: &mut UnixStream,
    rest: &[u8],
    outside: HostConnection,
    request: &Forward,
) -> Result<(), End> {
    let (from, mut to) = stream.split();
    let mut body = BufReader::with_capacity(BUFFER_BYTES, rest.chain(from));
    let mut answer = BufReader::with_capacity(BUFFER_BYTES, outside.from);
    let mut server = outside.to;
    let send = async {
        server.write_all(&request.head).await.map_err(|_| BodyError::Sink)?;
        request.framing.relay(&mut body, &mut server).await
    };
    let receive = response::relay(&mut answer, &mut to, request.is_head);
    tokio::pin!(send, receive);
    tokio::select! {
        received = &mut receive => received,
        sent = &mut send => match sent {
            Err(BodyError::Source) => Err(End::Cut),
            // A server that takes no more may still answer.
            Ok(()) | Err(BodyError::Sink) => receive.await,
        },
    }
}
