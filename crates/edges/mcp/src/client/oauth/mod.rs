//! Logging in at a server elsewhere that wants it: OAuth 2.1 as MCP uses it.
//!
//! A refusal of the server or a document at a known place says where people log in (`discover`).
//! There the core gets a name for itself (`identity`), a person's program shows a page, and what
//! the page leads back with is exchanged for tokens (`tokens`). They are kept in the vault, bound
//! to their issuer and to the origin of one server (`kept`), go with requests to it and are renewed
//! once for all who wait (`rights`).
//!
//! Every address is judged as the server's own is. Nothing that a server or an issuer says is
//! taken on trust: issuers are compared letter by letter, the resource must be the server, and
//! documents are read up to a size and for a time.

mod challenge;
mod control;
mod desk;
mod device;
mod discover;
mod documents;
mod identity;
mod kept;
mod rights;
mod tokens;
mod waiting;
mod web;

pub(crate) use control::LoginsOfServers;
pub(crate) use desk::LoginDesk;
pub(crate) use rights::LoginMeans;
pub(crate) use waiting::ask_to_log_in;

use std::fmt;

use wharf_vocab::{Code, Executed, Fault, ProviderId};

/// Why a login did not come about, as the end of a sentence. It never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoginFailure(String);

impl LoginFailure {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    fn fault(&self, provider: &ProviderId) -> Fault {
        let message = format!("The login at the MCP server {provider} failed: {}", self.0);
        Fault::new(Code::McpLoginFailed, message)
            .executed(Executed::No)
            .with("provider", provider.as_str())
    }
}

impl fmt::Display for LoginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
