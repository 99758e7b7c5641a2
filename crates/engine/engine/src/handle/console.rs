//! Browsers that are signed in at the console: beginning, recognising and ending their sessions.

use uuid::Uuid;
use wharf_domain::grant::{ConsoleHalves, console};
use wharf_domain::{Caller, Grant, GrantInput};
use wharf_vocab::limits::{CONSOLE_SESSIONS_MAX, GRANT_CONSOLE_SESSIONS_MAX};
use wharf_vocab::{Code, Digest, Fault, GrantId, Timestamp};

use super::ConsoleSessionCalls;

/// Browsers that are signed in with tokens that are nobody's own and were narrowed from one.
const ROOT_SESSIONS_MAX: usize = 4 * GRANT_CONSOLE_SESSIONS_MAX;

impl ConsoleSessionCalls<'_> {
    /// Signs a browser in for the bearer of a token, who must be known by it still. Of many
    /// sessions of one token the one that was not used for the longest time ends.
    pub async fn begin_console(
        self,
        caller: &Caller,
        halves: ConsoleHalves,
    ) -> Result<Grant, Fault> {
        console::check_begin(caller)?;
        self.0.trust().check_current(caller).map_err(|_| invalid())?;
        self.make_room(caller).await?;
        let id = GrantId::new(format!("c-{}", Uuid::now_v7().simple()))
            .map_err(|_| Fault::new(Code::CoreInternal, "The session could not be named."))?;
        self.0.change(caller, id, GrantInput::Begin(Box::new(halves))).await
    }

    /// Who acts with a console session, if both halves are right and it is still good. `owner` is
    /// the fingerprint of the owner's token.
    pub fn console_caller(
        self,
        id: &GrantId,
        (cookie, key): (&str, &str),
        owner: &Digest,
    ) -> Result<Caller, Fault> {
        let known = self.0.inner.records.grants.get(id).ok_or_else(invalid)?;
        let halves = known.console.as_ref().ok_or_else(invalid)?;
        let keyring = self.0.trust().keyring();
        let sealed = halves.sealed_by == *owner || console::seals(&keyring, &halves.sealed_by);
        if !halves.are(cookie, key) || !sealed {
            return Err(invalid());
        }
        let caller = known.console_caller().ok_or_else(invalid)?;
        self.0.trust().check_current(&caller).map_err(|_| invalid())?;
        Ok(caller)
    }

    /// A fingerprint of the key that sealed a token, if it is one of this core's.
    pub fn sealed_by(self, token: &str) -> Option<Digest> {
        console::sealed_by(&self.0.trust().keyring(), token)
    }

    /// A browser's session, if it is still good.
    pub fn console_session(self, id: &GrantId) -> Option<Grant> {
        let now = self.0.inner.clock.latest();
        let found = self.0.inner.records.grants.get(id);
        found.filter(|grant| grant.console.is_some() && grant.is_good(now))
    }

    /// Whether it is time to write down that a session is used.
    pub fn console_is_due(self, id: &GrantId) -> bool {
        let now = self.0.inner.clock.now();
        let due = |grant: &Grant| now >= grant.seen_at.plus_ms(console::CONSOLE_SEEN_STEP_MS);
        self.0.inner.records.grants.look(id, due).unwrap_or(false)
    }

    /// Writes down that a browser's session is used.
    pub async fn console_seen(self, caller: &Caller, id: GrantId) -> Result<Grant, Fault> {
        let at = self.0.inner.clock.now();
        self.0.change(caller, id, GrantInput::Seen { at }).await
    }

    /// Signs a browser out: its own session, for which no right is needed.
    pub async fn end_console(self, caller: &Caller) -> Result<(), Fault> {
        let Some(id) = caller.console.clone() else { return Ok(()) };
        self.0.change::<Grant>(caller, id, GrantInput::Revoke).await.map(drop)
    }

    /// Whether a browser is still signed in.
    pub(super) fn check_console(self, id: &GrantId) -> Result<(), Fault> {
        let now = self.0.inner.clock.latest();
        match self.0.inner.records.grants.look(id, |grant| grant.is_good(now)) {
            Some(true) => Ok(()),
            _ => Err(Fault::new(Code::PermissionDenied, "This browser is signed out.")),
        }
    }

    /// Ends what is over already or too many, so that sessions stay few.
    async fn make_room(self, caller: &Caller) -> Result<(), Fault> {
        let now = self.0.inner.clock.latest();
        let sessions = self.0.inner.records.grants.find(|grant| Known::of(grant, now));
        let (good, over): (Vec<_>, Vec<_>) = sessions.into_iter().partition(|known| known.good);
        for known in over {
            self.end(caller, known.id).await?;
        }
        let mut own: Vec<&Known> = good.iter().filter(|it| it.grant == caller.grant).collect();
        own.sort_by_key(|known| known.seen_at);
        let surplus = (own.len() + 1).saturating_sub(GRANT_CONSOLE_SESSIONS_MAX);
        if good.len() - surplus >= CONSOLE_SESSIONS_MAX {
            let message = "Too many browsers are signed in; sign some out first.";
            return Err(Fault::new(Code::CoreBusy, message).with("max", CONSOLE_SESSIONS_MAX));
        }
        let root = root_of(&caller.grant);
        let shared = good.iter().filter(|it| !it.person && root_of(&it.grant) == root).count();
        if !caller.person && shared - surplus >= ROOT_SESSIONS_MAX {
            let message = "Too many browsers are signed in with this token and those made from it.";
            return Err(Fault::new(Code::GrantLimit, message).with("max", ROOT_SESSIONS_MAX));
        }
        for known in &own[..surplus] {
            self.end(caller, known.id.clone()).await?;
        }
        Ok(())
    }

    async fn end(self, caller: &Caller, id: GrantId) -> Result<(), Fault> {
        match self.0.change::<Grant>(caller, id, GrantInput::Revoke).await {
            Err(fault) if !fault.is(Code::GrantNotFound) => Err(fault),
            _ => Ok(()),
        }
    }
}

/// What must be known of a session to keep few of them.
struct Known {
    id: GrantId,
    /// The token it was made with.
    grant: GrantId,
    person: bool,
    seen_at: Timestamp,
    good: bool,
}

impl Known {
    fn of(grant: &Grant, now: Timestamp) -> Option<Self> {
        grant.console.as_ref()?;
        Some(Self {
            id: grant.id.clone(),
            grant: grant.by.grant.clone(),
            person: grant.person,
            seen_at: grant.seen_at,
            good: grant.is_good(now),
        })
    }
}

/// The grant that a grant was narrowed from in the beginning: everybody can narrow a token, so what
/// is narrowed from one has a share together.
fn root_of(grant: &GrantId) -> &str {
    grant.as_str().split('.').next().unwrap_or_default()
}

fn invalid() -> Fault {
    let message = "This session is not valid here; it may have ended. Sign in again.";
    Fault::new(Code::AuthInvalid, message)
}
