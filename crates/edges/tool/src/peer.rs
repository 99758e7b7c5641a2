//! One connection, whatever carries it: frames in, frames out, and what is done about them.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};
use wharf_domain::Caller;
use wharf_protocol::tool::{Counters, Event, Limits, ToolSession};
use wharf_protocol::{Closed, Incoming, Moment, Session as _};
use wharf_socket::{Clock, Owner};
use wharf_vocab::Code;
use wharf_wire::tool_v1::{Offer, close};

use crate::follow::{TIDINGS_MAX, Tidings, What};
use crate::operative::Operative;
use crate::principal::Principal;
use crate::query::Role;
use crate::shared::Shared;
use crate::stations::{ORDERS_MAX, Order, Station};

/// Why a connection is ended from this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl Closing {
    pub(crate) fn new(code: u16, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// The core stops.
    pub(crate) fn stop() -> Self {
        Self::new(close::RESTART, "the core stops")
    }
}

/// Who connects, as what.
pub(crate) struct Opening {
    pub(crate) caller: Caller,
    pub(crate) role: Role,
    /// The name to be served, for operatives.
    pub(crate) station: Option<Arc<Station>>,
    /// Whether the peer knows the additions.
    pub(crate) marked: bool,
    /// Whether it is a session over server-sent events, where requests go without their envelope
    /// and nobody is asked for signs of life.
    pub(crate) over_events: bool,
}

/// What reaches a connection from inside.
pub(crate) enum Command {
    /// The station wants something; nothing more if it let go of the connection.
    Order(Option<Order>),
    /// News of a run.
    News(Tidings),
    /// The core stops.
    Stop,
    /// It is time to see whether the connection may go on.
    Look,
}

/// One connection.
pub(crate) struct Peer {
    shared: Arc<Shared>,
    caller: Caller,
    session: ToolSession,
    does: Does,
    orders: mpsc::Receiver<Order>,
    tidings: mpsc::Receiver<Tidings>,
    look: Interval,
    clock: Clock,
    _connected: Connected,
}

enum Does {
    Call(Box<Principal>),
    Serve(Box<Operative>),
}

impl Peer {
    /// Begins a connection. An operative takes its name at once.
    pub(crate) async fn begin(shared: &Arc<Shared>, opening: Opening) -> Result<Self, Closing> {
        let Opening { caller, role, station, marked, over_events } = opening;
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
                Does::Call(Box::new(principal))
            }
            (Role::Operative { tools, .. }, Some(station)) => {
                let (shared, caller) = (Arc::clone(shared), caller.clone());
                let taken = station.take(&caller, orders_in);
                let epoch = taken.map_err(|fault| Closing::new(close::POLICY, fault.message))?;
                let mut operative = Operative::new(shared, station, (epoch, caller), tidings_in);
                operative.arrive().await;
                if let Some(tools) = tools {
                    operative.declare(&mut session, &tools).await;
                }
                Does::Serve(Box::new(operative))
            }
            (Role::Operative { .. }, None) => {
                return Err(Closing::new(close::POLICY, "there is no name to serve"));
            }
        };
        let _connected = Connected::new(match &does {
            Does::Call(_) => "principal",
            Does::Serve(_) => "operative",
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
                (Event::Request(incoming), Does::Call(principal)) => {
                    principal.request(&mut self.session, incoming);
                }
                (Event::Request(incoming), Does::Serve(operative)) => {
                    operative.request(&mut self.session, incoming).await;
                }
                (Event::Canceled { id }, Does::Call(principal)) => principal.runs.cancel(&id),
                (Event::Canceled { id }, Does::Serve(operative)) => {
                    operative.children.canceled(&id)
                }
                (Event::Progress { id, data }, Does::Serve(operative)) => {
                    operative.progress(&id, data).await;
                }
                (Event::Cost { id, so_far_micro }, Does::Serve(operative)) => {
                    operative.cost(&id, so_far_micro).await;
                }
                (Event::Answered { id, answer }, Does::Serve(operative)) => {
                    operative.answered(&id, answer);
                }
                (Event::Offer(tools), Does::Serve(operative)) => {
                    let offer = operative.offer(&tools).await;
                    self.session.offered(offer);
                }
                (Event::Offer(_), Does::Call(_)) => {
                    let message = "Only an operative offers tools.".to_owned();
                    let code = Code::RequestInvalid.as_str().to_owned();
                    self.session.offered(Offer::Error { code, message });
                }
                // Nothing is called and nothing offered from here.
                (
                    Event::Progress { .. } | Event::Cost { .. } | Event::Answered { .. },
                    Does::Call(_),
                )
                | (Event::Offered(_), _) => {}
            }
        }
    }

    async fn order(&mut self, order: Option<Order>) {
        let Does::Serve(operative) = &mut self.does else {
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
    fn tell(&mut self, tidings: Tidings) {
        let runs = match &mut self.does {
            Does::Call(principal) => &mut principal.runs,
            Does::Serve(operative) => &mut operative.children.runs,
        };
        if !runs.is_open(&tidings) {
            return;
        }
        match tidings.what {
            What::Progress(value) => self.session.progress(&tidings.id, value),
            What::Cost(so_far_micro) => self.session.cost(&tidings.id, so_far_micro),
            What::Ended(answer) => self.session.answer(&tidings.id, &answer),
        };
    }

    /// The requests that were sent and not answered yet.
    pub(crate) fn open_calls(&self) -> HashSet<String> {
        match &self.does {
            Does::Call(_) => HashSet::new(),
            Does::Serve(operative) => operative.open_calls(),
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
        if let Does::Serve(operative) = &self.does {
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
        if let Does::Serve(_) = &self.does {
            self.react().await;
        }
        count_ignored(self.session.counters());
        // Followers see by the end of the queue that nobody reads any more.
    }
}

impl Owner for Peer {
    type Session = ToolSession;
    type Command = Command;

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

    async fn next(&mut self) -> Command {
        let calls = matches!(self.does, Does::Call(_));
        let stop = if calls { &self.shared.draining } else { &self.shared.stop };
        tokio::select! {
            order = self.orders.recv(), if !calls => Command::Order(order),
            Some(tidings) = self.tidings.recv() => Command::News(tidings),
            () = stop.cancelled() => Command::Stop,
            _ = self.look.tick() => Command::Look,
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Order(order) => self.order(order).await,
            Command::News(tidings) => self.tell(tidings),
            Command::Stop => {
                let Closing { code, reason } = Closing::stop();
                self.session.close(code, &reason);
            }
            Command::Look => self.check(),
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A peer that is connected, for as long as this lives.
struct Connected(&'static str);

impl Connected {
    fn new(role: &'static str) -> Self {
        metrics::gauge!("wharf_tool_peers", "role" => role).increment(1.0);
        Self(role)
    }
}

impl Drop for Connected {
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
