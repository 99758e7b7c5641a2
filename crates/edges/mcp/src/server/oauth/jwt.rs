//! JSON Web Tokens: three parts, of which the first two are believed once the third fits.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use wharf_vocab::{Object, Timestamp};
use wharf_wire::strict;

use super::McpOauthSettings;

/// Longest token.
const TOKEN_BYTES_MAX: usize = 12 * 1024;
/// How much clocks may differ.
const LEEWAY_MS: u64 = 30_000;
/// Longest name of a subject or a key.
const NAME_BYTES_MAX: usize = 1024;

/// Ways to sign that are known here. All of them have a key that only the issuer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureKind {
    Rs256,
    Es256,
    EdDsa,
}

impl SignatureKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    fn read(text: &str) -> Option<Self> {
        [Self::Rs256, Self::Es256, Self::EdDsa].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A token whose signature nobody has looked at yet.
#[derive(Debug)]
pub(super) struct UnverifiedJwt<'a> {
    pub(super) kind: SignatureKind,
    /// The key's name, if the token says it.
    pub(super) key: Option<String>,
    /// What is signed.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
    claims: Object,
}

/// What a token claims, as far as it is about this audience and this moment.
#[derive(Debug)]
pub(super) struct Claims {
    /// Whom it is about.
    pub(super) subject: String,
    /// When it is over.
    pub(super) until: Timestamp,
    all: Object,
}

/// Whether a text has the form of such a token; Wharf's own have another one.
pub(super) fn looks_like_one(token: &str) -> bool {
    token.starts_with("ey") && token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Reads a token that is signed in a way that is known here.
pub(super) fn read(token: &str) -> Option<UnverifiedJwt<'_>> {
    if token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let (signed, signature) = token.rsplit_once('.')?;
    let (head, claims) = signed.split_once('.')?;
    let head = object(head)?;
    let kind = SignatureKind::read(head.get("alg")?.as_str()?)?;
    // What must be understood is not, and a token of another type is for somebody else.
    if head.contains_key("crit") || !head.get("typ").is_none_or(is_access_token) {
        return None;
    }
    let key = match head.get("kid") {
        None => None,
        Some(key) => Some(key.as_str().filter(|key| key.len() <= NAME_BYTES_MAX)?.to_owned()),
    };
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    Some(UnverifiedJwt { kind, key, signed, signature, claims: object(claims)? })
}

fn is_access_token(kind: &Value) -> bool {
    let kind = kind.as_str().unwrap_or_default().to_ascii_lowercase();
    matches!(kind.strip_prefix("application/").unwrap_or(&kind), "jwt" | "at+jwt")
}

fn object(part: &str) -> Option<Object> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    match strict::read(&bytes).ok()? {
        Value::Object(object) => Some(object.into_iter().collect()),
        _ => None,
    }
}

impl UnverifiedJwt<'_> {
    /// Its claims, if they are by this issuer, for this audience and for now.
    pub(super) fn claims(&self, settings: &McpOauthSettings, now: Timestamp) -> Option<Claims> {
        let all = &self.claims;
        if all.get("iss")?.as_str()? != settings.issuer {
            return None;
        }
        let audience = |text: &Value| text.as_str() == Some(settings.audience.as_str());
        let is_for_us = match all.get("aud")? {
            Value::Array(several) => several.iter().any(audience),
            one => audience(one),
        };
        let until = moment(all.get("exp")?)?;
        let from = match all.get("nbf") {
            None => Timestamp(0),
            Some(from) => moment(from)?,
        };
        let is_now = now < until.plus_ms(LEEWAY_MS) && from <= now.plus_ms(LEEWAY_MS);
        let subject = match all.get("sub") {
            None => "",
            Some(subject) => subject.as_str().filter(|text| text.len() <= NAME_BYTES_MAX)?,
        };
        let claims = Claims {
            subject: subject.to_owned(),
            until: until.plus_ms(LEEWAY_MS),
            all: all.clone(),
        };
        (is_for_us && is_now).then_some(claims)
    }
}

/// A moment in seconds, perhaps with a fraction.
fn moment(value: &Value) -> Option<Timestamp> {
    let seconds = value.as_f64().filter(|seconds| (0.0..1e11).contains(seconds))?;
    let ms = std::time::Duration::from_secs_f64(seconds).as_millis();
    u64::try_from(ms).ok().map(Timestamp)
}

impl Claims {
    /// Whether a claim is this, or has it among its items.
    pub(super) fn has(&self, claim: &str, value: &str) -> bool {
        match self.all.get(claim) {
            Some(Value::String(text)) if claim == "scope" => {
                text.split(' ').any(|word| word == value)
            }
            Some(Value::String(text)) => text == value,
            Some(Value::Array(items)) => items.iter().any(|item| item.as_str() == Some(value)),
            _ => false,
        }
    }
}
