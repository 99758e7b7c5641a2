//! What lets the core in at a server elsewhere.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::header::{AUTHORIZATION, HeaderName, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use wharf_ports::vault::Secret;
use wharf_vocab::{Code, Executed, Fault, ProviderId, SecretName};

use super::address::UpstreamAddress;
use super::dial::{DialFailure, DialRequest, SecretHeaders, UpstreamDial};

/// How often one request may be sent because of rights.
const TRIES_MAX: usize = 4;

/// A server elsewhere, and what lets the core in there.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamHttp {
    dial: UpstreamDial,
    rights: Arc<dyn UpstreamRights>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum HttpFailure {
    /// The server was not reached, or broke off.
    Dial(DialFailure),
    /// Nobody may go there now.
    Rights(Fault),
}

impl UpstreamHttp {
    pub(crate) fn new(dial: UpstreamDial, rights: Arc<dyn UpstreamRights>) -> Self {
        Self { dial, rights }
    }

    /// The server's address.
    pub(crate) fn address(&self) -> &UpstreamAddress {
        self.dial.address()
    }

    /// Sends a request with what rights there are, and gets others if those are refused.
    pub(crate) async fn send(&self, request: DialRequest) -> Result<Response, HttpFailure> {
        let mut tries = 0;
        loop {
            let held = self.rights.held().await.map_err(HttpFailure::Rights)?;
            let answer = self.dial.send(request.clone(), &held.headers).await;
            let answer = answer.map_err(HttpFailure::Dial)?;
            tries += 1;
            let Some(refusal) = RightsRefusal::of(&answer) else { return Ok(answer) };
            if tries >= TRIES_MAX {
                return Ok(answer);
            }
            match self.rights.refused(held.edition, refusal).await {
                Ok(RightsVerdict::Again) => {}
                Ok(RightsVerdict::Final) => return Ok(answer),
                Err(fault) => return Err(HttpFailure::Rights(fault)),
            }
        }
    }
}

/// What goes with requests, and which edition of it that is.
#[derive(Debug, Clone)]
pub(crate) struct HeldRights {
    /// As headers.
    pub(crate) headers: SecretHeaders,
    /// Grows whenever they change, so that one refusal is not taken for two.
    pub(crate) edition: u64,
}

/// How a server said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RightsRefusal {
    /// Whether the rights are not enough, and not just missing or over.
    pub(crate) is_forbidden: bool,
    /// What it says it wants: all `WWW-Authenticate` together.
    pub(crate) challenge: String,
}

impl RightsRefusal {
    /// Longest challenge that is looked at.
    const CHALLENGE_BYTES_MAX: usize = 8 * 1024;

    /// That of an answer, if it is one.
    pub(crate) fn of(answer: &Response) -> Option<Self> {
        let is_forbidden = match answer.status() {
            StatusCode::UNAUTHORIZED => false,
            StatusCode::FORBIDDEN => true,
            _ => return None,
        };
        let all = answer.headers().get_all(WWW_AUTHENTICATE).iter();
        let mut challenge = String::new();
        for text in all.filter_map(|value| value.to_str().ok()) {
            if challenge.len() + text.len() > Self::CHALLENGE_BYTES_MAX {
                break;
            }
            if !challenge.is_empty() {
                challenge.push_str(", ");
            }
            challenge.push_str(text);
        }
        Some(Self { is_forbidden, challenge })
    }
}

/// What is done about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightsVerdict {
    /// There are other rights now: the request is sent again.
    Again,
    /// It has nothing to do with rights that could be got: the answer is passed on.
    Final,
}

/// What lets the core in at one server.
pub(crate) trait UpstreamRights: fmt::Debug + Send + Sync + 'static {
    /// What goes with requests now.
    fn held(&self) -> BoxFuture<'_, Result<HeldRights, Fault>>;

    /// A request that went with this edition was refused. An error says what a person has to do.
    fn refused(
        &self,
        edition: u64,
        refusal: RightsRefusal,
    ) -> BoxFuture<'_, Result<RightsVerdict, Fault>>;
}

