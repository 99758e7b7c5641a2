//! Grants: who a token stands for, and making, listing and revoking them.

use std::sync::Arc;

use uuid::Uuid;
use wharf_domain::grant::{
    Keyring, Narrowing, NewGrant, StampKind, Token, WorkerGrant, stamp, token, worker,
};
use wharf_domain::{Caller, CallerKind, Grant, GrantInput, Provider};
use wharf_vocab::{Code, Fault, GrantId, Object, ProviderId, Timestamp, Verb};

use super::names::NameKind;
use super::{SealCalls, TrustCalls};
use crate::clean::Clean;

impl TrustCalls<'_> {
    /// Who bears a token; it must be sealed by this core, in time and not revoked, and neither
    /// may the tokens that are not a person's and made it.
    pub fn authenticate(self, text: &str) -> Result<Caller, Fault> {
        let keyring = self.keyring();
        let bearer = token::verify(&keyring, text).map_err(|_| invalid())?;
        let known = self.0.inner.records.grants.get(&bearer.root).ok_or_else(invalid)?;
        let expired = bearer.rights.until.is_some_and(|until| until <= self.0.inner.clock.latest());
        let makers = known.makers();
        if known.revoked_at.is_some()
            || expired
            || self.0.inner.records.grants.revoked(makers.iter()).is_some()
        {
            return Err(invalid());
        }
        let narrowed = bearer.root_person && bearer.chain.len() > 1;
        let own = bearer.chain.iter().skip(usize::from(bearer.root_person));
        Ok(Caller {
            // Whoever makes a token stands behind all that is done with it.
            links: makers.into_iter().chain(own.cloned()).collect(),
            root: narrowed.then(|| bearer.root.clone()),
            grant: bearer.chain.last().cloned().unwrap_or(bearer.root),
            person: bearer.person,
            kind: CallerKind::Client,
            account: known.account(),
            rights: Arc::new(bearer.rights),
            stands_in: None,
            console: None,
        })
    }

    /// Who stands for a grant by the word of somebody whom its owner trusts: with its rights until
    /// a moment, under a name of their own below it. Nobody is a person by such a word.
    pub fn vouched(
        self,
        grant: &GrantId,
        name: GrantId,
        until: Timestamp,
    ) -> Result<Caller, Fault> {
        let known = self.0.inner.records.grants.get(grant).ok_or_else(invalid)?;
        let narrowing = Narrowing { until: Some(until), ..Narrowing::default() };
        let own = (!known.person).then(|| grant.clone());
        let links = known.makers().into_iter().chain(own).chain([name.clone()]).collect();
        let caller = Caller {
            links,
            root: known.person.then(|| grant.clone()),
            grant: name,
            person: false,
            kind: CallerKind::Client,
            account: known.account(),
            rights: Arc::new(known.rights.narrowed(&narrowing)),
            stands_in: None,
            console: None,
        };
        self.check_current(&caller).map_err(|_| invalid())?;
        Ok(caller)
    }

    /// Makes a grant and its token, which is shown this once.
    pub async fn make_grant(self, caller: &Caller, new: NewGrant) -> Result<(Grant, Token), Fault> {
        caller.rights.check_verb(Verb::Admin)?;
        new.check(caller)?;
        if let Some(world) = new.rights.only_world().filter(|_| new.budget_micro.is_some()) {
            self.0.worlds().get(world).await?;
        }
        let now = self.0.now();
        let good = |grant: &Grant| grant.console.is_none() && grant.is_good(now);
        let share = |grant: &Grant| good(grant).then(|| grant.by.share());
        let shares = self.0.inner.records.grants.find(share).into_iter();
        let _place = self.0.inner.names.take(NameKind::Tokens, caller, shares)?;
        let id = GrantId::new(format!("g-{}", Uuid::now_v7().simple()))
            .map_err(|_| Fault::new(Code::CoreInternal, "The grant could not be named."))?;
        let grant: Grant = self.0.change(caller, id, GrantInput::Make(Box::new(new))).await?;
        let token = token::mint(&self.keyring(), &grant);
        Ok((grant, token))
    }

    /// Makes a grant and every token narrowed from it worthless.
    pub async fn revoke_grant(self, caller: &Caller, id: GrantId) -> Result<Grant, Fault> {
        caller.rights.check_verb(Verb::Admin)?;
        self.0.change(caller, id, GrantInput::Revoke).await
    }

    /// All grants, revoked ones too, oldest first; of browsers those that are signed in.
    pub fn grants(self) -> Vec<Grant> {
        let now = self.0.inner.clock.latest();
        let mut grants = self.0.inner.records.grants.all();
        grants.retain(|grant| grant.console.is_none() || grant.is_good(now));
        grants.sort_by_key(|grant| grant.made_at);
        grants
    }

    /// What the bearer of a grant is called by people, if anything is known of it.
    pub fn display_of(self, grant: &GrantId) -> Option<String> {
        if let Some(agent) = grant.as_str().strip_prefix("agent.") {
            let name = |agent: &Provider| agent.manifest.name.clone();
            let name = self.0.inner.records.providers.look(&ProviderId::new(agent).ok()?, name)?;
            return Some(name).filter(|name| !name.is_empty());
        }
        let root = GrantId::new(grant.as_str().split('.').next()?).ok()?;
        let label = self.0.inner.records.grants.look(&root, |grant| grant.label.clone());
        let own = matches!(grant.as_str(), "owner" | "core").then(|| grant.to_string());
        label.filter(|label| !label.is_empty()).or(own)
    }

    /// Remembers the value of a secret that somebody is given, so that it is cut out of what
    /// providers write.
    pub fn know_secret(self, value: &str) {
        self.0.inner.redactor.know(value);
    }

    /// Cuts out what must not be shown of what a provider says of itself.
    pub fn redact(self, object: &mut Object) {
        self.0.inner.redactor.object(object);
    }

    /// A line of a log without what must not be shown, if it had any of it.
    pub fn redacted(self, line: &str) -> Option<String> {
        self.0.inner.redactor.clean(line)
    }

    pub(super) fn keyring(self) -> Arc<Keyring> {
        Arc::clone(&self.0.inner.keyring.read())
    }
}

