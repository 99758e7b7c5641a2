//! The owner's rules: in order, the first that fits the tool and the moment decides.

use serde_json::json;
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Gate, Policy, Rule, ToolDef, When};
use wharf_vocab::ToolId;

fn tool(id: &str, side_effects: Option<bool>) -> ToolDef {
    let id = ToolId::new(id).expect("valid");
    ToolDef { side_effects, ..ToolDef::new(id, "", json!({})) }
}

fn rule(tool: &str, when: &str, approve: bool) -> Rule {
    Rule {
        tool: ToolPattern::parse(tool).expect("valid"),
        when: When::parse(when).expect("valid"),
        approve,
        audience: Audience::Any,
    }
}

fn policy(rules: &[Rule], strict: bool) -> Policy {
    Policy { rules: rules.to_vec(), strict }
}

#[test]
fn moments_are_read_and_shown() {
    for (text, when) in [
        ("always", When::Always),
        ("first-use", When::FirstUse),
        ("cost>0", When::CostAbove(0)),
        ("cost>2500000", When::CostAbove(2_500_000)),
    ] {
        assert_eq!(When::parse(text), Ok(when));
        assert_eq!(when.to_string(), text);
    }
    for text in [
        "",
        "Always",
        "never",
        "first_use",
        "cost",
        "cost>",
        "cost>-1",
        "cost>+1",
        "cost>1.5",
        "cost> 1",
        "cost>=1",
        "cost>18446744073709551616",
        " always",
    ] {
        let error = When::parse(text).expect_err(text).to_string();
        assert!(error.contains("cost>N") && error.contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn the_first_rule_that_fits_tool_and_moment_decides() {
    let rules = [
        rule("mail/draft", "always", false),
        rule("mail/*", "cost>100", true),
        rule("mail/*", "first-use", true),
        rule("*", "cost>1000", true),
    ];
    let policy = policy(&rules, false);
    let reason = |id: &str, cost, allowed| {
        policy.gate(&tool(id, None), cost, allowed).map(|gate| (gate.reason, gate.remember))
    };
    let of = |pattern: &str| format!("A rule for {pattern} asks for an approval.");
    assert_eq!(reason("mail/draft", 5_000, false), None, "the first one decides");
    assert_eq!(reason("mail/send", 101, false), Some((of("mail/*"), false)));
    assert_eq!(reason("mail/send", 101, true), Some((of("mail/*"), false)), "dear every time");
    assert_eq!(reason("mail/send", 100, false), Some((of("mail/*"), true)));
    assert_eq!(reason("mail/send", 100, true), None);
    assert_eq!(reason("llm/chat", 1_000, false), None);
    assert_eq!(reason("llm/chat", 1_001, true), Some((of("*/*"), false)));
}

#[test]
fn a_tool_that_wants_a_directive_is_never_let_off() {
    let mut wants = tool("a/b", Some(false));
    wants.requires_directive = true;
    let gate = policy(&[rule("*", "always", false)], false).gate(&wants, 0, true);
    assert!(matches!(gate, Some(Gate { audience: Audience::Person, remember: false, .. })));
}

#[test]
fn a_strict_policy_asks_about_what_may_act_unless_a_rule_has_spoken() {
    let strict = |rules: &[Rule], side_effects, allowed| {
        policy(rules, true).gate(&tool("a/b", side_effects), 50, allowed)
    };
    for acts in [None, Some(true)] {
        let gate = strict(&[], acts, false).expect("asked");
        assert_eq!(gate.audience, Audience::Person);
        assert!(strict(&[rule("a/b", "always", false)], acts, false).is_none());
        assert!(strict(&[rule("x/y", "always", false)], acts, false).is_some());
        // A rule about dear runs says nothing about cheap ones.
        assert!(strict(&[rule("*", "cost>100", true)], acts, false).is_some());
        assert!(strict(&[rule("*", "cost>100", false)], acts, false).is_some());
        // Who was asked at the first use is not asked again.
        let first = [rule("a/*", "first-use", true)];
        assert!(strict(&first, acts, false).expect("asked").remember);
        assert!(strict(&first, acts, true).is_none());
    }
    assert!(strict(&[], Some(false), false).is_none());
}