/// Reads a secret of the vault by its name.
pub(crate) type SecretReader =
    Arc<dyn Fn(SecretName) -> BoxFuture<'static, Result<Secret, Fault>> + Send + Sync>;

/// Secrets that their owner set by hand, or none.
pub(crate) struct SecretRights {
    provider: ProviderId,
    token: Option<SecretName>,
    headers: Vec<(HeaderName, SecretName)>,
    read: SecretReader,
    cache: Mutex<SecretCache>,
}

#[derive(Default)]
struct SecretCache {
    edition: u64,
    headers: Option<SecretHeaders>,
}

impl fmt::Debug for SecretRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRights").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl SecretRights {
    /// The rights that a server's manifest names. Headers that carry messages or say where a
    /// request goes are nobody's to set.
    pub(crate) fn new(
        provider: ProviderId,
        token: Option<SecretName>,
        headers: impl IntoIterator<Item = (String, SecretName)>,
        read: SecretReader,
    ) -> Result<Self, Fault> {
        let mut named = Vec::new();
        for (header, secret) in headers {
            let name = HeaderName::from_bytes(header.as_bytes()).ok();
            let Some(name) = name.filter(|name| !is_reserved(name)) else {
                let message = "A header that is to hold a secret has a name that it cannot have.";
                return Err(Fault::new(Code::AgentManifestInvalid, message));
            };
            named.push((name, secret));
        }
        let cache = Mutex::new(SecretCache::default());
        Ok(Self { provider, token, headers: named, read, cache })
    }

    async fn read_all(&self) -> Result<SecretHeaders, Fault> {
        let mut all = SecretHeaders::default();
        let token = self.token.iter().map(|secret| (AUTHORIZATION, "Bearer ", secret));
        let others = self.headers.iter().map(|(name, secret)| (name.clone(), "", secret));
        for (header, prefix, name) in token.chain(others) {
            let secret = (self.read)(name.clone()).await?;
            if !all.add(header, prefix, secret.expose()) {
                let message = format!("The secret {name} holds what cannot stand in a header.");
                return Err(Fault::new(Code::ToolUnavailable, message).executed(Executed::No));
            }
        }
        Ok(all)
    }
}

fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str();
    let transport = [
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "accept",
        "last-event-id",
    ];
    transport.contains(&name) || name.starts_with("mcp-") || name.starts_with("proxy-")
}

impl UpstreamRights for SecretRights {
    fn held(&self) -> BoxFuture<'_, Result<HeldRights, Fault>> {
        Box::pin(async move {
            {
                let cache = self.cache.lock();
                if let Some(headers) = cache.headers.clone() {
                    return Ok(HeldRights { headers, edition: cache.edition });
                }
            }
            let headers = self.read_all().await?;
            let mut cache = self.cache.lock();
            cache.headers = Some(headers.clone());
            Ok(HeldRights { headers, edition: cache.edition })
        })
    }

    /// The owner may have set another secret meanwhile: it is read again, once.
    fn refused(
        &self,
        edition: u64,
        refusal: RightsRefusal,
    ) -> BoxFuture<'_, Result<RightsVerdict, Fault>> {
        Box::pin(async move {
            if refusal.is_forbidden {
                return Ok(RightsVerdict::Final);
            }
            let before = {
                let cache = self.cache.lock();
                if cache.edition != edition {
                    return Ok(RightsVerdict::Again);
                }
                cache.headers.clone().unwrap_or_default()
            };
            let now = self.read_all().await?;
            let mut cache = self.cache.lock();
            if now == before {
                return Err(login_required(&self.provider));
            }
            cache.edition += 1;
            cache.headers = Some(now);
            Ok(RightsVerdict::Again)
        })
    }
}

/// A person has to log in before anything is executed.
pub(crate) fn login_required(provider: &ProviderId) -> Fault {
    let message =
        format!("The MCP server {provider} wants somebody to log in: wharf mcp login {provider}");
    Fault::new(Code::McpLoginRequired, message)
        .executed(Executed::No)
        .with("provider", provider.as_str())
}
