//! `[mcp]`: how clients of MCP are served, and how servers of MCP are kept.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use wharf_domain::provider::McpSampling;
use wharf_mcp::{McpOauth, McpOauthRule, McpOauthSettings, McpServerSettings};
use wharf_vocab::{Code, Fault, GrantId};

/// Shorter names would be mostly hash.
const NAME_CHARS_MIN: usize = 16;
/// Longer names no revision of MCP allows.
const NAME_CHARS_MAX: usize = 128;
/// A client that waits longer has no use for patience.
const PATIENCE_S_MAX: u64 = 24 * 60 * 60;
/// A run that becomes a task later than this hardly ever does.
const TASK_AFTER_MS_MAX: u64 = 10 * 60 * 1000;

/// How clients of MCP are served, and how servers of MCP are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpSettings {
    /// After how long a client without tasks is answered while its run goes on; never when absent.
    patience_s: Option<u64>,
    /// After how long a run becomes a task, when not as usual.
    task_after_ms: Option<u64>,
    /// Whether a client may answer the questions of its own runs; it may when absent.
    own_questions: Option<bool>,
    /// Longest name that clients see of a tool, when not as usual.
    name_max: Option<usize>,
    /// Who answers what a server asks of a model, unless the server's manifest says.
    pub(crate) sampling: McpSampling,
    /// How long a server may have nothing to do before it is ended, when not as usual.
    pub(crate) idle_s: Option<u64>,
    /// The authorization server elsewhere whose tokens clients may bring.
    pub(crate) oauth: Option<McpOauthTable>,
}

/// `[mcp.oauth]`: an authorization server elsewhere whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpOauthTable {
    /// Its name, letter by letter as its tokens have it.
    issuer: String,
    /// The canonical address of `/mcp`.
    audience: String,
    /// The address of its keys.
    keys: String,
    /// Whether that address may lie in a private network.
    #[serde(default)]
    allow_private: bool,
    /// Which tokens give what; the first that fits counts.
    grants: Vec<McpOauthGrant>,
}

/// Which tokens give what: those with a scope, or with a claim that is or has a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpOauthGrant {
    scope: Option<String>,
    claim: Option<String>,
    value: Option<String>,
    /// The grant whose rights the bearer has, as `wharf token list` names it.
    grant: GrantId,
}

impl McpOauthTable {
    /// What the edge is given; the key that cannot be used, and why.
    fn settings(&self) -> Result<McpOauthSettings, (&'static str, &'static str)> {
        let mut rules = Vec::new();
        for given in &self.grants {
            let (claim, value) = match (&given.scope, &given.claim, &given.value) {
                (Some(scope), None, None) => ("scope", scope),
                (None, Some(claim), Some(value)) => (claim.as_str(), value),
                _ => return Err(("grants", "each has either `scope`, or `claim` and `value`")),
            };
            rules.push(McpOauthRule {
                claim: claim.to_owned(),
                value: value.clone(),
                grant: given.grant.clone(),
            });
        }
        let settings = McpOauthSettings {
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            keys_url: self.keys.clone(),
            allow_private: self.allow_private,
            rules,
        };
        settings
            .check()
            .map_err(|(key, why)| (if key == "rules" { "grants" } else { key }, why))?;
        Ok(settings)
    }
}

impl McpSettings {
    /// The same, if it can be used.
    pub(super) fn checked(self) -> Result<Self, Fault> {
        let wrong = |key: &str, why: String| {
            let message = format!("The key mcp.{key} in wharf.toml cannot be used: {why}.");
            Err(Fault::new(Code::ConfigInvalid, message))
        };
        if self.patience_s.is_some_and(|s| !(1..=PATIENCE_S_MAX).contains(&s)) {
            return wrong("patience_s", format!("it must be 1 to {PATIENCE_S_MAX}"));
        }
        if self.task_after_ms.is_some_and(|ms| ms > TASK_AFTER_MS_MAX) {
            return wrong("task_after_ms", format!("it must be {TASK_AFTER_MS_MAX} at most"));
        }
        if self.name_max.is_some_and(|max| !(NAME_CHARS_MIN..=NAME_CHARS_MAX).contains(&max)) {
            return wrong("name_max", format!("it must be {NAME_CHARS_MIN} to {NAME_CHARS_MAX}"));
        }
        if self.idle_s == Some(0) {
            return wrong("idle_s", "it must be at least 1".to_owned());
        }
        if let Some(Err((key, why))) = self.oauth.as_ref().map(McpOauthTable::settings) {
            return wrong(&format!("oauth.{key}"), why.to_owned());
        }
        Ok(self)
    }

