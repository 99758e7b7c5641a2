//! How many names one token may take: worlds, tokens, and names that operatives serve.

use std::sync::Arc;

use wharf_domain::grant::{Keyring, NewGrant};
use wharf_domain::{Caller, ProviderInput, Rights, WorldSettings};
use wharf_engine::{EngineOptions, Handle, NameLimit, NameLimits};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryState, MemoryStore};
use wharf_ports::SystemClock;
use wharf_vocab::{Code, Fault, GrantId, NodeId, ProviderId, WorldId};

use crate::closed::add;
use crate::support::removal;

/// An engine that has few names to give: two of each for one token, and four worlds in all.
async fn few() -> Handle {
    let clock = Arc::new(SystemClock);
    let state = MemoryState::new(&AuditKey::new([7; 32]));
    let store = Arc::new(MemoryStore::with_state(state, clock.clone()));
    let node = NodeId::new("test").expect("valid");
    let two = NameLimit { all: 100, each: 2 };
    let worlds = NameLimit { all: 4, each: 2 };
    let options = EngineOptions {
        names: NameLimits {
            worlds,
            tokens: two,
            operatives: two,
            schedules: two,
            triggers: two,
            ..NameLimits::default()
        },
        keyring: Keyring {
            current: "k1".to_owned(),
            keys: [("k1".to_owned(), [9; 32])].into_iter().collect(),
        },
        ..EngineOptions::new(node, store, clock, 1)
    };
    Handle::start(options).await.expect("starts")
}

/// A token that may do everything and is no person's, and one that was narrowed from it.
fn greedy() -> (Caller, Caller) {
    let token = Caller::token("g-1", Rights::all());
    let grant = GrantId::new("g-1.n-1").expect("valid");
    let links = vec![token.grant.clone(), grant.clone()];
    let narrowed = Caller { grant, links, ..token.clone() };
    (token, narrowed)
}

#[tokio::test]
async fn one_token_cannot_take_all_worlds_and_neither_do_those_narrowed_from_it() {
    let handle = few().await;
    let (token, narrowed) = greedy();
    let other = Caller::token("g-2", Rights::all());
    let make = async |caller: &Caller, name: &str| -> Result<(), Fault> {
        let world = WorldId::new(name).expect("valid");
        handle.worlds().create(caller, world, WorldSettings::default()).await.map(drop)
    };
    make(&token, "a").await.expect("made");
    make(&narrowed, "b").await.expect("made");
    for caller in [&token, &narrowed] {
        let refused = make(caller, "c").await.expect_err("its share is used up");
        assert!(refused.is(Code::GrantLimit), "{refused}");
    }
    make(&other, "c").await.expect("another token has its own share");
    make(&Caller::owner(), "d").await.expect("a person may have all");
    let full = make(&Caller::owner(), "e").await.expect_err("there are no more");
    assert!(full.is(Code::CoreBusy), "{full}");
    let a = WorldId::new("a").expect("valid");
    handle.worlds().remove(&token, &a, removal(false)).await.expect("removed");
    make(&token, "e").await.expect("one that was removed counts no more");
}

#[tokio::test]
async fn one_token_cannot_make_all_tokens_and_neither_do_those_made_with_it() {
    let handle = few().await;
    let (token, narrowed) = greedy();
    let new = || NewGrant {
        label: String::new(),
        rights: Rights::all(),
        person: false,
        budget_micro: None,
    };
    let (first, text) = handle.trust().make_grant(&token, new()).await.expect("made");
    let child = handle.trust().authenticate(text.expose()).expect("good");
    handle.trust().make_grant(&child, new()).await.expect("made");
    for caller in [&token, &narrowed, &child] {
        let refused =
            handle.trust().make_grant(caller, new()).await.expect_err("its share is used up");
        assert!(refused.is(Code::GrantLimit), "{refused}");
    }
    handle.trust().make_grant(&Caller::owner(), new()).await.expect("a person may");
    handle.trust().revoke_grant(&Caller::owner(), first.id).await.expect("revoked");
    handle.trust().make_grant(&token, new()).await.expect("one that was revoked counts no more");
}

#[tokio::test]
async fn one_token_cannot_serve_all_names() {
    let handle = few().await;
    let (token, narrowed) = greedy();
    let serve = async |caller: &Caller, name: &str| -> Result<(), Fault> {
        let ProviderInput::Add { folder, manifest_hash, mut manifest } = add() else {
            panic!("it adds an agent");
        };
        manifest.kind = wharf_domain::ProviderKind::Operative;
        let id = ProviderId::new(name).expect("valid");
        let input = ProviderInput::Add { folder, manifest_hash, manifest };
        handle.providers().change(caller, &id, input).await.map(drop)
    };
    serve(&token, "one").await.expect("free");
    serve(&narrowed, "two").await.expect("free");
    serve(&token, "two").await.expect("a name that is known is no other");
    let refused = serve(&token, "three").await.expect_err("its share is used up");
    assert!(refused.is(Code::GrantLimit), "{refused}");
    serve(&Caller::token("g-2", Rights::all()), "three").await.expect("another's share");
    serve(&Caller::owner(), "four").await.expect("a person may");
}

#[tokio::test]
async fn f032_one_token_cannot_make_all_schedules() {
    let handle = few().await;
    wharf_builtin::register(&handle).await.expect("registers");
    let world = crate::support::default_world();
    let owner = Caller::owner();
    handle.worlds().create(&owner, world, WorldSettings::default()).await.expect("made");
    let (token, narrowed) = greedy();
    let make = async |caller: &Caller, name: &str| {
        let id = wharf_vocab::ScheduleId::new(name).expect("valid");
        handle.schedules().add(caller, id, crate::schedules::echo()).await.map(drop)
    };
    make(&token, "a").await.expect("made");
    make(&narrowed, "b").await.expect("made");
    let refused = make(&token, "c").await.expect_err("its share is used up");
    assert!(refused.is(Code::GrantLimit), "{refused}");
    make(&owner, "c").await.expect("a person may have all");
}

#[tokio::test]
async fn f034_one_token_cannot_make_all_triggers() {
    let handle = few().await;
    wharf_builtin::register(&handle).await.expect("registers");
    let world = crate::support::default_world();
    let owner = Caller::owner();
    handle.worlds().create(&owner, world.clone(), WorldSettings::default()).await.expect("made");
    let (token, narrowed) = greedy();
    let make = async |caller: &Caller, name: &str| {
        let spec = wharf_domain::trigger::TriggerSpec {
            on: wharf_domain::trigger::TriggerOn::Hook(wharf_domain::trigger::Hook {
                id: name.to_owned(),
                proof: wharf_vocab::HookProof::Token,
                secret: wharf_vocab::SecretName::new("trigger.x.secret").expect("valid"),
            }),
            tool: "wharf/echo".parse().expect("valid"),
            world: world.clone(),
            inputs: wharf_vocab::Object::new(),
            body: None,
            headers: Vec::new(),
            query: Vec::new(),
            budget_micro: None,
            allow: Vec::new(),
        };
        let id = wharf_vocab::TriggerId::new(name).expect("valid");
        handle.triggers().add(caller, id, spec).await.map(drop)
    };
    make(&token, "a").await.expect("made");
    make(&narrowed, "b").await.expect("made");
    let refused = make(&token, "c").await.expect_err("its share is used up");
    assert!(refused.is(Code::GrantLimit), "{refused}");
    make(&owner, "c").await.expect("a person may have all");
}
