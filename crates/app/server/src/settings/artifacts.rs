//! `[artifacts]`: where files are kept, and how tools reach them.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wharf_tls::CertFiles;
use wharf_vocab::Fault;

use super::invalid;
use super::tables::pair;

const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Where files are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Artifacts {
    /// In files of the home, or in an S3.
    pub(crate) place: Location,
    /// What presigned addresses begin with, when tools reach the store by another name.
    pub(crate) public_url: Option<String>,
    /// Further origins that outputs may be written to.
    pub(crate) origins: Vec<String>,
}

/// Where the bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// In files of the home, served on an address of this machine.
    Files {
        /// Where it listens; port 0 for one that is picked once and kept.
        listen: SocketAddr,
        /// Certificate and key, both as PEM files.
        tls: Option<CertFiles>,
    },
    /// In an S3.
    S3(S3),
}

/// How an S3 is reached.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct S3 {
    pub(crate) endpoint: String,
    pub(crate) region: String,
    pub(crate) bucket: String,
    pub(crate) virtual_host: bool,
    pub(crate) key_id: String,
    pub(crate) secret: String,
    pub(crate) session_token: Option<String>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) prefix: Option<String>,
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (endpoint, bucket) = (&self.endpoint, &self.bucket);
        f.debug_struct("S3").field("endpoint", endpoint).field("bucket", bucket).finish()
    }
}

impl Artifacts {
    /// Whether it may listen there: other machines are let in over TLS only.
    pub(super) fn check(&self, behind_proxy: bool) -> Result<(), Fault> {
        match &self.place {
            Location::Files { listen, tls: None }
                if !listen.ip().is_loopback() && !behind_proxy =>
            {
                Err(invalid(format!(
                    "[artifacts] listen {listen} can be reached from other machines; set tls_cert \
                     and tls_key, or start with --behind-proxy if something in front provides \
                     TLS."
                )))
            }
            _ => Ok(()),
        }
    }
}

/// `[artifacts]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ArtifactsTable {
    kind: StoreKind,
    listen: Option<SocketAddr>,
    public_url: Option<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    origins: Vec<String>,
    endpoint: Option<String>,
    region: Option<String>,
    bucket: Option<String>,
    style: Option<Style>,
    key_id: Option<String>,
    secret_file: Option<PathBuf>,
    session_token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    prefix: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoreKind {
    #[default]
    Files,
    S3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Style {
    Path,
    VirtualHost,
}

impl ArtifactsTable {
    /// Whether files are kept in the home.
    pub(super) fn is_in_the_home(&self) -> bool {
        matches!(self.kind, StoreKind::Files)
    }

    /// What was set; `var` reads the environment, and files lie relative to `home`.
    pub(super) fn settle(
        self,
        home: &Path,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Artifacts, Fault> {
        for url in self.public_url.iter().chain(&self.origins).chain(&self.endpoint) {
            check_origin(url)?;
        }
        let (public_url, origins) = (self.public_url.clone(), self.origins.clone());
        let place = match self.kind {
            StoreKind::Files => self.files(home)?,
            StoreKind::S3 => Location::S3(self.s3(home, var)?),
        };
        Ok(Artifacts { place, public_url, origins })
    }

    fn files(self, home: &Path) -> Result<Location, Fault> {
        let stray = [
            ("endpoint", self.endpoint.is_some()),
            ("bucket", self.bucket.is_some()),
            ("key_id", self.key_id.is_some()),
        ];
        if let Some((name, _)) = stray.iter().find(|(_, set)| *set) {
            let message = format!("[artifacts] {name} needs kind = \"s3\".");
            return Err(invalid(message));
        }
        let tls = pair("artifacts", home, self.tls_cert, self.tls_key)?;
        Ok(Location::Files { listen: self.listen.unwrap_or(LISTEN_DEFAULT), tls })
    }

    fn s3(self, home: &Path, var: impl Fn(&str) -> Option<String>) -> Result<S3, Fault> {
        let need = |value: Option<String>, name: &str| {
            value.ok_or_else(|| invalid(format!("[artifacts] kind = \"s3\" needs {name}.")))
        };
        let secret = match (var("WHARF_S3_SECRET"), &self.secret_file) {
            (Some(secret), _) => Some(secret),
            (None, Some(path)) => Some(read_secret(&home.join(path))?),
            (None, None) => None,
        };
        let session_token = match (var("WHARF_S3_SESSION_TOKEN"), &self.session_token_file) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => Some(read_secret(&home.join(path))?),
            (None, None) => None,
        };
        Ok(S3 {
            endpoint: need(self.endpoint, "endpoint")?,
            region: self.region.unwrap_or_else(|| "us-east-1".to_owned()),
            bucket: need(self.bucket, "bucket")?,
            virtual_host: self.style == Some(Style::VirtualHost),
            key_id: need(var("WHARF_S3_KEY_ID").or(self.key_id), "key_id or WHARF_S3_KEY_ID")?,
            secret: need(secret, "secret_file or WHARF_S3_SECRET")?,
            session_token,
            ca_file: self.ca_file.map(|path| home.join(path)),
            prefix: self.prefix,
        })
    }
}

/// An origin is a scheme and a host, without anything behind it.
fn check_origin(url: &str) -> Result<(), Fault> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match rest {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']) => Ok(()),
        _ => Err(invalid(format!(
            "[artifacts] has {url:?} where an address such as https://files.example.com must be."
        ))),
    }
}

