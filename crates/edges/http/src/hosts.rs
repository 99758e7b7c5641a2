//! Under which names the server may be called, and from which web pages.
//!
//! A web page can point a name of its own at this machine and have a browser call it. Such calls
//! carry that name in `Host`, and pages of other origins carry theirs in `Origin`.

use std::net::SocketAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use wharf_tls::Acceptor;
use wharf_vocab::{Code, Fault};

/// Names that always mean this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The configured names, and those of the certificate.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// What encrypts connections; its certificate may be another one later.
    acceptor: Option<Acceptor>,
    /// Origins of pages that are let in, as browsers write them.
    origins: Vec<String>,
    /// Whether the server itself speaks TLS.
    tls: bool,
}

impl Hosts {
    pub(crate) fn new(names: &[String], origins: &[String], tls: bool) -> Self {
        let small = |text: &String| text.trim_end_matches('/').to_ascii_lowercase();
        Self {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            acceptor: None,
            origins: origins.iter().map(small).collect(),
            tls,
        }
    }

    /// The names of the certificate count, too, and when it is replaced those of the new one.
    pub(crate) fn with_certificate(self, acceptor: Option<Acceptor>) -> Self {
        Self { acceptor, ..self }
    }

    /// How addresses of the server begin.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls { "https://" } else { "http://" }
    }

    /// Whether pages of this origin were let in by name.
    pub(crate) fn lets_in(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        self.origins.contains(&origin)
    }

    /// Checks `Host` and `Origin` of a request that arrived at `local`.
    pub(crate) fn check(&self, parts: &Parts, local: SocketAddr) -> Result<(), Fault> {
        let host = host_of(parts).ok_or_else(unnamed)?;
        if !self.serves(&host, local) {
            return Err(unknown());
        }
        for origin in parts.headers.get_all(ORIGIN) {
            self.check_origin(origin.to_str().unwrap_or("null"), local)?;
        }
        Ok(())
    }

    /// The origin as it is compared, if its pages may call this core at `local`.
    pub(crate) fn check_origin(&self, origin: &str, local: SocketAddr) -> Result<String, Fault> {
        let origin = origin.to_ascii_lowercase();
        if self.is_origin(&origin, local) { Ok(origin) } else { Err(forbidden()) }
    }

    /// Where the page comes from that sent a request which arrived at `local` and whose host is
    /// served. A page of the core's own is one of the very name that the request is made to, or,
    /// behind a proxy that speaks TLS, of a configured name.
    pub(crate) fn page_origin(&self, parts: &Parts, local: SocketAddr) -> PageOrigin {
        let mut said = parts.headers.get_all(ORIGIN).iter();
        let (origin, several) = (said.next(), said.next().is_some());
        let Some(origin) = origin else { return PageOrigin::Unsaid };
        let (Ok(origin), false) = (origin.to_str(), several) else { return PageOrigin::Other };
        let origin = origin.to_ascii_lowercase();
        if let Some(host) = origin.strip_prefix(self.scheme())
            && self.serves(host, local)
            && host_of(parts).as_deref() == Some(host)
        {
            return PageOrigin::Own { secure: self.tls };
        }
        let host = origin.strip_prefix("https://").unwrap_or_default();
        let (name, _) = split_port(host);
        match self.is_named(name, host) {
            true => PageOrigin::Own { secure: true },
            false => PageOrigin::Other,
        }
    }

    fn serves(&self, host: &str, local: SocketAddr) -> bool {
        let (name, port) = split_port(host);
        let own = local.ip();
        let own = if own.is_ipv6() { format!("[{own}]") } else { own.to_string() };
        let usual = if self.tls { 443 } else { 80 };
        let by_address = port.unwrap_or(usual) == local.port()
            && (LOOPBACK.contains(&name) || name == own.as_str());
        by_address || self.is_named(name, host)
    }

    /// Whether this is one of its names, with or without the port of `host`.
    fn is_named(&self, name: &str, host: &str) -> bool {
        let is_known = |known: &str| known == name || known == host;
        let certificate = || self.acceptor.as_ref().map(Acceptor::certificate);
        self.names.iter().any(|known| is_known(known))
            || certificate().is_some_and(|certificate| certificate.names().any(is_known))
    }

    fn is_origin(&self, origin: &str, local: SocketAddr) -> bool {
        if self.lets_in(origin) {
            return true;
        }
        let own = origin.strip_prefix(self.scheme());
        if own.is_some_and(|host| self.serves(host, local)) {
            return true;
        }
        // Where the server does not, a proxy in front speaks TLS, and then under a configured name.
        origin.strip_prefix("https://").is_some_and(|host| {
            let (name, _) = split_port(host);
            self.is_named(name, host)
        })
    }
}

