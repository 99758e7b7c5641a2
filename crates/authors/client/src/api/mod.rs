//! The API by subject: each method builds the request for one route.

mod audit;
mod automation;
mod inbox;
mod mcp;
mod providers;
mod runs;
mod worlds;

use reqwest::Method;
use wharf_wire::rest_v1::{
    Account, ConsoleLink, ConsoleSession, Costs, CreateTicket, CreateToken, Diagnosis, Keys,
    RotateKeys, Secret, System, Ticket, Token,
};

use crate::call::{Call, List};
use crate::client::Client;

pub use audit::{Audit, AuditFilter};
pub use automation::{Flows, Receivers, Schedules, Triggers};
pub use inbox::{Inbox, Seats};
pub use mcp::McpServers;
pub use providers::{Agents, LogFollower, Operatives, Providers, Tools};
pub use runs::{RunFilter, Runs};
pub use worlds::Worlds;

impl Client {
    /// Runs: starting, watching, canceling.
    #[must_use]
    pub fn runs(&self) -> Runs<'_> {
        Runs(self)
    }

    /// Flows and their documents.
    #[must_use]
    pub fn flows(&self) -> Flows<'_> {
        Flows(self)
    }

    /// Questions and approvals that wait for an answer.
    #[must_use]
    pub fn inbox(&self) -> Inbox<'_> {
        Inbox(self)
    }

    /// Seats of operators.
    #[must_use]
    pub fn seats(&self) -> Seats<'_> {
        Seats(self)
    }

    /// Tools, and the tool servers among their providers.
    #[must_use]
    pub fn tools(&self) -> Tools<'_> {
        Tools(self)
    }

    /// Agents.
    #[must_use]
    pub fn agents(&self) -> Agents<'_> {
        Agents(self)
    }

    /// Providers of every kind, all in one shape.
    #[must_use]
    pub fn providers(&self) -> Providers<'_> {
        Providers(self)
    }

    /// MCP servers.
    #[must_use]
    pub fn mcp_servers(&self) -> McpServers<'_> {
        McpServers(self)
    }

    /// Operatives.
    #[must_use]
    pub fn operatives(&self) -> Operatives<'_> {
        Operatives(self)
    }

    /// Worlds and their files.
    #[must_use]
    pub fn worlds(&self) -> Worlds<'_> {
        Worlds(self)
    }

    /// Triggers: runs that somebody outside starts by calling a hook.
    #[must_use]
    pub fn triggers(&self) -> Triggers<'_> {
        Triggers(self)
    }

    /// Receivers of notifications.
    #[must_use]
    pub fn receivers(&self) -> Receivers<'_> {
        Receivers(self)
    }

    /// Schedules: runs that the core starts by the clock.
    #[must_use]
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules(self)
    }

    /// Tokens.
    #[must_use]
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens(self)
    }

    /// Secrets.
    #[must_use]
    pub fn secrets(&self) -> Secrets<'_> {
        Secrets(self)
    }

    /// The audit.
    #[must_use]
    pub fn audit(&self) -> Audit<'_> {
        Audit(self)
    }

    /// What runs have cost. Narrow it with `query`: `by`, `world`, `since`, `until`.
    pub fn costs(&self) -> Call<Costs> {
        self.read_at(&["v1", "costs"])
    }

    /// What could keep the core from working well.
    pub fn doctor(&self) -> Call<Diagnosis> {
        self.read_at(&["v1", "doctor"])
    }

    /// The accounts of the budget tree: of each world, and of tokens with a budget below it.
    pub fn accounts(&self) -> List<Account> {
        List::new(self, &["v1", "accounts"])
    }

    /// What the core is and has; for tokens that may read everywhere.
    pub fn system(&self) -> Call<System> {
        self.read_at(&["v1", "system"])
    }

    /// Whom the token stands for and what it permits, and which core this is.
    pub fn session(&self) -> Call<ConsoleSession> {
        self.read_at(&["v1", "console", "session"])
    }

    pub(crate) fn read_at<T>(&self, path: &[&str]) -> Call<T> {
        Call::new(self, Method::GET, path)
    }

    pub(crate) fn post_to<T>(&self, path: &[&str]) -> Call<T> {
        Call::new(self, Method::POST, path)
    }

    pub(crate) fn delete_at(&self, path: &[&str]) -> Call<()> {
        Call::new(self, Method::DELETE, path)
    }
}

/// Tokens, as [`Client::tokens`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a>(&'a Client);

impl Tokens<'_> {
    /// Creates a token; the answer alone shows it.
    pub fn create(&self, token: &CreateToken) -> Call<Token> {
        self.0.post_to(&["v1", "tokens"]).body(token)
    }

    /// All tokens, without what lets anybody in.
    pub fn list(&self) -> List<Token> {
        List::new(self.0, &["v1", "tokens"])
    }

    /// Revokes a token.
    pub fn revoke(&self, id: &str) -> Call<()> {
        self.0.delete_at(&["v1", "tokens", id])
    }

    /// Replaces the key that tokens are signed with.
    pub fn rotate(&self, rotate: &RotateKeys) -> Call<Keys> {
        self.0.post_to(&["v1", "tokens", "rotate"]).body(rotate)
    }

    /// Creates a link that signs one browser in at the console.
    pub fn create_console_link(&self) -> Call<ConsoleLink> {
        self.0.post_to(&["v1", "console", "links"])
    }

    /// Creates a ticket: a short-lived credential for an address, for what sends no headers.
    pub fn create_ticket(&self, ticket: &CreateTicket) -> Call<Ticket> {
        self.0.post_to(&["v1", "tickets"]).body(ticket)
    }
}

/// Secrets, as [`Client::secrets`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct Secrets<'a>(&'a Client);

impl Secrets<'_> {
    /// The names of all secrets; nobody can read their values.
    pub fn list(&self) -> List<Secret> {
        List::new(self.0, &["v1", "secrets"])
    }

    /// Sets a secret.
    pub fn set(&self, name: &str, value: Vec<u8>) -> Call<()> {
        let call = Call::new(self.0, Method::PUT, &["v1", "secrets", name]);
        call.with(|request| request.header("content-type", "application/octet-stream").body(value))
    }

    /// Removes a secret.
    pub fn remove(&self, name: &str) -> Call<()> {
        self.0.delete_at(&["v1", "secrets", name])
    }
}