pub(super) fn read_secret(path: &Path) -> Result<String, Fault> {
    match std::fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => Err(invalid(format!("{} is empty.", path.display()))),
        Err(error) => Err(invalid(format!("{} cannot be read: {error}.", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(text: &str, vars: &[(&str, &str)]) -> Result<Artifacts, String> {
        let file: ArtifactsTable =
            toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let var = |name: &str| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let settled = file.settle(Path::new("/home"), var);
        settled.and_then(|found| found.check(false).map(|()| found)).map_err(|fault| fault.message)
    }

    #[test]
    fn files_are_kept_in_the_home_unless_an_s3_is_named() {
        let artifacts = settle("", &[]).expect("fits");
        assert_eq!(artifacts.place, Location::Files { listen: LISTEN_DEFAULT, tls: None });
        let text = "kind = \"s3\"\nendpoint = \"https://s3.example.com\"\nbucket = \"b\"\n\
                    style = \"virtual-host\"\nkey_id = \"k\"";
        let vars = [("WHARF_S3_SECRET", "s"), ("WHARF_S3_SESSION_TOKEN", "t")];
        let Location::S3(s3) = settle(text, &vars).expect("fits").place else { panic!("not S3") };
        assert_eq!((s3.region.as_str(), s3.virtual_host), ("us-east-1", true));
        assert_eq!((s3.secret.as_str(), s3.session_token.as_deref()), ("s", Some("t")));
        assert!(!format!("{s3:?}").contains("\"s\""), "secrets are not shown");
    }

    #[test]
    fn mistakes_are_named() {
        let s3 = "kind = \"s3\"\nendpoint = \"https://s3.example.com\"\nbucket = \"b\"\n";
        for (text, said) in [
            ("kind = \"tape\"", "unknown variant"),
            ("bucket = \"b\"", "needs kind"),
            ("tls_cert = \"c.pem\"", "tls_key together"),
            ("listen = \"0.0.0.0:1\"", "other machines"),
            ("public_url = \"https://a/b\"", "where an address"),
            ("origins = [\"ftp://a\"]", "where an address"),
            ("kind = \"s3\"", "needs endpoint"),
            (s3, "needs key_id"),
            (&format!("{s3}key_id = \"k\""), "needs secret_file"),
            (&format!("{s3}key_id = \"k\"\nsecret_file = \"none\""), "cannot be read"),
        ] {
            let error = settle(text, &[]).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