/// Where the page comes from that sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageOrigin {
    /// The request does not say: no page sent it, or a page that reads from where it comes from.
    Unsaid,
    /// From the core itself.
    Own {
        /// Whether over TLS, of the server itself or of a proxy in front.
        secure: bool,
    },
    /// From elsewhere, let in or not.
    Other,
}

/// Whether a request comes from pages of this origin; from no page at all when there is none.
pub(crate) fn comes_from(parts: &Parts, origin: Option<&str>) -> bool {
    let mut said = parts.headers.get_all(ORIGIN).iter();
    match (said.next(), said.next(), origin) {
        (Some(said), None, Some(origin)) => said.as_bytes().eq_ignore_ascii_case(origin.as_bytes()),
        // A page that reads from where it comes from does not say from where.
        (None, _, Some(origin)) => {
            is_of_its_own(parts) && host_of(parts).as_deref() == host_in(origin)
        }
        (None, _, None) => true,
        _ => false,
    }
}

/// Whether a browser says that a page asks for something from where it comes from.
fn is_of_its_own(parts: &Parts) -> bool {
    parts.headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin")
}

fn host_in(origin: &str) -> Option<&str> {
    origin.split_once("://").map(|(_, host)| host)
}

/// The host a request names; a URI in absolute form wins over the header.
fn host_of(parts: &Parts) -> Option<String> {
    if let Some(authority) = parts.uri.authority() {
        return Some(authority.as_str().to_ascii_lowercase());
    }
    let mut given = parts.headers.get_all(HOST).iter();
    let (Some(host), None) = (given.next(), given.next()) else { return None };
    host.to_str().ok().map(str::to_ascii_lowercase)
}

/// Splits `name:port`; an address in brackets keeps them.
pub(crate) fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (host, None),
        },
        _ => (host, None),
    }
}

fn unnamed() -> Fault {
    let message = "The request must name exactly one host; use the address in run/core.json.";
    Fault::new(Code::RequestHostUnknown, message)
}

fn unknown() -> Fault {
    let message = "This core does not serve the host that the request names; use the address in \
                   run/core.json.";
    Fault::new(Code::RequestHostUnknown, message)
}

