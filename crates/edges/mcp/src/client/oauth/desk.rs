//! Logins under way: where they begin and what brings them to their end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use url::{Host, Url};
use wharf_domain::provider::{McpDetails, McpLogin, McpServing};
use wharf_ports::logins::{LoginAnswer, LoginBegun, LoginEnd, LoginWay};
use wharf_vocab::{Code, Fault, GrantId, ProviderId, SecretName};

use super::super::link::address::UpstreamAddress;
use super::super::link::dial::UpstreamDial;
use super::super::link::rights::{SecretRights, UpstreamRights};
use super::LoginFailure;
use super::challenge::{Challenge, scopes};
use super::device::{self, DeviceCode};
use super::discover::{self, LoginPlace};
use super::identity::{self, ClientIdentity};
use super::kept::KeptLogin;
use super::rights::{LoginMeans, LoginRights, ServerLogin};
use super::tokens::{self, IssuedTokens, TokenDoor};
use super::web::LoginWeb;
use crate::shown;

/// Logins under way at once; another one takes the place of the oldest.
const PENDING_MAX: usize = 64;
/// How long a person may take.
const PENDING_FOR: Duration = Duration::from_secs(600);
/// How long the end of a device's login is waited for at once.
const WAIT_MAX: Duration = Duration::from_secs(25);
/// Longest code that a page leads back with.
const CODE_BYTES_MAX: usize = 8 * 1024;

/// All logins of one core.
pub(crate) struct LoginDesk {
    means: LoginMeans,
    servers: Mutex<HashMap<ProviderId, Arc<ServerLogin>>>,
    pending: Mutex<HashMap<String, PendingLogin>>,
}

/// A login that has begun.
struct PendingLogin {
    provider: ProviderId,
    /// Who began it; nobody else ends it.
    grant: GrantId,
    web: LoginWeb,
    place: LoginPlace,
    client: ClientIdentity,
    scopes: Vec<String>,
    for_more: bool,
    until: Instant,
    step: PendingStep,
}

enum PendingStep {
    Page { verifier: String, redirect_uri: String },
    Device(DeviceCode),
}

impl LoginDesk {
    pub(crate) fn new(means: LoginMeans) -> Self {
        Self { means, servers: Mutex::default(), pending: Mutex::default() }
    }

    /// The login of a server.
    pub(crate) fn of(&self, provider: &ProviderId) -> Arc<ServerLogin> {
        let mut servers = self.servers.lock();
        let login = servers
            .entry(provider.clone())
            .or_insert_with(|| Arc::new(ServerLogin::new(provider.clone(), self.means.clone())));
        Arc::clone(login)
    }

    /// What lets the core in at a server where somebody logs in, beside headers set by hand.
    pub(crate) fn rights(
        &self,
        provider: &ProviderId,
        others: SecretRights,
        dial: UpstreamDial,
    ) -> Arc<dyn UpstreamRights> {
        Arc::new(LoginRights::new(
            self.of(provider),
            others,
            LoginWeb::new(dial, self.means.patience),
        ))
    }

    /// Begins a login.
    pub(crate) async fn begin(
        &self,
        provider: &ProviderId,
        details: &McpDetails,
        grant: GrantId,
        way: LoginWay,
    ) -> Result<LoginBegun, Fault> {
        let web = LoginWeb::new(dial(details)?, self.means.patience);
        let begun = self.begin_at(provider, details, grant, way, web).await;
        begun.map_err(|error| match error {
            BeginError::Fault(fault) => fault,
            BeginError::Failure(failure) => failure.fault(provider),
        })
    }

