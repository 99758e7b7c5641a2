//! A peer that pings and does not read.

use std::time::Duration;

use futures::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Many more than anybody may send.
const PINGS: usize = 2_000;
/// How long the other end may take to say or do something.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends pings and reads nothing meanwhile; then how many were answered, and the code of the end.
///
/// # Panics
///
/// If the other end neither answers nor ends the connection.
pub async fn flood_pings<S>(stream: &mut S) -> (u32, u16)
where
    S: Sink<Message> + Stream<Item = Result<Message, Error>> + Unpin,
{
    for _ in 0..PINGS {
        // Whoever has hung up is sent nothing more.
        if stream.send(Message::Ping(vec![7; 125].into())).await.is_err() {
            break;
        }
    }
    let mut answered = 0;
    loop {
        match timeout(PATIENCE, stream.next()).await.expect("an end in time") {
            Some(Ok(Message::Pong(_))) => answered += 1,
            Some(Ok(Message::Close(frame))) => {
                return (answered, frame.map_or(0, |frame| frame.code.into()));
            }
            Some(Ok(_)) => {}
            // It was in no state to hear why.
            Some(Err(_)) | None => return (answered, 1008),
        }
    }
}
