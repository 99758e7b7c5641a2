//! Tickets: how a page opens a stream to which it can send no header.
//!
//! `new WebSocket(address)` and `new EventSource(address)` carry an address and nothing else, and
//! addresses end up in histories and logs. So a page asks for a ticket with its token and puts
//! that into the address. A ticket opens one stream, within half a minute, for pages of one
//! origin, with the rights of the token or fewer. Whatever comes of it, it is used up.
//!
//! Tickets are kept in memory, by their digest: a core that starts anew knows none.

use std::collections::HashMap;

use axum::http::header::UPGRADE;
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use parking_lot::Mutex;
use wharf_domain::Caller;
use wharf_vocab::{Code, Digest, Fault, Timestamp};

use crate::answer::internal;
use crate::hosts;

/// How long a ticket is good.
pub(crate) const GOOD_MS: u64 = 30_000;
/// Tickets that may wait at once.
const TICKETS_MAX: usize = 4_096;
/// Tickets of one token that may wait at once.
const TICKETS_OF_ONE_MAX: usize = 64;
/// The parameter that carries a ticket.
const PARAMETER: &str = "ticket";

/// The tickets that nobody has used yet.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<Digest, IssuedTicket>>);

#[derive(Debug)]
struct IssuedTicket {
    caller: Caller,
    /// The pages it is for; for no page at all when absent.
    origin: Option<String>,
    until: Timestamp,
}

impl Tickets {
    /// Makes a ticket and says until when it is good.
    pub(crate) fn make(
        &self,
        caller: Caller,
        origin: Option<String>,
        now: Timestamp,
    ) -> Result<(String, Timestamp), Fault> {
        let text = random()?;
        let until = now.plus_ms(GOOD_MS);
        let mut waiting = self.0.lock();
        waiting.retain(|_, ticket| ticket.until > now);
        let own = waiting.values().filter(|ticket| ticket.caller.grant == caller.grant).count();
        if own >= TICKETS_OF_ONE_MAX || waiting.len() >= TICKETS_MAX {
            let message = "Too many tickets wait to be used; each is gone after 30 seconds.";
            return Err(Fault::new(Code::CoreBusy, message));
        }
        waiting.insert(Digest::of(&[text.as_bytes()]), IssuedTicket { caller, origin, until });
        Ok((text, until))
    }

    /// Who stands behind a ticket, if it is good for this request. It is used up in any case.
    pub(crate) fn take(&self, text: &str, parts: &Parts, now: Timestamp) -> Result<Caller, Fault> {
        let ticket = self.0.lock().remove(&Digest::of(&[text.as_bytes()]));
        ticket
            .filter(|ticket| ticket.until > now)
            .filter(|ticket| hosts::comes_from(parts, ticket.origin.as_deref()))
            .map(|ticket| ticket.caller)
            .ok_or_else(invalid)
    }
}

/// The ticket in the address of a request that opens a stream. Elsewhere tickets are good for
/// nothing, and so are addresses with several.
pub(crate) fn presented(parts: &Parts, is_stream: bool) -> Option<&str> {
    let upgrade = parts.headers.get(UPGRADE).map(|value| value.as_bytes());
    let is_socket = upgrade.is_some_and(|upgrade| upgrade.eq_ignore_ascii_case(b"websocket"));
    if parts.method != Method::GET || !(is_stream || is_socket) {
        return None;
    }
    let mut tickets = pairs(&parts.uri).filter_map(value);
    match (tickets.next(), tickets.next()) {
        (Some(ticket), None) if !ticket.is_empty() => Some(ticket),
        _ => None,
    }
}

/// Takes tickets out of an address, so that nothing behind this point can tell of them.
pub(crate) fn forget(uri: &mut Uri) {
    if !pairs(uri).any(|pair| value(pair).is_some()) {
        return;
    }
    let rest: Vec<&str> = pairs(uri).filter(|pair| value(pair).is_none()).collect();
    let target = match rest.as_slice() {
        [] => uri.path().to_owned(),
        rest => format!("{}?{}", uri.path(), rest.join("&")),
    };
    let mut parts = std::mem::take(uri).into_parts();
    // What is left of an address is an address.
    parts.path_and_query = target.parse().ok();
    *uri = Uri::from_parts(parts).unwrap_or_default();
}

fn pairs(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty())
}

/// The value of a pair that carries a ticket; tickets have no letters that must be encoded.
fn value(pair: &str) -> Option<&str> {
    pair.strip_prefix(PARAMETER)?.strip_prefix('=')
}

fn random() -> Result<String, Fault> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| internal())?;
    Ok(hex::encode(bytes))
}

