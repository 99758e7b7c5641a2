//! Logging in to servers elsewhere: what a person's program and the core do together.
//!
//! The core finds out where a server wants people to log in and keeps what comes of it. Only the
//! person's program can show a page, so it listens on its own machine for where the page leads in
//! the end, and hands over what it brings. A device login needs no listener: the person types a
//! code on a page elsewhere, and the core asks until that is done.

use wharf_domain::Caller;
use wharf_vocab::{ProviderId, SecretName};

use crate::providers::Steering;

/// How the names of secrets begin that hold what logins brought. They are the core's own: no
/// manifest gets one by naming it.
pub const LOGIN_SECRETS: &str = "mcp-login.";

/// Whether a secret holds what a login brought.
#[must_use]
pub fn is_login_secret(name: &SecretName) -> bool {
    name.as_str().starts_with(LOGIN_SECRETS)
}

/// How somebody wants to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginWay {
    /// With a page that leads back to this address of the person's own machine.
    Redirect {
        /// An address with `http` and a loopback host.
        redirect_uri: String,
    },
    /// With a code that is typed on a page of any machine.
    Device,
}

/// A login that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginBegun {
    /// The page to open.
    pub url: String,
    /// Names the login.
    pub state: String,
    /// The code to type there.
    pub user_code: Option<String>,
    /// Until when, from now on.
    pub expires_in_s: u64,
}

/// What a page led back with; nothing of it for a device.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LoginAnswer {
    /// Names the login.
    pub state: String,
    /// What the core gets tokens for.
    pub code: Option<String>,
    /// Who says so.
    pub issuer: Option<String>,
    /// What went wrong, in a word.
    pub error: Option<String>,
}

impl std::fmt::Debug for LoginAnswer {
    /// The code is a secret as long as it is good.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginAnswer").finish_non_exhaustive()
    }
}

/// How far a login is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginEnd {
    /// Somebody is logged in.
    Done,
    /// The person has not typed the code yet; ask again.
    Pending,
}

/// Lets people log in to servers elsewhere.
pub trait LoginControl: Send + Sync + 'static {
    /// Begins a login at a server.
    fn begin_login(
        &self,
        caller: Caller,
        id: ProviderId,
        way: LoginWay,
    ) -> Steering<'_, LoginBegun>;

    /// Ends a login with what its page led back with, or waits a while until a device's is done.
    fn end_login(
        &self,
        caller: Caller,
        id: ProviderId,
        answer: LoginAnswer,
    ) -> Steering<'_, LoginEnd>;

    /// Forgets what logins at a server brought.
    fn forget_login(&self, caller: Caller, id: ProviderId) -> Steering<'_, ()>;
}
