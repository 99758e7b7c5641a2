//! Requests about worlds and their settings.

use wharf_domain::{WorldPatch, WorldSettings};
use wharf_vocab::{Fault, WorldId};
use wharf_wire::rest_v1::{CreateWorld, SetBudget, SetWorld};

/// A new world's id and settings.
pub(crate) fn new_world(request: CreateWorld) -> Result<(WorldId, WorldSettings), Fault> {
    let settings = SetWorld {
        limit_micro: Some(request.limit_micro),
        default_hold_micro: request.default_hold_micro,
        publish: request.publish,
        retention_days: Some(request.retention_days),
        run_retention_days: Some(request.run_retention_days),
        policy: Some(request.policy),
        unknown_cost: request.unknown_cost,
        retain: request.retain,
    };
    Ok((request.world, changed(settings)?.applied_to(&WorldSettings::default())))
}

/// The settings of a world that a request names.
pub(crate) fn changed(set: SetWorld) -> Result<WorldPatch, Fault> {
    amount("limit_micro", set.limit_micro.flatten())?;
    amount("default_hold_micro", set.default_hold_micro)?;
    wharf_views::world_patch(set)
}

/// Another budget for a world.
pub(crate) fn budget(request: &SetBudget) -> Result<WorldPatch, Fault> {
    changed(SetWorld {
        limit_micro: Some(request.limit_micro),
        default_hold_micro: Some(request.default_hold_micro.unwrap_or(0)),
        ..SetWorld::default()
    })
}

/// An amount, which every client can hold in a number with a sign.
pub(super) fn amount(name: &str, micro: Option<u64>) -> Result<Option<u64>, Fault> {
    if micro.is_none_or(|micro| i64::try_from(micro).is_ok()) {
        return Ok(micro);
    }
    Err(Fault::invalid(name, format!("The field `{name}` must be {} at most.", i64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wharf_vocab::Publish;

    fn set(settings: &WorldSettings, request: Value) -> Result<WorldSettings, Fault> {
        let patch = changed(serde_json::from_value(request).expect("a request"))?;
        Ok(patch.applied_to(settings))
    }

    fn full() -> WorldSettings {
        let rule = json!({"tool": "acme/*", "approve": true});
        let request = json!({"world": "lab", "limit_micro": 9, "default_hold_micro": 2,
            "publish": "staged", "retention_days": 30, "policy": [rule]});
        new_world(serde_json::from_value(request).expect("a request")).expect("fits").1
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
        let many = vec![good; 101];
        let fault = set(&full(), json!({"policy": many})).expect_err("too many");
        assert_eq!(fault.details["field"], "policy");
        for days in [0, 36_501] {
            let fault = set(&full(), json!({"retention_days": days})).expect_err("refused");
            assert_eq!(fault.details["field"], "retention_days");
        }
    }
}
