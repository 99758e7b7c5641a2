//! Tickets, which open one stream from an address.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, StatusCode};
use wharf_domain::Caller;
use wharf_vocab::{Code, DateTime, Fault};
use wharf_wire::rest_v1::{CreateTicket, Ticket};

use super::table::{post, routes};
use crate::access::Need;
use crate::answer::{self, Answer, FaultResponse, internal};
use crate::app::App;
use crate::body::SmallJsonBody;
use crate::conn::ConnectionAddrs;
use crate::{auth, from_wire};

routes! {
    "tokens";
    /// Creates a ticket, which opens one stream by `?ticket=` in its URL: a WebSocket or server-sent
    /// events. It can be used once, within 30 seconds, by pages of one origin. Any token may create one,
    /// and a seat's token one for its seat. The body may be empty.
    create_ticket => post("/v1/tickets", Need::Itself, create)
        .may_take::<CreateTicket>()
        .gives::<Ticket>(201, "The ticket. It is shown only once.")
        .fails(400, "The request cannot be read.")
        .fails(403, "Pages from this origin are not allowed.")
        .fails(503, "There are too many unused tickets.");
}

/// Who sent a request, or why nobody is known to have.
type TicketSender =
    (Option<Extension<Caller>>, Option<Extension<Fault>>, Extension<ConnectionAddrs>, HeaderMap);

async fn create(
    State(app): State<Arc<App>>,
    (caller, refused, Extension(ends), headers): TicketSender,
    SmallJsonBody(request): SmallJsonBody<CreateTicket>,
) -> Answer {
    let request = request.unwrap_or_default();
    let caller = match (&request.seat, caller, auth::sent(&headers)) {
        (None, Some(Extension(caller)), _) => caller,
        (Some(seat), None, Some(token)) => {
            app.handle.seats().authenticate(seat, token).map_err(FaultResponse::denied)?
        }
        (Some(_), Some(_), _) => return Err(FaultResponse::denied(not_of_the_seat())),
        _ => {
            let fault = refused.map_or_else(internal, |Extension(fault)| fault);
            return Err(FaultResponse::denied(fault));
        }
    };
    let said = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = request.origin.as_deref().or(said);
    let origin = origin.map(|origin| app.hosts.check_origin(origin, ends.local)).transpose()?;
    let narrowing = from_wire::narrowing(&request)?;
    let rights = Arc::new(caller.rights.narrowed(&narrowing));
    let caller = Caller { rights, ..caller };
    let (ticket, until) = app.tickets.make(caller, origin, app.handle.now())?;
    let ticket = Ticket { ticket, expires_at: DateTime(until) };
    Ok(answer::json(StatusCode::CREATED, &ticket))
}

fn not_of_the_seat() -> Fault {
    let message = "A ticket for a seat is made with the token of that seat.";
    Fault::new(Code::PermissionDenied, message)
}
