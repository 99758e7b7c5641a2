//! Forwards one request and its answer.

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::body::Broken;
use crate::connection::{BUFFER_BYTES, Outside};
use crate::head::End;
use crate::request::Forward;
use crate::response;

/// Sends a request on and its answer back. The answer may come before the request is complete.
/// What the agent sends after its request goes nowhere.
pub(crate) async fn forward(
    stream: &mut UnixStream,
    rest: &[u8],
    outside: Outside,
    request: &Forward,
) -> Result<(), End> {
    let (from, mut to) = stream.split();
    let mut body = BufReader::with_capacity(BUFFER_BYTES, rest.chain(from));
    let mut answer = BufReader::with_capacity(BUFFER_BYTES, outside.from);
    let mut server = outside.to;
    let send = async {
        server.write_all(&request.head).await.map_err(|_| Broken::Sink)?;
        request.framing.relay(&mut body, &mut server).await
    };
    let receive = response::relay(&mut answer, &mut to, request.is_head);
    tokio::pin!(send, receive);
    tokio::select! {
        received = &mut receive => received,
        sent = &mut send => match sent {
            Err(Broken::Source) => Err(End::Cut),
            // A server that takes no more may still answer.
            Ok(()) | Err(Broken::Sink) => receive.await,
        },
    }
}
