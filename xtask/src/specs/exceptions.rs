//! Requirements that need no test, each with its reason: `docs/protocols/untested.toml`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::marks::{Id, id};

/// Reasons shorter than this say nothing.
const REASON_CHARS_MIN: usize = 20;

/// Requirements that need no test, and why.
#[derive(Debug, Default)]
pub(super) struct Exceptions(pub(super) BTreeMap<Id, String>);

impl Exceptions {
    /// Reads lines such as `K14 = "Measured by a benchmark, …"`; other lines are comments or empty.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut reasons = BTreeMap::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = || -> Option<(Id, &str)> {
                let (name, reason) = line.split_once('=')?;
                let reason = reason.trim().strip_prefix('"')?.strip_suffix('"')?;
                Some((id(name.trim())?, reason))
            };
            let (id, reason) = read().with_context(|| format!("it is no exception: {line}"))?;
            if reason.chars().count() < REASON_CHARS_MIN {
                bail!("{}{} needs a reason that says more than {reason:?}", id.0, id.1);
            }
            if reasons.insert(id, reason.to_owned()).is_some() {
                bail!("{}{} stands twice", id.0, id.1);
            }
        }
        Ok(Self(reasons))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exception_has_a_reason() {
        let text = "# why\n\nK14 = \"Measured by a benchmark, since time is no test.\"\n";
        let read = Exceptions::parse(text).expect("reads");
        assert!(read.0[&('K', 14)].starts_with("Measured"));
        for bad in ["K14", "K14 = \"\"", "K14 = \"later\"", "14 = \"long enough to be a reason\""] {
            assert!(Exceptions::parse(bad).is_err(), "{bad}");
        }
        assert!(Exceptions::parse(&format!("{text}{text}")).is_err(), "it stands twice");
    }
}
