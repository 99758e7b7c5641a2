//! The keys of an authorization server: fetched from one address, kept for a while, and fetched
//! again when a token names one that is not among them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use reqwest::Method;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use wharf_vocab::{Code, Fault};

use super::jwt::{SignatureKind, UnverifiedJwt};
use crate::client::link::address::UpstreamAddress;
use crate::client::link::dial::{DialRequest, SecretHeaders, UpstreamDial, read_body};

/// How long keys are taken as they are.
const FRESH: Duration = Duration::from_secs(600);
/// How long keys are used when no others can be had.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// How often they are fetched at most.
const PAUSE: Duration = Duration::from_secs(10);
/// How long fetching may take.
const FETCH_MAX: Duration = Duration::from_secs(10);
/// Largest set of keys.
const BYTES_MAX: usize = 256 * 1024;
/// Most keys that are kept.
const KEYS_MAX: usize = 64;
/// Most keys that one token without the name of its key is tried with.
const TRIES_MAX: usize = 8;

/// The keys of an authorization server.
#[derive(Debug)]
pub(super) struct IssuerKeys {
    address: UpstreamAddress,
    dial: UpstreamDial,
    kept: Mutex<KeptKeys>,
    /// Held while they are fetched.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct KeptKeys {
    keys: Arc<Vec<IssuerKey>>,
    /// When they were fetched.
    fetched: Option<Instant>,
    /// When that was tried last.
    tried: Option<Instant>,
}

/// A key that checks signatures.
#[derive(Debug)]
struct IssuerKey {
    name: Option<String>,
    material: KeyMaterial,
}

#[derive(Debug)]
enum KeyMaterial {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A key as it stands in a set.
#[derive(Deserialize)]
struct KeyDocument {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl IssuerKeys {
    pub(super) fn new(url: &str, allow_private: bool) -> Result<Self, Fault> {
        let address = UpstreamAddress::read(url, allow_private).map_err(|why| {
            Fault::new(Code::ConfigInvalid, format!("mcp.oauth.keys cannot be used: {why}."))
        })?;
        let dial = UpstreamDial::new(address.clone())?;
        Ok(Self { address, dial, kept: Mutex::default(), fetching: tokio::sync::Mutex::default() })
    }

    /// Whether a token is signed with one of the keys. An error if there are none.
    pub(super) async fn signed(&self, token: &UnverifiedJwt<'_>) -> Result<bool, Fault> {
        let keys = self.known_for(token).await?;
        Ok(fitting(&keys, token).any(|key| key.verifies(token)))
    }

    async fn known_for(&self, token: &UnverifiedJwt<'_>) -> Result<Arc<Vec<IssuerKey>>, Fault> {
        let has = |keys: &[IssuerKey]| fitting(keys, token).next().is_some();
        if let Some(keys) = self.fresh().filter(|keys| has(keys)) {
            return Ok(keys);
        }
        let _one = self.fetching.lock().await;
        if let Some(keys) = self.fresh().filter(|keys| has(keys)) {
            return Ok(keys);
        }
        let tried = self.kept.lock().tried;
        if tried.is_none_or(|at| at.elapsed() >= PAUSE) {
            self.kept.lock().tried = Some(Instant::now());
            match self.fetch().await {
                Ok(keys) => {
                    let mut kept = self.kept.lock();
                    kept.keys = Arc::new(keys);
                    kept.fetched = Some(Instant::now());
                }
                Err(why) => tracing::warn!(why, "the keys of mcp.oauth were not read"),
            }
        }
        let kept = self.kept.lock();
        match kept.fetched.filter(|at| at.elapsed() < STALE) {
            Some(_) => Ok(Arc::clone(&kept.keys)),
            None => {
                let message = "The keys of the authorization server cannot be read now.";
                Err(Fault::new(Code::CoreBusy, message))
            }
        }
    }

    /// Lets keys be fetched again at once.
    #[cfg(test)]
    pub(super) fn forget_pause(&self) {
        self.kept.lock().tried = None;
    }

    fn fresh(&self) -> Option<Arc<Vec<IssuerKey>>> {
        let kept = self.kept.lock();
        kept.fetched.filter(|at| at.elapsed() < FRESH)?;
        Some(Arc::clone(&kept.keys))
    }

    async fn fetch(&self) -> Result<Vec<IssuerKey>, &'static str> {
        let request = DialRequest::new(Method::GET, self.address.url().clone());
        let nobody = SecretHeaders::default();
        let fetching = async {
            let answer = self.dial.send(request, &nobody).await.map_err(|failure| failure.why)?;
            if !answer.status().is_success() {
                return Err("they are answered with an error");
            }
            read_body(answer, BYTES_MAX).await.ok_or("they are too large or broke off")
        };
        let fetched = tokio::time::timeout(FETCH_MAX, fetching).await;
        let bytes = fetched.unwrap_or(Err("they take too long"))?;
        let set: Value = serde_json::from_slice(&bytes).map_err(|_| "they cannot be read")?;
        let keys = set.get("keys").and_then(Value::as_array).ok_or("they cannot be read")?;
        // What is not known here does not spoil the rest.
        let keys = keys.iter().take(KEYS_MAX).filter_map(IssuerKey::read);
        Ok(keys.collect())
    }
}

/// The keys that a token may be signed with: of its kind, and with its name if it has one.
fn fitting<'a>(
    keys: &'a [IssuerKey],
    token: &UnverifiedJwt<'_>,
) -> impl Iterator<Item = &'a IssuerKey> {
    let (kind, name) = (token.kind, token.key.clone());
    let fits =
        move |key: &&IssuerKey| key.material.kind() == kind && (name.is_none() || key.name == name);
    keys.iter().filter(fits).take(TRIES_MAX)
}

impl KeyMaterial {
    /// A key is good for one way to sign, whatever a token says.
    fn kind(&self) -> SignatureKind {
        match self {
            Self::Rsa { .. } => SignatureKind::Rs256,
            Self::P256(_) => SignatureKind::Es256,
            Self::Ed25519(_) => SignatureKind::EdDsa,
        }
    }
}

impl IssuerKey {
    fn read(value: &Value) -> Option<Self> {
        let key = KeyDocument::deserialize(value).ok()?;
        if key.r#use.as_deref().is_some_and(|r#use| r#use != "sig") {
            return None;
        }
        let bytes = |text: &Option<String>| {
            let bytes = URL_SAFE_NO_PAD.decode(text.as_deref()?).ok()?;
            Some(bytes).filter(|bytes| !bytes.is_empty() && bytes.len() <= 1024)
        };
        let material = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => {
                let n = bytes(&key.n)?;
                // Some write a sign in front.
                let first = n.iter().position(|byte| *byte != 0)?;
                KeyMaterial::Rsa { n: n[first..].to_vec(), e: bytes(&key.e)? }
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(&key.x)?, bytes(&key.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                KeyMaterial::P256([&[4][..], &x, &y].concat())
            }
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(bytes(&key.x)?),
            _ => return None,
        };
        let alg = material.kind().as_str();
        let is_said = key.alg.as_deref().is_none_or(|said| said == alg || said == "Ed25519");
        is_said.then_some(Self { name: key.kid, material })
    }

    fn verifies(&self, token: &UnverifiedJwt<'_>) -> bool {
        let (signed, signature) = (token.signed.as_bytes(), token.signature.as_slice());
        let verified = match &self.material {
            KeyMaterial::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                signed,
                signature,
            ),
            KeyMaterial::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            KeyMaterial::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature)
            }
        };
        verified.is_ok()
    }
}
