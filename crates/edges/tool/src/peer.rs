//! One connection, whatever carries it: frames in, frames out, and what is done about them.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::mpsc;
use wharf_domain::Caller;
use wharf_protocol::tool::{Event, Session};
use wharf_vocab::{Code, Fault};
use wharf_wire::tool_v1::{Offer, close};

use crate::edge::Shared;
use crate::follow::{TIDINGS_MAX, Tidings, What};
use crate::metrics::{self, Connected};
use crate::operative::Operative;
use crate::principal::Principal;
use crate::query::Role;
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
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) caller: Caller,
    pub(crate) role: Role,
    /// The name to be served, for operatives.
    pub(crate) station: Option<Arc<Station>>,
    /// Whether the peer knows the additions.
    pub(crate) marked: bool,
    /// Whether requests go without their envelope.
    pub(crate) bare: bool,
}

/// What reaches a connection from inside.
#[derive(Debug)]
pub(crate) struct Inlets {
    pub(crate) orders: mpsc::Receiver<Order>,
    pub(crate) tidings: mpsc::Receiver<Tidings>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Peer {
    shared: Arc<Shared>,
    caller: Caller,
    session: Session,
    does: Does,
    _connected: Connected,
}

#[derive(Debug)]
enum Does {
    Call(Box<Principal>),
    Serve(Box<Operative>),
}

impl Peer {
    /// Begins a connection. An operative takes its name at once.
    pub(crate) async fn begin(
        shared: &Arc<Shared>,
        opening: Opening,
    ) -> Result<(Self, Inlets), Closing> {
        let Opening { caller, role, station, marked, bare } = opening;
        let (orders_in, orders) = mpsc::channel(ORDERS_MAX);
        let (tidings_in, tidings) = mpsc::channel(TIDINGS_MAX);
        let mut session = Session::new(marked, bare, shared.options.limits);
        let does = match (role, station) {
            (Role::Principal { world, detach }, _) => {
                let (shared, caller) = (Arc::clone(shared), caller.clone());
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
        let peer = Self { shared: Arc::clone(shared), caller, session, does, _connected };
        Ok((peer, Inlets { orders, tidings }))
    }

    /// Whether it calls, and not serves.
    pub(crate) fn is_principal(&self) -> bool {
        matches!(self.does, Does::Call(_))
    }

    /// Takes a frame.
    pub(crate) async fn receive(&mut self, text: &str) -> Result<(), Closing> {
        if text.len() > self.shared.options.limits.frame_bytes_max {
            return Err(Closing::new(close::TOO_LARGE, "a frame is too large"));
        }
        // Nothing is done for a token that was revoked a moment ago.
        self.check()?;
        let before = self.session.counters().unreadable;
        self.session.receive(text);
        let unreadable = self.session.counters().unreadable;
        if unreadable > before {
            tracing::debug!(grant = %self.caller.grant, unreadable, "a frame could not be read");
        }
        self.react().await;
        self.still_readable()
    }

    /// Takes a frame that is not even text.
    pub(crate) fn receive_other(&mut self) -> Result<(), Closing> {
        self.session.receive("");
        self.still_readable()
    }

    fn still_readable(&self) -> Result<(), Closing> {
        match self.session.counters().unreadable > self.shared.options.unreadable_max {
            true => Err(Closing::new(close::POLICY, "too many frames could not be read")),
            false => Ok(()),
        }
    }

    async fn react(&mut self) {
        while let Some(event) = self.session.next_event() {
            match (event, &mut self.does) {
                (Event::Request(incoming), Does::Call(principal)) => {
                    principal.request(&mut self.session, incoming);
                }
                (Event::Request(incoming), Does::Serve(operative)) => {
                    operative.request(&mut self.session, incoming).await;
                }
                (Event::Canceled { id }, Does::Call(principal)) => principal.canceled(&id),
                (Event::Canceled { id }, Does::Serve(operative)) => operative.canceled(&id),
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

    /// Does what it is told from inside.
    pub(crate) async fn obey(&mut self, order: Option<Order>) -> Result<(), Closing> {
        let Does::Serve(operative) = &mut self.does else {
            // Nobody orders a principal about.
            return Ok(());
        };
        match order {
            Some(Order::Execute(dispatch, place)) => {
                operative.execute(&mut self.session, *dispatch, place).await;
            }
            Some(Order::Stop(attempt_id)) => operative.stop(&mut self.session, &attempt_id),
            Some(Order::Answer(attempt_id, key, resolution)) => {
                operative.ask_ended(&mut self.session, &attempt_id, &key, resolution);
            }
            Some(Order::Close { code, reason }) => return Err(Closing { code, reason }),
            // The station let go of a connection that could not keep up.
            None => return Err(Closing::new(close::TRY_AGAIN, "too much waits to be read")),
        }
        Ok(())
    }

    /// Passes on news of a run.
    pub(crate) fn tell(&mut self, tidings: Tidings) {
        let open = match &mut self.does {
            Does::Call(principal) => principal.is_open(&tidings),
            Does::Serve(operative) => operative.is_open(&tidings),
        };
        if !open {
            return;
        }
        match tidings.what {
            What::Progress(value) => self.session.progress(&tidings.id, value),
            What::Cost(so_far_micro) => self.session.cost(&tidings.id, so_far_micro),
            What::Ended(answer) => self.session.answer(&tidings.id, &answer),
        };
    }

    /// The next frame to be sent.
    pub(crate) fn next_frame(&mut self) -> Option<String> {
        self.session.next_frame()
    }

    /// The requests that were sent and not answered yet.
    pub(crate) fn open_calls(&self) -> HashSet<String> {
        match &self.does {
            Does::Call(_) => HashSet::new(),
            Does::Serve(operative) => operative.open_calls(),
        }
    }

    /// Whether its token is still good.
    pub(crate) fn check(&self) -> Result<(), Closing> {
        let current = self.shared.options.handle.check_current(&self.caller);
        let told = |_: Fault| Closing::new(close::POLICY, "the token is not good any more");
        current.map_err(told)
    }

    /// The connection has ended: calls are lost, and what was asked is called off.
    pub(crate) async fn end(mut self, mut inlets: Inlets) {
        if let Does::Serve(operative) = &self.does {
            // Attempts that are tried again must find that the name is not served.
            operative.leave().await;
            inlets.orders.close();
            while let Some(order) = inlets.orders.recv().await {
                if let Order::Execute(dispatch, _) = order {
                    operative.give_back(*dispatch);
                }
            }
        }
        self.session.end();
        if let Does::Serve(_) = &self.does {
            self.react().await;
        }
        metrics::ignored(self.session.counters());
        // Followers see by the end of the queue that nobody reads any more.
        drop(inlets);
    }
}
