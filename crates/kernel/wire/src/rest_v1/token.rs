//! Tokens, the tickets made with them, and the names of secrets.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use wharf_vocab::{DateTime, GrantId, SeatId, SecretName, TokenKind, TokenState, Verb, WorldId};

/// `POST /v1/tokens`. A token has no more rights than the one it is created with.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What it is for, in its maker's words.
    pub label: Option<String>,
    /// What it permits.
    pub verbs: Vec<Verb>,
    /// The worlds it covers; all when absent.
    pub worlds: Option<Vec<WorldId>>,
    /// The tools it covers, as patterns such as `llm/*`; all when absent.
    pub tools: Option<Vec<String>>,
    /// How long it is valid; without limit when neither this nor `expires_at` is given.
    pub ttl_ms: Option<u64>,
    /// When it expires.
    pub expires_at: Option<DateTime>,
    /// The most its runs may cost. Such a token must name exactly one world.
    pub budget_micro: Option<u64>,
    /// Whether it belongs to a person, who may decide what is reserved for people.
    pub person: Option<bool>,
}

/// A token as lists show it.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its id.
    pub token_id: GrantId,
    /// Whether it is a token or a browser that is signed in at the console.
    #[serde(default)]
    pub kind: TokenKind,
    /// The token itself; only in the response that creates it.
    pub token: Option<String>,
    /// What it is for.
    pub label: String,
    /// Whether it is still valid.
    pub state: TokenState,
    /// What it permits.
    pub verbs: Vec<Verb>,
    /// The worlds it covers; all when absent.
    pub worlds: Option<Vec<WorldId>>,
    /// The tools it covers; all when absent.
    pub tools: Option<Vec<String>>,
    /// Whether it belongs to a person.
    pub person: bool,
    /// The most its runs may cost.
    pub budget_micro: Option<u64>,
    /// When it was created.
    pub created_at: DateTime,
    /// The token it was created with.
    pub created_by: GrantId,
    /// When it expires.
    pub expires_at: Option<DateTime>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime>,
}

/// Shows everything but the token itself.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("token_id", &self.token_id).finish_non_exhaustive()
    }
}

/// `POST /v1/tokens/rotate`; the body may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateKeys {
    /// Whether to drop the older keys, which invalidates every existing token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_old: Option<bool>,
}

/// The keys that sign tokens, by name only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Keys {
    /// The name of the key that signs new tokens.
    pub current: String,
    /// The names of all valid keys.
    pub keys: Vec<String>,
}

/// `POST /v1/tickets`; the body may be empty. A ticket has no more rights than the token it is
/// created with.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTicket {
    /// The origin of the pages that may use it, such as `http://localhost:5173`; the origin of this
    /// request when absent. Pages cannot use a ticket without an origin.
    pub origin: Option<String>,
    /// Only these verbs of the token.
    pub verbs: Option<Vec<Verb>>,
    /// Only these worlds.
    pub worlds: Option<Vec<WorldId>>,
    /// Only tools that match one of these patterns.
    pub tools: Option<Vec<String>>,
    /// The operator's seat whose socket it opens. The request must carry the seat's token.
    pub seat: Option<SeatId>,
}

/// A ticket, which is shown only once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// The value for `?ticket=` in a URL.
    pub ticket: String,
    /// When it expires.
    pub expires_at: DateTime,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// The name of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Secret {
    /// Its name.
    pub name: SecretName,
    /// When it was set.
    pub set_at: DateTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown_by_accident() {
        let line = r#"{"token_id":"g-1","token":"whf1.secret","label":"","state":"active","verbs":["run"],"person":false,"created_at":"2026-11-15T09:00:00.000Z","created_by":"owner"}"#;
        let token: Token = serde_json::from_str(line).expect("readable");
        assert!(!format!("{token:?}").contains("secret"));
    }

    #[test]
    fn a_misspelt_request_is_noticed() {
        for bad in
            [r#"{"verbs":["run"],"world":["a"]}"#, r#"{"verbs":["fly"]}"#, r#"{"worlds":["a"]}"#]
        {
            assert!(serde_json::from_str::<CreateToken>(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<RotateKeys>(r#"{"drop":true}"#).is_err());
    }
}
