//! Signing browsers in and out at the console.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{HeaderValue, RETRY_AFTER, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use wharf_domain::Caller;
use wharf_vocab::{Code, DateTime, Fault, GrantId};
use wharf_wire::rest_v1::{BeginConsole, ConsoleLink, ConsoleSession};

use super::table::{delete, get, post, routes};
use crate::access::Need;
use crate::answer::{self, Answer, FaultResponse, internal, invalid, refusal};
use crate::app::App;
use crate::auth;
use crate::body::SmallJsonBody;
use crate::conn::ConnectionAddrs;
use crate::console::{Bearer, address_of};
use crate::hosts::PageOrigin;

routes! {
    "console";
    /// Creates a link that signs one browser in at the console, once, within 60 seconds, with the
    /// rights of the token of this request. Any token may create one; a browser that is signed in may
    /// not.
    create_console_link => post("/v1/console/links", Need::Itself, link)
        .gives::<ConsoleLink>(201, "The link. It is shown only once.")
        .fails(403, "Links are created with a token.")
        .fails(503, "There are too many unused links.");
    /// Signs a browser in, with the code of a link or with a token. The request must come from a page
    /// of the core itself. The session has two parts: the cookie that this response sets, and the `key`
    /// in its body, which the page sends in the header `Wharf-Session`.
    begin_console_session => post("/v1/console/session", Need::Nothing, begin)
        .takes::<BeginConsole>()
        .gives::<ConsoleSession>(201, "The browser is signed in.")
        .fails(400, "The request cannot be read.")
        .fails(401, "The link or the token is not valid.")
        .fails(403, "The request does not come from a page of the core.")
        .fails(429, "Too many attempts failed.");
    /// Shows who the caller is and which core this is, to a page that is signed in or with a token.
    show_console_session => get("/v1/console/session", Need::Itself, show)
        .gives::<ConsoleSession>(200, "The session.");
    /// Signs the browser out, in all of its tabs. Its WebSockets and event streams are closed.
    end_console_session => delete("/v1/console/session", Need::Itself, end)
        .says(204, "The browser is signed out.")
        .fails(400, "The caller is not a browser that is signed in.");
}

/// Who sent a request, or why nobody is known to have.
struct ConsoleCaller(Caller);

impl FromRequestParts<Arc<App>> for ConsoleCaller {
    type Rejection = FaultResponse;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, FaultResponse> {
        match parts.extensions.get::<Caller>() {
            Some(caller) => Ok(Self(caller.clone())),
            None => {
                let refused = parts.extensions.get::<Fault>().cloned();
                Err(FaultResponse::denied(refused.unwrap_or_else(internal)))
            }
        }
    }
}

async fn link(
    State(app): State<Arc<App>>,
    ConsoleCaller(caller): ConsoleCaller,
    Extension(ends): Extension<ConnectionAddrs>,
    headers: HeaderMap,
) -> Answer {
    wharf_domain::grant::console::check_begin(&caller).map_err(FaultResponse::denied)?;
    let token = auth::sent(&headers).ok_or_else(internal)?;
    let bearer = app.bearer(caller, token).map_err(FaultResponse::denied)?;
    let (code, until) = app.console.links.make(bearer, app.handle.now())?;
    let host = headers.get(axum::http::header::HOST).and_then(|host| host.to_str().ok());
    let host = host.map_or_else(|| ends.local.to_string(), str::to_owned);
    let host = app.browsable(host, ends.local.port());
    let url = format!("{}{host}/#link={code}", app.hosts.scheme());
    let link = ConsoleLink { code, url, expires_at: DateTime(until) };
    Ok(answer::json(StatusCode::CREATED, &link))
}

/// From where a browser wants to sign in: whether over TLS, and whose address.
struct Door {
    secure: bool,
    peer: std::net::IpAddr,
}

impl FromRequestParts<Arc<App>> for Door {
    type Rejection = FaultResponse;

    /// The request must say that it comes from the core's own page, before anything of it is read.
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, FaultResponse> {
        let ends = parts.extensions.get::<ConnectionAddrs>().copied().ok_or_else(internal)?;
        let secure = match app.hosts.page_origin(parts, ends.local) {
            PageOrigin::Own { secure } if app.is_own_page(parts, ends.local) => secure,
            _ => return Err(FaultResponse::denied(foreign())),
        };
        Ok(Self { secure, peer: address_of(parts, ends.peer, app.options.behind_proxy) })
    }
}

