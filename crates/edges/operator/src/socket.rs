//! One connection of a seat.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures::{SinkExt, StreamExt};
use tokio::time::Instant;
use wharf_protocol::operator::{Closed, Incoming, Outgoing, SeatSession};
use wharf_protocol::{Moment, Pings};
use wharf_vocab::Code;
use wharf_vocab::limits::{SOCKET_SPARE_BYTES, VALUE_BYTES_MAX};
use wharf_wire::operator_v1::{CoreMessage, close};

use crate::desk::{Desk, Order, Taken};
use crate::edge::Shared;
use crate::{asks, notices};

/// How long an operator may take to read a frame.
const WRITE_MAX: Duration = Duration::from_secs(20);

/// What may wait to be written to an operator: the largest message, which shows the inputs of a run,
/// and what stands around them.
pub(crate) const WRITE_BYTES_MAX: usize = VALUE_BYTES_MAX + 1024 * 1024 + SOCKET_SPARE_BYTES;

/// Serves a connection until it ends. It takes the seat at once.
pub(crate) async fn serve(shared: Arc<Shared>, desk: Arc<Desk>, socket: WebSocket) {
    let began = Instant::now();
    let (taken, due) = desk.take(shared.options.handle.now());
    let epoch = taken.epoch;
    let mut connection = Connection {
        session: SeatSession::new(shared.options.limits, moment(&shared, began)),
        shared: Arc::clone(&shared),
        desk: Arc::clone(&desk),
        began,
        epoch,
        pings: Pings::new(),
    };
    for cancel in &taken.cancels {
        connection.session.send(cancel);
    }
    for owed in &taken.owed {
        if let Some(message) = notices::message(&shared, owed).await {
            connection.session.send(&message);
        }
    }
    for due in due {
        let message = shared.message(due);
        connection.session.send(&message);
    }
    tokio::select! {
        () = connection.run(socket, taken) => {}
        // One that does not read is not waited for.
        () = desk.gone.cancelled() => {}
    }
    desk.leave(epoch, shared.options.handle.now());
}

struct Connection {
    session: SeatSession,
    shared: Arc<Shared>,
    desk: Arc<Desk>,
    began: Instant,
    epoch: u64,
    pings: Pings,
}

impl Connection {
    async fn run(&mut self, socket: WebSocket, mut taken: Taken) {
        let (mut sink, mut source) = socket.split();
        loop {
            while let Some(outgoing) = self.session.next_outgoing() {
                let last = matches!(outgoing, Outgoing::Close { .. });
                let sent = tokio::time::timeout(WRITE_MAX, sink.send(frame(outgoing))).await;
                match &sent {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        tracing::debug!(seat = %self.desk.seat.id, %error, "a seat's socket broke");
                    }
                    Err(_) => {
                        tracing::info!(seat = %self.desk.seat.id, "an operator does not read");
                    }
                }
                if last || !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
            let wake =
                self.session.next_deadline().map(|ms| self.began + Duration::from_millis(ms));
            tokio::select! {
                incoming = source.next() => match incoming {
                    Some(Ok(message)) => {
                        if !self.take(&message).await {
                            return;
                        }
                    }
                    Some(Err(_)) | None => return,
                },
                order = taken.orders.recv() => match order {
                    Some(order) => self.obey(order),
                    // The desk let go of a connection that could not keep up.
                    None => self.session.close(close::TRY_AGAIN, "too much waits to be read"),
                },
                () = until(wake) => self.session.tick(moment(&self.shared, self.began)),
            }
            if self.session.closed() == Some(Closed::Violations) {
                tracing::warn!(seat = %self.desk.seat.id, "an operator broke the protocol too often");
            }
        }
    }

    /// Takes a frame; `false` if it was the last.
    async fn take(&mut self, message: &Message) -> bool {
        let now = moment(&self.shared, self.began);
        self.desk.heard(now.at);
        let incoming = match message {
            Message::Text(text) => Incoming::Text(text),
            Message::Binary(_) => Incoming::Binary,
            Message::Ping(_) if !self.pings.take(now.ms) => {
                tracing::info!(seat = %self.desk.seat.id, "an operator sends too many pings");
                self.session.close(close::POLICY, Pings::TOO_MANY);
                return true;
            }
            Message::Ping(_) | Message::Pong(_) => Incoming::Pong,
            Message::Close(_) => return false,
        };
        self.session.receive(incoming, now);
        while let Some(req_id) = self.session.next_taken_notice() {
            notices::taken(&self.shared, &self.desk, &req_id).await;
        }
        while let Some(reply) = self.session.next_reply() {
            let req_id = reply.req_id().to_owned();
            // Somebody else sits here now; whatever this connection says does not count.
            if !self.desk.is_current(self.epoch) {
                return false;
            }
            match asks::reply(&self.shared, (&self.desk, self.epoch), reply).await {
                Ok(()) => self.session.taken(&req_id),
                Err(fault) if fault.is(Code::OperatorRequestUnknown) => {
                    self.session.unknown(&req_id, now);
                }
                Err(fault) => self.session.refused(&req_id, fault.code.as_str(), &fault.message),
            }
        }
        true
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Send(message) => match *message {
                CoreMessage::Cancel { req_id, task_id, reason } => {
                    self.session.withdraw(&req_id, &task_id, &reason);
                }
                message => self.session.send(&message),
            },
            Order::Close { code, reason } => self.session.close(code, &reason),
        }
    }
}

fn frame(outgoing: Outgoing) -> Message {
    match outgoing {
        Outgoing::Text(text) => Message::Text(text.into()),
        Outgoing::Ping => Message::Ping(bytes::Bytes::new()),
        Outgoing::Close { code, reason } => {
            Message::Close(Some(CloseFrame { code, reason: reason.into() }))
        }
    }
}

fn moment(shared: &Shared, began: Instant) -> Moment {
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Moment::new(ms, shared.options.handle.now())
}

async fn until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}
