//! Finds the core: by address and token if they are given, else by its home.
//!
//! What is given wins over the environment. The owner's token of a home is sent only to the core
//! that the home names.

use std::path::PathBuf;

use reqwest::Url;
use wharf_vocab::{Code, Fault};

use crate::error::{Error, Result};
use crate::home::Home;
use crate::trust::Trust;

/// Where to look for a core. A client looks again after the core was restarted, because its port
/// and its token may have changed.
#[derive(Debug, Clone, Default)]
pub struct Locator {
    /// The core's address.
    pub url: Option<String>,
    /// The token to send.
    pub token: Option<String>,
    /// The core's home; it wins over `url_env` and `token_env`.
    pub home: Option<PathBuf>,
    /// The address to use if neither `url` nor `home` is given; by custom that of `WHARF_URL`.
    pub url_env: Option<String>,
    /// The token to use if none is given; by custom that of `WHARF_TOKEN`.
    pub token_env: Option<String>,
    /// A PEM file with certificates: the core's own, or of those that vouch for it. The system's
    /// are not used then.
    pub ca: Option<PathBuf>,
    /// What makes of the token the one that is sent, for programs that need less than it gives. It
    /// makes the same of the same.
    pub narrow: Option<TokenNarrowing>,
}

/// Makes a token with fewer rights, without asking anybody.
pub type TokenNarrowing = fn(&str) -> std::result::Result<String, Fault>;

/// A core's address, and the token it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoreAccess {
    pub(crate) url: Url,
    pub(crate) token: String,
    pub(crate) trust: Trust,
}

impl Locator {
    /// The core that the environment names: `WHARF_URL` and `WHARF_TOKEN`, else the home of
    /// `WHARF_HOME`, else the platform's default home; and the certificates of `WHARF_CA`.
    #[must_use]
    pub fn from_env() -> Self {
        let env = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            url_env: env("WHARF_URL"),
            token_env: env("WHARF_TOKEN"),
            ca: env("WHARF_CA").map(PathBuf::from),
            ..Self::default()
        }
    }

    /// The core at this address.
    pub fn at(url: impl Into<String>, token: impl Into<String>) -> Self {
        Self { url: Some(url.into()), token: Some(token.into()), ..Self::default() }
    }

    /// The core that uses this home.
    pub fn of_home(home: impl Into<PathBuf>) -> Self {
        Self { home: Some(home.into()), ..Self::default() }
    }

    /// The home that is looked into.
    pub fn home(&self) -> Result<Home> {
        Ok(Home::resolve(self.home.clone())?)
    }

    /// Finds the core as it is now.
    pub(crate) fn find(&self) -> Result<CoreAccess> {
        let from_env = if self.home.is_none() { self.url_env.as_ref() } else { None };
        let mut found = match self.url.as_ref().or(from_env) {
            Some(url) => self.find_by_url(url)?,
            None => self.find_by_home()?,
        };
        if let Some(narrow) = self.narrow {
            found.token = narrow(&found.token)?;
        }
        Ok(found)
    }

    /// A name for the core that stays the same when its port changes: its home, or the address
    /// it was named by.
    pub(crate) fn core_name(&self) -> Result<String> {
        let from_env = if self.home.is_none() { self.url_env.as_ref() } else { None };
        match self.url.as_ref().or(from_env) {
            Some(url) => Ok(read_url(url)?.to_string()),
            None => Ok(self.home()?.path().display().to_string()),
        }
    }

    fn find_by_url(&self, text: &str) -> Result<CoreAccess> {
        let url = read_url(text)?;
        let token = self.token.clone().or_else(|| self.token_env.clone());
        let token = token.or_else(|| self.owner_token_for(&url)).ok_or_else(|| {
            let message = format!("there is no token for {url}; give --token or set WHARF_TOKEN");
            Error::new(Code::AuthRequired, message)
        })?;
        let trust = self.trust(&url, self.home_of(&url).as_ref())?;
        Ok(CoreAccess { url, token, trust })
    }

    /// The home, if its core is the one at `url`.
    fn home_of(&self, url: &Url) -> Option<Home> {
        let home = self.home().ok()?;
        let core = home.core().ok()??;
        let same = read_url(&core.http).ok()? == *url;
        same.then_some(home)
    }

    /// The token of the home, if the home's core is the one at `url`.
    fn owner_token_for(&self, url: &Url) -> Option<String> {
        self.home_of(url)?.owner_token().ok()
    }

    /// Whose certificate is taken for the core's at `url`, which may be that of a home.
    fn trust(&self, url: &Url, home: Option<&Home>) -> Result<Trust> {
        if url.scheme() != "https" {
            return Ok(Trust::System);
        }
        let mut known = match &self.ca {
            Some(path) => Trust::read(path)?,
            None => Vec::new(),
        };
        if let Some(path) = home.map(Home::certificate_file).filter(|path| path.exists()) {
            known.extend(Trust::read(&path)?);
        }
        Ok(if known.is_empty() { Trust::System } else { Trust::Only(known) })
    }

    fn find_by_home(&self) -> Result<CoreAccess> {
        let home = self.home()?;
        let Some(core) = home.core()? else {
            let path = home.path().display();
            let message = format!("no core is running for {path}; start it with: wharf up");
            return Err(Error::new(Code::CoreUnreachable, message));
        };
        let url = read_url(&core.http)?;
        // A home that was typed says whose token is meant; one that was not leaves it to the
        // environment.
        let token_env = self.token_env.clone();
        let token = match (self.token.clone(), &self.home) {
            (Some(token), _) => token,
            (None, Some(_)) => home.owner_token().or_else(|fault| token_env.ok_or(fault))?,
            (None, None) => token_env.map_or_else(|| home.owner_token(), Ok)?,
        };
        let trust = self.trust(&url, Some(&home))?;
        Ok(CoreAccess { url, token, trust })
    }
}

