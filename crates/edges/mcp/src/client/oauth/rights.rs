//! What a login lets the core do: its token goes with requests, and is renewed once for all who
//! wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::header::AUTHORIZATION;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use url::Url;
use wharf_hosting::Tasks;
use wharf_ports::logins::is_login_secret;
use wharf_ports::vault::Vault;
use wharf_vocab::{Code, Executed, Fault, ProviderId, SecretName, Timestamp};

use super::super::link::rights::{
    HeldRights, RightsRefusal, RightsVerdict, SecretRights, UpstreamRights, login_required,
};
use super::challenge::Challenge;
use super::discover::covers;
use super::identity::{ClientIdentity, ClientSecret};
use super::kept::{KeptLogin, LoginShelf};
use super::tokens::{TokenDoor, TokenError};
use super::web::LoginWeb;

/// How often somebody is asked to log in again for more rights before the server's refusal counts.
const STEP_UPS_MAX: usize = 2;
/// After what time it may be tried again.
const STEP_UPS_KEPT: Duration = Duration::from_secs(3600);
/// A token that is refused so soon after it was renewed is not renewed again.
const RENEWED_FOR: Duration = Duration::from_secs(60);

/// What logins need of the core.
#[derive(Clone)]
pub(crate) struct LoginMeans {
    /// Keeps what logins bring.
    pub(crate) vault: Arc<dyn Vault>,
    /// Brings to its end what must not be dropped halfway.
    pub(crate) tasks: Tasks,
    /// How long one request to a server or an issuer may take.
    pub(crate) patience: Duration,
    /// The moment it is.
    pub(crate) now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Remembers secrets, so that they are cut out of what servers write.
    pub(crate) know: Arc<dyn Fn(&str) + Send + Sync>,
}

impl LoginMeans {
    /// The text of a client's secret.
    pub(super) async fn secret_of(&self, client: &ClientIdentity) -> Result<Option<String>, Fault> {
        let text = match &client.secret {
            ClientSecret::None => return Ok(None),
            ClientSecret::Own(text) => text.clone(),
            ClientSecret::Named(name) if is_login_secret(name) => {
                let message = format!("The secret {name} is the core's own.");
                return Err(Fault::new(Code::McpLoginFailed, message));
            }
            ClientSecret::Named(name) => {
                let secret = self.vault.get(name.clone()).await?;
                let text = std::str::from_utf8(secret.expose()).map(|text| text.trim().to_owned());
                text.map_err(|_| {
                    let message = format!("The secret {name} is no text.");
                    Fault::new(Code::McpLoginFailed, message)
                })?
            }
        };
        (self.know)(&text);
        Ok(Some(text))
    }

    /// Brings work to its end, also when whoever waits for it leaves.
    pub(super) async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        let (tell, told) = oneshot::channel();
        self.tasks.spawn("logging in at a server elsewhere", async move {
            let _ = tell.send(work.await);
        });
        let gone = |_| Fault::new(Code::CoreStopping, "The core is stopping.");
        told.await.map_err(gone)?
    }
}

/// The login of one server.
pub(crate) struct ServerLogin {
    provider: ProviderId,
    means: LoginMeans,
    pub(super) shelf: LoginShelf,
    state: Mutex<LoginState>,
    /// Held while the vault or the issuer is asked.
    asking: tokio::sync::Mutex<()>,
    /// Grows whenever there is another login.
    edition: watch::Sender<u64>,
}

#[derive(Default)]
struct LoginState {
    /// What the vault had for an origin, once it was asked.
    loaded: Option<(String, Option<KeptLogin>)>,
    /// What the server wants, if it refused somebody since the last login.
    challenge: Option<Challenge>,
    /// Logins for more rights, and when the last one was.
    step_ups: usize,
    stepped_up: Option<Instant>,
    /// Whether the server wanted more still.
    is_insatiable: bool,
    /// When the token was renewed.
    renewed: Option<Instant>,
}

impl ServerLogin {
    pub(super) fn new(provider: ProviderId, means: LoginMeans) -> Self {
        let shelf = LoginShelf::new(Arc::clone(&means.vault), provider.clone());
        Self {
            provider,
            means,
            shelf,
            state: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            edition: watch::Sender::new(0),
        }
    }

