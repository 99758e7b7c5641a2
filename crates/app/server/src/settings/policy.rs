//! Rules about runs of some tools: `[approvals]` and `[[policy]]` say which need somebody's yes,
//! `[[retention]]` how long they are kept, and what of them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Policy, When};
use wharf_engine::RetentionRule;
use wharf_vocab::Retain;
use wharf_vocab::limits::RETENTION_DAYS_MAX;

/// `[approvals]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Approvals {
    /// Whether tools that act, or do not say whether they do, need an approval when no rule
    /// speaks of them.
    strict: bool,
}

/// One `[[policy]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyRule {
    #[serde(deserialize_with = "tool")]
    tool: ToolPattern,
    #[serde(default = "always", deserialize_with = "when")]
    when: When,
    #[serde(default = "yes")]
    approve: bool,
    #[serde(default = "person", deserialize_with = "audience")]
    audience: Audience,
    #[serde(default, deserialize_with = "patience")]
    patience_ms: Option<u64>,
}

/// The rules in the order in which they stand.
pub(super) fn to_policy(approvals: &Approvals, rules: Vec<PolicyRule>) -> Policy {
    let each = |rule: PolicyRule| wharf_domain::Rule {
        tool: rule.tool,
        when: rule.when,
        approve: rule.approve,
        audience: rule.audience,
        patience_ms: rule.patience_ms,
    };
    Policy { rules: rules.into_iter().map(each).collect(), strict: approvals.strict }
}

/// One `[[retention]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetentionTable {
    #[serde(deserialize_with = "tool")]
    tool: ToolPattern,
    #[serde(default, deserialize_with = "days")]
    days: Option<u32>,
    #[serde(default)]
    retain: Retain,
}

/// The rules in the order in which they stand.
pub(super) fn to_retention(rules: Vec<RetentionTable>) -> Vec<RetentionRule> {
    let rule = |RetentionTable { tool, days, retain }| RetentionRule { tool, days, retain };
    rules.into_iter().map(rule).collect()
}

fn always() -> When {
    When::Always
}

fn yes() -> bool {
    true
}

fn person() -> Audience {
    Audience::Person
}

fn patience<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    wharf_domain::Rule::patience_of(Some(u64::deserialize(from)?))
        .map_err(|error| D::Error::custom(format!("the key `patience_ms` must be {error}")))
}

fn tool<'de, D: Deserializer<'de>>(from: D) -> Result<ToolPattern, D::Error> {
    let text = String::deserialize(from)?;
    ToolPattern::parse(&text).map_err(|error| D::Error::custom(format!("the key `tool` {error}")))
}

fn days<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let days = u32::deserialize(from)?;
    if (1..=RETENTION_DAYS_MAX).contains(&days) {
        return Ok(Some(days));
    }
    Err(D::Error::custom(format!("the key `days` must be a number from 1 to {RETENTION_DAYS_MAX}")))
}

fn when<'de, D: Deserializer<'de>>(from: D) -> Result<When, D::Error> {
    let text = String::deserialize(from)?;
    let cost = || text.strip_prefix("cost")?.trim_start().strip_prefix('>')?.trim().parse().ok();
    match text.as_str() {
        "always" => Ok(When::Always),
        "first-use" => Ok(When::FirstUse),
        "destructive" => Ok(When::Destructive),
        _ => cost().map(When::CostAbove).ok_or_else(|| {
            let message = "the key `when` must be `always`, `first-use`, `destructive` or \
                           `cost>N`, with N in millionths of a dollar";
            D::Error::custom(message)
        }),
    }
}

fn audience<'de, D: Deserializer<'de>>(from: D) -> Result<Audience, D::Error> {
    let text = String::deserialize(from)?;
    Audience::try_from(text).map_err(|_| {
        D::Error::custom("the key `audience` must be `person`, `any` or `seat:` and a seat")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        #[serde(default)]
        approvals: Approvals,
        policy: Vec<PolicyRule>,
    }

    #[derive(Debug, Deserialize)]
    struct Kept {
        retention: Vec<RetentionTable>,
    }

    fn retention(rule: &str) -> Result<Vec<RetentionRule>, String> {
        let text = format!("[[retention]]\n{rule}\n");
        let file: Kept = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
        Ok(to_retention(file.retention))
    }

    fn read(text: &str) -> Result<Policy, String> {
        let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        Ok(to_policy(&file.approvals, file.policy))
    }

    #[test]
    fn rules_are_read_in_their_order() {
        let text = "[approvals]\nstrict = true\n[[policy]]\ntool = \"mail/*\"\n\
                    [[policy]]\ntool = \"*\"\nwhen = \"cost > 5\"\naudience = \"any\"\n\
                    [[policy]]\ntool = \"*/echo\"\nwhen = \"first-use\"\napprove = false\n";
        let policy = read(text).expect("fits");
        assert!(policy.strict);
        let [mail, dear, echo] = policy.rules.as_slice() else { panic!("{policy:?}") };
        assert_eq!((mail.when, mail.approve), (When::Always, true));
        assert_eq!(mail.audience, Audience::Person);
        assert_eq!((dear.when, &dear.audience), (When::CostAbove(5), &Audience::Any));
        assert_eq!((echo.when, echo.approve), (When::FirstUse, false));
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused() {
        for (rule, said) in [
            ("when = \"always\"", "missing field `tool`"),
            ("tool = \"mail\"", "`tool` does not name tools as provider/name"),
            ("tool = \"a/b\"\nwhen = \"sometimes\"", "`destructive` or `cost>N`"),
            ("tool = \"a/b\"\nwhen = \"cost>-1\"", "`destructive` or `cost>N`"),
            ("tool = \"a/b\"\naudience = \"everybody\"", "`person`, `any` or `seat:`"),
            ("tool = \"a/b\"\napproves = true", "unknown field `approves`"),
        ] {
            let error = read(&format!("[[policy]]\n{rule}\n")).expect_err(rule);
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_rule_names_tools_and_days() {
        let rules = retention("tool = \"llm/*\"\ndays = 7").expect("fits");
        assert_eq!((rules[0].days, rules[0].retain), (Some(7), Retain::Full));
        let rules = retention("tool = \"llm/*\"\nretain = \"digest\"").expect("fits");
        assert_eq!((rules[0].days, rules[0].retain), (None, Retain::Digest));
        for (rule, said) in [
            ("days = 7", "missing field `tool`"),
            ("tool = \"llm/*\"\nretain = \"none\"", "unknown variant `none`"),
            ("tool = \"llm/*\"\ndays = 0", "from 1 to 36500"),
            ("tool = \"llm/*\"\ndays = 40000", "from 1 to 36500"),
            ("tool = \"llm\"\ndays = 7", "`tool` does not name tools"),
            ("tool = \"llm/*\"\ndays = 7\nhours = 1", "unknown field `hours`"),
        ] {
            let error = retention(rule).expect_err(rule);
            assert!(error.contains(said), "{error}");
        }
    }
}
