//! Looks for what could keep a core from working well. Everything is only read, so that it may
//! be asked at any time.

mod database;
mod files;
mod place;
mod running;
mod sandbox;

pub use wharf_vocab::Verdict;

use crate::Home;
use crate::settings::Settings;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it turned out.
    pub verdict: Verdict,
    /// What was seen, and what to do about it.
    pub text: String,
}

impl Check {
    fn ok(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), verdict: Verdict::Ok, text: text.into() }
    }

    fn warn(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), verdict: Verdict::Warn, text: text.into() }
    }

    fn fail(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), verdict: Verdict::Fail, text: text.into() }
    }
}

/// Looks at everything a core needs. With `deep`, every file of every world is read.
#[must_use]
pub fn check(home: &Home, deep: bool) -> Vec<Check> {
    let mut checks = vec![place::home(home)];
    if !home.path().is_dir() {
        return checks;
    }
    checks.push(place::permissions(home));
    checks.push(place::disk(home));
    let settings = Settings::load(home);
    checks.push(place::configuration(&settings));
    if let Ok(settings) = &settings {
        checks.extend(place::certificate(settings));
        checks.extend(database::checks(home, &settings.store));
        checks.extend(files::checks(home, settings, deep));
        checks.extend(running::collector(settings));
    }
    checks.extend(running::checks(home));
    checks
}

/// Looks at how much room is left for a core.
#[must_use]
pub fn check_disk(home: &Home) -> Check {
    place::disk(home)
}

/// Tries how firmly providers can be fenced in on this machine, and how their limits would be
/// kept. It starts this program again as
/// a shim, so that only a program that can be one may ask.
#[must_use]
pub fn check_sandbox(home: &Home) -> Vec<Check> {
    sandbox::check(Settings::load(home).ok().as_ref())
}
