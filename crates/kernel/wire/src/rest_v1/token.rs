//! Tokens: rights that are made, listed and revoked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wharf_vocab::Verb;

/// `POST /v1/tokens`. A token gives no more than the one it is made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// What it is for, in its maker's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What may be done with it: `run`, `read`, `answer`, `approve`, `operate`, `admin`.
    #[schema(value_type = Vec<String>)]
    pub verbs: Vec<Verb>,
    /// In which worlds; in all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worlds: Option<Vec<String>>,
    /// With which tools, as patterns such as `llm/*`; with all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// How long it is good; for ever when neither this nor `expires_at` is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
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
    pub token_id: String,
    /// The token itself; only in the answer that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What it is for.
    pub label: String,
    /// `active`, `expired` or `revoked`.
    pub state: String,
    /// What may be done with it.
    #[schema(value_type = Vec<String>)]
    pub verbs: Vec<Verb>,
    /// In which worlds; in all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worlds: Option<Vec<String>>,
    /// With which tools; with all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether its bearer is a person.
    pub person: bool,
    /// The most its runs may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_micro: Option<u64>,
    /// When it was made.
    pub created_at: String,
    /// The grant it was made with.
    pub created_by: String,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown_by_accident() {
        let line = r#"{"token_id":"g-1","token":"whf1.secret","label":"","state":"active","verbs":["run"],"person":false,"created_at":"t","created_by":"owner"}"#;
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
