//! What every request passes first: sizes, host, origin, token, verb. Then it is counted.
//!
//! Who is refused is written down here, also when a route refused because of what it looked at.
//! A panic behind this point becomes an error without detail, and the connection goes on.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, COOKIE};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt;
use wharf_domain::{Actor, AuditRecord, Caller, CallerKind, Subject};
use wharf_vocab::{Code, Fault};

use crate::access::Need;
use crate::answer::{internal, refusal, refusal_with, seal, shortened};
use crate::app::{App, UNMATCHED};
use crate::conn::ConnectionAddrs;
use crate::{auth, console, cors, metrics, sessions, tickets};

/// Checks a request, lets it through and counts it.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let _counted = metrics::Gauge::up("wharf_http_requests_in_flight");
    let (mut parts, body) = request.into_parts();
    let route = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let route = route.map_or(UNMATCHED, |route| app.label(route));
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    let page = cors::origin(&app, &parts, route);
    auth::gather(&mut parts.headers);
    let mut response = match check(&app, &parts, route) {
        Err(refused) => *refused,
        Ok(_) if page.is_some() && cors::asks_first(&parts) => cors::allowance(),
        Ok(admitted) => {
            let peer = AuditedPeer::of(&parts, admitted.caller());
            tickets::forget(&mut parts.uri);
            sessions::forget(&mut parts.headers);
            match admitted {
                Admission::Caller(caller) => {
                    app.touch_console(&caller);
                    parts.extensions.insert(caller);
                    // What lets somebody in goes no further, and so nobody can send it back.
                    wharf_web::token::forget_token(&mut parts.headers);
                }
                Admission::Nobody => {}
                Admission::Stranger(fault) => {
                    parts.extensions.insert(fault);
                }
            }
            let run = AssertUnwindSafe(next.run(Request::from_parts(parts, body)));
            let mut response = run.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(route, "a request failed inside");
                refusal(&internal())
            });
            if let Some(fault) = response.extensions_mut().remove::<Fault>() {
                peer.audit(&app, route, &fault);
            }
            app.unread.count(peer.actor.as_str(), response)
        }
    };
    // A router that refuses a method by itself says so in its own words.
    let is_bare = !response.headers().contains_key(CONTENT_TYPE);
    if response.status() == StatusCode::METHOD_NOT_ALLOWED && is_bare {
        response = method_unknown(&method, &path, &response);
    }
    if let Some(page) = page {
        cors::open(&mut response, page);
    }
    seal(&mut response);
    metrics::request(&method, route, response.status(), began.elapsed());
    response
}

/// Who is let in.
enum Admission {
    /// Somebody with a good token.
    Caller(Caller),
    /// Nobody is asked for a token here, and nobody has a right.
    Nobody,
    /// Somebody without a good token, and why; the route decides what to make of it.
    Stranger(Fault),
}

impl Admission {
    fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Caller(caller) => Some(caller),
            Self::Nobody | Self::Stranger(_) => None,
        }
    }
}

fn check(app: &App, parts: &Parts, route: &'static str) -> Result<Admission, Box<Response>> {
    check_head(app, parts)?;
    let refuse = |caller: Option<&Caller>, fault: Fault| {
        AuditedPeer::of(parts, caller).audit(app, route, &fault);
        Box::new(refusal(&fault))
    };
    let Some(ends) = parts.extensions.get::<ConnectionAddrs>() else {
        return Err(Box::new(refusal(&internal())));
    };
    app.hosts.check(parts, ends.local).map_err(|fault| refuse(None, fault))?;
    let need = app.need(route, &parts.method);
    // Browsers ask without a token what a page may do; nothing is done then.
    let asks = cors::asks_first(parts) && cors::origin(app, parts, route).is_some();
    if asks || need == Some(Need::Nothing) || app.is_public(route) {
        return Ok(Admission::Nobody);
    }
    let looks_itself = need == Some(Need::Itself) || app.has_own_doors(route);
    let caller = match tickets::presented(parts, app.is_stream(route)) {
        Some(ticket) => by_ticket(app, parts, ticket),
        None => match by_token_or_session(app, parts, ends.local) {
            Err(fault) if looks_itself => return Ok(Admission::Stranger(fault)),
            caller => caller,
        },
    };
    let caller = caller.map_err(|fault| refuse(None, fault))?;
    match need.map_or(Ok(()), |need| need.check(&caller)) {
        Ok(()) => Ok(Admission::Caller(caller)),
        Err(fault) => Err(refuse(Some(&caller), fault)),
    }
}

/// Who has sent a token or, where there is none, the two halves of a browser's session.
fn by_token_or_session(app: &App, parts: &Parts, local: SocketAddr) -> Result<Caller, Fault> {
    match app.options.owner.caller(parts, |token| app.handle.trust().authenticate(token)) {
        Err(fault)
            if fault.is(Code::AuthRequired) && !parts.headers.contains_key(AUTHORIZATION) =>
        {
            app.console_caller(parts, local).unwrap_or(Err(fault))
        }
        by_token => by_token,
    }
}

/// Who has sent a ticket, if the token that it was made with is still good.
fn by_ticket(app: &App, parts: &Parts, ticket: &str) -> Result<Caller, Fault> {
    let caller = app.tickets.take(ticket, parts, app.handle.now())?;
    app.handle.trust().check_current(&caller).map_err(|_| tickets::invalid())?;
    // What a seat's token opens is its socket and nothing else.
    if caller.kind == CallerKind::Seat && !parts.uri.path().starts_with("/v1/operators/") {
        return Err(tickets::invalid());
    }
    Ok(caller)
}

