//! Logging in with a code that a person types on a page of any machine (RFC 8628).

use std::time::Duration;

use tokio::time::Instant;
use wharf_vocab::Timestamp;

use super::LoginFailure;
use super::discover::LoginPlace;
use super::documents::{DeviceDocument, RefusalDocument};
use super::identity::ClientIdentity;
use super::tokens::{IssuedTokens, TokenDoor, TokenError};
use super::web::LoginWeb;
use crate::shown;

/// The grant's name.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How often the issuer is asked when it does not say.
const INTERVAL: Duration = Duration::from_secs(5);
/// What is added when it says that this is too often.
const SLOWER: Duration = Duration::from_secs(5);
/// The longest interval; whoever wants to be asked more rarely is asked as often as this.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Longest code.
const CODE_BYTES_MAX: usize = 4096;
/// Longest code that a person types.
const USER_CODE_CHARS_MAX: usize = 64;

/// A code that the issuer knows, and how it wants to be asked about it.
pub(super) struct DeviceCode {
    code: String,
    interval: Duration,
    next: Instant,
}

/// What a person is shown.
pub(super) struct DevicePage {
    pub(super) url: String,
    pub(super) user_code: String,
    pub(super) expires_in: Duration,
}

/// Asks for a code.
pub(super) async fn begin(
    web: &LoginWeb,
    place: &LoginPlace,
    client: &ClientIdentity,
    secret: Option<&str>,
    scopes: &[String],
) -> Result<(DeviceCode, DevicePage), LoginFailure> {
    const WHAT: &str = "the code";
    let Some(endpoint) = &place.issuer.device_authorization_endpoint else {
        return Err(LoginFailure::new("the place where one logs in knows no codes for devices"));
    };
    let endpoint = web.named(endpoint, "its device endpoint")?;
    let proof = client.proof(secret)?;
    let scope = scopes.join(" ");
    let mut form = vec![("resource", place.resource.as_str())];
    form.extend(proof.form.iter().map(|(key, value)| (*key, value.as_str())));
    if !scope.is_empty() {
        form.push(("scope", &scope));
    }
    let answer = web.form(endpoint, &form, proof.header, WHAT).await?;
    if !answer.is_success() {
        let said = answer.read::<RefusalDocument>(WHAT).unwrap_or_default();
        let why = match said.error.as_str() {
            "" => format!("{WHAT} was answered with {}", answer.status),
            word => format!("the issuer says {}", shown::words(word)),
        };
        return Err(LoginFailure::new(why));
    }
    read(web, answer.read(WHAT)?)
}

fn read(
    web: &LoginWeb,
    document: DeviceDocument,
) -> Result<(DeviceCode, DevicePage), LoginFailure> {
    let user_code = shown::words(&document.user_code);
    let unfit = document.device_code.is_empty()
        || document.device_code.len() > CODE_BYTES_MAX
        || user_code.is_empty()
        || user_code.chars().count() > USER_CODE_CHARS_MAX;
    if unfit {
        return Err(LoginFailure::new("the code cannot be used"));
    }
    let page = document.verification_uri_complete.unwrap_or(document.verification_uri);
    let url = web.named(&page, "the page for the code")?.into();
    let interval = document.interval.map_or(INTERVAL, Duration::from_secs).min(INTERVAL_MAX);
    let code = DeviceCode { code: document.device_code, interval, next: Instant::now() + interval };
    let expires_in = Duration::from_secs(document.expires_in);
    Ok((code, DevicePage { url, user_code, expires_in }))
}

impl DeviceCode {
    /// Asks until a moment whether the person is done; `None` if not yet.
    pub(super) async fn poll(
        &mut self,
        door: &TokenDoor<'_>,
        now: Timestamp,
        until: Instant,
    ) -> Result<Option<IssuedTokens>, LoginFailure> {
        while self.next <= until {
            tokio::time::sleep_until(self.next).await;
            let grant = [("grant_type", GRANT), ("device_code", &self.code)];
            let asked = door.ask(&grant, now).await;
            self.next = Instant::now() + self.interval;
            match asked {
                Ok(tokens) => return Ok(Some(tokens)),
                Err(TokenError::Refused(word)) if word == "authorization_pending" => {}
                Err(TokenError::Refused(word)) if word == "slow_down" => {
                    self.interval = (self.interval + SLOWER).min(INTERVAL_MAX);
                    self.next = Instant::now() + self.interval;
                }
                Err(TokenError::Refused(word)) if word == "access_denied" => {
                    return Err(LoginFailure::new("it was declined"));
                }
                Err(TokenError::Refused(word)) if word == "expired_token" => {
                    return Err(LoginFailure::new("the code is over; begin again"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        tokio::time::sleep_until(until).await;
        Ok(None)
    }
}
