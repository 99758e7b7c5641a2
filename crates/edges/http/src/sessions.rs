//! The sessions of browsers at the console.
//!
//! Cookies ignore ports, so every other server on the same host is sent them. A session therefore
//! has two halves, each worthless alone: a cookie that scripts cannot read, and a key that the page
//! keeps and sends in a header, or as a subprotocol of a WebSocket. Both count only for pages of the
//! core itself.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use wharf_domain::Caller;
use wharf_domain::grant::ConsoleHalves;
use wharf_vocab::{Code, Fault, GrantId};
use wharf_web::token;

use crate::app::App;
use crate::console::{Bearer, random};
use crate::hosts::{PageOrigin, split_port};

/// The header in which the page sends its half.
const KEY_HEADER: &str = "wharf-session";
/// Longest text of a half that is looked at.
const HALF_BYTES_MAX: usize = 128;

/// What a browser is given: the text of its cookie and the page's half.
pub(crate) struct NewSession {
    pub(crate) id: GrantId,
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl App {
    /// Who sent a request with a token: the bearer, with what sealed it.
    pub(crate) fn bearer(&self, caller: Caller, token: &str) -> Result<Bearer, Fault> {
        let owner = self.options.owner.sealed(token);
        let sealed_by = owner.or_else(|| self.handle.console_sessions().sealed_by(token));
        let sealed_by = sealed_by.ok_or_else(invalid)?;
        Ok(Bearer { caller, sealed_by })
    }

    /// Signs a browser in.
    pub(crate) async fn begin_console(&self, bearer: Bearer) -> Result<NewSession, Fault> {
        let Bearer { caller, sealed_by } = bearer;
        let (cookie, key) = (random()?, random()?);
        let halves = ConsoleHalves::of(&cookie, &key, sealed_by, caller.account.clone());
        let grant = self.handle.console_sessions().begin_console(&caller, halves).await?;
        let cookie = format!("{}.{cookie}", grant.id);
        Ok(NewSession { id: grant.id, cookie, key })
    }

    /// Who sent a request with the two halves of a session; `None` if they are not both there, or
    /// the request is not one of the core's own pages.
    pub(crate) fn console_caller(
        &self,
        parts: &Parts,
        local: SocketAddr,
    ) -> Option<Result<Caller, Fault>> {
        let key = presented_key(parts)?;
        let mut cookies = self.console.cookie.values(&parts.headers).peekable();
        cookies.peek()?;
        if !self.is_own_page(parts, local) {
            return None;
        }
        let owner = self.options.owner.fingerprint();
        let found = cookies.find_map(|value| {
            let (id, secret) = value.split_once('.')?;
            let id = GrantId::new(id).ok().filter(|_| secret.len() <= HALF_BYTES_MAX)?;
            self.handle.console_sessions().console_caller(&id, (secret, key), &owner).ok()
        });
        Some(found.ok_or_else(ended))
    }

    /// The name by which a browser is to call the server that is called by this host: a name that
    /// its certificate is for, if it has one and this is none of them.
    pub(crate) fn browsable(&self, host: String, port: u16) -> String {
        let Some(tls) = &self.options.tls else { return host };
        let certificate = tls.certificate();
        if certificate.is_for(split_port(&host).0) {
            return host;
        }
        let name = certificate.names().next().map(|name| format!("{name}:{port}"));
        name.unwrap_or(host)
    }

    /// Whether a request comes from a page of the core itself, as far as a browser says.
    pub(crate) fn is_own_page(&self, parts: &Parts, local: SocketAddr) -> bool {
        let mut sites = parts.headers.get_all("sec-fetch-site").iter();
        let same_site = sites.all(|site| site == "same-origin");
        same_site && self.hosts.page_origin(parts, local) != PageOrigin::Other
    }

    /// Writes down that a session is used, now and then.
    pub(crate) fn touch_console(self: &Arc<Self>, caller: &Caller) {
        let Some(id) = caller.console.clone() else { return };
        if !self.handle.console_sessions().console_is_due(&id)
            || !self.console.touching.lock().insert(id.clone())
        {
            return;
        }
        let (app, caller) = (Arc::clone(self), caller.clone());
        tokio::spawn(async move {
            if let Err(fault) =
                app.handle.console_sessions().console_seen(&caller, id.clone()).await
            {
                tracing::debug!(code = fault.code.as_str(), "a session's use is not on record");
            }
            app.console.touching.lock().remove(&id);
        });
    }
}

/// Takes what a browser sent of a session out of a request, so that nothing behind this point can
/// tell of it.
pub(crate) fn forget(headers: &mut HeaderMap) {
    headers.remove(COOKIE);
    headers.remove(KEY_HEADER);
    token::forget_session(headers);
}

/// The page's half in a request: in its header, or offered with a WebSocket. Several count for
/// nothing.
fn presented_key(parts: &Parts) -> Option<&str> {
    let mut given = parts.headers.get_all(KEY_HEADER).iter();
    let key = match (given.next(), given.next()) {
        (Some(key), None) => key.to_str().ok()?,
        (None, _) => token::session_of_websocket(parts)?,
        (Some(_), Some(_)) => return None,
    };
    (!key.is_empty() && key.len() <= HALF_BYTES_MAX).then_some(key)
}

fn invalid() -> Fault {
    let message = "This token is not valid here; it may be expired or revoked.";
    Fault::new(Code::AuthInvalid, message)
}

fn ended() -> Fault {
    let message = "This browser is not signed in any more; sign in again.";
    Fault::new(Code::AuthInvalid, message)
}
