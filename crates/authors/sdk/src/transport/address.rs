//! Addresses of peers.

use std::fmt;

use url::{ParseError, Position, Url, form_urlencoded};

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
pub struct Address(Url);

impl Address {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why| Error::Address { address: text.to_owned(), why };
        if text.bytes().any(|b| b <= b' ' || b == 0x7f) {
            return Err(wrong("it has spaces or control characters"));
        }
        let mut url = Url::parse(text).map_err(|error| match error {
            ParseError::RelativeUrlWithoutBase => wrong("it has no scheme"),
            ParseError::InvalidPort => wrong("its port is no number"),
            _ => wrong("it has no host"),
        })?;
        if !["ws", "wss", "http", "https"].contains(&url.scheme()) {
            return Err(wrong("its scheme is none of ws, wss, http and https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it carries a user; use a token"));
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// The same place with another path below its own, and no query.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        let mut url = self.0.clone();
        let above = self.0.path().trim_end_matches('/');
        url.set_path(&format!("{above}/{}", path.trim_start_matches('/')));
        url.set_query(None);
        Self(url)
    }

    /// The same address with one more pair in its query.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        let before = self.0.query().map(|query| format!("{query}&")).unwrap_or_default();
        // Spaces are written so that everybody reads them, not only who expects a form.
        let pair: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        self.0.set_query(Some(&format!("{before}{key}={}", pair.replace('+', "%20"))));
        self
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.0.scheme(), "wss" | "https")
    }

    /// The host without the brackets that an address of IPv6 has.
    pub(crate) fn host(&self) -> &str {
        let host = self.0.host_str().unwrap_or_default();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(80)
    }

    /// Host and port as the header has them.
    pub(crate) fn authority(&self) -> String {
        self.0[Position::BeforeHost..Position::AfterPort].to_owned()
    }

    /// Path and query as a request has them.
    pub(crate) fn target(&self) -> String {
        self.0[Position::BeforePath..].to_owned()
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
        self.0.fmt(f)
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