    async fn begin_at(
        &self,
        provider: &ProviderId,
        details: &McpDetails,
        grant: GrantId,
        way: LoginWay,
        web: LoginWeb,
    ) -> Result<LoginBegun, BeginError> {
        if let LoginWay::Redirect { redirect_uri } = &way {
            check_way_back(redirect_uri)?;
        }
        let none = McpLogin::default();
        let settings = details.oauth.as_ref().unwrap_or(&none);
        let login = self.of(provider);
        if login.is_insatiable() {
            let why = "the server wants more rights however often somebody logs in; forget the \
                       login to begin anew";
            return Err(LoginFailure::new(why).into());
        }
        let challenge = match login.challenge() {
            Some(challenge) => challenge,
            None => web.challenge().await,
        };
        let place = discover::find(&web, &challenge).await?;
        let origin = web.server().url().origin().ascii_serialization();
        let known = login.shelf.of_issuer(&place.issuer.issuer, &origin).await?;
        self.check_issuer(&login, settings, &place, &origin, known.is_some()).await?;
        let scopes = wanted_scopes(&challenge, settings, &place, known.as_ref());
        let now = (self.means.now)();
        let known = known.map(|known| known.client);
        let client = identity::choose(&web, &place, settings, known, &way, now).await?;
        let state = tokens::nonce()?;
        let (step, begun) = match way {
            LoginWay::Redirect { redirect_uri } => {
                let verifier = tokens::nonce()?;
                let page = Page { client: &client, redirect_uri: &redirect_uri, scopes: &scopes };
                let url = page.address(&web, &place, &state, &verifier)?;
                let expires_in_s = PENDING_FOR.as_secs();
                let begun = LoginBegun { url, state: state.clone(), user_code: None, expires_in_s };
                (PendingStep::Page { verifier, redirect_uri }, begun)
            }
            LoginWay::Device => {
                let secret = self.means.secret_of(&client).await?;
                let (code, page) =
                    device::begin(&web, &place, &client, secret.as_deref(), &scopes).await?;
                let begun = LoginBegun {
                    url: page.url,
                    state: state.clone(),
                    user_code: Some(page.user_code),
                    expires_in_s: page.expires_in.min(PENDING_FOR).as_secs(),
                };
                (PendingStep::Device(code), begun)
            }
        };
        let until = Instant::now() + Duration::from_secs(begun.expires_in_s);
        self.put(
            state,
            PendingLogin {
                provider: provider.clone(),
                grant,
                web,
                place,
                client,
                scopes,
                for_more: challenge.is_step_up,
                until,
                step,
            },
        );
        Ok(begun)
    }

    /// A client that was registered by hand belongs to one issuer: the one its owner named, or
    /// else the first one that it was used with.
    async fn check_issuer(
        &self,
        login: &ServerLogin,
        settings: &McpLogin,
        place: &LoginPlace,
        origin: &str,
        is_known: bool,
    ) -> Result<(), BeginError> {
        let is_right = match &settings.issuer {
            Some(issuer) => *issuer == place.issuer.issuer,
            None if settings.client_secret.is_none() || is_known => true,
            None => login.shelf.newest(origin).await?.is_none(),
        };
        if is_right {
            return Ok(());
        }
        let why = "the server names another issuer than the one that its client is registered \
                   with; if that is right, set `issuer` under `[oauth]` in the server's manifest";
        Err(LoginFailure::new(why).into())
    }

    fn put(&self, state: String, login: PendingLogin) {
        let mut pending = self.pending.lock();
        pending.retain(|_, login| Instant::now() < login.until);
        if pending.len() >= PENDING_MAX {
            let oldest = pending.iter().min_by_key(|(_, login)| login.until);
            if let Some(oldest) = oldest.map(|(state, _)| state.clone()) {
                pending.remove(&oldest);
            }
        }
        pending.insert(state, login);
    }

    /// The login that a state names. It can be ended once.
    fn take(&self, provider: &ProviderId, grant: &GrantId, state: &str) -> Option<PendingLogin> {
        let mut pending = self.pending.lock();
        let login = pending.get(state)?;
        let is_theirs = login.provider == *provider && login.grant == *grant;
        is_theirs.then(|| pending.remove(state))?.filter(|login| Instant::now() < login.until)
    }