async fn begin(
    State(app): State<Arc<App>>,
    Door { secure, peer }: Door,
    SmallJsonBody(request): SmallJsonBody<BeginConsole>,
) -> Answer {
    if let Err(fault) = app.console.failures.check(peer, app.handle.now()) {
        return Ok(too_often(&fault));
    }
    let bearer = match request.unwrap_or_default() {
        BeginConsole { link: Some(code), token: None } => app
            .console
            .links
            .take(&code, app.handle.now())
            .ok_or_else(|| Fault::new(Code::AuthInvalid, LINK_INVALID)),
        BeginConsole { link: None, token: Some(token) } => by_token(&app, &token),
        _ => {
            let message = "Send either the code of a link as `link`, or a token as `token`.";
            return Err(invalid("link", message).into());
        }
    };
    let begun = match bearer {
        Ok(bearer) => app.begin_console(bearer).await,
        Err(fault) => Err(fault),
    };
    let new = begun.map_err(|fault| {
        if fault.is(Code::AuthInvalid) {
            app.console.failures.note(peer, app.handle.now());
        }
        FaultResponse::denied(fault)
    })?;
    let grant = app.handle.console_sessions().console_session(&new.id).ok_or_else(internal)?;
    let caller = grant.console_caller().ok_or_else(internal)?;
    let shown = ConsoleSession { key: Some(new.key), ..shown(&app, &caller) };
    let mut response = answer::json(StatusCode::CREATED, &shown);
    let cookie = app.console.cookie.set(&new.cookie, secure).ok_or_else(internal)?;
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(response)
}

const LINK_INVALID: &str = "This link is not good any more: it signs one browser in, once, within \
                            60 seconds. Run `wharf console` again.";

/// Who bears a token that somebody pasted.
fn by_token(app: &App, token: &str) -> Result<Bearer, Fault> {
    let token = token.trim();
    let known = app.options.owner.bearer(token, |token| app.handle.trust().authenticate(token))?;
    app.bearer(known, token)
}

async fn show(State(app): State<Arc<App>>, ConsoleCaller(caller): ConsoleCaller) -> Answer {
    answer::ok(&shown(&app, &caller))
}

async fn end(State(app): State<Arc<App>>, ConsoleCaller(caller): ConsoleCaller) -> Answer {
    if caller.console.is_none() {
        let message = "Only a browser that is signed in can sign out; revoke a token instead.";
        return Err(Fault::new(Code::RequestInvalid, message).into());
    }
    let handle = app.handle.clone();
    super::to_its_end(async move { handle.console_sessions().end_console(&caller).await }).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    for secure in [false, true] {
        let cookie = app.console.cookie.unset(secure).ok_or_else(internal)?;
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Who a caller is.
fn shown(app: &App, caller: &Caller) -> ConsoleSession {
    let find = |id: &GrantId| app.handle.console_sessions().console_session(id);
    let session = caller.console.as_ref().and_then(find);
    let rights = &caller.rights;
    let until = rights.until.map(DateTime);
    // One pattern of each list must fit; the list that was added last is the one to be shown.
    let tools = rights.tools.last();
    ConsoleSession {
        session_id: caller.console.clone(),
        key: None,
        grant: caller.grant.clone(),
        label: app.handle.trust().display_of(&caller.grant),
        person: caller.person,
        verbs: rights.verbs.iter().copied().collect(),
        worlds: rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect()),
        tools: tools.map(|tools| tools.iter().map(ToString::to_string).collect()),
        created_at: session.as_ref().map(|grant| DateTime(grant.made_at)),
        expires_at: session.as_ref().map_or(until, |grant| grant.good_until().map(DateTime)),
        ends_at: session.as_ref().map_or(until, |grant| grant.ends_at().map(DateTime)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        home_id: app.options.home_id.clone(),
        node: app.options.node.as_ref().map(ToString::to_string),
    }
}

/// Somebody has failed too often; the answer says when to come back.
fn too_often(fault: &Fault) -> Response {
    let wait = fault.details.get("retry_after_ms").and_then(|ms| ms.as_u64()).unwrap_or(60_000);
    let mut response = refusal(fault);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.div_ceil(1000).max(1)));
    response
}

fn foreign() -> Fault {
    let message = "Browsers sign in from the core's own page, at the address in run/core.json.";
    Fault::new(Code::RequestOriginForbidden, message)
}
