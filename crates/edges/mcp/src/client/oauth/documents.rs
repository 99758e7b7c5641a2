//! What servers and issuers say of themselves, as far as a login needs it.

use serde::Deserialize;

/// RFC 9728: which server it is, and who lets people in.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ResourceDocument {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// RFC 8414 or OpenID Connect Discovery: where an issuer does what.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct IssuerDocument {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) registration_endpoint: Option<String>,
    pub(super) device_authorization_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
}

/// RFC 7591: who the core is there from now on.
#[derive(Deserialize)]
pub(super) struct RegistrationDocument {
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    pub(super) client_secret_expires_at: Option<u64>,
    pub(super) token_endpoint_auth_method: Option<String>,
}

/// RFC 6749: tokens.
#[derive(Deserialize)]
pub(super) struct TokenDocument {
    pub(super) access_token: String,
    pub(super) token_type: String,
    pub(super) expires_in: Option<f64>,
    pub(super) refresh_token: Option<String>,
    pub(super) scope: Option<String>,
}

/// RFC 6749: a refusal in a word.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RefusalDocument {
    pub(super) error: String,
}

/// RFC 8628: a code for a person to type, and one for the core to ask with.
#[derive(Deserialize)]
pub(super) struct DeviceDocument {
    pub(super) device_code: String,
    pub(super) user_code: String,
    pub(super) verification_uri: String,
    pub(super) verification_uri_complete: Option<String>,
    pub(super) expires_in: u64,
    pub(super) interval: Option<u64>,
}
