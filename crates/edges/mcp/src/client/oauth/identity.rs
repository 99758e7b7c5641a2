//! Who the core is at an issuer: by a document of its own, as somebody registered it, or by
//! registering itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use url::form_urlencoded::byte_serialize;
use wharf_domain::provider::McpLogin;
use wharf_ports::logins::LoginWay;
use wharf_vocab::{SecretName, Timestamp};

use super::LoginFailure;
use super::device::GRANT as DEVICE_GRANT;
use super::discover::LoginPlace;
use super::documents::RegistrationDocument;
use super::web::LoginWeb;

/// Longest name or secret of a client.
const CLIENT_BYTES_MAX: usize = 4096;

/// Who the core is at one issuer. It is never shown to another one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientIdentity {
    pub(super) id: String,
    pub(super) secret: ClientSecret,
    pub(super) method: ClientMethod,
    /// How long the core is known there, and for which way back, if it registered itself.
    pub(super) registered: Option<Registration>,
}

/// What a registration is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Registration {
    /// Where pages lead back to; nowhere for a device.
    pub(super) redirect_uri: Option<String>,
    /// When it is over, if ever.
    pub(super) expires_at: Option<Timestamp>,
}

/// What proves that the core is who it says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientSecret {
    /// Nothing does.
    None,
    /// What the issuer gave it.
    Own(String),
    /// A secret that the owner keeps.
    Named(SecretName),
}

/// How the secret goes with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientMethod {
    /// Not at all.
    None,
    /// In a header.
    Basic,
    /// In the form.
    Post,
}

impl ClientMethod {
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    fn read(text: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post].into_iter().find(|method| method.as_str() == text)
    }

    /// The first of these that an issuer takes.
    fn first(place: &LoginPlace, wanted: &[Self]) -> Option<Self> {
        let Some(taken) = &place.issuer.token_endpoint_auth_methods_supported else {
            return wanted.first().copied();
        };
        wanted.iter().copied().find(|method| taken.iter().any(|it| it == method.as_str()))
    }
}

/// Finds out who the core is at an issuer, and registers it if nobody else did.
pub(super) async fn choose(
    web: &LoginWeb,
    place: &LoginPlace,
    settings: &McpLogin,
    known: Option<ClientIdentity>,
    way: &LoginWay,
    now: Timestamp,
) -> Result<ClientIdentity, LoginFailure> {
    if let Some(id) = &settings.client_id {
        let is_document = is_document(id);
        if !is_document {
            return by_hand(place, id, settings.client_secret.clone());
        }
        if place.issuer.client_id_metadata_document_supported {
            return Ok(ClientIdentity {
                id: id.clone(),
                secret: ClientSecret::None,
                method: ClientMethod::None,
                registered: None,
            });
        }
    }
    let redirect_uri = match way {
        LoginWay::Redirect { redirect_uri } => Some(redirect_uri.clone()),
        LoginWay::Device => None,
    };
    let fits = |known: &ClientIdentity| {
        known.registered.as_ref().is_some_and(|registered| {
            registered.redirect_uri == redirect_uri
                && registered.expires_at.is_none_or(|until| now < until)
        })
    };
    match known.filter(fits) {
        Some(known) => Ok(known),
        None => register(web, place, redirect_uri).await,
    }
}

/// Whether a client's name is the address of a document about it.
fn is_document(id: &str) -> bool {
    let url = Url::parse(id).ok();
    url.is_some_and(|url| url.scheme() == "https" && url.path().len() > 1)
}

fn by_hand(
    place: &LoginPlace,
    id: &str,
    secret: Option<SecretName>,
) -> Result<ClientIdentity, LoginFailure> {
    let Some(secret) = secret else {
        return Ok(ClientIdentity {
            id: id.to_owned(),
            secret: ClientSecret::None,
            method: ClientMethod::None,
            registered: None,
        });
    };
    let method = ClientMethod::first(place, &[ClientMethod::Basic, ClientMethod::Post]);
    let none = || LoginFailure::new("the place where one logs in takes no client secret");
    Ok(ClientIdentity {
        id: id.to_owned(),
        secret: ClientSecret::Named(secret),
        method: method.ok_or_else(none)?,
        registered: None,
    })
}

