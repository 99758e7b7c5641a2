//! Logging in to MCP servers elsewhere.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;

/// `POST /v1/mcp/{id}/login`: with a page that leads back, or with a code to type.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginMcpLogin {
    /// Where the page leads back to: an `http` address of the person's own machine.
    pub redirect_uri: Option<String>,
    /// Whether a code is typed on a page of any machine instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub device: bool,
}

/// A login that has begun.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpLoginPage {
    /// The page for the person to open.
    pub url: String,
    /// Names the login; the page leads back with it.
    pub state: String,
    /// The code to type there.
    pub user_code: Option<String>,
    /// How long the person may take, in seconds.
    pub expires_in_s: u64,
}

/// `POST /v1/mcp/{id}/login/finish`: what the page led back with; only the state of a code that was
/// typed.
#[skip_serializing_none]
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndMcpLogin {
    /// Names the login.
    pub state: String,
    /// What the core gets tokens for.
    pub code: Option<String>,
    /// Who says so.
    pub iss: Option<String>,
    /// What went wrong, in a word.
    pub error: Option<String>,
}

impl std::fmt::Debug for EndMcpLogin {
    /// The code is a secret as long as it is good.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndMcpLogin").finish_non_exhaustive()
    }
}

/// How far a login is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpLoginState {
    /// Whether somebody is logged in. Otherwise the code was not typed yet: ask again.
    pub done: bool,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tests::survives;
    use super::*;

    #[test]
    fn m071_every_example_survives() {
        let mut names = BTreeSet::new();
        for line in include_str!("../../testdata/rest_v1/logins.ndjson").lines() {
            let (name, data) = line.split_once(' ').expect("name and data");
            names.insert(name);
            match name {
                "BeginMcpLogin" => survives::<BeginMcpLogin>(data),
                "McpLoginPage" => survives::<McpLoginPage>(data),
                "EndMcpLogin" => survives::<EndMcpLogin>(data),
                "McpLoginState" => survives::<McpLoginState>(data),
                other => panic!("{other} is no message"),
            }
        }
        assert_eq!(names.len(), 4, "each message has an example");
    }

    #[test]
    fn m071_a_code_is_not_shown() {
        let end = EndMcpLogin { code: Some("c4nary".to_owned()), ..EndMcpLogin::default() };
        assert!(!format!("{end:?}").contains("c4nary"));
    }
}
