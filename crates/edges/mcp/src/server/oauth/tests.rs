//! Tokens of a real issuer, and of those who would like to be one, at a core on a real socket.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use wharf_domain::grant::{NewGrant, Rights};
use wharf_engine::Handle;
use wharf_http::{HttpListener, HttpOptions, HttpServer, Mount, OwnerToken};
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryStore;
use wharf_ports::SystemClock;
use wharf_vocab::{NodeId, Verb};

use super::*;
use crate::{McpEdge, McpEdgeOptions};

const ISSUER: &str = "https://login.example/tenant";
const AUDIENCE: &str = "https://wharf.example/mcp";
const OWNER: &str = "owners-own-token";

fn encode(bytes: impl AsRef<[u8]>) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

/// A key that signs.
enum Signer {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    fn rsa() -> Self {
        let der = include_bytes!("../../../testdata/rsa.pk8");
        Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(der).expect("a key")))
    }

    fn p256() -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let der = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
        Self::P256(EcdsaKeyPair::from_pkcs8(kind, der.as_ref(), &random).expect("a key"))
    }

    fn ed25519() -> Self {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(der.as_ref()).expect("a key"))
    }

    fn alg(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    /// As it stands in a set.
    fn public(&self, kid: &str) -> Value {
        match self {
            Self::Rsa(key) => {
                let parts: ring::rsa::PublicKeyComponents<Vec<u8>> = key.public().into();
                let (n, e) = (encode(parts.n), encode(parts.e));
                json!({ "kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256", "n": n, "e": e })
            }
            Self::P256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                let (x, y) = (encode(x), encode(y));
                json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": x, "y": y })
            }
            Self::Ed25519(key) => {
                let x = encode(key.public_key());
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x })
            }
        }
    }

    fn sign(&self, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let done = key.sign(&RSA_PKCS1_SHA256, &random, signed, &mut signature);
                done.expect("a signature");
                signature
            }
            Self::P256(key) => key.sign(&random, signed).expect("a signature").as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(signed).as_ref().to_vec(),
        }
    }

    fn token(&self, kid: &str, claims: &Value) -> String {
        self.token_with(&json!({ "alg": self.alg(), "kid": kid, "typ": "at+jwt" }), claims)
    }

    fn token_with(&self, head: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(head.to_string()), encode(claims.to_string()));
        let signature = encode(self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs()
}

/// Claims that are good, with these in their place; null leaves one out.
fn claims(other: &Value) -> Value {
    let mut claims = json!({
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "somebody",
        "exp": now_s() + 600,
        "nbf": now_s() - 5,
        "scope": "openid wharf",
    });
    for (key, value) in other.as_object().into_iter().flatten() {
        claims[key] = value.clone();
    }
    if let Some(claims) = claims.as_object_mut() {
        claims.retain(|_, value| !value.is_null());
    }
    claims
}

/// Where the keys are, and how often they were asked for.
#[derive(Clone, Default)]
struct KeyServer {
    body: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

impl KeyServer {
    async fn start(keys: &Value) -> (Self, String) {
        let server = Self { body: Arc::new(Mutex::new(set(keys))), asked: Arc::default() };
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let url = format!("http://{}/keys", listener.local_addr().expect("an address"));
        let answer = |State(server): State<Self>| async move {
            server.asked.fetch_add(1, Ordering::SeqCst);
            server.body.lock().clone()
        };
        let service = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, service).await });
        (server, url)
    }
}

fn set(keys: &Value) -> String {
    json!({ "keys": keys }).to_string()
}

/// A core and whoever comes to it.
struct Stage {
    handle: Handle,
    grant: GrantId,
    server: HttpServer,
    client: reqwest::Client,
}