async fn register(
    web: &LoginWeb,
    place: &LoginPlace,
    redirect_uri: Option<String>,
) -> Result<ClientIdentity, LoginFailure> {
    let Some(endpoint) = &place.issuer.registration_endpoint else {
        let why = "the place where one logs in registers nobody by itself; register a client \
                   there and set `client_id` under `[oauth]` in the server's manifest";
        return Err(LoginFailure::new(why));
    };
    let endpoint = web.named(endpoint, "its registration endpoint")?;
    let wanted = [ClientMethod::None, ClientMethod::Basic, ClientMethod::Post];
    let method = ClientMethod::first(place, &wanted);
    let none = || LoginFailure::new("it takes no way to say who one is that is known here");
    let method = method.ok_or_else(none)?;
    let mut wish = json!({
        "client_name": "Wharf",
        "application_type": "native",
        "token_endpoint_auth_method": method.as_str(),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    });
    match &redirect_uri {
        Some(redirect_uri) => wish["redirect_uris"] = json!([redirect_uri]),
        None => wish["grant_types"] = json!([DEVICE_GRANT, "refresh_token"]),
    }
    let answer = web.json(endpoint, &wish, "the registration").await?;
    if !answer.is_success() {
        let why = format!("the registration was answered with {}", answer.status);
        return Err(LoginFailure::new(why));
    }
    let document: RegistrationDocument = answer.read("the registration")?;
    let lengths =
        [document.client_id.len(), document.client_secret.as_ref().map_or(0, String::len)];
    if document.client_id.is_empty() || lengths.iter().any(|length| *length > CLIENT_BYTES_MAX) {
        return Err(LoginFailure::new("the registration gives a name that cannot be used"));
    }
    registered(place, document, method, redirect_uri)
}

/// Who the core is by what it registered as. The issuer may have decided otherwise than asked.
fn registered(
    place: &LoginPlace,
    document: RegistrationDocument,
    asked: ClientMethod,
    redirect_uri: Option<String>,
) -> Result<ClientIdentity, LoginFailure> {
    let unknown = || LoginFailure::new("the registration wants what is not known here");
    let secret = document.client_secret.filter(|secret| !secret.is_empty());
    let method = match (&document.token_endpoint_auth_method, &secret) {
        (Some(said), _) => ClientMethod::read(said).ok_or_else(unknown)?,
        (None, None) => ClientMethod::None,
        (None, Some(_)) if asked == ClientMethod::None => {
            let all = [ClientMethod::None, ClientMethod::Basic, ClientMethod::Post];
            ClientMethod::first(place, &all).ok_or_else(unknown)?
        }
        (None, Some(_)) => asked,
    };
    let secret = match (method, secret) {
        (ClientMethod::None, _) => ClientSecret::None,
        (_, Some(secret)) => ClientSecret::Own(secret),
        (_, None) => return Err(unknown()),
    };
    let expires_at = document.client_secret_expires_at.filter(|at| *at > 0);
    let expires_at = expires_at.map(|at| Timestamp(at.saturating_mul(1000)));
    let registered = Some(Registration { redirect_uri, expires_at });
    Ok(ClientIdentity { id: document.client_id, secret, method, registered })
}

/// What says who the core is: a header, or pieces of the form.
pub(super) struct ClientProof {
    pub(super) header: Option<HeaderValue>,
    pub(super) form: Vec<(&'static str, String)>,
}

impl ClientIdentity {
    /// What goes with a request to the issuer, given the secret's text.
    pub(super) fn proof(&self, secret: Option<&str>) -> Result<ClientProof, LoginFailure> {
        let id = || ("client_id", self.id.clone());
        let secret = secret.unwrap_or_default();
        match self.method {
            ClientMethod::None => Ok(ClientProof { header: None, form: vec![id()] }),
            ClientMethod::Post => {
                let form = vec![id(), ("client_secret", secret.to_owned())];
                Ok(ClientProof { header: None, form })
            }
            ClientMethod::Basic => {
                let escaped = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", escaped(&self.id), escaped(secret));
                let header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
                let unfit = |_| LoginFailure::new("the client's secret cannot be sent");
                let mut header = header.map_err(unfit)?;
                header.set_sensitive(true);
                Ok(ClientProof { header: Some(header), form: Vec::new() })
            }
        }
    }
}
