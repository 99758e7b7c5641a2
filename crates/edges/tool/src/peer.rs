//! One connection, whatever carries it: frames in, frames out, and what is done about them.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};
use wharf_domain::Caller;
use wharf_protocol::tool::{Counters, Limits, ToolEvent, ToolSession};
use wharf_protocol::{Closed, Incoming, Moment, Session as _};
use wharf_socket::{Clock, Owner};
use wharf_vocab::Code;
use wharf_web::params::SentTrace;
use wharf_wire::tool_v1::{Offer, close};

use crate::follow::{RunUpdate, RunUpdateKind, TIDINGS_MAX};
use crate::operative::OperativePeer;
use crate::principal::Principal;
use crate::query::Role;
use crate::shared::PeerHub;
use crate::stations::{ORDERS_MAX, Order, ServedName};

/// Why a connection is ended from this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerClose {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl PeerClose {
    pub(crate) fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// The core stops.
    pub(crate) fn stop() -> Self {
        Self::new(close::RESTART, "the core stops")
    }
}

/// Who connects, as what.
pub(crate) struct NewPeer {
    pub(crate) caller: Caller,
    pub(crate) role: Role,
    /// The name to be served, for operatives.
    pub(crate) station: Option<Arc<ServedName>>,
    /// Whether the peer knows the additions.
    pub(crate) marked: bool,
    /// Whether it is a session over server-sent events, where requests go without their envelope
    /// and nobody is asked for signs of life.
    pub(crate) over_events: bool,
    /// The trace that all it asks for belongs to: the wire has no place for one with each request.
    pub(crate) trace: SentTrace,
}

/// What reaches a connection from inside.
pub(crate) enum PeerCommand {
    /// The station wants something; nothing more if it let go of the connection.
    Order(Option<Order>),
    /// News of a run.
    News(RunUpdate),
    /// The core stops.
    Stop,
    /// It is time to see whether the connection may go on.
    Look,
}

/// One connection.
pub(crate) struct Peer {
    shared: Arc<PeerHub>,
    caller: Caller,
    session: ToolSession,
    does: PeerRole,
    orders: mpsc::Receiver<Order>,
    tidings: mpsc::Receiver<RunUpdate>,
    look: Interval,
    clock: Clock,
    _connected: ConnectionGauge,
}

enum PeerRole {
    Call(Box<Principal>),
    Serve(Box<OperativePeer>),
}

impl Peer {
    /// Begins a connection. An operative takes its name at once.
    pub(crate) async fn begin(shared: &Arc<PeerHub>, opening: NewPeer) -> Result<Self, PeerClose> {
        let NewPeer { caller, role, station, marked, over_events, trace } = opening;
        let (options, clock) = (&shared.options, Clock::start());
        let (orders_in, orders) = mpsc::channel(ORDERS_MAX);
        let (tidings_in, tidings) = mpsc::channel(TIDINGS_MAX);
        let limits = Limits { unreadable_max: options.unreadable_max, ..options.limits };
        let mut session = ToolSession::new(marked, over_events, limits);
        if !over_events {
            let now = clock.moment(options.handle.now());
            session = session.with_heartbeat(now, ms(options.ping), ms(options.silence_max));
        }
        let does = match (role, station) {
            (Role::Principal { world, detach }, _) => {
                let caller = caller.clone();
                let principal = Principal::new(shared, caller, (world, detach), tidings_in);
                let principal = principal.traced(trace);
                PeerRole::Call(Box::new(principal))
            }
            (Role::Operative { tools, .. }, Some(station)) => {
                let (shared, caller) = (Arc::clone(shared), caller.clone());
                let taken = station.take(&caller, orders_in);
                let epoch = taken.map_err(|fault| PeerClose::new(close::POLICY, fault.message))?;
                let mut operative =
                    OperativePeer::new(shared, station, (epoch, caller), tidings_in);
                operative.arrive().await;
                if let Some(tools) = tools {
                    operative.declare(&mut session, &tools).await;
                }
                PeerRole::Serve(Box::new(operative))
            }
            (Role::Operative { .. }, None) => {
                return Err(PeerClose::new(close::POLICY, "there is no name to serve"));
            }
        };
        let _connected = ConnectionGauge::new(match &does {
            PeerRole::Call(_) => "principal",
            PeerRole::Serve(_) => "operative",
        });
        let wait = if over_events { options.unread } else { options.ping };
        let mut look = tokio::time::interval(options.recheck.min(wait));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shared = Arc::clone(shared);
        Ok(Self { shared, caller, session, does, orders, tidings, look, clock, _connected })
    }