    /// Tells whoever waits when there is another login.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.edition.subscribe()
    }

    /// Whether the server refused somebody since the last login.
    pub(super) fn is_wanted(&self) -> bool {
        self.state.lock().challenge.is_some()
    }

    /// What the server wants of whoever logs in, if it said so.
    pub(super) fn challenge(&self) -> Option<Challenge> {
        self.state.lock().challenge.clone()
    }

    /// The login for this origin, and which edition of it that is.
    pub(super) async fn current(&self, origin: &str) -> Result<(Option<KeptLogin>, u64), Fault> {
        if let Some(known) = self.loaded(origin) {
            return Ok(known);
        }
        let _one = self.asking.lock().await;
        if let Some(known) = self.loaded(origin) {
            return Ok(known);
        }
        let kept = self.shelf.newest(origin).await?;
        if let Some(kept) = &kept {
            self.know(kept);
        }
        self.state.lock().loaded = Some((origin.to_owned(), kept.clone()));
        Ok((kept, *self.edition.borrow()))
    }

    fn loaded(&self, origin: &str) -> Option<(Option<KeptLogin>, u64)> {
        let state = self.state.lock();
        let (of, kept) = state.loaded.as_ref()?;
        (of == origin).then(|| (kept.clone(), *self.edition.borrow()))
    }

    fn know(&self, kept: &KeptLogin) {
        (self.means.know)(&kept.access);
        if let Some(refresh) = &kept.refresh {
            (self.means.know)(refresh);
        }
        if let ClientSecret::Own(secret) = &kept.client.secret {
            (self.means.know)(secret);
        }
    }

    /// Keeps another login and tells of it.
    async fn replace(&self, kept: KeptLogin) -> Result<SecretName, Fault> {
        self.know(&kept);
        let name = self.shelf.keep(&kept).await?;
        self.state.lock().loaded = Some((kept.origin.clone(), Some(kept)));
        self.edition.send_modify(|edition| *edition += 1);
        Ok(name)
    }

    /// Somebody logged in.
    pub(super) async fn logged_in(
        &self,
        kept: KeptLogin,
        for_more: bool,
    ) -> Result<SecretName, Fault> {
        let _one = self.asking.lock().await;
        {
            let mut state = self.state.lock();
            state.challenge = None;
            state.renewed = None;
            state.step_ups = if for_more { state.step_ups + 1 } else { 0 };
            state.stepped_up = for_more.then(Instant::now);
            state.is_insatiable = false;
        }
        self.replace(kept).await
    }

    /// Forgets all logins of the server.
    pub(super) async fn forget(&self) -> Result<Vec<SecretName>, Fault> {
        let _one = self.asking.lock().await;
        let gone = self.shelf.forget().await?;
        *self.state.lock() = LoginState::default();
        self.edition.send_modify(|edition| *edition += 1);
        Ok(gone)
    }

    /// Remembers what the server wants; `false` if it was tried often enough.
    fn challenged(&self, challenge: Challenge) -> bool {
        let mut state = self.state.lock();
        if state.stepped_up.is_some_and(|at| at.elapsed() > STEP_UPS_KEPT) {
            state.step_ups = 0;
        }
        state.is_insatiable = challenge.is_step_up && state.step_ups >= STEP_UPS_MAX;
        if state.is_insatiable {
            return false;
        }
        state.challenge = Some(challenge);
        true
    }

    /// Whether the server wanted more rights however often somebody logged in.
    pub(super) fn is_insatiable(&self) -> bool {
        let state = self.state.lock();
        let is_recent = state.stepped_up.is_some_and(|at| at.elapsed() <= STEP_UPS_KEPT);
        state.is_insatiable && is_recent
    }

    fn was_just_renewed(&self) -> bool {
        self.state.lock().renewed.is_some_and(|at| at.elapsed() < RENEWED_FOR)
    }

    /// Renews the token of this edition; `false` if that cannot be. Whoever comes while somebody
    /// else renews it waits for that.
    async fn renew(
        self: &Arc<Self>,
        web: &LoginWeb,
        origin: &str,
        edition: u64,
    ) -> Result<bool, Fault> {
        // An issuer takes most tokens for renewal once: the new one must be kept, whoever leaves.
        let (login, web, origin) = (Arc::clone(self), web.clone(), origin.to_owned());
        self.means.to_its_end(async move { login.renew_now(&web, &origin, edition).await }).await
    }

    async fn renew_now(&self, web: &LoginWeb, origin: &str, edition: u64) -> Result<bool, Fault> {
        let _one = self.asking.lock().await;
        let Some((kept, current)) = self.loaded(origin) else { return Ok(false) };
        if current != edition {
            return Ok(true);
        }
        let Some((kept, refresh)) = kept.and_then(|kept| {
            let refresh = kept.refresh.clone()?;
            Some((kept, refresh))
        }) else {
            return Ok(false);
        };
        let unusable = |failure: super::LoginFailure| failure.fault(&self.provider);
        let door = TokenDoor {
            web,
            endpoint: web.named(&kept.token_endpoint, "its token endpoint").map_err(unusable)?,
            client: &kept.client,
            secret: self.means.secret_of(&kept.client).await?,
            resource: &kept.resource,
        };
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
        match door.ask(&grant, (self.means.now)()).await {
            Ok(tokens) => {
                self.state.lock().renewed = Some(Instant::now());
                let kept = KeptLogin {
                    access: tokens.access,
                    refresh: tokens.refresh.or(Some(refresh)),
                    expires_at: tokens.expires_at,
                    scopes: tokens.scopes.unwrap_or(kept.scopes),
                    ..kept
                };
                self.replace(kept).await?;
                Ok(true)
            }
            Err(TokenError::Refused(_)) => {
                // It will not be taken another time either.
                self.replace(KeptLogin { refresh: None, ..kept }).await?;
                Ok(false)
            }
            Err(TokenError::Failed(failure)) => {
                let provider = &self.provider;
                let message =
                    format!("The login at the MCP server {provider} cannot be renewed: {failure}.");
                Err(Fault::new(Code::ToolUnavailable, message).executed(Executed::No))
            }
        }
    }
}

