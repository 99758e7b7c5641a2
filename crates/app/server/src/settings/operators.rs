//! `[operators]`: what operators are told, and how long seats wait.

use serde::Deserialize;
use wharf_vocab::{Code, Fault};

/// Longest text that operators are told with a spawn.
const DIRECTIVE_BYTES_MAX: usize = 16 * 1024;

/// What operators are told, and how long seats wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Operators {
    /// What an operator is told with every spawn, when not the usual.
    pub(crate) directive: Option<String>,
    /// The address under which workers reach the core, when not its own.
    pub(crate) base_url: Option<String>,
    /// How long a seat may be away before it is given up, when not as usual.
    pub(crate) away_hours: Option<u64>,
}

impl Operators {
    /// The same, if it can be used.
    pub(super) fn checked(self) -> Result<Self, Fault> {
        let wrong = |key: &str, why: &str| {
            let message = format!("The key operators.{key} in wharf.toml cannot be used: {why}.");
            Err(Fault::new(Code::ConfigInvalid, message))
        };
        if self.directive.as_ref().is_some_and(|text| text.len() > DIRECTIVE_BYTES_MAX) {
            return wrong("directive", "it is too long");
        }
        let is_address = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if self.base_url.as_ref().is_some_and(|url| !is_address(url)) {
            return wrong("base_url", "it must begin with http:// or https://");
        }
        if self.away_hours == Some(0) {
            return wrong("away_hours", "it must be at least 1");
        }
        let base_url = self.base_url.map(|url| url.trim_end_matches('/').to_owned());
        Ok(Self { base_url, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o017_what_operators_are_told_can_be_set_and_wrong_values_are_named() {
        let read = |text: &str| toml::from_str::<Operators>(text).expect("TOML").checked();
        let set =
            read("directive = \"Do {agent}.\"\nbase_url = \"https://w.example/\"").expect("fits");
        assert_eq!(set.base_url.as_deref(), Some("https://w.example"));
        assert_eq!(set.directive.as_deref(), Some("Do {agent}."));
        for (text, key) in
            [("base_url = \"w.example\"", "base_url"), ("away_hours = 0", "away_hours")]
        {
            let fault = read(text).expect_err("refused");
            assert!(fault.message.contains(key), "{fault}");
        }
    }
}