    /// What looks at tokens of an authorization server elsewhere, if one is set.
    pub(crate) fn oauth(&self) -> Result<Option<Arc<McpOauth>>, Fault> {
        let settings = self.oauth.as_ref().and_then(|table| table.settings().ok());
        Ok(settings.map(McpOauth::new).transpose()?.map(Arc::new))
    }

    /// How clients are served.
    pub(crate) fn server(&self) -> McpServerSettings {
        let usual = McpServerSettings::default();
        McpServerSettings {
            patience: self.patience_s.map(Duration::from_secs),
            task_after: self.task_after_ms.map_or(usual.task_after, Duration::from_millis),
            own_questions: self.own_questions.unwrap_or(usual.own_questions),
            name_chars_max: self.name_max.unwrap_or(usual.name_chars_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<McpSettings, Fault> {
        toml::from_str::<McpSettings>(text).expect("TOML").checked()
    }

    #[test]
    fn m079_what_is_not_set_is_as_usual() {
        let set = read("").expect("fits");
        assert_eq!(set.server(), McpServerSettings::default());
        assert_eq!((set.sampling, set.idle_s), (McpSampling::Auto, None));
        let set = read(
            "patience_s = 50\ntask_after_ms = 0\nown_questions = false\nname_max = 40\n\
             sampling = \"refuse\"\nidle_s = 9\n",
        )
        .expect("fits");
        let server = McpServerSettings {
            patience: Some(Duration::from_secs(50)),
            task_after: Duration::ZERO,
            own_questions: false,
            name_chars_max: 40,
        };
        assert_eq!(set.server(), server);
        assert_eq!((set.sampling, set.idle_s), (McpSampling::Refuse, Some(9)));
    }

    #[test]
    fn m074_tokens_of_others_lead_to_grants() {
        let table = "[oauth]\nissuer = \"https://login.example\"\n\
                     audience = \"https://wharf.example/mcp\"\n\
                     keys = \"https://login.example/keys\"\n";
        let with = |rest: &str| read(&format!("{table}{rest}"));
        let set = with(
            "grants = [{ scope = \"wharf\", grant = \"g-1\" }, \
             { claim = \"groups\", value = \"harbor\", grant = \"g-2\" }]",
        );
        let set = set.expect("fits");
        let settings = set.oauth.as_ref().expect("set").settings().expect("fits");
        let rules: Vec<_> = settings.rules.iter().map(|rule| rule.claim.as_str()).collect();
        assert_eq!(rules, ["scope", "groups"]);
        assert!(set.oauth().expect("fits").is_some());
        assert!(read("").expect("fits").oauth().expect("fits").is_none());
        for (rest, key) in [
            ("grants = []", "mcp.oauth.grants"),
            ("grants = [{ grant = \"g-1\" }]", "mcp.oauth.grants"),
            ("grants = [{ scope = \"a\", claim = \"b\", grant = \"g-1\" }]", "mcp.oauth.grants"),
        ] {
            let fault = with(rest).expect_err(rest);
            assert!(fault.is(Code::ConfigInvalid) && fault.message.contains(key), "{fault}");
        }
        let plain = table.replace("keys = \"https", "keys = \"http");
        let fault = read(&format!("{plain}grants = [{{ scope = \"a\", grant = \"g-1\" }}]"));
        assert!(fault.expect_err("plain").message.contains("mcp.oauth.keys"));
    }

    #[test]
    fn m079_what_cannot_be_used_is_named() {
        for (text, key) in [
            ("patience_s = 0", "mcp.patience_s"),
            ("patience_s = 86401", "mcp.patience_s"),
            ("task_after_ms = 600001", "mcp.task_after_ms"),
            ("name_max = 15", "mcp.name_max"),
            ("name_max = 129", "mcp.name_max"),
            ("idle_s = 0", "mcp.idle_s"),
        ] {
            let fault = read(text).expect_err(text);
            assert!(fault.is(Code::ConfigInvalid) && fault.message.contains(key), "{fault}");
        }
        let error = toml::from_str::<McpSettings>("sampling = \"me\"").expect_err("refused");
        assert!(error.message().contains("unknown variant `me`"), "{error}");
    }
}
