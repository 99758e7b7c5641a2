//! Settings of a world as they are typed.

use serde_json::Value;
use wharf_wire::rest_v1::PolicyRule;

use crate::amount;
use crate::failure::{Failure, Result};
use crate::inputs;

/// A number, or nothing at all for `none`.
pub(super) fn micro(text: &str) -> std::result::Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    let hint = || "say how many millionths of a dollar, or none".to_owned();
    text.parse().map(|micro| Limit(Some(micro))).map_err(|_| hint())
}

/// Whole days such as `30d`, or for ever for `none`.
pub(super) fn days(text: &str) -> std::result::Result<Days, String> {
    if text == "none" {
        return Ok(Days(None));
    }
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let hint = || "give a number of whole days, such as 30d, or none".to_owned();
    let ms = amount::duration(text).map(amount::ms).map_err(|_| hint())?;
    let days = ms.is_multiple_of(DAY_MS).then_some(ms / DAY_MS);
    let days = days.and_then(|days| u32::try_from(days).ok()).ok_or_else(hint)?;
    Ok(Days(Some(days)))
}

/// A limit that may be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit(pub(super) Option<u64>);

/// How long files are kept that nobody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Days(pub(super) Option<u32>);

/// Rules about approvals: a JSON list as text, from a file, or from standard input.
pub(super) fn policy(source: &str) -> Result<Vec<PolicyRule>> {
    let wrong = |why: String| {
        let example = r#"[{"tool":"acme/*","when":"first-use","approve":true}]"#;
        Failure::usage(format!("a policy is a list of rules such as {example}: {why}"))
    };
    match inputs::json(source)? {
        Value::Null => Ok(Vec::new()),
        value => serde_json::from_value(value).map_err(|error| wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_not_nothing() {
        assert_eq!(micro("none"), Ok(Limit(None)));
        assert_eq!(micro("0"), Ok(Limit(Some(0))));
        assert_eq!(days("none"), Ok(Days(None)));
        assert_eq!(days("30d"), Ok(Days(Some(30))));
        assert_eq!(days("48h"), Ok(Days(Some(2))));
        for bad in ["", "-1", "1.5", "None"] {
            assert!(micro(bad).is_err(), "{bad}");
        }
        for bad in ["", "30", "12h", "0d", "1d1ms"] {
            assert!(days(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_policy_that_cannot_be_read_is_explained() {
        assert_eq!(policy("[]"), Ok(Vec::new()));
        let rules = policy(r#"[{"tool":"a/*","approve":true}]"#).expect("rules");
        assert_eq!((rules[0].when.as_str(), rules[0].audience.as_str()), ("always", "person"));
        for bad in ["{}", r#"[{"tool":"a/*"}]"#, r#"[{"tool":"a/*","approve":true,"x":1}]"#] {
            let failure = policy(bad).expect_err(bad);
            assert!(failure.message().contains("first-use"), "{failure:?}");
        }
    }
}
