//! `[[retention]]`: how long runs of some tools are kept, and what of them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use wharf_domain::permission::ToolPattern;
use wharf_engine::RetentionRule;
use wharf_vocab::Retain;
use wharf_vocab::limits::RETENTION_DAYS_MAX;

/// One `[[retention]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    #[serde(deserialize_with = "super::policy::tool")]
    tool: ToolPattern,
    #[serde(default, deserialize_with = "days")]
    days: Option<u32>,
    #[serde(default)]
    retain: Retain,
}

/// The rules in the order in which they stand.
pub(super) fn to_rules(rules: Vec<Rule>) -> Vec<RetentionRule> {
    let rule = |Rule { tool, days, retain }| RetentionRule { tool, days, retain };
    rules.into_iter().map(rule).collect()
}

fn days<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let days = u32::deserialize(from)?;
    if (1..=RETENTION_DAYS_MAX).contains(&days) {
        return Ok(Some(days));
    }
    Err(D::Error::custom(format!("the key `days` must be a number from 1 to {RETENTION_DAYS_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        retention: Vec<Rule>,
    }

    fn read(rule: &str) -> Result<Vec<RetentionRule>, String> {
        let text = format!("[[retention]]\n{rule}\n");
        let file: File = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
        Ok(to_rules(file.retention))
    }

    #[test]
    fn a_rule_names_tools_and_days() {
        let rules = read("tool = \"llm/*\"\ndays = 7").expect("fits");
        assert_eq!((rules[0].days, rules[0].retain), (Some(7), Retain::Full));
        let rules = read("tool = \"llm/*\"\nretain = \"digest\"").expect("fits");
        assert_eq!((rules[0].days, rules[0].retain), (None, Retain::Digest));
        for (rule, said) in [
            ("days = 7", "missing field `tool`"),
            ("tool = \"llm/*\"\nretain = \"none\"", "unknown variant `none`"),
            ("tool = \"llm/*\"\ndays = 0", "from 1 to 36500"),
            ("tool = \"llm/*\"\ndays = 40000", "from 1 to 36500"),
            ("tool = \"llm\"\ndays = 7", "`tool` does not name tools"),
            ("tool = \"llm/*\"\ndays = 7\nhours = 1", "unknown field `hours`"),
        ] {
            let error = read(rule).expect_err(rule);
            assert!(error.contains(said), "{error}");
        }
    }
}
