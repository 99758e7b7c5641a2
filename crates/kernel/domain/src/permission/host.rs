//! Patterns of hosts: a name, `*.` and a name for everything below it, an address; each with a
//! port or without.

use std::fmt;

use super::PermissionError;

/// A pattern of hosts, e.g. `api.example.com`, `*.example.com:443`, `127.0.0.1:8080`, `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: String,
    port: Option<u16>,
}

impl HostPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        let bad = || PermissionError("does not name a host or host:port".to_owned());
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| bad())?)),
            None => (text, None),
        };
        if host.is_empty() {
            return Err(bad());
        }
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }

    /// Whether it fits a host, by name or address, at a port.
    #[must_use]
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        let fits = match self.host.strip_prefix("*.") {
            Some(suffix) => host.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.')),
            None => self.host == "*" || self.host == host,
        };
        fits && self.port.is_none_or(|wanted| wanted == port)
    }

    /// Whether every host that `narrow` fits is fit by this one too.
    #[must_use]
    pub fn covers(&self, narrow: &Self) -> bool {
        self == narrow
    }

    /// Whether it names one address or the machine itself, so that private addresses are meant.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.host == "localhost" || self.host.parse::<std::net::IpAddr>().is_ok()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
