//! One connection of a seat.
//!
//! What it says about asks is decided while the next frames are read, in the order in which it
//! came: each decision is a commit, and those that are under way together share one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt as _};
use tokio::sync::mpsc;
use wharf_protocol::operator::{SeatEvent, SeatSession};
use wharf_protocol::{Closed, Incoming, Moment, Session as _};
use wharf_socket::{Clock, Owner, Patience, Sink, Source, pump, split_frames};
use wharf_vocab::limits::{SOCKET_SPARE_BYTES, VALUE_BYTES_MAX};
use wharf_vocab::{Code, Fault};
use wharf_wire::operator_v1::{CoreMessage, OperatorMessage};
use wharf_wire::ws::close;

use crate::desk::{Desk, DeskConnection, DeskOrder};
use crate::shared::SeatHub;
use crate::{asks, notices};

/// How long an operator may take to read a frame.
const WRITE_MAX: Duration = Duration::from_secs(20);

/// What may wait to be written to an operator: the largest message, which shows the inputs of a run,
/// and what stands around them.
pub(crate) const WRITE_BYTES_MAX: usize = VALUE_BYTES_MAX + 1024 * 1024 + SOCKET_SPARE_BYTES;

/// Replies of one connection that may be decided at once; beyond it, frames wait.
const DECIDED_AT_ONCE: usize = 64;

/// Serves a connection until it ends. It takes the seat at once.
pub(crate) async fn serve(shared: Arc<SeatHub>, desk: Arc<Desk>, socket: WebSocket) {
    let clock = Clock::start();
    let now = shared.options.handle.now();
    let (taken, due) = desk.take(now);
    let mut session = SeatSession::new(shared.options.limits, clock.moment(now));
    for cancel in &taken.cancels {
        session.send(cancel);
    }
    for owed in &taken.owed {
        if let Some(message) = notices::message(&shared, owed).await {
            session.send(&message);
        }
    }
    for due in due {
        session.send(&shared.message(due));
    }
    let sitting = DeskConnection { desk, epoch: taken.epoch };
    let deciding = FuturesOrdered::new();
    let orders = taken.orders;
    let mut connection = SeatConnection { session, shared, sitting, clock, orders, deciding };
    connection.run(socket).await;
}

struct SeatConnection {
    session: SeatSession,
    shared: Arc<SeatHub>,
    sitting: DeskConnection,
    clock: Clock,
    orders: mpsc::Receiver<DeskOrder>,
    /// Replies about asks that are being decided.
    deciding: FuturesOrdered<BoxFuture<'static, Decided>>,
}

/// What became of a reply.
struct Decided {
    req_id: String,
    result: Result<(), Fault>,
}

/// What reaches a connection from inside.
enum SeatMessage {
    /// The desk wants something; nothing more once it let go of the connection.
    Order(Option<DeskOrder>),
    /// A reply was taken, or not.
    Decided(Decided),
}

impl SeatConnection {
    async fn run(&mut self, socket: WebSocket) {
        let (mut source, mut sink) = split_frames(socket);
        let patience = Patience { write: Some(WRITE_MAX), close: WRITE_MAX, lingers: false };
        let gone = self.sitting.desk.gone.clone();
        tokio::select! {
            () = self.talk(&mut source, &mut sink, patience) => {}
            // One that does not read is not waited for.
            () = gone.cancelled() => {}
        }
        self.sitting.desk.leave(self.sitting.epoch, self.shared.options.handle.now());
        match self.session.closed() {
            Some(why @ Closed::Violations) => {
                tracing::warn!(seat = %self.sitting.desk.seat.id, %why, "a seat's socket was closed");
            }
            Some(why @ (Closed::Pings | Closed::NotReading | Closed::Silent)) => {
                tracing::info!(seat = %self.sitting.desk.seat.id, %why, "a seat's socket was closed");
            }
            Some(why) => {
                tracing::debug!(seat = %self.sitting.desk.seat.id, %why, "a seat's socket ended")
            }
            None => {}
        }
    }

    /// Serves the connection, and sees to it that what was said last is decided.
    async fn talk(&mut self, source: &mut impl Source, sink: &mut impl Sink, patience: Patience) {
        pump(source, sink, self, patience).await;
        while self.deciding.next().await.is_some() {}
    }

    async fn reply(&mut self, reply: OperatorMessage) {
        let (shared, sitting) = (Arc::clone(&self.shared), self.sitting.clone());
        let is_of_ask =
            matches!(reply, OperatorMessage::Answer { .. } | OperatorMessage::HookAck { .. });
        let req_id = reply.req_id().to_owned();
        let decided = async move {
            let result = asks::reply(&shared, &sitting, reply).await;
            Decided { req_id, result }
        };
        if !is_of_ask {
            return self.decided(decided.await);
        }
        if self.deciding.len() >= DECIDED_AT_ONCE
            && let Some(first) = self.deciding.next().await
        {
            self.decided(first);
        }
        self.deciding.push_back(Box::pin(decided));
    }

    fn decided(&mut self, Decided { req_id, result }: Decided) {
        match result {
            Ok(()) => self.session.taken(&req_id),
            Err(fault) if fault.is(Code::OperatorRequestUnknown) => {
                self.session.unknown(self.now(), &req_id);
            }
            Err(fault) => self.session.refused(&req_id, &fault),
        }
    }

    fn order(&mut self, order: Option<DeskOrder>) {
        match order {
            Some(DeskOrder::Send(message)) => match *message {
                CoreMessage::Cancel { req_id, task_id, reason } => {
                    self.session.withdraw(&req_id, &task_id, &reason);
                }
                message => self.session.send(&message),
            },
            Some(DeskOrder::Close { code, reason }) => self.session.close(code, &reason),
            // The desk let go of a connection that could not keep up.
            None => self.session.close(close::TRY_AGAIN, "too much waits to be read"),
        }
    }
}

impl Owner for SeatConnection {
    type Session = SeatSession;
    type Command = SeatMessage;

    fn session(&mut self) -> &mut SeatSession {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.clock.moment(self.shared.options.handle.now())
    }

    fn receive(&mut self, incoming: Incoming<'_>) {
        let now = self.now();
        self.sitting.desk.heard(now.at);
        self.session.receive(now, incoming);
    }

    async fn work(&mut self) -> ControlFlow<()> {
        while let Some(event) = self.session.poll_event() {
            match event {
                SeatEvent::NoticeTaken(req_id) => {
                    notices::taken(&self.shared, &self.sitting.desk, &req_id).await;
                }
                // Somebody else sits here now; whatever this connection says does not count.
                SeatEvent::Reply(_) if !self.sitting.desk.is_current(self.sitting.epoch) => {
                    return ControlFlow::Break(());
                }
                SeatEvent::Reply(reply) => self.reply(reply).await,
            }
        }
        ControlFlow::Continue(())
    }

    async fn next(&mut self) -> SeatMessage {
        tokio::select! {
            biased;
            Some(decided) = self.deciding.next() => SeatMessage::Decided(decided),
            order = self.orders.recv() => SeatMessage::Order(order),
        }
    }

    async fn obey(&mut self, inside: SeatMessage) {
        match inside {
            SeatMessage::Order(order) => self.order(order),
            SeatMessage::Decided(decided) => self.decided(decided),
        }
    }
}
