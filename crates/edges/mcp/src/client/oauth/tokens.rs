//! Tokens: what a code, a device or an earlier login gets at the issuer, and the proof (PKCE, S256)
//! that whoever brings a code also asked for it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SecureRandom as _;
use url::Url;
use wharf_vocab::Timestamp;

use super::LoginFailure;
use super::challenge::scopes;
use super::documents::{RefusalDocument, TokenDocument};
use super::identity::ClientIdentity;
use super::web::LoginWeb;
use crate::shown;

/// Longest token.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// A token is taken to be over so long before it is, so that it is not over on its way.
const EARLY_MS: u64 = 30_000;
/// Longest time that is believed; a year.
const EXPIRES_S_MAX: f64 = 366.0 * 86_400.0;

/// Where tokens are to be had, and as whom.
pub(super) struct TokenDoor<'a> {
    pub(super) web: &'a LoginWeb,
    pub(super) endpoint: Url,
    pub(super) client: &'a ClientIdentity,
    /// The text of the client's secret, if it has one.
    pub(super) secret: Option<String>,
    /// The server that the token is for.
    pub(super) resource: &'a str,
}

/// What came of a request for tokens.
pub(super) struct IssuedTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) scopes: Option<Vec<String>>,
}

/// Why there are none.
#[derive(Debug)]
pub(super) enum TokenError {
    /// The issuer said no, in a word.
    Refused(String),
    /// It said nothing that can be used.
    Failed(LoginFailure),
}

impl From<LoginFailure> for TokenError {
    fn from(failure: LoginFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<TokenError> for LoginFailure {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Refused(word) => Self::new(format!("the issuer says {word}")),
            TokenError::Failed(failure) => failure,
        }
    }
}

impl TokenDoor<'_> {
    /// Asks for tokens.
    pub(super) async fn ask(
        &self,
        grant: &[(&str, &str)],
        now: Timestamp,
    ) -> Result<IssuedTokens, TokenError> {
        const WHAT: &str = "the token";
        let proof = self.client.proof(self.secret.as_deref())?;
        let mut form: Vec<(&str, &str)> = grant.to_vec();
        form.push(("resource", self.resource));
        form.extend(proof.form.iter().map(|(key, value)| (*key, value.as_str())));
        let answer = self.web.form(self.endpoint.clone(), &form, proof.header, WHAT).await?;
        if !answer.is_success() {
            return Err(match answer.read::<RefusalDocument>(WHAT) {
                Ok(refusal) if answer.status < 500 => {
                    TokenError::Refused(shown::words(&refusal.error))
                }
                _ => {
                    LoginFailure::new(format!("{WHAT} was answered with {}", answer.status)).into()
                }
            });
        }
        Ok(read(answer.read(WHAT)?, now)?)
    }
}

fn read(document: TokenDocument, now: Timestamp) -> Result<IssuedTokens, LoginFailure> {
    if !document.token_type.eq_ignore_ascii_case("bearer") {
        return Err(LoginFailure::new("the token is of a kind that is not known here"));
    }
    let refresh = document.refresh_token.filter(|token| !token.is_empty());
    if !is_token(&document.access_token) || !refresh.as_deref().is_none_or(is_token) {
        return Err(LoginFailure::new("the token cannot be used"));
    }
    let expires_in = document.expires_in.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    // As float, so that nothing an issuer says overflows.
    let in_ms = expires_in
        .map(|seconds| std::time::Duration::from_secs_f64(seconds.min(EXPIRES_S_MAX)).as_millis());
    let in_ms = in_ms.and_then(|ms| u64::try_from(ms).ok());
    let expires_at = in_ms.map(|ms| now.plus_ms(ms.saturating_sub(EARLY_MS.min(ms / 10))));
    let scopes = document.scope.map(|text| scopes(text.split(' '))).filter(|it| !it.is_empty());
    Ok(IssuedTokens { access: document.access_token, refresh, expires_at, scopes })
}

/// Whether a text can stand in a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= TOKEN_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic())
}

/// 256 bits that nobody can guess, as a text for addresses.
pub(super) fn nonce() -> Result<String, LoginFailure> {
    let mut bytes = [0; 32];
    let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| LoginFailure::new("there is no randomness here"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// What is shown of a verifier before it is told.
pub(super) fn challenge_of(verifier: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m071_the_challenge_is_the_one_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge_of(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, two) = (nonce().expect("one"), nonce().expect("two"));
        assert_eq!(one.len(), 43);
        assert_ne!(one, two);
    }
}
