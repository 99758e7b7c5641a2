//! `[redaction]`: what is cut out of what providers write, before it is kept.

use serde::Deserialize;
use wharf_vocab::Fault;

/// What is cut out of what providers write.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Redaction {
    /// Whether values of secrets are.
    secrets: bool,
    /// Regular expressions of what else is.
    patterns: Vec<String>,
}

impl Default for Redaction {
    fn default() -> Self {
        Self { secrets: true, patterns: Vec::new() }
    }
}

impl Redaction {
    /// The same, ready for use; a pattern that cannot be used is an error.
    pub(crate) fn compile(&self) -> Result<wharf_engine::Redaction, Fault> {
        wharf_engine::Redaction::new(self.secrets, &self.patterns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r152_secrets_are_cut_out_unless_the_owner_says_otherwise() {
        let read = |text: &str| toml::from_str::<Redaction>(text).expect("TOML");
        assert_eq!(read(""), Redaction { secrets: true, patterns: Vec::new() });
        assert!(!read("secrets = false").secrets);
        assert!(read("patterns = [\"sk-[a-z]+\"]").compile().is_ok());
        assert!(read("patterns = [\"(\"]").compile().is_err());
    }
}