    async fn react(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match (event, &mut self.does) {
                (ToolEvent::Request(incoming), PeerRole::Call(principal)) => {
                    principal.request(&mut self.session, incoming);
                }
                (ToolEvent::Request(incoming), PeerRole::Serve(operative)) => {
                    operative.request(&mut self.session, incoming).await;
                }
                (ToolEvent::Canceled { id }, PeerRole::Call(principal)) => {
                    principal.runs.cancel(&id)
                }
                (ToolEvent::Canceled { id }, PeerRole::Serve(operative)) => {
                    operative.children.canceled(&id)
                }
                (ToolEvent::Progress { id, data }, PeerRole::Serve(operative)) => {
                    operative.progress(&id, data).await;
                }
                (ToolEvent::Cost { id, so_far_micro }, PeerRole::Serve(operative)) => {
                    operative.cost(&id, so_far_micro).await;
                }
                (ToolEvent::Answered { id, answer }, PeerRole::Serve(operative)) => {
                    operative.answered(&id, answer);
                }
                (ToolEvent::Offer(tools), PeerRole::Serve(operative)) => {
                    let offer = operative.offer(&tools).await;
                    self.session.offered(offer);
                }
                (ToolEvent::Offer(_), PeerRole::Call(_)) => {
                    let message = "Only an operative offers tools.".to_owned();
                    let code = Code::RequestInvalid.as_str().to_owned();
                    self.session.offered(Offer::Error { code, message });
                }
                // Nothing is called and nothing offered from here.
                (
                    ToolEvent::Progress { .. }
                    | ToolEvent::Cost { .. }
                    | ToolEvent::Answered { .. },
                    PeerRole::Call(_),
                )
                | (ToolEvent::Offered(_), _) => {}
            }
        }
    }

    async fn order(&mut self, order: Option<Order>) {
        let PeerRole::Serve(operative) = &mut self.does else {
            // Nobody orders a principal about.
            return;
        };
        match order {
            Some(Order::Execute(dispatch, place)) => {
                operative.execute(&mut self.session, *dispatch, place).await;
            }
            Some(Order::Stop(attempt_id)) => operative.stop(&mut self.session, &attempt_id),
            Some(Order::Answer(attempt_id, key, resolution)) => {
                let children = &mut operative.children;
                children.ask_ended(&mut self.session, &attempt_id, &key, resolution);
            }
            Some(Order::Close { code, reason }) => self.session.close(code, &reason),
            // The station let go of a connection that could not keep up.
            None => self.session.close(close::TRY_AGAIN, "too much waits to be read"),
        }
    }

    /// Passes on news of a run.
    fn tell(&mut self, tidings: RunUpdate) {
        let runs = match &mut self.does {
            PeerRole::Call(principal) => &mut principal.runs,
            PeerRole::Serve(operative) => &mut operative.children.runs,
        };
        if !runs.is_open(&tidings) {
            return;
        }
        match tidings.what {
            RunUpdateKind::Progress(value) => self.session.progress(&tidings.id, value),
            RunUpdateKind::Cost(so_far_micro) => self.session.cost(&tidings.id, so_far_micro),
            RunUpdateKind::Ended(answer) => self.session.answer(&tidings.id, &answer),
        };
    }

    /// The requests that were sent and not answered yet.
    pub(crate) fn open_calls(&self) -> HashSet<String> {
        match &self.does {
            PeerRole::Call(_) => HashSet::new(),
            PeerRole::Serve(operative) => operative.open_calls(),
        }
    }

    /// Ends a connection whose token is not good any more.
    fn check(&mut self) {
        if self.shared.options.handle.trust().check_current(&self.caller).is_err() {
            self.session.close(close::POLICY, "the token is not good any more");
        }
    }

    /// The connection has ended: calls are lost, and what was asked is called off.
    pub(crate) async fn end(mut self) {
        if let PeerRole::Serve(operative) = &self.does {
            // Attempts that are tried again must find that the name is not served.
            operative.leave().await;
            self.orders.close();
            while let Some(order) = self.orders.recv().await {
                if let Order::Execute(dispatch, _) = order {
                    operative.give_back(*dispatch);
                }
            }
        }
        match self.session.closed() {
            Some(why @ (Closed::Pings | Closed::NotReading | Closed::Violations)) => {
                tracing::info!(grant = %self.caller.grant, %why, "a tool connection was closed");
            }
            Some(why) => {
                tracing::debug!(grant = %self.caller.grant, %why, "a tool connection ended")
            }
            None => {}
        }
        self.session.end(self.now(), Closed::ByOwner);
        if let PeerRole::Serve(_) = &self.does {
            self.react().await;
        }
        count_ignored(self.session.counters());
        // Followers see by the end of the queue that nobody reads any more.
    }
}