    /// Ends a login with what its page led back with, or waits a while for a device's. It gives
    /// the name of the secret that was kept, if it is done.
    pub(crate) async fn end(
        self: &Arc<Self>,
        provider: &ProviderId,
        grant: GrantId,
        answer: LoginAnswer,
    ) -> Result<(LoginEnd, Option<SecretName>), Fault> {
        let Some(login) = self.take(provider, &grant, &answer.state) else {
            let why = "there is no such login any more; begin again";
            return Err(LoginFailure::new(why).fault(provider));
        };
        let (desk, provider) = (Arc::clone(self), provider.clone());
        let ending = async move { desk.end_now(&provider, login, answer).await };
        // A code is good once: what comes of it is kept, whoever leaves meanwhile.
        self.means.to_its_end(ending).await
    }

    async fn end_now(
        &self,
        provider: &ProviderId,
        mut login: PendingLogin,
        answer: LoginAnswer,
    ) -> Result<(LoginEnd, Option<SecretName>), Fault> {
        let failed = |failure: LoginFailure| failure.fault(provider);
        let now = (self.means.now)();
        let secret = self.means.secret_of(&login.client).await?;
        let door = TokenDoor {
            web: &login.web,
            endpoint: login.place.token_endpoint.clone(),
            client: &login.client,
            secret,
            resource: &login.place.resource,
        };
        let tokens = match &mut login.step {
            PendingStep::Page { verifier, redirect_uri } => {
                let code = code_of(&login.place, &answer).map_err(failed)?;
                let grant = [
                    ("grant_type", "authorization_code"),
                    ("code", code),
                    ("redirect_uri", redirect_uri.as_str()),
                    ("code_verifier", verifier.as_str()),
                ];
                door.ask(&grant, now).await.map_err(|error| failed(error.into()))?
            }
            PendingStep::Device(code) => {
                let until = login.until.min(Instant::now() + WAIT_MAX);
                match code.poll(&door, now, until).await.map_err(failed)? {
                    Some(tokens) => tokens,
                    None if Instant::now() < login.until => {
                        self.put(answer.state, login);
                        return Ok((LoginEnd::Pending, None));
                    }
                    None => return Err(failed(LoginFailure::new("nobody typed the code"))),
                }
            }
        };
        let (for_more, kept) = (login.for_more, kept(login, tokens));
        let name = self.of(provider).logged_in(kept, for_more).await?;
        Ok((LoginEnd::Done, Some(name)))
    }

    /// Forgets what logins at a server brought, and gives the names of those secrets.
    pub(crate) async fn forget(&self, provider: &ProviderId) -> Result<Vec<SecretName>, Fault> {
        self.pending.lock().retain(|_, login| login.provider != *provider);
        self.of(provider).forget().await
    }

    /// A server is gone for good, and its logins with it.
    pub(crate) fn removed(self: &Arc<Self>, provider: &ProviderId) {
        let (desk, provider) = (Arc::clone(self), provider.clone());
        self.means.tasks.spawn("forgetting logins", async move {
            if let Err(fault) = desk.forget(&provider).await {
                tracing::warn!(%provider, code = fault.code.as_str(), "logins were not forgotten");
            }
            desk.servers.lock().remove(&provider);
        });
    }
}

fn kept(login: PendingLogin, tokens: IssuedTokens) -> KeptLogin {
    KeptLogin {
        origin: login.web.server().url().origin().ascii_serialization(),
        issuer: login.place.issuer.issuer,
        resource: login.place.resource,
        token_endpoint: login.place.token_endpoint.into(),
        client: login.client,
        access: tokens.access,
        refresh: tokens.refresh,
        expires_at: tokens.expires_at,
        scopes: tokens.scopes.unwrap_or(login.scopes),
    }
}

/// Why a login did not begin.
enum BeginError {
    Fault(Fault),
    Failure(LoginFailure),
}

impl From<Fault> for BeginError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<LoginFailure> for BeginError {
    fn from(failure: LoginFailure) -> Self {
        Self::Failure(failure)
    }
}

/// The way to a server where somebody logs in.
fn dial(details: &McpDetails) -> Result<UpstreamDial, Fault> {
    let invalid = |message: &str| Fault::new(Code::RequestInvalid, message);
    let McpServing::Url { url, allow_private } = &details.how else {
        return Err(invalid("Nobody logs in to a server that the core starts itself."));
    };
    if details.token_secret.is_some() {
        return Err(invalid("The server has a token already: the one its manifest names."));
    }
    let address = UpstreamAddress::read(url, *allow_private)
        .map_err(|why| Fault::new(Code::AgentManifestInvalid, format!("{why}.")))?;
    UpstreamDial::new(address)
}

