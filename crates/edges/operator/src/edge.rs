//! The edge: its routers, its start and its end.

use std::sync::Arc;
use std::time::Duration;

use wharf_domain::Caller;
use wharf_vocab::Fault;
use wharf_wire::operator_v1::{Seat, close};

use crate::desk::DeskOrder;
use crate::options::OperatorEdgeOptions;
use crate::shared::SeatHub;
use crate::{asks, notices, routes, seats};

/// How long what goes on beside connections may take to end when the core stops.
const END_MAX: Duration = Duration::from_secs(2);

/// The edge that faces operators. Cloning it is cheap.
#[derive(Clone)]
pub struct OperatorEdge {
    pub(crate) shared: Arc<SeatHub>,
}

impl OperatorEdge {
    /// Takes up the seats there are and follows what is asked.
    pub async fn start(options: OperatorEdgeOptions) -> Result<Self, Fault> {
        let shared = Arc::new(SeatHub::new(options));
        let news = shared.options.handle.asks().news();
        for seat in shared.options.handle.seats().list() {
            let id = seat.id.clone();
            if let Err(fault) = seats::take_up(&shared, seat).await {
                tracing::error!(seat = %id, %fault, "a seat was not taken up");
            }
        }
        asks::look_again(&shared).await;
        notices::look_again(&shared).await;
        shared.background.spawn(asks::follow(Arc::clone(&shared), news));
        shared.background.spawn(seats::sweep(Arc::clone(&shared)));
        shared.background.spawn(seats::recheck(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// The routes below `/v1/operators`; they check seats' own tokens.
    pub fn seats(&self) -> axum::Router {
        routes::seats(Arc::clone(&self.shared))
    }

    /// The seats that a caller may see. Needs the verb `operate`.
    pub fn seats_seen_by(&self, caller: &Caller) -> Result<Vec<Seat>, Fault> {
        routes::seats_seen_by(&self.shared, caller)
    }

    /// One seat with all that waits for it, to whoever sits there or made it, and to administrators.
    pub fn seat_seen_by(&self, caller: &Caller, sid: &str) -> Result<Seat, Fault> {
        routes::seat_seen_by(&self.shared, caller, sid)
    }

    /// The routes below `/v1/tasks`, for bearers of tokens.
    pub fn tasks(&self) -> axum::Router {
        routes::tasks(Arc::clone(&self.shared))
    }

    /// The routes below `/v1/worker`; they check workers' credentials and take bodies as they
    /// come.
    pub fn workers(&self) -> axum::Router {
        routes::workers(Arc::clone(&self.shared))
    }

    /// Ends all connections. Seats and what waits for them stay.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        for desk in self.shared.desks() {
            desk.tell(DeskOrder::Close {
                code: close::RESTART,
                reason: "the core stops".to_owned(),
            });
        }
        self.shared.background.close();
        // What takes longer is left to the end of the process.
        let _ = tokio::time::timeout(END_MAX, self.shared.background.wait()).await;
    }
}