impl Owner for Peer {
    type Session = ToolSession;
    type Command = PeerCommand;

    fn session(&mut self) -> &mut ToolSession {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.clock.moment(self.shared.options.handle.now())
    }

    fn receive(&mut self, incoming: Incoming<'_>) {
        if let Incoming::Text(text) = incoming {
            if text.len() > self.shared.options.limits.frame_bytes_max {
                return self.session.close(close::TOO_LARGE, "a frame is too large");
            }
            // Nothing is done for a token that was revoked a moment ago.
            self.check();
        }
        let now = self.now();
        self.session.receive(now, incoming);
    }

    async fn work(&mut self) -> ControlFlow<()> {
        self.react().await;
        ControlFlow::Continue(())
    }

    async fn next(&mut self) -> PeerCommand {
        let calls = matches!(self.does, PeerRole::Call(_));
        let stop = if calls { &self.shared.draining } else { &self.shared.stop };
        tokio::select! {
            order = self.orders.recv(), if !calls => PeerCommand::Order(order),
            Some(tidings) = self.tidings.recv() => PeerCommand::News(tidings),
            () = stop.cancelled() => PeerCommand::Stop,
            _ = self.look.tick() => PeerCommand::Look,
        }
    }

    async fn obey(&mut self, command: PeerCommand) {
        match command {
            PeerCommand::Order(order) => self.order(order).await,
            PeerCommand::News(tidings) => self.tell(tidings),
            PeerCommand::Stop => {
                let PeerClose { code, reason } = PeerClose::stop();
                self.session.close(code, &reason);
            }
            PeerCommand::Look => self.check(),
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A peer that is connected, for as long as this lives.
struct ConnectionGauge(&'static str);

impl ConnectionGauge {
    fn new(role: &'static str) -> Self {
        metrics::gauge!("wharf_tool_peers", "role" => role).increment(1.0);
        Self(role)
    }
}

impl Drop for ConnectionGauge {
    fn drop(&mut self) {
        metrics::gauge!("wharf_tool_peers", "role" => self.0).decrement(1.0);
    }
}

/// Counts what a connection ignored in all. Labels are roles and kinds, never names or ids.
fn count_ignored(counters: Counters) {
    for (what, many) in [
        ("unknown_id", counters.unknown_ids),
        ("duplicate_response", counters.duplicate_responses),
        ("unreadable", counters.unreadable),
        ("unknown_type", counters.unknown_types),
    ] {
        if many > 0 {
            metrics::counter!("wharf_tool_ignored_total", "what" => what).increment(many);
        }
    }
}
