//! Where a request wants to go: a host and a port, in the one spelling they are compared in.

use std::fmt;
use std::net::IpAddr;

use wharf_domain::permission::HostPattern;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: TargetHost,
    pub(crate) port: u16,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TargetHost {
    /// A name in lower case, without a dot at the end.
    Name(String),
    /// An address; one of version 4 is never written as one of version 6.
    Address(IpAddr),
}

impl Target {
    /// Reads `host:port`, or `host` if there is a port to assume.
    pub(crate) fn parse(text: &str, assumed: Option<u16>) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
                (TargetHost::Address(IpAddr::V6(host.parse().ok()?).to_canonical()), port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (TargetHost::parse(host)?, Some(port)),
                None => (TargetHost::parse(text)?, None),
            },
        };
        let port = match port {
            Some(port) => parse_port(port)?,
            None => assumed?,
        };
        Some(Self { host, port })
    }

    /// The permission that lets an agent go there.
    pub(crate) fn permission(&self) -> String {
        format!("network:egress:{self}")
    }
}

impl TargetHost {
    /// The permission's own reader of hosts tells what is a name, so that both agree.
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        let pattern = HostPattern::parse(text).ok().filter(|_| !text.contains('*'))?;
        Some(Self::Name(pattern.to_string()))
    }

    /// The host as patterns are matched with it.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Address(address) => address.to_string(),
        }
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_spelling() {
        for (text, wanted) in [
            ("API.Example.com:443", "api.example.com:443"),
            ("api.example.com.:443", "api.example.com:443"),
            ("localhost.:80", "localhost:80"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("[0:0:0:0:0:0:0:1]:8080", "[::1]:8080"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
            ("a_b.example:1", "a_b.example:1"),
        ] {
            let target = Target::parse(text, None).expect(text);
            assert_eq!(target.to_string(), wanted);
            assert_eq!(Target::parse(wanted, None), Some(target));
        }
        let assumed = Target::parse("example.com", Some(80)).expect("a host");
        assert_eq!(assumed.to_string(), "example.com:80");
    }

    #[test]
    fn what_is_not_a_host_and_a_port_is_refused() {
        for text in [
            "",
            ":443",
            "example.com",
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "example.com:+80",
            "example.com:080",
            "example.com:80:80",
            "user@example.com:80",
            "exa mple.com:80",
            "*:80",
            "*.example.com:80",
            "a..b:80",
            "example.com..:80",
            "127.1:80",
            "0x7f.1:80",
            "2130706433:80",
            "0177.0.0.1:80",
            "127.0.0.1.:80",
            "::1:80",
            "[::1]",
            "[::1]80",
            "[fe80::1%1]:80",
            "[127.0.0.1]:80",
            "[::1:80",
            "bücher.example:80",
            "a/b:80",
            "-a.example:80",
            "%31.example:80",
        ] {
            assert_eq!(Target::parse(text, None), None, "{text}");
        }
    }
}