impl SealCalls<'_> {
    /// The long form of a worker's right to an attempt.
    pub fn mint_worker(self, grant: &WorkerGrant) -> String {
        grant.mint(&self.0.trust().keyring())
    }

    /// The short form of a worker's right to an attempt.
    pub fn worker_handle(self, task_id: &str, attempt: u32) -> Option<String> {
        worker::handle(&self.0.trust().keyring(), task_id, attempt)
    }

    /// What the long form of a worker's right gives, if this core sealed it.
    pub fn verify_worker(self, text: &str) -> Option<WorkerGrant> {
        WorkerGrant::verify(&self.0.trust().keyring(), text)
    }

    /// Seals bytes as a text that this core, or another one with its keys, reads again; what is
    /// not said in it must be the same then.
    pub fn stamp(self, kind: StampKind, unsaid: &[u8], bytes: &[u8]) -> String {
        stamp::stamp(&self.0.trust().keyring(), kind, unsaid, bytes)
    }

    /// The bytes of such a text, if its seal is right.
    pub fn read_stamp(self, kind: StampKind, unsaid: &[u8], text: &str) -> Option<Vec<u8>> {
        stamp::read_stamp(&self.0.trust().keyring(), kind, unsaid, text)
    }

    /// Seals and checks tokens with other keys from now on.
    pub fn set_keyring(self, keyring: Keyring) {
        *self.0.inner.keyring.write() = Arc::new(keyring);
    }
}

fn invalid() -> Fault {
    let message = "This token is not valid here; it may be expired or revoked.";
    Fault::new(Code::AuthInvalid, message)
}
