//! Where a tool server is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use wharf_ports::vault::Secret;
use wharf_vocab::{Code, Fault};
use wharf_wire::run_v1::RUN_PATH;

/// A tool server and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEndpoint {
    /// Where it listens.
    pub address: ServerAddress,
    /// The path of its WebSocket, `/run` as a rule, with the query if there is one.
    pub path: String,
    /// The token it asks for.
    pub bearer: Option<Secret>,
    /// Differs for each start of the server. A run does not outlive the start it began under.
    pub life: u64,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port of this machine.
    Loopback(SocketAddr),
    /// A port of any machine, by TLS.
    Tls {
        /// Its name or address.
        host: String,
        /// Its port.
        port: u16,
    },
}

impl ServerEndpoint {
    /// A server at an address, under the usual path, without a token.
    #[must_use]
    pub fn new(address: ServerAddress) -> Self {
        Self { address, path: RUN_PATH.to_owned(), bearer: None, life: 0 }
    }

    /// Reads the address of a server elsewhere: `wss://` anywhere, `ws://` on this machine only.
    /// Without a path it is `/run`.
    pub fn parse(url: &str) -> Result<Self, Fault> {
        Self::read(url).map_err(|why| {
            let message = format!("The address of the tool server cannot be used: {why}.");
            Fault::new(Code::ToolManifestInvalid, message)
        })
    }

    /// The same; what is wrong is the end of a sentence.
    pub(crate) fn read(url: &str) -> Result<Self, &'static str> {
        let form = "it must begin with wss:// and hold neither blanks nor other odd characters";
        let printable = url.bytes().all(|byte| byte.is_ascii_graphic());
        let (scheme, rest) = url.split_once("://").filter(|_| printable).ok_or(form)?;
        let tls = scheme.eq_ignore_ascii_case("wss");
        if !tls && !scheme.eq_ignore_ascii_case("ws") {
            return Err(form);
        }
        if rest.contains('#') {
            return Err("it must not have a part behind #");
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("it must not hold a name or password; use token_secret");
        }
        let usual = if tls { 443 } else { 80 };
        let (host, port) = host_and_port(authority, usual).ok_or("it does not name a host")?;
        let address = if tls {
            ServerAddress::Tls { host: host.to_owned(), port }
        } else {
            let ip = loopback(host).ok_or("ws:// is only for this machine; use wss://")?;
            ServerAddress::Loopback(SocketAddr::new(ip, port))
        };
        let path = match path {
            "" | "/" => RUN_PATH.to_owned(),
            query if query.starts_with('?') => format!("{RUN_PATH}{query}"),
            path => path.to_owned(),
        };
        Ok(Self { path, ..Self::new(address) })
    }

    /// The endpoint with a token.
    #[must_use]
    pub fn with_bearer(self, bearer: Option<Secret>) -> Self {
        Self { bearer, ..self }
    }

    /// The endpoint of a certain start of its server.
    #[must_use]
    pub fn of_life(self, life: u64) -> Self {
        Self { life, ..self }
    }

    /// What stands in the `Host` header.
    pub(super) fn host(&self) -> String {
        match &self.address {
            ServerAddress::Unix(_) => "localhost".to_owned(),
            ServerAddress::Loopback(address) => address.to_string(),
            ServerAddress::Tls { host, port } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                if *port == 443 { host } else { format!("{host}:{port}") }
            }
        }
    }
}

/// Host and port of `host`, `host:port` or `[address]:port`.
fn host_and_port(authority: &str, usual: u16) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok())?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
        Some(_) => return None,
        None => port.is_empty().then_some(usual)?,
    };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
    (port > 0 && !host.is_empty() && host.bytes().all(is_letter)).then_some((host, port))
}

fn loopback(host: &str) -> Option<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    host.parse::<IpAddr>().ok().filter(IpAddr::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t042_addresses_of_servers_elsewhere_are_read() {
        let tls = |host: &str, port| ServerAddress::Tls { host: host.to_owned(), port };
        let here = |text: &str| ServerAddress::Loopback(text.parse().expect("valid"));
        for (url, address, path, host) in [
            ("wss://t.example", tls("t.example", 443), "/run", "t.example"),
            ("WSS://t.example/", tls("t.example", 443), "/run", "t.example"),
            ("wss://t.example:8443/a/b?x=1", tls("t.example", 8443), "/a/b?x=1", "t.example:8443"),
            ("wss://t.example?x=1", tls("t.example", 443), "/run?x=1", "t.example"),
            ("wss://[2001:db8::1]:9", tls("2001:db8::1", 9), "/run", "[2001:db8::1]:9"),
            ("ws://localhost:81", here("127.0.0.1:81"), "/run", "127.0.0.1:81"),
            ("ws://127.0.0.2:81/run", here("127.0.0.2:81"), "/run", "127.0.0.2:81"),
            ("ws://[::1]:81", here("[::1]:81"), "/run", "[::1]:81"),
        ] {
            let endpoint = ServerEndpoint::parse(url).expect(url);
            assert_eq!((&endpoint.address, endpoint.path.as_str()), (&address, path), "{url}");
            assert_eq!(endpoint.host(), host, "{url}");
        }
    }

    #[test]
    fn t042_addresses_that_are_unsafe_or_no_addresses_are_refused() {
        for url in [
            "",
            "t.example",
            "https://t.example",
            "ws://t.example",
            "ws://10.0.0.1:80",
            "ws://169.254.169.254/",
            "ws://localhost.example",
            "wss://",
            "wss://:443",
            "wss://user:pass@t.example",
            "wss://t.example:0",
            "wss://t.example:99999",
            "wss://t.example:+1",
            "wss://t.example/a b",
            "wss://t.example/\r\nX: y",
            "wss://t.example/#frag",
            "wss://[::1",
            "wss://[t.example]",
            "wss://[::1]x",
        ] {
            let fault = ServerEndpoint::parse(url).expect_err(url);
            assert!(fault.is(Code::ToolManifestInvalid), "{url}");
        }
    }

    #[test]
    fn t044_a_token_is_not_shown() {
        let bearer = Some(Secret::new(b"canary".to_vec()));
        let endpoint = ServerEndpoint::new(ServerAddress::Unix("/x".into())).with_bearer(bearer);
        assert!(!format!("{endpoint:?}").contains("canary"));
    }
}
