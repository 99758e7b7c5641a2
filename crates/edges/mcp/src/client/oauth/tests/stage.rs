//! A server that wants a login, an issuer that gives tokens, and whoever logs in there.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use url::Url;
use wharf_domain::grant::Keyring;
use wharf_domain::provider::{McpDetails, McpLogin, McpServing};
use wharf_hosting::Tasks;
use wharf_ports::logins::{LoginAnswer, LoginBegun, LoginEnd, LoginWay};
use wharf_ports::vault::{KeptSecret, Secret, Vault};
use wharf_vocab::{Code, Fault, GrantId, ProviderId, SecretName, Timestamp};

use super::super::tokens::challenge_of;
use super::super::{LoginDesk, LoginMeans};
use crate::client::link::address::UpstreamAddress;
use crate::client::link::dial::{DialRequest, UpstreamDial};
use crate::client::link::rights::{HttpFailure, SecretRights, UpstreamHttp};

/// Where pages lead back to.
pub(super) const WAY_BACK: &str = "http://127.0.0.1:7999/callback";

/// How the server and its issuer behave. What is not set is as it should be.
#[derive(Clone, Default)]
pub(super) struct Script {
    /// Where the server's own document is, if not at the usual place.
    pub(super) resource_at: Option<&'static str>,
    /// Whether refusals say where it is.
    pub(super) unnamed: bool,
    /// Where refusals say it is, whatever is true.
    pub(super) named: Option<String>,
    /// Where the issuer's document is.
    pub(super) issuer_at: Option<&'static str>,
    /// A path of the issuer's name.
    pub(super) tenant: &'static str,
    /// Pieces of the server's document that are otherwise.
    pub(super) resource: Value,
    /// Pieces of the issuer's document that are otherwise; null leaves one out.
    pub(super) issuer: Value,
    /// What `iss` is on the way back; empty leaves it out.
    pub(super) iss: Option<String>,
    /// What registration answers besides the usual.
    pub(super) registration: Value,
    /// What the token endpoint answers besides the usual.
    pub(super) token: Value,
    /// A whole answer for a path of the issuer.
    pub(super) instead: Option<Instead>,
    /// A path of the issuer that is never answered.
    pub(super) silent: Option<&'static str>,
    /// What each method of the server needs.
    pub(super) scopes: BTreeMap<&'static str, &'static str>,
    /// Whether the server refuses every token for want of scopes.
    pub(super) never_enough: bool,
    /// How often a device is told to wait.
    pub(super) device_waits: usize,
}

/// A path and its whole answer: status, headers and body.
pub(super) type Instead = (&'static str, u16, Vec<(&'static str, String)>, String);

/// What was seen of those who came.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) paths: Vec<String>,
    pub(super) pages: Vec<HashMap<String, String>>,
    pub(super) forms: Vec<(HeaderMap, HashMap<String, String>)>,
    pub(super) registrations: Vec<Value>,
    codes: HashMap<String, HashMap<String, String>>,
    access: HashMap<String, Vec<String>>,
    refresh: HashMap<String, Vec<String>>,
    devices: usize,
    count: usize,
}

/// Both of them.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) server: String,
    pub(super) issuer: String,
    script: Arc<Mutex<Script>>,
    pub(super) seen: Arc<Mutex<Seen>>,
}

impl Stage {
    pub(super) async fn new(script: Script) -> Self {
        let (server, issuer) = (listen().await, listen().await);
        let stage = Self {
            server: format!("http://localhost:{}", server.1),
            issuer: format!("http://localhost:{}", issuer.1),
            script: Arc::new(Mutex::new(script)),
            seen: Arc::default(),
        };
        let service = Router::new().fallback(serve_server).with_state(stage.clone());
        tokio::spawn(async move { axum::serve(server.0, service).await });
        let service = Router::new().fallback(serve_issuer).with_state(stage.clone());
        tokio::spawn(async move { axum::serve(issuer.0, service).await });
        stage
    }

    /// Another issuer beside the same server.
    pub(super) async fn moves_to(&mut self, other: &Stage) {
        self.script.lock().resource = json!({ "authorization_servers": [other.issuer_name()] });
        let mut seen = self.seen.lock();
        seen.access.clear();
        seen.refresh.clear();
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock());
    }

    pub(super) fn issuer_name(&self) -> String {
        format!("{}{}", self.issuer, self.script.lock().tenant)
    }

    /// Makes every token worthless that there is now.
    pub(super) fn expire(&self) {
        self.seen.lock().access.clear();
    }

    /// The same, and nothing is renewed either.
    pub(super) fn revoke(&self) {
        let mut seen = self.seen.lock();
        seen.access.clear();
        seen.refresh.clear();
    }

    pub(super) fn details(&self) -> McpDetails {
        let url = format!("{}/mcp", self.server);
        McpDetails::new(McpServing::Url { url, allow_private: false })
    }

    /// How often a path of the issuer was asked with this in its form.
    pub(super) fn asked(&self, key: &str, value: &str) -> usize {
        let seen = self.seen.lock();
        seen.forms.iter().filter(|(_, form)| form.get(key).is_some_and(|it| it == value)).count()
    }
}