fn read_url(text: &str) -> Result<Url> {
    let wrong =
        || Error::usage(format!("{text:?} is not an address such as http://127.0.0.1:7420"));
    let url = Url::parse(text).map_err(|_| wrong())?;
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host();
    if usable { Ok(url) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(url: Option<&str>, token: Option<&str>, home: &std::path::Path) -> Locator {
        Locator {
            url: url.map(str::to_owned),
            token: token.map(str::to_owned),
            home: Some(home.to_owned()),
            ..Locator::default()
        }
    }

    fn home_of_a_core(http: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("dir");
        let run = dir.path().join("run");
        std::fs::create_dir(&run).expect("made");
        let core = serde_json::json!({"http": http, "pid": 1, "version": "0"});
        std::fs::write(run.join("core.json"), core.to_string()).expect("written");
        std::fs::write(run.join("owner.token"), "owners").expect("written");
        dir
    }

    #[test]
    fn a_home_names_its_core_and_its_token() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let target = given(None, None, dir.path()).find().expect("found");
        assert_eq!(target.url.as_str(), "http://127.0.0.1:7420/");
        assert_eq!(target.token, "owners");
    }

    #[test]
    fn m014_a_narrowed_token_is_sent_in_the_place_of_the_owners() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let mut locator = given(None, None, dir.path());
        locator.narrow = Some(|token| Ok(format!("less than {token}")));
        assert_eq!(locator.find().expect("found").token, "less than owners");
        locator.narrow = Some(|_| Err(Fault::new(Code::RequestInvalid, "no token")));
        assert!(locator.find().is_err_and(|error| error.is(Code::RequestInvalid)));
    }

    #[test]
    fn a_typed_token_wins() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let target = given(None, Some("mine"), dir.path()).find().expect("found");
        assert_eq!(target.token, "mine");
    }

    #[test]
    fn a_typed_home_wins_over_the_environment() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let mut locator = given(None, None, dir.path());
        locator.url_env = Some("http://elsewhere:1".into());
        locator.token_env = Some("other".into());
        let target = locator.find().expect("found");
        assert_eq!((target.url.port(), target.token.as_str()), (Some(7420), "owners"));
    }

    #[test]
    fn the_owners_token_goes_to_its_own_core_only() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let own = given(Some("http://127.0.0.1:7420/"), None, dir.path()).find().expect("found");
        assert_eq!(own.token, "owners");
        let error = given(Some("http://127.0.0.1:7421"), None, dir.path()).find();
        assert!(error.expect_err("refused").is(Code::AuthRequired));
    }

    #[test]
    fn a_home_without_a_core_says_how_to_start_one() {
        let dir = tempfile::tempdir().expect("dir");
        let error = given(None, None, dir.path()).find().expect_err("nothing there");
        assert!(error.is(Code::CoreUnreachable));
        assert!(error.message().ends_with("start it with: wharf up"));
    }

    #[test]
    fn certificates_come_from_the_home_and_from_the_file_that_was_named() {
        let made =
            |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).expect("made");
        let (own, other) = (made("own"), made("other"));
        let dir = home_of_a_core("https://127.0.0.1:7420");
        let mut locator = given(None, None, dir.path());
        assert_eq!(locator.find().expect("found").trust, Trust::System);
        std::fs::write(dir.path().join("run/core.pem"), own.cert.pem()).expect("written");
        let of_home = Trust::Only(vec![own.cert.der().clone()]);
        assert_eq!(locator.find().expect("found").trust, of_home);
        let file = dir.path().join("ca.pem");
        std::fs::write(&file, other.cert.pem()).expect("written");
        locator.ca = Some(file.clone());
        let both = Trust::Only(vec![other.cert.der().clone(), own.cert.der().clone()]);
        assert_eq!(locator.find().expect("found").trust, both);
        // The certificate of a home counts for its own core only.
        let mut elsewhere = given(Some("https://127.0.0.1:7421"), Some("t"), dir.path());
        assert_eq!(elsewhere.find().expect("found").trust, Trust::System);
        std::fs::write(&file, "nothing").expect("written");
        elsewhere.ca = Some(file);
        let error = elsewhere.find().expect_err("refused");
        assert!(error.message().contains("ca.pem holds no certificate"), "{error}");
    }

    #[test]
    fn only_http_addresses_are_taken() {
        for bad in ["", "localhost:7420", "ftp://x", "http://"] {
            assert!(read_url(bad).is_err(), "{bad}");
        }
    }
}
