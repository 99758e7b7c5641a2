//! The short tables of `wharf.toml`: `[runs]`, `[tools]` and `[redaction]`, the origins of
//! `[http]`, and certificates.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use wharf_tls::CertFiles;
use wharf_vocab::limits::{HELD_BYTES_MAX, HELD_BYTES_MIN};
use wharf_vocab::quantity;
use wharf_vocab::{Code, Fault};

/// The certificate and the key of a table, relative to the home or absolute.
pub(super) fn pair(
    table: &str,
    home: &Path,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<CertFiles>, Fault> {
    match (cert, key) {
        (Some(cert), Some(key)) => {
            Ok(Some(CertFiles { cert: home.join(cert), key: home.join(key) }))
        }
        (None, None) => Ok(None),
        _ => {
            let message = format!("[{table}] needs tls_cert and tls_key together.");
            Err(Fault::new(Code::ConfigInvalid, message))
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Runs {
    memory: Option<String>,
}

impl Runs {
    /// What open runs may take in memory, all together.
    pub(super) fn memory_bytes(self) -> Result<u64, Fault> {
        let Some(text) = self.memory else { return Ok(HELD_BYTES_MAX) };
        let given = quantity::bytes(&text).filter(|bytes| *bytes >= HELD_BYTES_MIN);
        given.ok_or_else(|| {
            let message = "The key runs.memory in wharf.toml cannot be used: it is a size such as \
                           256Mi, 16Mi at least.";
            Fault::new(Code::ConfigInvalid, message)
        })
    }
}

/// How tool servers are run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolServerSettings {
    /// The command that runs an image; without one images are not taken.
    pub(crate) container: Vec<String>,
    /// How long a server may have nothing to do before it is ended, when not as usual.
    pub(crate) idle_s: Option<u64>,
}

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

/// The origins as browsers write them, if each is one.
pub(super) fn checked_origins(origins: Vec<String>, whose: &str) -> Result<Vec<String>, Fault> {
    origins.into_iter().map(|origin| origin_of(&origin, whose)).collect()
}

fn origin_of(origin: &str, whose: &str) -> Result<String, Fault> {
    let text = origin.trim().trim_end_matches('/').to_ascii_lowercase();
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
    if host.is_some_and(|host| !host.is_empty() && host.chars().all(is_part)) {
        return Ok(text);
    }
    let message = format!(
        "{whose} has {origin:?}, which is not an origin such as http://localhost:5173: a scheme, a \
         host and perhaps a port."
    );
    Err(Fault::new(Code::ConfigInvalid, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_open_runs_may_take_can_be_set_and_too_little_is_refused() {
        let read = |text: &str| toml::from_str::<Runs>(text).expect("TOML").memory_bytes();
        assert_eq!(read("").expect("fits"), HELD_BYTES_MAX);
        assert_eq!(read("memory = \"1Gi\"").expect("fits"), 1 << 30);
        for wrong in ["15Mi", "much", "-1"] {
            let fault = read(&format!("memory = \"{wrong}\"")).expect_err("refused");
            assert!(fault.message.contains("runs.memory"), "{fault}");
        }
    }

    #[test]
    fn r152_secrets_are_cut_out_unless_the_owner_says_otherwise() {
        let read = |text: &str| toml::from_str::<Redaction>(text).expect("TOML");
        assert_eq!(read(""), Redaction { secrets: true, patterns: Vec::new() });
        assert!(!read("secrets = false").secrets);
        assert!(read("patterns = [\"sk-[a-z]+\"]").compile().is_ok());
        assert!(read("patterns = [\"(\"]").compile().is_err());
    }

    #[test]
    fn k032_an_origin_is_a_scheme_a_host_and_a_port() {
        let read = |text: &str| checked_origins(vec![text.to_owned()], "It");
        for (text, origin) in [
            ("http://localhost:5173", "http://localhost:5173"),
            ("https://App.Example/", "https://app.example"),
            ("http://[::1]:80", "http://[::1]:80"),
        ] {
            assert_eq!(read(text).expect("fits"), [origin]);
        }
        for text in
            ["", "*", "null", "localhost:5173", "http://", "http://a/b", "ftp://a", "http://a b"]
        {
            let fault = read(text).expect_err(text);
            assert!(
                fault.is(Code::ConfigInvalid) && fault.message.starts_with("It has"),
                "{fault}"
            );
        }
    }
}