impl Stage {
    async fn start(keys_url: Option<&str>) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([1; 32]), clock.clone()));
        let node = NodeId::new("test").expect("an id");
        let engine = wharf_engine::EngineOptions::new(node, store, clock, 1);
        let handle = Handle::start(engine).await.expect("starts");
        let rights = Rights { verbs: [Verb::Read, Verb::Run].into(), ..Rights::all() };
        let new = NewGrant { label: "theirs".to_owned(), rights, person: true, budget_micro: None };
        let owner = Caller::owner();
        let (grant, _) = handle.trust().make_grant(&owner, new).await.expect("a grant");
        let oauth =
            keys_url.map(|url| Arc::new(McpOauth::new(settings(url, &grant.id)).expect("fits")));
        let edge = McpEdge::start(McpEdgeOptions { oauth, ..McpEdgeOptions::new(handle.clone()) });
        let mut options = HttpOptions::new(OwnerToken::new(OWNER));
        options.mounts = vec![
            Mount { own_doors: true, ..Mount::new("/mcp", edge.clients()) },
            Mount { own_doors: true, ..Mount::new(WELL_KNOWN, edge.well_known()) },
        ];
        let addr = "127.0.0.1:0".parse().expect("an address");
        let listener = HttpListener::bind(addr, &options.limits).expect("binds");
        let server = listener.serve(handle.clone(), options);
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { handle, grant: grant.id, server, client }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.addr())
    }

    /// Says hello with a token.
    async fn hello(&self, token: Option<&str>) -> (u16, Option<String>) {
        let hello = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        });
        let request = self.client.post(self.url("/mcp")).body(hello.to_string());
        let request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.send().await.expect("an answer");
        let challenge = answer.headers().get("www-authenticate");
        let challenge = challenge.map(|value| value.to_str().expect("text").to_owned());
        (answer.status().as_u16(), challenge)
    }

    async fn status(&self, token: &str) -> u16 {
        self.hello(Some(token)).await.0
    }
}

fn settings(keys_url: &str, grant: &GrantId) -> McpOauthSettings {
    let rule = |claim: &str, value: &str| McpOauthRule {
        claim: claim.to_owned(),
        value: value.to_owned(),
        grant: grant.clone(),
    };
    McpOauthSettings {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        keys_url: keys_url.to_owned(),
        allow_private: false,
        rules: vec![rule("scope", "wharf"), rule("groups", "harbor")],
    }
}

#[tokio::test]
async fn m074_tokens_of_the_issuer_are_taken() {
    let signers = [("r", Signer::rsa()), ("e", Signer::p256()), ("d", Signer::ed25519())];
    let keys: Vec<Value> = signers.iter().map(|(kid, signer)| signer.public(kid)).collect();
    let (keys, url) = KeyServer::start(&json!(keys)).await;
    let stage = Stage::start(Some(&url)).await;
    for (kid, signer) in &signers {
        assert_eq!(stage.status(&signer.token(kid, &claims(&json!({})))).await, 200, "{kid}");
        let unnamed = json!({ "alg": signer.alg() });
        let token = signer.token_with(&unnamed, &claims(&json!({})));
        assert_eq!(stage.status(&token).await, 200, "{kid}");
    }
    let (_, signer) = &signers[1];
    for good in [
        json!({ "aud": ["https://other.example", AUDIENCE] }),
        json!({ "scope": null, "groups": ["x", "harbor"] }),
        json!({ "exp": now_s() - 20, "nbf": null }),
    ] {
        assert_eq!(stage.status(&signer.token("e", &claims(&good))).await, 200, "{good}");
    }
    assert_eq!(keys.asked.load(Ordering::SeqCst), 1, "keys are kept");
    // Wharf's own tokens are good as ever, and a token for MCP opens nothing else.
    assert_eq!(stage.status(OWNER).await, 200);
    let rest = stage.client.get(stage.url("/v1/runs"));
    let token = signer.token("e", &claims(&json!({})));
    assert_eq!(rest.bearer_auth(token).send().await.expect("an answer").status(), 401);
}