fn check_head(app: &App, parts: &Parts) -> Result<(), Box<Response>> {
    let uri = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    console::check_size(&parts.headers)?;
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        name.as_str().len() + value.len() + 4
    };
    // Cookies have room of their own: other programs of the host set them.
    let counted = parts.headers.iter().filter(|(name, _)| *name != COOKIE);
    let bytes = uri + counted.map(header).sum::<usize>();
    let limits = &app.options.limits;
    if bytes <= limits.head_bytes_max && parts.headers.len() <= limits.headers_max {
        return Ok(());
    }
    let message = format!(
        "The request line and headers may have {} bytes and {} headers at most.",
        limits.head_bytes_max, limits.headers_max
    );
    let fault = Fault::new(Code::RequestTooLarge, message);
    Err(Box::new(refusal_with(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &fault)))
}

/// Who sent a request, as the audit tells it.
struct AuditedPeer {
    actor: Actor,
    method: &'static str,
    ip: Option<IpAddr>,
}

impl AuditedPeer {
    fn of(parts: &Parts, caller: Option<&Caller>) -> Self {
        Self {
            actor: caller.map_or(Actor::NOBODY, |by| Actor::from(&by.grant)),
            method: metrics::method_label(&parts.method),
            ip: parts.extensions.get::<ConnectionAddrs>().map(|ends| ends.peer.ip()),
        }
    }

    /// Writes down who was refused where and why, and nothing of what they sent.
    fn audit(&self, app: &App, route: &'static str, fault: &Fault) {
        metrics::denied(fault);
        let mut record = AuditRecord::denied(self.actor.clone(), Subject::route(route))
            .fact("error_code", fault.code.as_str())
            .fact("method", self.method);
        if let Some(ip) = self.ip {
            record = record.fact("peer", ip.to_string());
        }
        for missing in ["verb", "world", "permission"] {
            if let Some(value) = fault.details.get(missing).and_then(|value| value.as_str()) {
                record = record.fact(missing, value);
            }
        }
        app.handle.audit().denied(record);
    }
}

fn method_unknown(method: &Method, path: &str, found: &Response) -> Response {
    let message = format!("{} does not take {}.", shortened(path), shortened(method.as_str()));
    let mut response = refusal(&Fault::new(Code::RequestMethodUnknown, message));
    if let Some(allow) = found.headers().get(ALLOW) {
        response.headers_mut().insert(ALLOW, allow.clone());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use tower::ServiceExt;
    use wharf_journal::audit::AuditKey;
    use wharf_memory::MemoryStore;
    use wharf_ports::SystemClock;
    use wharf_vocab::NodeId;

    use crate::app::StopSignals;
    use crate::{HttpOptions, OwnerToken};

    async fn app() -> Arc<App> {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([1; 32]), clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let engine = wharf_engine::EngineOptions::new(node, store, clock, 1);
        let handle = wharf_engine::Handle::start(engine).await.expect("starts");
        crate::listen::app(
            handle,
            HttpOptions::new(OwnerToken::new("token")),
            StopSignals::default(),
        )
        .0
    }

    #[tokio::test]
    async fn whoever_needs_no_token_is_nobody() {
        async fn who(caller: Option<axum::Extension<Caller>>) -> String {
            format!("{:?}", caller.is_some())
        }
        let app = app().await;
        let router: Router = Router::new()
            .route("/healthz", get(who))
            .route("/v1/runs", get(who))
            .layer(from_fn_with_state(Arc::clone(&app), guard));
        let local = "127.0.0.1:7420".parse().expect("an address");
        for (path, token, known) in [
            ("/healthz", None, "false"),
            // A token that nobody asked for gives no right either.
            ("/healthz", Some("Bearer token"), "false"),
            ("/v1/runs", Some("Bearer token"), "true"),
        ] {
            let mut request = Request::get(path).header("host", "127.0.0.1:7420");
            if let Some(token) = token {
                request = request.header("authorization", token);
            }
            let request =
                request.extension(ConnectionAddrs { peer: local, local }).body(Body::empty());
            let answer = router.clone().oneshot(request.expect("a request")).await;
            let body = answer.expect("an answer").into_body();
            let body = axum::body::to_bytes(body, 4096).await.expect("a body");
            assert_eq!(body, known, "{path} {token:?}");
        }
    }

    #[tokio::test]
    async fn a_fault_inside_is_answered_without_detail() {
        async fn broken() -> &'static str {
            panic!("c4nary")
        }
        let app = app().await;
        let router: Router = Router::new()
            .route("/v1/runs", get(broken))
            .layer(from_fn_with_state(Arc::clone(&app), guard));
        let local = "127.0.0.1:7420".parse().expect("an address");
        let request = Request::get("/v1/runs")
            .header("host", "127.0.0.1:7420")
            .header("authorization", "Bearer token")
            .extension(ConnectionAddrs { peer: local, local })
            .body(Body::empty())
            .expect("a request");
        let answer = router.oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = axum::body::to_bytes(answer.into_body(), 4096).await.expect("a body");
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains("core.internal") && !text.contains("c4nary"), "{text}");
    }
}
