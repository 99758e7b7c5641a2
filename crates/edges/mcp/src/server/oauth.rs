//! Tokens of an authorization server elsewhere.
//!
//! Where one is set, a token that is not Wharf's own is read as a JWT of that issuer, for this
//! audience. What it claims leads to a grant that the owner made; its bearer has what that grant
//! gives, for as long as both are good, under a name of their own below it. Where none is set,
//! nobody learns that this could be.

mod jwt;
mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use url::Url;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, GrantId};
use wharf_web::answer::FaultResponse;

use self::jwt::Claims;
use self::keys::IssuerKeys;
use super::shared::ServerShared;
use crate::client::link::address::UpstreamAddress;

/// Where the document about this resource stands.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Characters of a bearer's name that stand for whom the issuer names.
const SUBJECT_CHARS: usize = 24;

/// An authorization server elsewhere whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpOauthSettings {
    /// Its name, letter by letter as its tokens have it in `iss`.
    pub issuer: String,
    /// The canonical address of `/mcp`, which tokens must have in `aud`.
    pub audience: String,
    /// Where its keys are: the address of a JSON Web Key Set, by https or on this machine.
    pub keys_url: String,
    /// Whether the keys may lie in a private network.
    pub allow_private: bool,
    /// What tokens give. The first rule that fits counts; a token that none fits gives nothing.
    pub rules: Vec<McpOauthRule>,
}

/// Which tokens give what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpOauthRule {
    /// The claim that is looked at. In `scope` words are looked for, elsewhere the whole text or
    /// an item of a list.
    pub claim: String,
    /// What it must be or hold.
    pub value: String,
    /// The grant whose rights the bearer has.
    pub grant: GrantId,
}

impl McpOauthSettings {
    /// The field that cannot be used, and why, as the end of a sentence.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if Url::parse(&self.issuer).is_err() {
            return Err(("issuer", "it is no address"));
        }
        let audience = Url::parse(&self.audience).map_err(|_| ("audience", "it is no address"))?;
        let is_plain = audience.query().is_none() && audience.fragment().is_none();
        if !matches!(audience.scheme(), "http" | "https") || !is_plain {
            return Err(("audience", "it must be an address without a query"));
        }
        UpstreamAddress::read(&self.keys_url, self.allow_private).map_err(|why| ("keys", why))?;
        if self.rules.is_empty() {
            return Err(("rules", "there must be one at least"));
        }
        Ok(())
    }

    /// The address of the document about this resource.
    fn document_url(&self) -> Option<String> {
        let mut url = Url::parse(&self.audience).ok()?;
        let path = format!("{WELL_KNOWN}{}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Some(url.into())
    }

    /// The scopes that give anything.
    fn scopes(&self) -> Vec<&str> {
        let scopes = self.rules.iter().filter(|rule| rule.claim == "scope");
        let mut scopes: Vec<&str> = scopes.map(|rule| rule.value.as_str()).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    fn document(&self) -> Value {
        let mut document = json!({
            "resource": self.audience,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Wharf",
        });
        let scopes = self.scopes();
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        document
    }

    fn grant_of(&self, claims: &Claims) -> Option<&GrantId> {
        let fits = |rule: &&McpOauthRule| claims.has(&rule.claim, &rule.value);
        self.rules.iter().find(fits).map(|rule| &rule.grant)
    }
}

/// What looks at tokens of an authorization server elsewhere.
#[derive(Debug)]
pub struct McpOauth {
    settings: McpOauthSettings,
    keys: IssuerKeys,
}

impl McpOauth {
    /// Nothing is fetched before somebody comes. Settings that cannot be used are an error.
    pub fn new(settings: McpOauthSettings) -> Result<Self, Fault> {
        let unfit = |(field, why)| {
            Fault::new(Code::ConfigInvalid, format!("mcp.oauth.{field} cannot be used: {why}."))
        };
        settings.check().map_err(unfit)?;
        let keys = IssuerKeys::new(&settings.keys_url, settings.allow_private)?;
        Ok(Self { settings, keys })
    }

    async fn admit(&self, shared: &ServerShared, token: &str) -> Result<Caller, Fault> {
        let now = shared.handle.now();
        let unsigned = jwt::read(token).ok_or_else(invalid)?;
        // What is cheap to see comes first: nobody has keys looked for with a token for others.
        let claims = unsigned.claims(&self.settings, now).ok_or_else(invalid)?;
        if !self.keys.signed(&unsigned).await? {
            return Err(invalid());
        }
        let grant = self.settings.grant_of(&claims).ok_or_else(|| {
            Fault::new(Code::PermissionDenied, "The token's claims give no right here.")
        })?;
        let who = [self.settings.issuer.as_bytes(), b"\n", claims.subject.as_bytes()].concat();
        let who = blake3::hash(&who).to_hex();
        let name = GrantId::new(format!("{grant}.{}", &who[..SUBJECT_CHARS]));
        let name = name.map_err(|_| invalid())?;
        shared.handle.trust().vouched(grant, name, claims.until)
    }
}

fn invalid() -> Fault {
    let message = "This token is not valid here; it may be expired or for somebody else.";
    Fault::new(Code::AuthInvalid, message)
}

/// Who bears a token that is not Wharf's own; otherwise why the HTTP edge refused it.
pub(crate) async fn admit(
    shared: &Arc<ServerShared>,
    token: Option<&str>,
    refused: Fault,
) -> Result<Caller, Fault> {
    match (&shared.oauth, token) {
        (Some(door), Some(token)) if jwt::looks_like_one(token) => door.admit(shared, token).await,
        _ => Err(refused),
    }
}

/// 401 or 403, with where a token is to be had.
pub(crate) fn unauthorized(shared: &ServerShared, fault: Fault) -> Response {
    let challenge = shared.oauth.as_ref().and_then(|door| challenge(&door.settings, &fault));
    let mut response = FaultResponse::denied(fault).into_response();
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

fn challenge(settings: &McpOauthSettings, fault: &Fault) -> Option<HeaderValue> {
    let said = [
        (Code::AuthRequired, ""),
        (Code::AuthInvalid, "error=\"invalid_token\", "),
        (Code::PermissionDenied, "error=\"insufficient_scope\", "),
    ];
    let (_, error) = said.into_iter().find(|(code, _)| fault.is(*code))?;
    let scopes = settings.scopes().join(" ");
    let scope = if scopes.is_empty() { String::new() } else { format!("scope=\"{scopes}\", ") };
    let place = settings.document_url()?;
    HeaderValue::try_from(format!("Bearer {error}{scope}resource_metadata=\"{place}\"")).ok()
}

/// The document about this resource, which everybody may read.
pub(crate) fn router(shared: Arc<ServerShared>) -> Router {
    Router::new()
        .route("/.well-known/oauth-protected-resource", get(document))
        .route("/.well-known/oauth-protected-resource/mcp", get(document))
        .with_state(shared)
}

async fn document(State(shared): State<Arc<ServerShared>>) -> Response {
    let Some(door) = &shared.oauth else {
        let message = "There is no such route.";
        return FaultResponse::from(Fault::new(Code::RequestRouteUnknown, message)).into_response();
    };
    let mut response = axum::Json(door.settings.document()).into_response();
    // It says nothing that not everybody may know, and clients in pages must be able to read it.
    let all = HeaderValue::from_static("*");
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, all);
    response
}