#[tokio::test]
async fn m074_tokens_that_lie_are_not_taken() {
    let (rsa, p256, stranger) = (Signer::rsa(), Signer::p256(), Signer::p256());
    let (_, url) = KeyServer::start(&json!([rsa.public("r"), p256.public("e")])).await;
    let stage = Stage::start(Some(&url)).await;
    let good = claims(&json!({}));
    for bad in [
        json!({ "iss": "https://login.example/tenant/" }),
        json!({ "iss": "https://evil.example" }),
        json!({ "iss": null }),
        json!({ "aud": "https://wharf.example" }),
        json!({ "aud": "https://wharf.example/mcp/" }),
        json!({ "aud": [] }),
        json!({ "aud": null }),
        json!({ "exp": now_s() - 60 }),
        json!({ "exp": null }),
        json!({ "exp": "9999999999" }),
        json!({ "exp": 1e300 }),
        json!({ "nbf": now_s() + 60 }),
        json!({ "nbf": "now" }),
        json!({ "sub": 5 }),
    ] {
        let (status, challenge) = stage.hello(Some(&p256.token("e", &claims(&bad)))).await;
        assert_eq!(status, 401, "{bad}");
        let challenge = challenge.expect("a challenge");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    }
    let token = p256.token("e", &good);
    let (signed, signature) = token.rsplit_once('.').expect("three parts");
    let public = rsa.public("r")["n"].as_str().expect("text").to_owned();
    let hmac = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let hs = format!(
        "{}.{}",
        encode(json!({ "alg": "HS256", "kid": "r" }).to_string()),
        encode(good.to_string())
    );
    let hs = format!("{hs}.{}", encode(ring::hmac::sign(&hmac, hs.as_bytes())));
    let none = encode(json!({ "alg": "none" }).to_string());
    let twice = encode(format!("{{\"iss\":\"https://evil.example\",{}", &good.to_string()[1..]));
    let head = |head: Value| p256.token_with(&head, &good);
    for bad in [
        stranger.token("e", &good),
        stranger.token("unknown", &good),
        p256.token("r", &good),
        rsa.token_with(&json!({ "alg": "ES256", "kid": "e" }), &good),
        head(json!({ "alg": "RS256", "kid": "e" })),
        head(json!({ "alg": "ES256", "kid": "e", "crit": ["b64"], "b64": false })),
        head(json!({ "alg": "ES256", "kid": "e", "typ": "dpop+jwt" })),
        head(json!({ "alg": "ES256", "kid": 5 })),
        head(json!({ "alg": "ES256", "jwk": stranger.public("e"), "kid": "x" })),
        hs,
        format!("{none}.{}.", encode(good.to_string())),
        format!("{none}.{}.{signature}", encode(good.to_string())),
        format!("{signed}."),
        format!("{signed}.{}", &signature[..signature.len() - 2]),
        format!("{signed}.{signature}="),
        format!("{}.{twice}.{signature}", signed.split('.').next().expect("a head")),
        format!("{signed}x.{signature}"),
        "ey.ey.ey".to_owned(),
        "ey..".to_owned(),
        format!("ey{}.a.b", "x".repeat(8000)),
    ] {
        assert_eq!(stage.status(&bad).await, 401, "{}", &bad[..bad.len().min(200)]);
    }
    assert_eq!(stage.status(&token).await, 200, "the good one is good");
}

#[tokio::test]
async fn m074_claims_lead_to_a_grant_and_its_end_is_theirs() {
    let key = Signer::p256();
    let (_, url) = KeyServer::start(&json!([key.public("e")])).await;
    let stage = Stage::start(Some(&url)).await;
    let (status, challenge) =
        stage.hello(Some(&key.token("e", &claims(&json!({ "scope": "x" }))))).await;
    assert_eq!(status, 403);
    let challenge = challenge.expect("a challenge");
    assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
    assert!(challenge.contains("scope=\"wharf\""), "{challenge}");
    // Two whom the issuer tells apart are two, below the same grant; neither is a person.
    let settings = settings(&url, &stage.grant);
    let door = McpOauth::new(settings).expect("fits");
    let edge = McpEdge::start(McpEdgeOptions::new(stage.handle.clone()));
    let mut names = Vec::new();
    for subject in ["one", "two", "one"] {
        let token = key.token("e", &claims(&json!({ "sub": subject })));
        let caller = door.admit(&edge.shared, &token).await.expect("let in");
        assert!(!caller.person && caller.root.as_ref() == Some(&stage.grant));
        assert!(caller.grant.as_str().starts_with(stage.grant.as_str()));
        assert!(caller.rights.until.is_some());
        assert_eq!(caller.rights.verbs, [Verb::Read, Verb::Run].into());
        names.push(caller.grant);
    }
    assert!(names[0] != names[1] && names[0] == names[2], "{names:?}");
    let token = key.token("e", &claims(&json!({})));
    assert_eq!(stage.status(&token).await, 200);
    let owner = Caller::owner();
    stage.handle.trust().revoke_grant(&owner, stage.grant.clone()).await.expect("revoked");
    assert_eq!(stage.status(&token).await, 401);
}