/// A ticket is not good, and nobody is told why.
pub(crate) fn invalid() -> Fault {
    let message = "This ticket is not good here: a ticket opens one stream, within 30 seconds, \
                   for pages of the origin it was made for.";
    Fault::new(Code::AuthInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;
    use wharf_domain::Rights;

    const PAGE: &str = "http://localhost:5173";

    fn request(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get(uri).header("host", "127.0.0.1:7420");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    fn made(tickets: &Tickets, origin: Option<&str>) -> String {
        let made = tickets.make(Caller::owner(), origin.map(str::to_owned), Timestamp(0));
        made.expect("a ticket").0
    }

    #[test]
    fn a_ticket_is_good_once_and_for_half_a_minute() {
        let tickets = Tickets::default();
        let from_nowhere = request("/", &[]);
        let ticket = made(&tickets, None);
        let taken = tickets.take(&ticket, &from_nowhere, Timestamp(GOOD_MS - 1));
        assert_eq!(taken, Ok(Caller::owner()));
        let again = tickets.take(&ticket, &from_nowhere, Timestamp(0)).expect_err("used up");
        assert!(again.is(Code::AuthInvalid) && !again.message.contains(&ticket), "{again:?}");
        let late = made(&tickets, None);
        assert!(tickets.take(&late, &from_nowhere, Timestamp(GOOD_MS)).is_err());
        assert!(tickets.take("", &from_nowhere, Timestamp(0)).is_err());
    }

    #[test]
    fn a_ticket_is_for_pages_of_one_origin_or_for_none() {
        let good = |made_for, headers: &[(&str, &str)]| {
            let tickets = Tickets::default();
            let ticket = made(&tickets, made_for);
            tickets.take(&ticket, &request("/", headers), Timestamp(0)).is_ok()
        };
        assert!(good(None, &[]));
        assert!(!good(None, &[("origin", PAGE)]));
        assert!(good(Some(PAGE), &[("origin", PAGE)]));
        assert!(!good(Some(PAGE), &[]));
        assert!(!good(Some(PAGE), &[("origin", "http://localhost:5174")]));
        assert!(!good(Some(PAGE), &[("origin", PAGE), ("origin", PAGE)]));
        // Pages of the core itself do not say where they come from when they read from it.
        let own = Some("http://127.0.0.1:7420");
        assert!(good(own, &[("sec-fetch-site", "same-origin")]));
        assert!(!good(own, &[]));
        assert!(!good(own, &[("sec-fetch-site", "same-site")]));
        assert!(!good(Some(PAGE), &[("sec-fetch-site", "same-origin")]));
    }

    #[test]
    fn nobody_can_have_all_the_tickets() {
        let tickets = Tickets::default();
        let of = |grant: &str, now| {
            let caller = Caller::token(grant, Rights::all());
            tickets.make(caller, None, Timestamp(now)).map(drop)
        };
        for _ in 0..TICKETS_OF_ONE_MAX {
            of("greedy", 0).expect("a ticket");
        }
        assert!(of("greedy", 0).is_err_and(|fault| fault.is(Code::CoreBusy)));
        of("other", 0).expect("a ticket");
        of("greedy", GOOD_MS).expect("the old ones are gone");
        let full = (0..TICKETS_MAX).find(|n| of(&format!("g{n}"), GOOD_MS).is_err());
        assert_eq!(full, Some(TICKETS_MAX - 1));
    }

    #[test]
    fn tickets_are_read_from_addresses_of_streams_only_and_go_no_further() {
        let socket = [("upgrade", "WebSocket")];
        let of = |uri, headers: &[_], is_stream| {
            presented(&request(uri, headers), is_stream).map(str::to_owned)
        };
        assert_eq!(of("/x?ticket=t1", &socket, false).as_deref(), Some("t1"));
        assert_eq!(of("/x?a=1&ticket=t1&b=2", &[], true).as_deref(), Some("t1"));
        assert_eq!(of("/x?ticket=t1", &[], false), None);
        assert_eq!(of("/x?ticket=t1&ticket=t2", &[], true), None);
        assert_eq!(of("/x?ticket=&xticket=t", &[], true), None);
        let left = |uri: &str| {
            let mut uri = uri.parse().expect("a URI");
            forget(&mut uri);
            uri.to_string()
        };
        assert_eq!(left("/x?a=1&ticket=t1&b=2&ticket=t2"), "/x?a=1&b=2");
        assert_eq!(left("/x?ticket=t1"), "/x");
        assert_eq!(left("/x?a=%20"), "/x?a=%20");
        assert_eq!(left("http://h:1/x?ticket=t1"), "http://h:1/x");
    }
}
