//! Operations over a WebSocket, by the protocols `graphql-transport-ws` and `graphql-ws`.
//!
//! Where the token came with the request that opened the socket, `connection_init` need not carry
//! anything; else it must carry the token, and soon. A socket reads no further ahead than its peer
//! takes; one whose peer is gone, does not read, pings without end, asks for nothing or whose token
//! is not good any more is closed.

mod greeting;
mod messages;
mod operations;
mod pulse;

use std::sync::Arc;
use std::time::Duration;

use async_graphql::http::{WebSocket as Protocol, WebSocketProtocols, WsMessage};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use wharf_domain::Caller;
use wharf_vocab::limits::{SOCKET_READ_BYTES, SOCKET_SPARE_BYTES};
use wharf_vocab::{Code, Fault};
use wharf_web::params::SentTrace;

use crate::access::{CallerExtensions, CallerSession, caller};
use crate::exec::RequestContext;
use crate::limits::ANSWER_BYTES_MAX;
use crate::negotiate::{AnswerFormat, refusal};
use crate::post;
use greeting::SocketClose;
use messages::Messages;
use operations::Operations;
use pulse::{HealthAction, SocketHealth};

/// What browsers offer beside the protocol, because they cannot send a token in a header.
const MARK: &str = wharf_wire::ws::BROWSER_SUBPROTOCOL;
/// How often a socket is looked at, at most.
const LOOK: Duration = Duration::from_secs(1);

/// Opens a WebSocket.
pub(crate) async fn open(
    State(core): State<RequestContext>,
    admitted: CallerExtensions,
    stop: Option<Extension<CancellationToken>>,
    (uri, headers): (Uri, HeaderMap),
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else { return post::get(&core, admitted, &uri, &headers).await };
    let refusal = |fault| refusal(AnswerFormat::Json, fault);
    let caller = match caller(admitted) {
        Ok(caller) => Some(caller),
        // Whoever sent no token may do so in its first message.
        Err(fault) if fault.is(Code::AuthRequired) => None,
        Err(fault) => return refusal(fault),
    };
    let Some((protocol, echoed)) = choose(&headers) else {
        let message = "Offer the subprotocol graphql-transport-ws or graphql-ws.";
        return refusal(Fault::invalid("sec-websocket-protocol", message));
    };
    let places = if caller.is_some() { &core.sockets } else { &core.strangers };
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        let message = "Too many WebSockets are open; try again in a moment.";
        return refusal(Fault::new(Code::CoreBusy, message));
    };
    let max = core.limits.message_bytes_max;
    let upgrade = upgrade
        .read_buffer_size(SOCKET_READ_BYTES)
        .max_write_buffer_size(ANSWER_BYTES_MAX + SOCKET_SPARE_BYTES)
        .max_message_size(max)
        .max_frame_size(max)
        .protocols([echoed]);
    let stop = stop.map(|Extension(stop)| stop).unwrap_or_default();
    let trace = SentTrace::of(&headers);
    let service = Service { core, caller, trace, protocol, stop, place };
    upgrade.on_upgrade(move |socket| service.serve(socket)).into_response()
}

/// The protocol to speak, and the one to name in the answer: the first offer that is known here,
/// because the order is the peer's wish and some peers take the first for granted. A browser that
/// offers the mark alone is answered with it, and none ever sees its token again.
fn choose(headers: &HeaderMap) -> Option<(WebSocketProtocols, &'static str)> {
    let offers: Vec<&str> = wharf_web::token::offered(headers).collect();
    let known = [WebSocketProtocols::GraphQLWS, WebSocketProtocols::SubscriptionsTransportWS];
    let named = |offer: &&str| known.into_iter().find(|it| it.sec_websocket_protocol() == *offer);
    match offers.iter().find_map(named) {
        Some(protocol) => Some((protocol, protocol.sec_websocket_protocol())),
        None if offers.contains(&MARK) => Some((WebSocketProtocols::GraphQLWS, MARK)),
        None => None,
    }
}

/// What serves one socket.
struct Service {
    core: RequestContext,
    /// Who opened it, if that is known yet.
    caller: Option<Caller>,
    /// The trace of operations that name none.
    trace: SentTrace,
    protocol: WebSocketProtocols,
    /// Ends the socket when the core stops.
    stop: CancellationToken,
    place: OwnedSemaphorePermit,
}

