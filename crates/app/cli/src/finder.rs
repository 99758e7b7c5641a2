//! Finds the core: by address and token if they are given, else by its home.
//!
//! What is typed wins over the environment. The owner's token of a home is only ever sent to the
//! core that home names.

use std::path::PathBuf;

use reqwest::Url;
use wharf_vocab::Code;

use crate::failure::{Failure, Result};
use crate::local::Home;

/// What is known about where the core is. It can be asked again after a restart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finder {
    /// `--url`.
    pub(crate) url: Option<String>,
    /// `--token`.
    pub(crate) token: Option<String>,
    /// `--home`.
    pub(crate) home: Option<PathBuf>,
    /// `WHARF_URL`.
    pub(crate) url_env: Option<String>,
    /// `WHARF_TOKEN`.
    pub(crate) token_env: Option<String>,
}

/// A core that may be talked to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    /// Where its API is.
    pub(crate) url: Url,
    /// What it is shown.
    pub(crate) token: String,
}

impl Finder {
    /// Where the home is.
    pub(crate) fn home(&self) -> Result<Home> {
        Home::resolve(self.home.clone())
    }

    /// Finds the core as it is now.
    pub(crate) fn find(&self) -> Result<Target> {
        let from_env = if self.home.is_none() { self.url_env.as_ref() } else { None };
        match self.url.as_ref().or(from_env) {
            Some(url) => self.find_by_url(url),
            None => self.find_by_home(),
        }
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

    fn find_by_url(&self, text: &str) -> Result<Target> {
        let url = read_url(text)?;
        let token = self.token.clone().or_else(|| self.token_env.clone());
        let token = token.or_else(|| self.owner_token_for(&url)).ok_or_else(|| {
            let message = format!("no token for {url}; give --token or set WHARF_TOKEN");
            Failure::new(Code::AuthRequired, message)
        })?;
        Ok(Target { url, token })
    }

    /// The token of the home, if the home's core is the one at `url`.
    fn owner_token_for(&self, url: &Url) -> Option<String> {
        let home = self.home().ok()?;
        let core = home.core().ok()??;
        let same = read_url(&core.http).ok()? == *url;
        if same { home.owner_token().ok() } else { None }
    }

    fn find_by_home(&self) -> Result<Target> {
        let home = self.home()?;
        let Some(core) = home.core()? else {
            let path = home.path().display();
            let message = format!("no core is running for {path}; start it with: wharf up");
            return Err(Failure::new(Code::CoreUnreachable, message));
        };
        let url = read_url(&core.http)?;
        // A home that was typed says whose token is meant; one that was not leaves it to the
        // environment.
        let token_env = self.token_env.clone();
        let token = match (self.token.clone(), &self.home) {
            (Some(token), _) => token,
            (None, Some(_)) => home.owner_token().or_else(|error| token_env.ok_or(error))?,
            (None, None) => token_env.map_or_else(|| home.owner_token(), Ok)?,
        };
        Ok(Target { url, token })
    }
}

fn read_url(text: &str) -> Result<Url> {
    let wrong = || Failure::usage(format!("{text:?} is no address such as http://127.0.0.1:7420"));
    let url = Url::parse(text).map_err(|_| wrong())?;
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host();
    if usable { Ok(url) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(url: Option<&str>, token: Option<&str>, home: &std::path::Path) -> Finder {
        Finder {
            url: url.map(str::to_owned),
            token: token.map(str::to_owned),
            home: Some(home.to_owned()),
            ..Finder::default()
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
    fn a_typed_token_wins() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let target = given(None, Some("mine"), dir.path()).find().expect("found");
        assert_eq!(target.token, "mine");
    }

    #[test]
    fn a_typed_home_wins_over_the_environment() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let mut finder = given(None, None, dir.path());
        finder.url_env = Some("http://elsewhere:1".into());
        finder.token_env = Some("other".into());
        let target = finder.find().expect("found");
        assert_eq!((target.url.port(), target.token.as_str()), (Some(7420), "owners"));
    }

    #[test]
    fn the_owners_token_goes_to_its_own_core_only() {
        let dir = home_of_a_core("http://127.0.0.1:7420");
        let own = given(Some("http://127.0.0.1:7420/"), None, dir.path()).find().expect("found");
        assert_eq!(own.token, "owners");
        let failure = given(Some("http://127.0.0.1:7421"), None, dir.path()).find();
        assert!(failure.expect_err("refused").is(Code::AuthRequired));
    }

    #[test]
    fn a_home_without_a_core_says_how_to_start_one() {
        let dir = tempfile::tempdir().expect("dir");
        let failure = given(None, None, dir.path()).find().expect_err("nothing there");
        assert!(failure.is(Code::CoreUnreachable));
        assert!(failure.message().ends_with("start it with: wharf up"));
    }

    #[test]
    fn only_http_addresses_are_taken() {
        for bad in ["", "localhost:7420", "ftp://x", "http://"] {
            assert!(read_url(bad).is_err(), "{bad}");
        }
    }
}