fn forbidden() -> Fault {
    Fault::new(Code::RequestOriginForbidden, "Pages of this origin may not call this core.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    #[track_caller]
    fn check(local: &str, uri: &str, headers: &[(&str, &str)], expect: Result<(), Code>) {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let names = ["Wharf.example".to_owned(), "other.example:8443".to_owned()];
        let hosts = Hosts::new(&names, &["http://Localhost:5173/".to_owned()], false);
        let found = hosts.check(&parts, local.parse().expect("an address"));
        match expect {
            Ok(()) => assert_eq!(found, Ok(()), "{uri} {headers:?}"),
            Err(code) => assert!(found.is_err_and(|fault| fault.is(code)), "{uri} {headers:?}"),
        }
    }

    #[test]
    fn the_own_address_and_configured_names_are_served() {
        let at = "127.0.0.1:7420";
        for host in ["127.0.0.1:7420", "localhost:7420", "LOCALHOST:7420", "[::1]:7420"] {
            check(at, "/", &[("host", host)], Ok(()));
        }
        for host in ["wharf.example", "wharf.example:443", "other.example:8443"] {
            check(at, "/", &[("host", host)], Ok(()));
        }
        check("10.0.0.7:7420", "/", &[("host", "10.0.0.7:7420")], Ok(()));
        check("[fe80::1]:7420", "/", &[("host", "[fe80::1]:7420")], Ok(()));
        check("127.0.0.1:80", "/", &[("host", "localhost")], Ok(()));
        check(at, "http://localhost:7420/", &[("host", "evil.example")], Ok(()));
    }

    #[test]
    fn other_names_and_ports_are_not() {
        let at = "127.0.0.1:7420";
        for host in
            ["evil.example", "evil.example:7420", "localhost", "localhost:7421", "127.0.0.2:7420"]
        {
            check(at, "/", &[("host", host)], Err(Code::RequestHostUnknown));
        }
        for host in ["localhost:x", "", "[::1]", "[::1", "other.example", "localhost:7420:7420"] {
            check(at, "/", &[("host", host)], Err(Code::RequestHostUnknown));
        }
        check(at, "/", &[], Err(Code::RequestHostUnknown));
        let twice = [("host", "localhost:7420"), ("host", "localhost:7420")];
        check(at, "/", &twice, Err(Code::RequestHostUnknown));
        let aimed = [("host", "localhost:7420")];
        check(at, "http://evil.example/", &aimed, Err(Code::RequestHostUnknown));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let at = "127.0.0.1:7420";
        let from = |origin, expect| {
            check(at, "/", &[("host", "localhost:7420"), ("origin", origin)], expect);
        };
        from("http://localhost:7420", Ok(()));
        from("https://wharf.example", Ok(()));
        let forbidden = Err(Code::RequestOriginForbidden);
        for origin in ["http://evil.example", "null", "https://localhost:7420", "", "file://"] {
            from(origin, forbidden);
        }
        from("http://localhost:7421", forbidden);
    }

    #[test]
    fn c009_only_the_very_name_that_was_called_is_the_cores_own_page() {
        let of = |host: &str, origins: &[&str]| {
            let mut request = Request::get("/").header("host", host);
            for origin in origins {
                request = request.header("origin", *origin);
            }
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            let listed = ["http://localhost:5173".to_owned()];
            let hosts = Hosts::new(&["wharf.example".to_owned()], &listed, false);
            hosts.page_origin(&parts, "127.0.0.1:7420".parse().expect("an address"))
        };
        let (own, secure) = (PageOrigin::Own { secure: false }, PageOrigin::Own { secure: true });
        assert_eq!(of("localhost:7420", &[]), PageOrigin::Unsaid);
        assert_eq!(of("localhost:7420", &["http://localhost:7420"]), own);
        assert_eq!(of("LOCALHOST:7420", &["http://localhost:7420"]), own);
        assert_eq!(of("wharf.example", &["https://wharf.example"]), secure);
        assert_eq!(of("127.0.0.1:7420", &["https://wharf.example"]), secure);
        for other in [
            "http://127.0.0.1:7420",
            "http://localhost:5173",
            "http://localhost:7421",
            "https://localhost:7420",
            "http://localhost",
            "http://evil.example:7420",
            "https://evil.example",
            "null",
            "",
        ] {
            assert_eq!(of("localhost:7420", &[other]), PageOrigin::Other, "{other}");
        }
        let twice = ["http://localhost:7420", "http://localhost:7420"];
        assert_eq!(of("localhost:7420", &twice), PageOrigin::Other);
    }

    #[test]
    fn c009_with_tls_only_pages_that_came_over_tls_are_the_cores_own() {
        let hosts = Hosts::new(&["wharf.example".to_owned()], &[], true);
        let local = "127.0.0.1:443".parse().expect("an address");
        let of = |host: &str, origin: &str| {
            let request = Request::get("/").header("host", host).header("origin", origin);
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            (hosts.check(&parts, local).is_ok(), hosts.page_origin(&parts, local))
        };
        let own = PageOrigin::Own { secure: true };
        assert_eq!(of("localhost", "https://localhost"), (true, own));
        assert_eq!(of("localhost:443", "https://localhost:443"), (true, own));
        assert_eq!(of("wharf.example", "https://wharf.example"), (true, own));
        for origin in ["http://localhost", "http://localhost:443", "http://wharf.example"] {
            assert_eq!(of("localhost", origin), (false, PageOrigin::Other), "{origin}");
        }
        assert!(!of("localhost:80", "https://localhost:80").0);
    }

    #[test]
    fn k032_a_page_that_was_let_in_may_call_and_its_name_is_no_name_of_the_core() {
        let at = "127.0.0.1:7420";
        let from =
            |host, origin, expect| check(at, "/", &[("host", host), ("origin", origin)], expect);
        from("localhost:7420", "http://localhost:5173", Ok(()));
        from("localhost:7420", "http://LOCALHOST:5173", Ok(()));
        for origin in
            ["https://localhost:5173", "http://localhost", "http://localhost:5173.evil.example"]
        {
            from("localhost:7420", origin, Err(Code::RequestOriginForbidden));
        }
        from("localhost:5173", "http://localhost:5173", Err(Code::RequestHostUnknown));
    }
}
