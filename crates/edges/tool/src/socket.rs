//! A connection over a WebSocket.

use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::time::{Instant, MissedTickBehavior};
use wharf_protocol::Pings;
use wharf_wire::tool_v1::close;

use crate::edge::Shared;
use crate::peer::{Closing, Inlets, Opening, Peer};
use crate::shares::Place;

type Sink = SplitSink<WebSocket, Message>;

/// Serves a connection until it ends.
pub(crate) async fn serve(shared: Arc<Shared>, opening: Opening, socket: WebSocket, _place: Place) {
    let (mut sink, source) = socket.split();
    let (mut peer, mut inlets) = match Peer::begin(&shared, opening).await {
        Ok(begun) => begun,
        Err(closing) => return bid(&shared, &mut sink, closing).await,
    };
    let closing = pump(&shared, &mut peer, &mut inlets, &mut sink, source).await;
    peer.end(inlets).await;
    if let Some(closing) = closing {
        bid(&shared, &mut sink, closing).await;
    }
}

/// Passes frames in both directions; says how to end the connection if it is still there.
async fn pump(
    shared: &Shared,
    peer: &mut Peer,
    inlets: &mut Inlets,
    sink: &mut Sink,
    mut source: SplitStream<WebSocket>,
) -> Option<Closing> {
    let options = &shared.options;
    let stop = if peer.is_principal() { &shared.draining } else { &shared.stop };
    let mut look = tokio::time::interval(options.recheck.min(options.ping));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begun = Instant::now();
    let (mut heard, mut pinged, mut pings) = (begun, begun, Pings::new());
    loop {
        while let Some(frame) = peer.next_frame() {
            if !send(shared, sink, Message::Text(frame.into())).await {
                return None;
            }
        }
        let done = tokio::select! {
            incoming = source.next() => {
                heard = Instant::now();
                match incoming {
                    Some(Ok(Message::Text(text))) => peer.receive(&text).await,
                    Some(Ok(Message::Binary(_))) => peer.receive_other(),
                    Some(Ok(Message::Ping(_))) if !pings.take(since(begun)) => {
                        tracing::info!("a tool socket is ended: its peer sends too many pings");
                        Err(Closing::new(close::POLICY, Pings::TOO_MANY))
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                    Some(Ok(Message::Close(_))) => {
                        // The farewell is returned; whoever does not take it is gone.
                        let _ = tokio::time::timeout(options.write_max, sink.flush()).await;
                        return None;
                    }
                    None => return None,
                    Some(Err(error)) => return broken(&error),
                }
            }
            order = inlets.orders.recv(), if !peer.is_principal() => peer.obey(order).await,
            tidings = inlets.tidings.recv() => {
                if let Some(tidings) = tidings {
                    peer.tell(tidings);
                }
                Ok(())
            }
            () = stop.cancelled() => Err(Closing::stop()),
            _ = look.tick() => {
                if heard.elapsed() >= options.silence_max {
                    return None;
                }
                if pinged.elapsed() >= options.ping {
                    pinged = Instant::now();
                    if !send(shared, sink, Message::Ping(bytes::Bytes::new())).await {
                        return None;
                    }
                }
                peer.check()
            }
        };
        if let Err(closing) = done {
            // What was decided before is still told.
            while let Some(frame) = peer.next_frame() {
                if !send(shared, sink, Message::Text(frame.into())).await {
                    return None;
                }
            }
            return Some(closing);
        }
    }
}

/// Sends a message to a peer that takes it in time.
async fn send(shared: &Shared, sink: &mut Sink, message: Message) -> bool {
    match tokio::time::timeout(shared.options.write_max, sink.send(message)).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a tool socket broke");
            false
        }
        Err(_) => {
            tracing::info!("a tool socket is ended: its peer does not read");
            false
        }
    }
}

/// The time of a socket that began then, in milliseconds.
fn since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A frame that is larger than any may be is told so; for everything else the connection is gone.
fn broken(error: &axum::Error) -> Option<Closing> {
    let text = error.to_string().to_ascii_lowercase();
    let too_large = text.contains("too long") || text.contains("space limit");
    too_large.then(|| Closing::new(close::TOO_LARGE, "a frame is too large"))
}

/// Says farewell.
async fn bid(shared: &Shared, sink: &mut Sink, closing: Closing) {
    let Closing { code, reason } = closing;
    // A close frame has little room.
    let reason: String = reason.chars().filter(char::is_ascii).take(120).collect();
    let farewell = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    // Whoever does not take it is gone.
    let _ = tokio::time::timeout(shared.options.write_max, sink.send(farewell)).await;
}
