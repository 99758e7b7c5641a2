//! Patterns of hosts: a name, `*.` and a name for everything below it, an address; each with a
//! port or without.
//!
//! Names are compared as the resolver would see them: lower case, without the dot at the end.
//! What only looks like a name but would be read as an address (`127.1`, `0x7f.1`, `2130706433`)
//! is no host at all here, so that nothing can pass for another host.

use std::fmt;
use std::net::IpAddr;

use super::PermissionError;

/// Longest name of a host.
const NAME_BYTES_MAX: usize = 253;
/// Longest part of it between dots.
const LABEL_BYTES_MAX: usize = 63;

/// A pattern of hosts, e.g. `api.example.com`, `*.example.com:443`, `127.0.0.1:8080`, `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: HostRule,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostRule {
    /// Any host, by name or address.
    Any,
    /// Every name below this one, at any depth, but not the name itself.
    Below(String),
    /// This name.
    Name(String),
    /// This address; one of version 4 is never written as one of version 6.
    Address(IpAddr),
}

impl HostPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PermissionError> {
        let (host, port) = split(text)?;
        let port = port.map(parse_port).transpose()?;
        let host = match host.strip_prefix("*.") {
            _ if host == "*" => HostRule::Any,
            Some(below) => match HostRule::parse(below)? {
                HostRule::Name(name) => HostRule::Below(name),
                _ => return Err(bad("has *. before something that is not a name")),
            },
            None => HostRule::parse(host)?,
        };
        Ok(Self { host, port })
    }

    /// Whether it fits a host, by name or address, at a port.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        if port == 0 || self.port.is_some_and(|wanted| wanted != port) {
            return false;
        }
        let unbracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let host = match unbracketed {
            Some(inner) => inner.contains(':').then(|| HostRule::parse(inner)),
            None => Some(HostRule::parse(host)),
        };
        matches!(host, Some(Ok(host)) if self.host.covers(&host))
    }

    /// Whether every host that `narrow` fits is fit by this one too.
    pub fn covers(&self, narrow: &Self) -> bool {
        self.host.covers(&narrow.host) && (self.port.is_none() || self.port == narrow.port)
    }

    /// Whether it names one address or the machine itself, so that private addresses are meant.
    pub fn is_literal(&self) -> bool {
        match &self.host {
            HostRule::Address(_) => true,
            HostRule::Name(name) => name == "localhost",
            HostRule::Any | HostRule::Below(_) => false,
        }
    }

    /// What it lets its holder do, for people.
    pub(super) fn describe(&self) -> String {
        let host = match &self.host {
            HostRule::Any => "any host".to_owned(),
            HostRule::Below(name) => format!("any host below {name}"),
            HostRule::Name(name) => name.clone(),
            HostRule::Address(address) => address.to_string(),
        };
        match self.port {
            Some(port) => format!("Connect to {host} on port {port}"),
            None => format!("Connect to {host} on any port"),
        }
    }
}

impl HostRule {
    /// Reads a name or an address.
    fn parse(text: &str) -> Result<Self, PermissionError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        if !text.is_ascii() {
            return Err(bad("has letters beyond ASCII; write such a name in its xn-- form"));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(bad("does not name a host"));
        }
        if name.contains('*') {
            return Err(bad("has a * that is neither alone nor the whole first part of a name"));
        }
        if !name.split('.').all(is_label) {
            return Err(bad("does not name a host"));
        }
        if ends_in_a_number(&name) {
            return Err(bad("is neither a name nor an address of four plain numbers"));
        }
        Ok(Self::Name(name))
    }

    fn covers(&self, narrow: &Self) -> bool {
        match (self, narrow) {
            (Self::Any, _) => true,
            (Self::Below(wide), Self::Name(name)) => is_below(name, wide),
            (Self::Below(wide), Self::Below(name)) => name == wide || is_below(name, wide),
            (wide, narrow) => wide == narrow,
        }
    }
}

fn bad(why: &str) -> PermissionError {
    PermissionError(why.to_owned())
}

/// Splits a host from its port. An address of version 6 has its port after brackets.
fn split(text: &str) -> Result<(&str, Option<&str>), PermissionError> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) =
            rest.split_once(']').ok_or_else(|| bad("has a [ that is never closed"))?;
        let port = if rest.is_empty() { None } else { rest.strip_prefix(':') };
        if !host.contains(':') || (port.is_none() && !rest.is_empty()) {
            return Err(bad("does not have an address like ::1 in its brackets"));
        }
        return Ok((host, port));
    }
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Ok((text, None)),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((text, None)),
    }
}

fn parse_port(text: &str) -> Result<u16, PermissionError> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    let port = text.parse().ok().filter(|_| plain);
    port.ok_or_else(|| bad("has a port that is not a number from 1 to 65535"))
}

fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Resolvers take a name whose last part is a number for an address.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hex = last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    hex || last.bytes().all(|b| b.is_ascii_digit())
}

fn is_below(name: &str, above: &str) -> bool {
    name.strip_suffix(above).is_some_and(|rest| rest.ends_with('.'))
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostRule::Any => f.write_str("*")?,
            HostRule::Below(name) => write!(f, "*.{name}")?,
            HostRule::Name(name) => f.write_str(name)?,
            HostRule::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            HostRule::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
