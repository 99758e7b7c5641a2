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
        patience_ms: None,
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
        ("destructive", When::Destructive),
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

/// Who is asked in a world with rules of its own, and whether an allowance is remembered.
fn asked_in(world: &[Rule], owner: &Policy, allowed: bool) -> Option<(Audience, bool)> {
    let gate = owner.gate_in(world, &tool("a/b", None), 50, allowed);
    gate.map(|gate| (gate.audience, gate.remember))
}

fn by(audience: Audience, rule: Rule) -> Rule {
    Rule { audience, ..rule }
}

#[test]
fn a_world_may_ask_for_more() {
    let asks = [rule("a/*", "always", true)];
    let any = Some((Audience::Any, false));
    assert_eq!(asked_in(&asks, &policy(&[], false), true), any);
    assert_eq!(asked_in(&asks, &policy(&[rule("*", "always", false)], false), true), any);
    assert_eq!(asked_in(&[rule("x/*", "always", true)], &policy(&[], false), true), None);
    let gate = policy(&[], false).gate_in(&asks, &tool("a/b", None), 50, true).expect("asked");
    assert_eq!(gate.reason, "A rule of the world for a/* asks for an approval.");
    // The first of the world's own rules that fits decides for the world.
    let let_off = [rule("a/b", "cost>10", false), rule("a/*", "always", true)];
    assert_eq!(asked_in(&let_off, &policy(&[], false), false), None);
}

#[test]
fn a_world_spares_the_strict_default_and_nothing_else() {
    let spares = [rule("*", "always", false)];
    assert_eq!(asked_in(&[], &policy(&[], true), true), Some((Audience::Person, false)));
    assert_eq!(asked_in(&spares, &policy(&[], true), true), None);
    let person = by(Audience::Person, rule("a/*", "always", true));
    for strict in [false, true] {
        let owner = policy(std::slice::from_ref(&person), strict);
        assert_eq!(asked_in(&spares, &owner, true), Some((Audience::Person, false)));
    }
    let mut wants = tool("a/b", Some(false));
    wants.requires_directive = true;
    assert!(policy(&[], false).gate_in(&spares, &wants, 0, true).is_some());
    // A rule of the world about dear runs says nothing about cheap ones.
    let dear = [rule("*", "cost>100", false)];
    assert_eq!(asked_in(&dear, &policy(&[], true), true), Some((Audience::Person, false)));
}

#[test]
fn a_world_cannot_choose_who_answers_for_the_owner() {
    let seat = Audience::Seat("S-1".parse().expect("a seat id"));
    let owners =
        |audience: &Audience| policy(&[by(audience.clone(), rule("a/*", "always", true))], false);
    for audience in [&Audience::Person, &seat] {
        for other in [Audience::Any, Audience::Person, seat.clone()] {
            let asks = [by(other, rule("*", "always", true))];
            let wanted = Some((audience.clone(), false));
            assert_eq!(asked_in(&asks, &owners(audience), false), wanted);
        }
    }
    // Where the owner lets anybody answer, a world may name somebody.
    for audience in [Audience::Person, seat] {
        let asks = [by(audience.clone(), rule("*", "always", true))];
        assert_eq!(asked_in(&asks, &owners(&Audience::Any), false), Some((audience, false)));
    }
}

#[test]
fn what_a_world_remembers_does_not_answer_the_owner() {
    let first = [rule("a/*", "first-use", true)];
    assert_eq!(asked_in(&first, &policy(&[], true), false), Some((Audience::Any, true)));
    assert_eq!(asked_in(&first, &policy(&[], true), true), None, "asked once, here as well");
    // The owner wants a person asked once, though not for dear runs; what somebody allowed in
    // a dear run must not count as that person's word.
    let owner = policy(
        &[rule("a/*", "cost>10", false), by(Audience::Person, rule("a/*", "first-use", true))],
        false,
    );
    assert_eq!(asked_in(&first, &owner, false), Some((Audience::Any, false)));
}

#[test]
fn m056_what_may_destroy_is_asked_for_and_says_so() {
    let rules = policy(&[rule("a/*", "destructive", true)], false);
    let reason = |destructive, side_effects| {
        let tool = ToolDef { destructive, ..tool("a/b", side_effects) };
        rules.gate(&tool, 0, false).map(|gate| gate.reason)
    };
    let rule = "A rule for a/* asks for an approval.";
    let warned = format!("{rule} The tool says that it may destroy something.");
    assert_eq!(reason(Some(true), None), Some(warned));
    assert_eq!(reason(None, None).as_deref(), Some(rule), "what acts may destroy");
    assert_eq!(reason(Some(false), None), None);
    assert_eq!(reason(None, Some(false)), None);
    let asks = ToolDef { destructive: Some(true), requires_directive: true, ..tool("c/d", None) };
    let gate = rules.gate(&asks, 0, false).expect("each run of it is approved");
    assert!(gate.reason.ends_with("may destroy something."), "{gate:?}");
}
