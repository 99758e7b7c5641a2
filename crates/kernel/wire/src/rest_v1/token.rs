//! Tokens, the tickets made with them, and the names of secrets.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wharf_vocab::{DateTime, GrantId, SeatId, SecretName, TokenState, Verb, WorldId};

/// `POST /v1/tokens`. A token gives no more than the one it is made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What it is for, in its maker's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What may be done with it: `run`, `read`, `answer`, `approve`, `operate`, `admin`.
    pub verbs: Vec<Verb>,
    /// In which worlds; in all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worlds: Option<Vec<WorldId>>,
    /// With which tools, as patterns such as `llm/*`; with all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// How long it is good; for ever when neither this nor `expires_at` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime>,
    /// The most its runs may cost; it must name exactly one world then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro: Option<u64>,
    /// Whether its bearer is a person, who may decide what is left to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<bool>,
}

/// A token as lists show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// The grant it carries.
    pub token_id: GrantId,
    /// The token itself; only in the answer that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What it is for.
    pub label: String,
    /// `active`, `expired` or `revoked`.
    pub state: TokenState,
    /// What may be done with it.
    pub verbs: Vec<Verb>,
    /// In which worlds; in all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worlds: Option<Vec<WorldId>>,
    /// With which tools; with all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether its bearer is a person.
    pub person: bool,
    /// The most its runs may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro: Option<u64>,
    /// When it was made.
    pub created_at: DateTime,
    /// The grant it was made with.
    pub created_by: GrantId,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// Whether the older keys are thrown away; then every token there is becomes worthless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_old: Option<bool>,
}

/// The keys that tokens are sealed with, by name only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Keys {
    /// The name of the key that seals from now on.
    pub current: String,
    /// The names of all keys that are good.
    pub keys: Vec<String>,
}

/// `POST /v1/tickets`; the body may be empty. A ticket gives no more than the token it is made
/// with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTicket {
    /// The origin of the pages that may use it, such as `http://localhost:5173`; the request's own
    /// when absent. A ticket for no origin is of no use to a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Only these verbs of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbs: Option<Vec<Verb>>,
    /// Only these worlds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worlds: Option<Vec<WorldId>>,
    /// Only tools that one of these patterns fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The seat of an operator whose socket it opens; the request carries the seat's token then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<SeatId>,
}

/// A ticket, which is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// What stands behind `?ticket=` in an address.
    pub ticket: String,
    /// Until when it is good.
    pub expires_at: DateTime,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// A secret as `GET /v1/secrets` lists it.
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