async fn listen() -> (tokio::net::TcpListener, u16) {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

fn with(mut usual: Value, other: &Value) -> Response {
    for (key, value) in other.as_object().into_iter().flatten() {
        usual[key] = value.clone();
    }
    if let Some(usual) = usual.as_object_mut() {
        usual.retain(|_, value| !value.is_null());
    }
    axum::Json(usual).into_response()
}

fn pairs(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn error(status: StatusCode, word: &str) -> Response {
    (status, axum::Json(json!({ "error": word }))).into_response()
}

async fn serve_server(State(stage): State<Stage>, request: Request) -> Response {
    let script = stage.script.lock().clone();
    let path = request.uri().path().to_owned();
    stage.seen.lock().paths.push(path.clone());
    let document = script.resource_at.unwrap_or("/.well-known/oauth-protected-resource/mcp");
    if path == document {
        let resource = match document {
            "/.well-known/oauth-protected-resource" => stage.server.clone(),
            _ => format!("{}/mcp", stage.server),
        };
        let usual = json!({ "resource": resource, "authorization_servers": [stage.issuer_name()] });
        return with(usual, &script.resource);
    }
    if path != "/mcp" {
        return StatusCode::NOT_FOUND.into_response();
    }
    let token = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let token = token.and_then(|text| text.strip_prefix("Bearer ")).map(str::to_owned);
    let body = axum::body::to_bytes(request.into_body(), 65536).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let needed = script.scopes.get(body["method"].as_str().unwrap_or_default()).copied();
    let held = token.and_then(|token| stage.seen.lock().access.get(&token).cloned());
    let scope = needed.map(|scope| format!(", scope=\"{scope}\"")).unwrap_or_default();
    let named = script.named.unwrap_or_else(|| format!("{}{document}", stage.server));
    let named = match script.unnamed {
        true => String::new(),
        false => format!(", resource_metadata=\"{named}\""),
    };
    let refuse = |status: StatusCode, word: &str| {
        let challenge = format!("Bearer error=\"{word}\"{scope}{named}");
        (status, [("www-authenticate", challenge)]).into_response()
    };
    match held {
        None => refuse(StatusCode::UNAUTHORIZED, "invalid_token"),
        Some(held)
            if script.never_enough
                || needed.is_some_and(|needed| !held.iter().any(|it| it == needed)) =>
        {
            refuse(StatusCode::FORBIDDEN, "insufficient_scope")
        }
        Some(_) => axum::Json(json!({ "ok": true })).into_response(),
    }
}

async fn serve_issuer(
    State(stage): State<Stage>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let script = stage.script.lock().clone();
    let path = uri.path().to_owned();
    stage.seen.lock().paths.push(path.clone());
    if script.silent == Some(path.as_str()) {
        std::future::pending::<()>().await;
    }
    if let Some((of, status, headers, body)) = &script.instead
        && *of == path
    {
        let mut answer =
            (StatusCode::from_u16(*status).expect("a status"), body.clone()).into_response();
        for (name, value) in headers {
            answer.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        return answer;
    }
    let document = script.issuer_at.unwrap_or("/.well-known/oauth-authorization-server");
    if path == document {
        let base = &stage.issuer;
        let usual = json!({
            "issuer": stage.issuer_name(),
            "authorization_endpoint": format!("{base}/authorize?tenant=1"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "device_authorization_endpoint": format!("{base}/device"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
        });
        return with(usual, &script.issuer);
    }
    let form = pairs(&String::from_utf8_lossy(&body));
    match path.as_str() {
        "/authorize" => authorize(&stage, &script, pairs(uri.query().unwrap_or_default())),
        "/token" => token(&stage, &script, headers, &form),
        "/register" => register(&stage, &script, &body),
        "/device" => {
            stage.seen.lock().forms.push((headers, form));
            axum::Json(json!({
                "device_code": "device-c4nary",
                "user_code": "ABCD-\u{1b}EFGH",
                "verification_uri": format!("{}/typed", stage.issuer),
                "expires_in": 600,
                "interval": 0,
            }))
            .into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn register(stage: &Stage, script: &Script, body: &[u8]) -> Response {
    let mut seen = stage.seen.lock();
    seen.registrations.push(serde_json::from_slice(body).unwrap_or_default());
    let usual = json!({ "client_id": format!("client-{}", seen.registrations.len()) });
    with(usual, &script.registration)
}

fn authorize(stage: &Stage, script: &Script, page: HashMap<String, String>) -> Response {
    let mut seen = stage.seen.lock();
    seen.count += 1;
    let code = format!("code-c4nary-{}", seen.count);
    let mut back = Url::parse(&page["redirect_uri"]).expect("an address");
    back.query_pairs_mut().append_pair("code", &code).append_pair("state", &page["state"]);
    let iss = script.iss.clone().unwrap_or_else(|| format!("{}{}", stage.issuer, script.tenant));
    if !iss.is_empty() {
        back.query_pairs_mut().append_pair("iss", &iss);
    }
    seen.codes.insert(code, page.clone());
    seen.pages.push(page);
    (StatusCode::FOUND, [("location", back.to_string())]).into_response()
}

fn token(
    stage: &Stage,
    script: &Script,
    headers: HeaderMap,
    form: &HashMap<String, String>,
) -> Response {
    let mut seen = stage.seen.lock();
    seen.forms.push((headers, form.clone()));
    let refuse = || error(StatusCode::BAD_REQUEST, "invalid_grant");
    let scopes = match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some(page) = seen.codes.remove(&form["code"]) else { return refuse() };
            let proved = page["code_challenge"] == challenge_of(&form["code_verifier"]);
            let same = |key: &str| page.get(key) == form.get(key);
            if !proved || !same("redirect_uri") || !same("resource") {
                return refuse();
            }
            page.get("scope").cloned().unwrap_or_default()
        }
        "refresh_token" => match seen.refresh.remove(&form["refresh_token"]) {
            Some(scopes) => scopes.join(" "),
            None => return refuse(),
        },
        _ if form["device_code"] != "device-c4nary" => return refuse(),
        _ => {
            seen.devices += 1;
            match seen.devices <= script.device_waits {
                true => return error(StatusCode::BAD_REQUEST, "authorization_pending"),
                false => String::new(),
            }
        }
    };
    seen.count += 1;
    let (access, refresh) =
        (format!("access-c4nary-{}", seen.count), format!("refresh-c4nary-{}", seen.count));
    let held: Vec<String> = scopes.split(' ').map(str::to_owned).collect();
    seen.access.insert(access.clone(), held.clone());
    seen.refresh.insert(refresh.clone(), held);
    let usual = json!({
        "access_token": access,
        "refresh_token": refresh,
        "token_type": "Bearer",
        "expires_in": 3600,
    });
    with(usual, &script.token)
}

/// A core as far as logins know one. What it keeps outlives it.
pub(super) struct Core {
    pub(super) vault: Arc<MemoryVault>,
    pub(super) now: Arc<AtomicU64>,
    pub(super) known: Arc<Mutex<Vec<String>>>,
    pub(super) desk: Arc<LoginDesk>,
}

pub(super) fn id() -> ProviderId {
    ProviderId::new("tracker").expect("valid")
}

pub(super) fn grant(name: &str) -> GrantId {
    GrantId::new(name).expect("valid")
}

impl Core {
    pub(super) fn new() -> Self {
        Self::with(Arc::default(), Duration::from_secs(20))
    }

    pub(super) fn with(vault: Arc<MemoryVault>, patience: Duration) -> Self {
        let now = Arc::new(AtomicU64::new(1_000_000));
        let known: Arc<Mutex<Vec<String>>> = Arc::default();
        let (clock, knows) = (Arc::clone(&now), Arc::clone(&known));
        let desk = LoginDesk::new(LoginMeans {
            vault: Arc::clone(&vault) as Arc<dyn Vault>,
            tasks: Tasks::default(),
            patience,
            now: Arc::new(move || Timestamp(clock.load(Ordering::SeqCst))),
            know: Arc::new(move |secret| knows.lock().push(secret.to_owned())),
        });
        Self { vault, now, known, desk: Arc::new(desk) }
    }

    /// The same core after a restart.
    pub(super) fn again(&self) -> Self {
        Self::with(Arc::clone(&self.vault), Duration::from_secs(20))
    }

    pub(super) async fn begin(&self, details: &McpDetails) -> Result<LoginBegun, Fault> {
        let way = LoginWay::Redirect { redirect_uri: WAY_BACK.to_owned() };
        self.desk.begin(&id(), details, grant("owner"), way).await
    }

    pub(super) async fn end(&self, answer: LoginAnswer) -> Result<LoginEnd, Fault> {
        self.desk.end(&id(), grant("owner"), answer).await.map(|(end, _)| end)
    }

    /// A whole login.
    pub(super) async fn log_in(&self, details: &McpDetails) -> Result<(), Fault> {
        let begun = self.begin(details).await?;
        let answer = follow(&begun).await;
        assert_eq!(self.end(answer).await?, LoginEnd::Done);
        Ok(())
    }

    /// The way to the server.
    pub(super) fn open(&self, details: &McpDetails) -> UpstreamHttp {
        let McpServing::Url { url, .. } = &details.how else { panic!("elsewhere") };
        let address = UpstreamAddress::read(url, false).expect("good");
        let dial = UpstreamDial::new(address).expect("a client");
        let nothing = SecretRights::new(id(), None, [], Arc::new(|_| panic!("none is set")));
        let rights = self.desk.rights(&id(), nothing.expect("rights"), dial.clone());
        UpstreamHttp::new(dial, rights)
    }

    /// Calls a method of the server.
    pub(super) async fn call(&self, details: &McpDetails, method: &str) -> Result<u16, Fault> {
        call(&self.open(details), method).await
    }
}

/// Calls a method of the server.
pub(super) async fn call(http: &UpstreamHttp, method: &str) -> Result<u16, Fault> {
    let request = DialRequest::new(reqwest::Method::POST, http.address().url().clone());
    let request = request.body(json!({ "method": method }).to_string());
    match http.send(request).await {
        Ok(answer) => Ok(answer.status().as_u16()),
        Err(HttpFailure::Rights(fault)) => Err(fault),
        Err(HttpFailure::Dial(failure)) => panic!("{}", failure.why),
    }
}

/// Opens a page as a browser does, and gives what it leads back with.
pub(super) async fn follow(begun: &LoginBegun) -> LoginAnswer {
    let policy = reqwest::redirect::Policy::none();
    let browser = reqwest::Client::builder().no_proxy().redirect(policy).build().expect("one");
    let answer = browser.get(&begun.url).send().await.expect("a page");
    let back = answer.headers()["location"].to_str().expect("text").to_owned();
    assert!(back.starts_with(WAY_BACK), "{back}");
    let query = pairs(Url::parse(&back).expect("an address").query().unwrap_or_default());
    assert_eq!(query["state"], begun.state);
    LoginAnswer {
        state: query["state"].clone(),
        code: query.get("code").cloned(),
        issuer: query.get("iss").cloned(),
        error: query.get("error").cloned(),
    }
}

/// A client that was registered by hand.
pub(super) fn by_hand(id: &str, secret: Option<&str>) -> McpLogin {
    McpLogin {
        client_id: Some(id.to_owned()),
        client_secret: secret.map(|name| SecretName::new(name).expect("valid")),
        ..McpLogin::default()
    }
}

/// The pair of a `Basic` header.
pub(super) fn basic(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("authorization")?.to_str().ok()?.strip_prefix("Basic ")?.to_owned();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    String::from_utf8(bytes).ok()
}

/// A vault that is gone with its process.
#[derive(Default)]
pub(super) struct MemoryVault(Mutex<BTreeMap<SecretName, (u64, Secret)>>);

impl MemoryVault {
    pub(super) fn put(&self, name: &str, text: &str) {
        let name = SecretName::new(name).expect("valid");
        let mut kept = self.0.lock();
        let at = kept.len() as u64;
        kept.insert(name, (at, Secret::new(text.as_bytes())));
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().keys().map(ToString::to_string).collect()
    }
}

fn none(name: &SecretName) -> Fault {
    Fault::new(Code::SecretNotFound, format!("no {name}"))
}

impl Vault for MemoryVault {
    fn set(&self, name: SecretName, secret: Secret) -> BoxFuture<'_, Result<(), Fault>> {
        async move {
            let mut kept = self.0.lock();
            let at = kept.values().map(|(at, _)| at + 1).max().unwrap_or_default();
            kept.insert(name, (at, secret));
            Ok(())
        }
        .boxed()
    }

    fn get(&self, name: SecretName) -> BoxFuture<'_, Result<Secret, Fault>> {
        async move {
            let found = self.0.lock().get(&name).map(|(_, secret)| secret.clone());
            found.ok_or_else(|| none(&name))
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<KeptSecret>, Fault>> {
        async move {
            let kept = self.0.lock();
            let kept = kept
                .iter()
                .map(|(name, (at, _))| KeptSecret { name: name.clone(), set_at: Timestamp(*at) });
            Ok(kept.collect())
        }
        .boxed()
    }

    fn remove(&self, name: SecretName) -> BoxFuture<'_, Result<(), Fault>> {
        async move { self.0.lock().remove(&name).map(drop).ok_or_else(|| none(&name)) }.boxed()
    }

    fn keyring(&self) -> BoxFuture<'_, Result<Keyring, Fault>> {
        async { Ok(Keyring::none()) }.boxed()
    }

    fn rotate(&self, _drop_old: bool) -> BoxFuture<'_, Result<Keyring, Fault>> {
        async { Ok(Keyring::none()) }.boxed()
    }
}
