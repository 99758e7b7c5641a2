//! Addresses of peers.

use std::fmt;

use super::Error;

/// Where a peer is: `ws://`, `wss://`, `http://` or `https://`, a host, perhaps a port, a path and
/// a query.
///
/// ```
/// use wharf_sdk::transport::Address;
///
/// let core = Address::parse("http://localhost:4200/").unwrap();
/// let principal = core.at("/v1/tool/ws").with("role", "principal").with("world", "my world");
/// let expected = "http://localhost:4200/v1/tool/ws?role=principal&world=my%20world";
/// assert_eq!(principal.to_string(), expected);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    host: String,
    port: Option<u16>,
    /// Begins with a slash.
    path: String,
    query: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Ws,
    Wss,
    Http,
    Https,
}

impl Address {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why| Error::Address { address: text.to_owned(), why };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        let scheme = match scheme {
            "ws" => Scheme::Ws,
            "wss" => Scheme::Wss,
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(wrong("its scheme is none of ws, wss, http and https")),
        };
        if text.bytes().any(|b| b <= b' ' || b == 0x7f) {
            return Err(wrong("it has spaces or control characters"));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(at);
        if authority.contains('@') {
            return Err(wrong("it carries a user; use a token"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an address in brackets are its own.
            Some((host, port)) if !port.contains(']') => {
                let port = port.parse().map_err(|_| wrong("its port is no number"))?;
                (host, Some(port))
            }
            _ => (authority, None),
        };
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = if path.is_empty() { "/" } else { path };
        let (host, path, query) = (host.to_owned(), path.to_owned(), query.to_owned());
        Ok(Self { scheme, host, port, path, query })
    }

    /// The same place with another path below its own, and no query.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        let path = format!("{}/{}", self.path.trim_end_matches('/'), path.trim_start_matches('/'));
        Self { path, query: String::new(), ..self.clone() }
    }

    /// The same address with one more pair in its query.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(key);
        self.query.push('=');
        for byte in value.bytes() {
            match byte {
                b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => self.query.push(b.into()),
                b => self.query.push_str(&format!("%{b:02X}")),
            }
        }
        self
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.scheme, Scheme::Wss | Scheme::Https)
    }

    /// The host without the brackets that an address of IPv6 has.
    pub(crate) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(if self.is_encrypted() { 443 } else { 80 })
    }

    /// Host and port as the header has them.
    pub(crate) fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Path and query as a request has them.
    pub(crate) fn target(&self) -> String {
        match self.query.as_str() {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }

    /// The same address as a WebSocket has it.
    #[cfg(feature = "ws")]
    pub(crate) fn as_ws(&self) -> String {
        let scheme = if self.is_encrypted() { "wss" } else { "ws" };
        format!("{scheme}://{}{}", self.authority(), self.target())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.target())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k022_addresses_are_read_and_written() {
        for (text, host, port, target) in [
            ("ws://localhost", "localhost", 80, "/"),
            ("wss://example.org/a?b=c#d", "example.org", 443, "/a?b=c"),
            ("http://[::1]:4200?x", "::1", 4200, "/?x"),
            ("https://[::1]/", "::1", 443, "/"),
        ] {
            let address = Address::parse(text).expect(text);
            assert_eq!((address.host(), address.port()), (host, port), "{text}");
            assert_eq!(address.target(), target, "{text}");
        }
    }

    #[test]
    fn k022_what_is_no_address_is_said_to_be_none() {
        for text in ["", "localhost:80", "ftp://x", "ws://", "ws://a:b", "ws://u:p@h", "ws://a b"] {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
    }
}