/// What lets the core in at a server where somebody logs in.
pub(crate) struct LoginRights {
    login: Arc<ServerLogin>,
    /// Headers that its owner set by hand.
    others: SecretRights,
    web: LoginWeb,
    server: Url,
}

impl fmt::Debug for LoginRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = &self.login.provider;
        f.debug_struct("LoginRights").field("provider", provider).finish_non_exhaustive()
    }
}

impl LoginRights {
    pub(super) fn new(login: Arc<ServerLogin>, others: SecretRights, web: LoginWeb) -> Self {
        let server = web.server().url().clone();
        Self { login, others, web, server }
    }

    fn origin(&self) -> String {
        self.server.origin().ascii_serialization()
    }

    /// The login, if it is good for this server.
    async fn current(&self) -> Result<(Option<KeptLogin>, u64), Fault> {
        let (kept, edition) = self.login.current(&self.origin()).await?;
        Ok((kept.filter(|kept| covers(&kept.resource, &self.server)), edition))
    }

    async fn held_now(&self) -> Result<HeldRights, Fault> {
        let HeldRights { mut headers, edition: others } = self.others.held().await?;
        let (mut kept, mut edition) = self.current().await?;
        let is_over = |kept: &KeptLogin| {
            kept.refresh.is_some()
                && kept.expires_at.is_some_and(|until| until <= (self.login.means.now)())
        };
        if kept.as_ref().is_some_and(is_over) {
            self.login.renew(&self.web, &self.origin(), edition).await?;
            (kept, edition) = self.current().await?;
        }
        if let Some(kept) = kept {
            headers.add(AUTHORIZATION, "Bearer ", kept.access.as_bytes());
        }
        Ok(HeldRights { headers, edition: edition + others })
    }

    async fn refused_now(
        &self,
        edition: u64,
        refusal: RightsRefusal,
    ) -> Result<RightsVerdict, Fault> {
        let Some(challenge) = Challenge::of(&refusal) else { return Ok(RightsVerdict::Final) };
        let others = self.others.held().await?.edition;
        let (kept, current) = self.current().await?;
        if current + others != edition {
            return Ok(RightsVerdict::Again);
        }
        if !challenge.is_step_up {
            let set_anew = self.others.refused(others, refusal).await;
            if set_anew.is_ok_and(|verdict| verdict == RightsVerdict::Again) {
                return Ok(RightsVerdict::Again);
            }
            let renewable = kept.is_some_and(|kept| kept.refresh.is_some());
            if renewable
                && !self.login.was_just_renewed()
                && self.login.renew(&self.web, &self.origin(), current).await?
            {
                return Ok(RightsVerdict::Again);
            }
        }
        match self.login.challenged(challenge) {
            true => Err(login_required(&self.login.provider)),
            false => Ok(RightsVerdict::Final),
        }
    }
}

impl UpstreamRights for LoginRights {
    fn held(&self) -> BoxFuture<'_, Result<HeldRights, Fault>> {
        Box::pin(self.held_now())
    }

    fn refused(
        &self,
        edition: u64,
        refusal: RightsRefusal,
    ) -> BoxFuture<'_, Result<RightsVerdict, Fault>> {
        Box::pin(self.refused_now(edition, refusal))
    }
}
