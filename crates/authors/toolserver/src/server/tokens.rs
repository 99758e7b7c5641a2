//! Who may use the server.

use std::fmt;
use std::path::Path;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use wharf_protocol::run::server::Credential;

use super::Error;

/// The tokens of a file, or of whoever launched the server. Only their hashes are kept, and comparing hashes takes the same time
/// whatever they are.
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
}
