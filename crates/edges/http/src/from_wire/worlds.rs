//! Requests about worlds and their settings.

use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Rule, When, WorldPatch, WorldSettings};
use wharf_vocab::{Fault, Publish, WorldId};
use wharf_wire::rest_v1::{CreateWorld, PolicyRule, SetBudget, SetWorld};

use crate::answer::invalid;

/// Most rules about approvals that a world has.
const RULES_MAX: usize = 100;
/// Most days that a world keeps what nobody uses: about a hundred years.
const RETENTION_DAYS_MAX: u32 = 36_500;

/// A new world's id and settings.
pub(crate) fn new_world(request: &CreateWorld) -> Result<(WorldId, WorldSettings), Fault> {
    let settings = WorldSettings {
        limit_micro: amount("limit_micro", request.limit_micro)?,
        default_hold_micro: amount("default_hold_micro", request.default_hold_micro)?.unwrap_or(0),
        publish: request.publish.unwrap_or(Publish::Direct),
        retention_days: request.retention_days.map(days).transpose()?,
        policy: policy(&request.policy)?,
        unknown_cost: request.unknown_cost.unwrap_or_default(),
    };
    Ok((request.world.clone(), settings))
}

/// The settings of a world that a request names.
pub(crate) fn changed(set: SetWorld) -> Result<WorldPatch, Fault> {
    let retention = set.retention_days.map(|given| given.map(days).transpose());
    Ok(WorldPatch {
        limit_micro: set.limit_micro.map(|limit| amount("limit_micro", limit)).transpose()?,
        default_hold_micro: amount("default_hold_micro", set.default_hold_micro)?,
        publish: set.publish,
        retention_days: retention.transpose()?,
        policy: set.policy.map(|rules| policy(&rules)).transpose()?,
        unknown_cost: set.unknown_cost,
    })
}

/// Another budget for a world.
pub(crate) fn budget(request: &SetBudget) -> Result<WorldPatch, Fault> {
    let hold = amount("default_hold_micro", request.default_hold_micro)?;
    Ok(WorldPatch {
        limit_micro: Some(amount("limit_micro", request.limit_micro)?),
        default_hold_micro: Some(hold.unwrap_or(0)),
        ..WorldPatch::default()
    })
}

/// An amount, which every client can hold in a number with a sign.
pub(super) fn amount(name: &str, micro: Option<u64>) -> Result<Option<u64>, Fault> {
    if micro.is_none_or(|micro| i64::try_from(micro).is_ok()) {
        return Ok(micro);
    }
    Err(invalid(name, format!("The field `{name}` must be {} at most.", i64::MAX)))
}

fn days(days: u32) -> Result<u32, Fault> {
    if (1..=RETENTION_DAYS_MAX).contains(&days) {
        return Ok(days);
    }
    let message =
        format!("The field `retention_days` must be a number from 1 to {RETENTION_DAYS_MAX}.");
    Err(invalid("retention_days", message))
}

fn policy(rules: &[PolicyRule]) -> Result<Vec<Rule>, Fault> {
    if rules.len() > RULES_MAX {
        let message = format!("The field `policy` may have {RULES_MAX} rules at most.");
        return Err(invalid("policy", message));
    }
    rules.iter().enumerate().map(|(number, rule)| policy_rule(number, rule)).collect()
}

fn policy_rule(number: usize, rule: &PolicyRule) -> Result<Rule, Fault> {
    let wrong = |field: &str, wanted: &str| {
        let field = format!("policy[{number}].{field}");
        let message = format!("The field `{field}` must be {wanted}.");
        invalid(&field, message)
    };
    let tool = ToolPattern::parse(&rule.tool)
        .map_err(|_| wrong("tool", "a pattern of tools such as acme/mail, acme/* or *"))?;
    let when = When::parse(&rule.when)
        .map_err(|_| wrong("when", "always, first-use or cost>N with N in micro-dollars"))?;
    let audience = Audience::try_from(rule.audience.clone())
        .map_err(|_| wrong("audience", "person, any, or seat: and the name of a seat"))?;
    let patience_ms = Rule::patience_of(rule.patience_ms)
        .map_err(|error| wrong("patience_ms", &error.to_string()))?;
    Ok(Rule { tool, when, approve: rule.approve, audience, patience_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(settings: &WorldSettings, request: Value) -> Result<WorldSettings, Fault> {
        let patch = changed(serde_json::from_value(request).expect("a request"))?;
        Ok(patch.applied_to(settings))
    }

    fn full() -> WorldSettings {
        let rule = json!({"tool": "acme/*", "approve": true});
        let request = json!({"world": "lab", "limit_micro": 9, "default_hold_micro": 2,
            "publish": "staged", "retention_days": 30, "policy": [rule]});
        new_world(&serde_json::from_value(request).expect("a request")).expect("fits").1
    }

    #[test]
    fn only_what_is_named_changes() {
        let before = full();
        assert_eq!(set(&before, json!({})), Ok(before.clone()));
        let after = set(&before, json!({"limit_micro": 5})).expect("fits");
        assert_eq!(after, WorldSettings { limit_micro: Some(5), ..before.clone() });
        let after = set(&before, json!({"limit_micro": null, "retention_days": null}));
        let expect = WorldSettings { limit_micro: None, retention_days: None, ..before.clone() };
        assert_eq!(after, Ok(expect), "null takes a limit away");
        let after = set(&before, json!({"publish": "direct", "policy": []}));
        let expect =
            WorldSettings { publish: Publish::Direct, policy: Vec::new(), ..before.clone() };
        assert_eq!(after, Ok(expect));
        let after = budget(&SetBudget::default()).expect("fits").applied_to(&before);
        let expect = WorldSettings { limit_micro: None, default_hold_micro: 0, ..before };
        assert_eq!(after, expect, "a budget leaves all else");
    }

    #[test]
    fn a_rule_that_does_not_fit_is_named_by_its_place() {
        let good = json!({"tool": "acme/*", "approve": true});
        for (field, value) in [
            ("tool", json!("acme")),
            ("tool", json!("")),
            ("when", json!("sometimes")),
            ("when", json!("cost>-1")),
            ("when", json!("cost>1.5")),
            ("audience", json!("nobody")),
            ("audience", json!("seat:")),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            let fault = set(&full(), json!({"policy": [good, bad]})).expect_err(field);
            assert_eq!(fault.details["field"], format!("policy[1].{field}"));
        }
        let many = vec![good; RULES_MAX + 1];
        let fault = set(&full(), json!({"policy": many})).expect_err("too many");
        assert_eq!(fault.details["field"], "policy");
        for days in [0, RETENTION_DAYS_MAX + 1] {
            let fault = set(&full(), json!({"retention_days": days})).expect_err("refused");
            assert_eq!(fault.details["field"], "retention_days");
        }
    }
}