#[tokio::test]
async fn m074_the_resource_says_who_lets_people_in() {
    let (_, url) = KeyServer::start(&json!([])).await;
    let stage = Stage::start(Some(&url)).await;
    let place = "https://wharf.example/.well-known/oauth-protected-resource/mcp";
    let wanted = format!("Bearer scope=\"wharf\", resource_metadata=\"{place}\"");
    assert_eq!(stage.hello(None).await, (401, Some(wanted)));
    for path in [WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}/mcp")] {
        let answer = stage.client.get(stage.url(&path)).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        let document: Value =
            serde_json::from_str(&answer.text().await.expect("text")).expect("JSON");
        assert_eq!(document["resource"], AUDIENCE);
        assert_eq!(document["authorization_servers"], json!([ISSUER]));
        assert_eq!(document["scopes_supported"], json!(["wharf"]));
        let posted = stage.client.post(stage.url(&path)).send().await.expect("an answer");
        assert_eq!(posted.status(), 405);
    }
    // Where nothing is set nobody learns that it could be.
    let stage = Stage::start(None).await;
    assert_eq!(stage.hello(None).await, (401, Some("Bearer".to_owned())));
    let token = Signer::p256().token("e", &claims(&json!({})));
    assert_eq!(stage.hello(Some(&token)).await, (401, Some("Bearer".to_owned())));
    for path in [WELL_KNOWN.to_owned(), format!("{WELL_KNOWN}/mcp")] {
        let answer = stage.client.get(stage.url(&path)).send().await.expect("an answer");
        assert_eq!(answer.status(), 404);
    }
}

#[tokio::test]
async fn m074_keys_are_fetched_rarely_and_within_bounds() {
    let (old, new) = (Signer::p256(), Signer::p256());
    let (server, url) = KeyServer::start(&json!([old.public("old")])).await;
    let keys = IssuerKeys::new(&url, false).expect("fits");
    let good = claims(&json!({}));
    let signed = async |signer: &Signer, kid: &str| {
        let token = signer.token(kid, &good);
        keys.signed(&jwt::read(&token).expect("a token")).await
    };
    assert_eq!(signed(&old, "old").await, Ok(true));
    // A flood of names that nobody knows does not become a flood of requests.
    for at in 0..50 {
        assert_eq!(signed(&new, &format!("new{at}")).await, Ok(false));
    }
    assert_eq!(server.asked.load(Ordering::SeqCst), 1);
    // A key that came since is found once it may be looked for.
    *server.body.lock() = set(&json!([{ "kty": "?" }, 5, new.public("new"), old.public("old")]));
    keys.forget_pause();
    assert_eq!(signed(&new, "new").await, Ok(true));
    assert_eq!(server.asked.load(Ordering::SeqCst), 2);
    // What cannot be read leaves the keys there are.
    for bad in ["{}".to_owned(), "no".to_owned(), "x".repeat(1024 * 1024)] {
        *server.body.lock() = bad;
        keys.forget_pause();
        assert_eq!(signed(&new, "other").await, Ok(false));
        assert_eq!(signed(&new, "new").await, Ok(true));
    }
    assert_eq!(server.asked.load(Ordering::SeqCst), 5);
    // Nobody is let in where there never were any.
    let keys = IssuerKeys::new("http://127.0.0.1:1/keys", false).expect("fits");
    let token = new.token("new", &good);
    let fault = keys.signed(&jwt::read(&token).expect("a token")).await.expect_err("no keys");
    assert!(fault.is(Code::CoreBusy), "{fault}");
}

#[test]
fn m074_settings_that_cannot_be_used_are_named() {
    let grant = GrantId::new("g-1").expect("an id");
    let good = settings("https://login.example/keys", &grant);
    assert_eq!(good.check(), Ok(()));
    for (field, bad) in [
        ("issuer", McpOauthSettings { issuer: "login".to_owned(), ..good.clone() }),
        ("audience", McpOauthSettings { audience: "mcp".to_owned(), ..good.clone() }),
        ("audience", McpOauthSettings { audience: "https://a/?x".to_owned(), ..good.clone() }),
        ("keys", McpOauthSettings { keys_url: "http://a.example/".to_owned(), ..good.clone() }),
        ("keys", McpOauthSettings { keys_url: "https://10.0.0.1/".to_owned(), ..good.clone() }),
        ("rules", McpOauthSettings { rules: Vec::new(), ..good.clone() }),
    ] {
        assert_eq!(bad.check().map_err(|(named, _)| named), Err(field));
        assert!(McpOauth::new(bad).expect_err("refused").is(Code::ConfigInvalid));
    }
    let private =
        McpOauthSettings { keys_url: "https://10.0.0.1/".to_owned(), allow_private: true, ..good };
    assert_eq!(private.check(), Ok(()));
}