impl Service {
    async fn serve(mut self, socket: WebSocket) {
        let (mut sink, mut input) = socket.split();
        let (caller, first) = match self.introduced(&mut input).await {
            Ok(introduced) => introduced,
            Err((code, reason)) => {
                send(&mut sink, close(code, reason), self.core.limits.write).await;
                return;
            }
        };
        let Self { core, trace, protocol, stop, place: _place, .. } = self;
        let session = CallerSession { trace, ..CallerSession::new(core.handle.clone(), caller) };
        let pulse = Arc::new(SocketHealth::new(session.clone(), Arc::clone(&core.limits)));
        let (texts, mut written) = mpsc::channel(1);
        let texts = (protocol == WebSocketProtocols::GraphQLWS).then_some(texts);
        let operations = Operations::new(core.clone(), session, Arc::clone(&pulse), texts);
        let messages = Messages::new(first, input, Arc::clone(&pulse), Arc::clone(&core.asked));
        let mut output = Protocol::from_message_stream(operations, messages, protocol);
        let mut look = tokio::time::interval(LOOK.min(core.limits.recheck));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                said = output.next() => match said {
                    Some(WsMessage::Text(text)) => Message::Text(text.into()),
                    Some(WsMessage::Close(code, reason)) => close(code, why(code, &reason)),
                    None => match pulse.ending() {
                        Some((code, reason)) => {
                            tracing::info!(reason, "a GraphQL socket is closed");
                            close(code, reason)
                        }
                        None => break,
                    },
                },
                Some(text) = written.recv() => Message::Text(text.into()),
                () = stop.cancelled() => close(1001, "The core is stopping."),
                _ = look.tick() => match pulse.beat() {
                    Some(HealthAction::Ping) => Message::Ping(axum::body::Bytes::new()),
                    Some(HealthAction::End(code, reason)) => close(code, reason),
                    None => continue,
                },
            };
            let bytes = if let Message::Text(text) = &message { text.len() } else { 0 };
            let (message, _room) = match RequestContext::room(&core.answers, bytes) {
                Ok(room) => (message, Some(room)),
                Err(_) => (close(1013, "Too many answers wait to be read."), None),
            };
            let last = matches!(message, Message::Close(_));
            if !send(&mut sink, message, core.limits.write).await || last {
                break;
            }
        }
        // The peer may be gone; then there is nobody to say goodbye to.
        let _ = tokio::time::timeout(core.limits.write, sink.close()).await;
    }

    /// Who opened the socket, and the message that said so if one did.
    async fn introduced(
        &mut self,
        input: &mut SplitStream<WebSocket>,
    ) -> Result<(Caller, Option<Message>), SocketClose> {
        if let Some(caller) = self.caller.take() {
            return Ok((caller, None));
        }
        let (caller, first) = greeting::await_caller(&self.core, input, &self.stop).await?;
        // It is no stranger any more, and takes the place of one that came with a token.
        let place = Arc::clone(&self.core.sockets).try_acquire_owned();
        self.place = place.map_err(|_| (1013, "Too many WebSockets are open."))?;
        Ok((caller, Some(first)))
    }
}

/// Sends a message to a peer that takes it in time.
async fn send(
    sink: &mut SplitSink<WebSocket, Message>,
    message: Message,
    patience: Duration,
) -> bool {
    match tokio::time::timeout(patience, sink.send(message)).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a GraphQL socket broke");
            false
        }
        Err(_) => {
            tracing::info!("a GraphQL socket is ended: its peer does not read");
            false
        }
    }
}

/// The time of a socket that began then, in milliseconds.
fn since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn close(code: u16, reason: &str) -> Message {
    Message::Close(Some(CloseFrame { code, reason: reason.into() }))
}

/// Why the protocol ends a connection. What a message held that cannot be read is not repeated.
fn why(code: u16, reason: &str) -> &str {
    if code == 1002 { "A message cannot be read." } else { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::SEC_WEBSOCKET_PROTOCOL;

    #[test]
    fn t045_browsers_offer_a_mark_and_their_token_is_never_echoed() {
        let chosen = |offer: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(SEC_WEBSOCKET_PROTOCOL, offer.parse().expect("a header"));
            choose(&headers).map(|(_, echoed)| echoed)
        };
        for (offer, echoed) in [
            ("graphql-transport-ws", Some("graphql-transport-ws")),
            ("graphql-ws", Some("graphql-ws")),
            ("graphql-ws, graphql-transport-ws", Some("graphql-ws")),
            ("graphql-transport-ws, graphql-ws", Some("graphql-transport-ws")),
            ("wharf.v1, wharf.bearer.t0ken", Some("wharf.v1")),
            ("wharf.v1,wharf.bearer.t0ken,graphql-transport-ws", Some("graphql-transport-ws")),
            ("wharf.bearer.t0ken", None),
            ("mqtt", None),
        ] {
            assert_eq!(chosen(offer), echoed, "{offer}");
        }
        assert!(choose(&HeaderMap::new()).is_none());
    }
}
