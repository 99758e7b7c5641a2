//! Web pages must not reach a server that asks for no token.
//!
//! A page can make a browser open a WebSocket to any address, this machine's included. Browsers
//! name the page in `Origin`; a name that leads here by a trick stands in `Host`. Programs send
//! neither, or the server's own address.

use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, ORIGIN};

/// Whether a request without a token comes from a program on this machine.
pub(super) fn is_local_program(headers: &HeaderMap) -> bool {
    let (Some(host), Some(origin)) = (only(headers, &HOST), only(headers, &ORIGIN)) else {
        return false;
    };
    let is_own = origin.split_once("://").is_some_and(|(_, named)| named == host);
    (host.is_empty() || is_this_machine(host)) && (origin.is_empty() || is_own)
}

/// The value of a header, empty if it is not there; `None` if there are several or it is no text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(""),
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) => None,
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address = name.parse::<std::net::IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(host: &'static str, origin: Option<&'static str>, expect: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
        }
        assert_eq!(is_local_program(&headers), expect, "{host} {origin:?}");
    }

    #[test]
    fn t022_pages_are_kept_out_and_programs_are_not() {
        for host in ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "127.1.2.3", "localhost"] {
            check(host, None, true);
            check(host, Some("https://evil.example"), false);
            check(host, Some("null"), false);
        }
        check("localhost:8000", Some("http://localhost:8000"), true);
        check("localhost:8000", Some("http://localhost:9000"), false);
        check("evil.example:8000", None, false);
        check("evil.example:8000", Some("http://evil.example:8000"), false);
        check(":evil.example", None, false);
        assert!(is_local_program(&HeaderMap::new()));
    }

    #[test]
    fn t022_two_hosts_or_two_origins_are_nobodys() {
        for name in [HOST, ORIGIN] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost"));
            headers.insert(ORIGIN, HeaderValue::from_static("http://localhost"));
            assert!(is_local_program(&headers));
            headers.append(&name, HeaderValue::from_static("http://evil.example"));
            assert!(!is_local_program(&headers), "{name}");
        }
    }
}
