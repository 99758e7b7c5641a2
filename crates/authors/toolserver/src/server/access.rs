//! Who may use the server: whoever shows a token or, where none is asked for, programs of this
//! machine.
//!
//! Web pages must not reach a server that asks for no token. A page can make a browser open a
//! WebSocket to any address, this machine's included. Browsers name the page in `Origin`; a name
//! that leads here by a trick stands in `Host`. Programs send neither, or the server's own address.

use std::fmt;
use std::path::Path;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use wharf_protocol::run::server::Credential;

use super::Error;

/// The tokens of a file, or of whoever launched the server. Only their hashes are kept, and
/// comparing hashes takes the same time whatever they are.
#[derive(Default)]
pub(super) struct Tokens {
    hashes: Vec<blake3::Hash>,
}

impl Tokens {
    /// Reads a file with one token per line; empty lines and those that begin with `#` are left
    /// out.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let unfit = |why: String| Error::File { path: path.to_owned(), why };
        let text = std::fs::read_to_string(path).map_err(|error| unfit(error.to_string()))?;
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let hashes: Vec<_> = lines.map(|line| blake3::hash(line.as_bytes())).collect();
        if hashes.is_empty() {
            return Err(unfit("there is no token in it".to_owned()));
        }
        Ok(Self { hashes })
    }

    /// Takes one more.
    pub(super) fn add(&mut self, token: &str) {
        self.hashes.push(blake3::hash(token.as_bytes()));
    }

    /// Who shows a token, if it is one of ours.
    pub(super) fn check(&self, headers: &HeaderMap) -> Option<Credential> {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (shown.next(), shown.next()) else { return None };
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let hash = blake3::hash(token.trim().as_bytes());
        // Every token is compared, so that the time does not tell which one it was.
        let mut found = None;
        for (number, ours) in (1..).zip(&self.hashes) {
            if *ours == hash {
                found = Some(Credential(number));
            }
        }
        found
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.hashes.len())
    }
}

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

    fn headers(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn t022_a_token_names_who_shows_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        std::fs::write(&path, "# ours\none\n\n  two  \n").expect("written");
        let tokens = Tokens::read(&path).expect("read");
        assert_eq!(tokens.check(&headers(&["Bearer one"])), Some(Credential(1)));
        assert_eq!(tokens.check(&headers(&["bearer two"])), Some(Credential(2)));
        for wrong in [
            &[][..],
            &["Bearer three"],
            &["Bearer "],
            &["Bearer on"],
            &["Basic one"],
            &["one"],
            &["Bearer one", "Bearer one"],
        ] {
            assert_eq!(tokens.check(&headers(wrong)), None, "{wrong:?}");
        }
        assert!(!format!("{tokens:?}").contains("one"));
        std::fs::write(&path, "\n# none\n").expect("written");
        assert!(Tokens::read(&path).is_err());
    }

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