/// Pages lead back to the person's own machine and nowhere else.
fn check_way_back(redirect_uri: &str) -> Result<(), Fault> {
    let url = Url::parse(redirect_uri).ok();
    let is_here = url.is_some_and(|url| {
        let is_here = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        let is_plain = url.username().is_empty() && url.fragment().is_none();
        url.scheme() == "http" && is_here && is_plain
    });
    if is_here {
        return Ok(());
    }
    let message = "`redirect_uri` must be an http address of the person's own machine.";
    Err(Fault::new(Code::RequestInvalid, message))
}

/// What is asked for: what the server wants, else what its owner set, else what it offers. What
/// an earlier login had is not lost.
fn wanted_scopes(
    challenge: &Challenge,
    settings: &McpLogin,
    place: &LoginPlace,
    known: Option<&KeptLogin>,
) -> Vec<String> {
    let set = Some(&settings.scopes).filter(|scopes| !scopes.is_empty());
    let new = challenge.scopes.as_ref().or(set).or(place.scopes.as_ref());
    let had = known.map(|known| known.scopes.as_slice()).unwrap_or_default();
    let new = new.map(Vec::as_slice).unwrap_or_default();
    let mut all = scopes(had.iter().chain(new).map(String::as_str));
    let offered = place.issuer.scopes_supported.iter().flatten();
    if !all.is_empty() && offered.into_iter().any(|scope| scope == OFFLINE) {
        all = scopes(all.iter().map(String::as_str).chain([OFFLINE]));
    }
    all
}

/// The scope that makes issuers of OpenID give tokens that can be renewed.
const OFFLINE: &str = "offline_access";

/// What the page is told.
struct Page<'a> {
    client: &'a ClientIdentity,
    redirect_uri: &'a str,
    scopes: &'a [String],
}

impl Page<'_> {
    fn address(
        &self,
        web: &LoginWeb,
        place: &LoginPlace,
        state: &str,
        verifier: &str,
    ) -> Result<String, LoginFailure> {
        let methods = place.issuer.code_challenge_methods_supported.iter().flatten();
        if !methods.into_iter().any(|method| method == "S256") {
            return Err(LoginFailure::new("the place where one logs in does not take PKCE"));
        }
        let Some(endpoint) = &place.issuer.authorization_endpoint else {
            return Err(LoginFailure::new("the place where one logs in has no page"));
        };
        let mut url = web.named(endpoint, "its page")?;
        let scope = self.scopes.join(" ");
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", self.redirect_uri)
            .append_pair("state", state)
            .append_pair("code_challenge", &tokens::challenge_of(verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &place.resource);
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
        if self.scopes.iter().any(|scope| scope == OFFLINE) {
            query.append_pair("prompt", "consent");
        }
        drop(query);
        Ok(url.into())
    }
}

/// The code that a page led back with, if the right issuer says so.
fn code_of<'a>(place: &LoginPlace, answer: &'a LoginAnswer) -> Result<&'a str, LoginFailure> {
    let says_who = place.issuer.authorization_response_iss_parameter_supported;
    match &answer.issuer {
        Some(issuer) if *issuer == place.issuer.issuer => {}
        None if !says_who => {}
        Some(_) => {
            let why = "the answer comes from another issuer than the one that was asked";
            return Err(LoginFailure::new(why));
        }
        None => {
            return Err(LoginFailure::new("the answer does not say which issuer it comes from"));
        }
    }
    if let Some(error) = &answer.error {
        return Err(LoginFailure::new(format!("the issuer says {}", shown::words(error))));
    }
    let code = answer.code.as_deref().filter(|code| !code.is_empty());
    let code = code.filter(|code| code.len() <= CODE_BYTES_MAX);
    code.ok_or_else(|| LoginFailure::new("the answer holds no code"))
}
