//! Making grants: nobody gives more than they have.

use wharf_domain::grant::{LABEL_BYTES_MAX, Narrowing, NewGrant};
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Caller, Grant, GrantInput, Rights};
use wharf_vocab::{AccountId, Code, Timestamp, Verb, WorldId};

use super::tokens::id;

fn world(text: &str) -> WorldId {
    WorldId::new(text).expect("valid")
}

fn rights(verbs: &[Verb]) -> Rights {
    Rights { verbs: verbs.iter().copied().collect(), ..Rights::none() }
}

fn new(rights: Rights) -> NewGrant {
    NewGrant { label: "ci".into(), rights, person: false, budget_micro: None }
}

fn tools(patterns: &[&str]) -> Vec<ToolPattern> {
    patterns.iter().map(|text| ToolPattern::parse(text).expect("valid")).collect()
}

#[test]
fn nobody_gives_more_than_they_have() {
    let own = Rights {
        verbs: [Verb::Admin, Verb::Run].into(),
        worlds: Some([world("a"), world("b")].into()),
        tools: vec![tools(&["llm/*"]), tools(&["*/chat*", "*/embed"])],
        until: Some(Timestamp(100)),
    };
    let caller = Caller::token("g-1", own.clone());
    assert!(new(own.clone()).check(&caller).is_ok());
    for narrowing in [
        Narrowing { verbs: Some([Verb::Run].into()), ..Narrowing::default() },
        Narrowing { worlds: Some([world("a")].into()), ..Narrowing::default() },
        Narrowing { tools: Some(tools(&["llm/chat@1"])), ..Narrowing::default() },
        Narrowing { until: Some(Timestamp(50)), ..Narrowing::default() },
    ] {
        assert!(new(own.narrowed(&narrowing)).check(&caller).is_ok(), "{narrowing:?}");
    }
    let both = Rights { tools: vec![tools(&["llm/chat*", "llm/embed"])], ..own.clone() };
    assert!(new(both).check(&caller).is_ok(), "one list can lie within both");
    for more in [
        Rights { verbs: [Verb::Approve].into(), ..own.clone() },
        Rights { worlds: None, ..own.clone() },
        Rights { worlds: Some([world("c")].into()), ..own.clone() },
        Rights { tools: vec![], ..own.clone() },
        Rights { tools: vec![tools(&["llm/*"])], ..own.clone() },
        Rights { tools: vec![tools(&["llm/chat"]), tools(&["*"])], until: None, ..own.clone() },
        Rights { tools: vec![tools(&["llm/chat", "x/chat"])], ..own.clone() },
        Rights { until: None, ..own.clone() },
        Rights { until: Some(Timestamp(101)), ..own.clone() },
    ] {
        let fault = new(more.clone()).check(&caller).expect_err("more than there is");
        assert!(fault.is(Code::PermissionDenied), "{more:?}");
    }
}

#[test]
fn only_people_make_tokens_for_people() {
    let grant = NewGrant { person: true, ..new(rights(&[Verb::Approve])) };
    assert!(grant.check(&Caller::owner()).is_ok());
    let fault = grant.check(&Caller::token("g-1", Rights::all())).expect_err("no person");
    assert!(fault.is(Code::PermissionDenied));
}

#[test]
fn a_budget_cannot_be_escaped() {
    let caller = Caller {
        account: Some(AccountId::of_grant(&id("g-1"))),
        ..Caller::token("g-1", Rights::all())
    };
    let fault = new(rights(&[Verb::Run])).check(&caller).expect_err("it would not pay");
    assert!(fault.is(Code::PermissionDenied));
    let budgeted = |rights| NewGrant { budget_micro: Some(5), ..new(rights) };
    let fault = budgeted(rights(&[Verb::Run])).check(&Caller::owner()).expect_err("which world?");
    assert!(fault.is(Code::RequestInvalid));
    let one = Rights { worlds: Some([world("a")].into()), ..rights(&[Verb::Run]) };
    assert!(budgeted(one).check(&Caller::owner()).is_ok());
}

#[test]
fn grants_are_bounded() {
    let long = NewGrant { label: "x".repeat(LABEL_BYTES_MAX + 1), ..new(Rights::none()) };
    let lines = NewGrant { label: "a\nb".into(), ..new(Rights::none()) };
    let worlds = (0..1_000).map(|n| world(&format!("world-{n}"))).collect();
    let large = new(Rights { worlds: Some(worlds), ..Rights::none() });
    for grant in [long, lines, large] {
        let fault = grant.check(&Caller::owner()).expect_err("too much");
        assert!(fault.is(Code::RequestInvalid), "{fault:?}");
    }
}

#[test]
fn a_grant_remembers_whose_rights_it_has() {
    let made_by = |caller: &Caller| {
        let input = GrantInput::Make(Box::new(new(rights(&[Verb::Run]))));
        let decided = Grant::decide(None, &id("g-2"), &input, &caller.to_ref());
        let (entry, _, _) = decided.expect("legal").expect("made");
        Grant::apply(None, &id("g-2"), Timestamp(1), &entry).expect("made")
    };
    assert_eq!(made_by(&Caller::token("g-1", Rights::all())).makers(), [id("g-1")]);
    assert!(made_by(&Caller::owner()).makers().is_empty(), "a person's own is no link");
}
