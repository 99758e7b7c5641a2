//! Seats of operators and what waits for each.

use async_graphql::SimpleObject;
use wharf_wire::operator_v1 as wire;

use super::view::View;

/// A seat of an operator.
#[derive(Debug, SimpleObject)]
#[graphql(name = "Operator")]
pub(crate) struct Seat {
    /// The seat's id.
    sid: String,
    /// What it is for.
    desc: String,
    /// Its roles.
    roles: Vec<String>,
    /// Whether somebody sits there now.
    connected: bool,
    /// When somebody last did.
    last_seen: Option<String>,
    /// Requests that wait for an answer.
    pending: Vec<String>,
    /// Whether a person sits there.
    person: bool,
    /// What waits for the seat, oldest first, tasks in work included; only where one seat is shown.
    #[graphql(complexity = "20 * child_complexity")]
    waiting: Vec<SeatWait>,
}

/// Something that waits for a seat.
#[derive(Debug, SimpleObject)]
#[graphql(name = "OperatorWait")]
pub(crate) struct SeatWait {
    /// The request.
    req_id: String,
    /// What it is: `question`, `approval` or `task`.
    kind: String,
    /// The ask, if it is one.
    ask_id: Option<String>,
    /// The run it is about.
    run_id: String,
    /// The run's world.
    world: String,
    /// The run's tool.
    tool: String,
    /// What is asked, in one line.
    title: Option<String>,
    /// Whether the operator has taken it, so that only its worker is waited for.
    taken: bool,
}

impl View<wire::Seat> for Seat {
    fn view(of: wire::Seat) -> Self {
        let wire::Seat { sid, desc, roles, connected, last_seen, pending, person, waiting } = of;
        let waiting = View::view(waiting);
        Self { sid, desc, roles, connected, last_seen, pending, person, waiting }
    }
}

impl View<wire::SeatWait> for SeatWait {
    fn view(of: wire::SeatWait) -> Self {
        let wire::SeatWait { req_id, kind, ask_id, run_id, world, tool, title, taken } = of;
        Self { req_id, kind, ask_id, run_id, world, tool, title, taken }
    }
}
