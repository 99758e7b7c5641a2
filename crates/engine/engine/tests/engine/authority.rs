//! Who may start and stop what: rights, their time, the grants they come from, and the agent
//! behind the tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wharf_domain::grant::{Narrowing, NewGrant, token};
use wharf_domain::permission::ToolPattern;
use wharf_domain::provider::{AgentDetails, Entrypoint, ProviderKind, ProviderLimits, Terms};
use wharf_domain::run::RunContext;
use wharf_domain::{Caller, Manifest, ProviderInput, Resolution, Rights};
use wharf_vocab::{Code, Digest, GrantId, ProviderId, RunStatus, Timestamp, ToolId, Verb, WorldId};

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, new, object, owner};

const CANARY: &str = "canary-51c2";

fn rights(change: impl FnOnce(&mut Narrowing)) -> Rights {
    let mut narrowing = Narrowing::default();
    change(&mut narrowing);
    Rights::all().narrowed(&narrowing)
}

fn patterns(list: &[&str]) -> Option<Vec<ToolPattern>> {
    Some(list.iter().map(|text| ToolPattern::parse(text).expect("valid")).collect())
}

#[tokio::test]
async fn r083_without_the_permission_nothing_is_sent_and_the_audit_names_it_but_not_the_input() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let other = WorldId::new("other").expect("valid");
    let past = Some(Timestamp(bench.handle.now().0 - 1));
    let cases = [
        (rights(|n| n.tools = patterns(&["acme/other", "wharf/*"])), "permission"),
        (rights(|n| n.verbs = Some([Verb::Read, Verb::Operate].into())), "verb"),
        (rights(|n| n.worlds = Some([other].into())), "world"),
        (rights(|n| n.until = past), ""),
    ];
    for (number, (rights, names)) in cases.into_iter().enumerate() {
        let caller = Caller::token(&format!("robot-{number}"), rights);
        let wanted = new("acme/work", json!({ "text": CANARY }));
        let fault = bench.handle.runs().create(&caller, wanted).await.expect_err("refused");
        assert!(fault.is(Code::PermissionDenied), "{fault}");
        let actor = format!("grant:{}", caller.grant);
        let record = bench.audited(|it| it.actor == actor).await;
        assert_eq!(record.event, "security.denied");
        assert!(names.is_empty() || record.facts.contains_key(names), "{record:?}");
    }
    let named = bench.audited(|it| it.facts.contains_key("permission")).await;
    assert_eq!(named.facts["permission"], "tool:invoke:acme/work");
    let all = serde_json::to_string(&bench.audit().await).expect("JSON");
    assert!(!all.contains(CANARY));
    assert!(peer.is_idle().await && bench.handle.run_lists().open_count() == 0);
}

#[tokio::test]
async fn every_list_of_tools_in_a_chain_must_fit() {
    let bench = Bench::new().await;
    let wide = rights(|n| n.tools = patterns(&["wharf/*"]));
    let narrow = wide.narrowed(&Narrowing { tools: patterns(&["*/echo"]), ..Narrowing::default() });
    let caller = Caller::token("robot", narrow);
    let accepted = bench.handle.runs().create(&caller, new("wharf/echo", json!({}))).await;
    assert_eq!(accepted.expect("fits both").run.spec.caller.rights, Some(caller.rights.clone()));
    let fault = bench.handle.runs().create(&caller, new("wharf/sleep", json!({"ms": 1}))).await;
    assert!(fault.expect_err("fits one").is(Code::PermissionDenied));
}

#[tokio::test]
async fn r084_a_revoked_grant_starts_nothing_more_nor_does_what_came_from_it() {
    let bench = Bench::new().await;
    let admin = owner();
    for person in [false, true] {
        let wanted = NewGrant {
            label: "nightly".to_owned(),
            rights: Rights::all(),
            person,
            budget_micro: None,
        };
        let (grant, secret) = bench.handle.trust().make_grant(&admin, wanted).await.expect("made");
        let id = GrantId::new(format!("n-{person}")).expect("valid");
        let narrowed = token::narrow(secret.expose(), &id, &Narrowing::default()).expect("narrows");
        let callers = [secret.expose(), narrowed.expose()]
            .map(|text| bench.handle.trust().authenticate(text).expect("good"));
        assert_eq!((callers[0].person, callers[1].person), (person, false));
        for caller in &callers {
            bench
                .handle
                .runs()
                .create(caller, new("wharf/echo", json!({})))
                .await
                .expect("accepted");
        }
        bench.handle.trust().revoke_grant(&admin, grant.id.clone()).await.expect("revoked");
        for caller in &callers {
            // Whoever was let in before the revocation is turned away at the next thing it asks.
            let fault = bench.handle.runs().create(caller, new("wharf/echo", json!({}))).await;
            assert!(fault.expect_err("revoked").is(Code::PermissionDenied));
            let actor = format!("grant:{}", caller.grant);
            let record = bench.audited(|it| it.actor == actor && it.facts.contains_key("grant"));
            assert_eq!(record.await.facts["grant"], grant.id.as_str());
        }
    }
}

#[tokio::test]
async fn a_token_stands_behind_the_tokens_it_makes() {
    let bench = Bench::new().await;
    let robot =
        NewGrant { label: String::new(), rights: Rights::all(), person: false, budget_micro: None };
    let (first, secret) =
        bench.handle.trust().make_grant(&owner(), robot.clone()).await.expect("made");
    let maker = bench.handle.trust().authenticate(secret.expose()).expect("good");
    let (_, secret) = bench.handle.trust().make_grant(&maker, robot).await.expect("made");
    let made = bench.handle.trust().authenticate(secret.expose()).expect("good");
    let question = new("wharf/ask", json!({ "question": "Who?" }));
    bench.handle.runs().create(&maker, question).await.expect("accepted");
    let ask = loop {
        if let Some(view) = bench.handle.asks().inbox(None, 9).await.expect("readable").pop() {
            break view.ask.spec.ask_id;
        }
        tokio::task::yield_now().await;
    };
    let answer = || Resolution::Answered { value: json!("me") };
    let fault =
        bench.handle.asks().resolve(&made, &ask, answer()).await.expect_err("its own maker's");
    assert!(fault.is(Code::PermissionDenied), "{fault}");
    bench.handle.asks().resolve(&owner(), &ask, answer()).await.expect("a person may");
    bench.handle.trust().revoke_grant(&owner(), first.id).await.expect("revoked");
    let gone =
        bench.handle.trust().authenticate(secret.expose()).expect_err("made by a revoked one");
    assert!(gone.is(Code::AuthInvalid));
}

#[tokio::test]
async fn r136_only_whoever_started_a_run_or_an_operator_can_cancel_it() {
    let bench = Bench::new().await;
    let plain = || rights(|n| n.verbs = Some([Verb::Run, Verb::Read].into()));
    let link = |name: &str| GrantId::new(name).expect("valid");
    let starter = Caller::token("starter", plain());
    let below = Caller { links: vec![link("starter"), link("n1")], ..Caller::token("n1", plain()) };
    let operator = Caller::token(
        "operator",
        rights(|n| {
            n.verbs = Some([Verb::Run, Verb::Operate].into());
        }),
    );
    let elsewhere = Caller::token(
        "elsewhere",
        rights(|n| {
            n.worlds = Some([WorldId::new("other").expect("valid")].into());
        }),
    );
    let silenced = Caller::token("starter", Rights::none());
    let human = Caller { person: true, links: Vec::new(), ..Caller::token("human", plain()) };
    let of_human = Caller { root: Some(link("human")), ..Caller::token("n2", plain()) };
    let cases = [
        ("the starter", &starter, &starter, true),
        ("a token above the starter's", &below, &starter, true),
        ("a token below the starter's", &starter, &below, false),
        ("a stranger", &starter, &Caller::token("stranger", plain()), false),
        ("an operator", &starter, &operator, true),
        ("an operator of another world", &starter, &elsewhere, false),
        ("the starter without rights", &starter, &silenced, false),
        ("another person", &starter, &human, false),
        ("the person above", &of_human, &human, true),
        ("the owner", &starter, &owner(), true),
    ];
    for (who, starter, by, may) in cases {
        let wanted = new("wharf/sleep", json!({ "ms": 600_000 }));
        let run = bench.handle.runs().create(starter, wanted).await.expect("accepted").run;
        let result = bench.handle.runs().cancel(by, &run.key, "enough").await;
        assert_eq!(result.is_ok(), may, "{who}: {result:?}");
        if !may {
            assert!(result.expect_err("refused").is(Code::PermissionDenied));
            let subject = format!("run:{}", run.key);
            let denied = |it: &wharf_domain::AuditRecord| {
                it.event == "security.denied" && it.subject == subject
            };
            bench.audited(denied).await;
            bench.handle.runs().cancel(&owner(), &run.key, "").await.expect("the owner may");
        }
        assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Canceled);
    }
}

/// An agent that may read `/srv/data/**` and runs as `dev.agent`.
async fn agent(bench: &Bench) -> ProviderId {
    let id = ProviderId::new("dev.agent").expect("valid");
    let permissions = vec!["filesystem:read:/srv/data/**".to_owned()];
    let manifest = Manifest {
        name: "Agent".into(),
        version: "1.0.0".into(),
        description: String::new(),
        entrypoint: Entrypoint { program: "./agent".into(), args: vec![] },
        permissions: permissions.clone(),
        limits: ProviderLimits::default(),
        isolation: None,
        kind: ProviderKind::Agent(AgentDetails::default()),
    };
    let manifest_hash = Digest::of(&[b"manifest"]);
    let add = ProviderInput::Add { folder: "agent".into(), manifest_hash, manifest };
    let (files, terms) = (BTreeMap::new(), Terms::default());
    for input in [add, ProviderInput::Approve { manifest_hash: None, permissions, files, terms }] {
        bench.handle.providers().change(&owner(), &id, input).await.expect("taken");
    }
    id
}

#[tokio::test]
async fn r084_an_agent_that_drifted_or_lost_its_approval_gets_no_more_calls() {
    let bench = Bench::new().await;
    let id = agent(&bench).await;
    let peer = Peer::join(&bench.handle, id.as_str(), vec![tool("dev.agent/work")]).await;
    let run = bench.start("dev.agent/work", json!({})).await.expect("approved");
    let under_way = peer.next().await;

    let difference = vec!["agent.py changed".to_owned()];
    let steps = [
        (ProviderInput::Drift { difference }, Code::AgentDrifted),
        (ProviderInput::Revoke, Code::AgentNotApproved),
    ];
    for (input, code) in steps {
        bench.handle.providers().change(&owner(), &id, input).await.expect("taken");
        let drift_gone = ProviderInput::Drift { difference: vec![] };
        let fault = bench.start("dev.agent/work", json!({})).await.expect_err("refused");
        assert!(fault.is(code), "{fault}");
        bench.handle.providers().change(&owner(), &id, drift_gone).await.expect("taken");
    }
    assert!(peer.is_idle().await, "nothing is sent");
    succeed(&under_way, 0).await;
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r080_a_quarantined_tool_is_listed_and_not_callable() {
    let bench = Bench::new().await;
    let tools = vec![tool("acme/work"), tool("acme/other")];
    let peer = Peer::join(&bench.handle, "acme", tools).await;
    let id = ToolId::new("acme/work").expect("valid");
    let reason = "its definition changed; look at it with `wharf tools diff`.".to_owned();
    bench.handle.providers().set_quarantine(&peer.id, vec![(id.clone(), reason.clone())]);
    assert_eq!(
        bench.handle.providers().tool(&id).expect("listed").quarantine,
        Some(reason.clone())
    );
    let fault = bench.start("acme/work", json!({})).await.expect_err("quarantined");
    assert!(fault.is(Code::ToolQuarantined) && fault.message.contains(&reason), "{fault}");
    bench.start("acme/other", json!({})).await.expect("the others may");
    bench.handle.providers().set_quarantine(&peer.id, Vec::new());
    bench.start("acme/work", json!({})).await.expect("approved again");
}

fn placed(project_root: &str, resource_paths: &[&str]) -> RunContext {
    RunContext {
        project_root: Some(project_root.to_owned()),
        resource_paths: resource_paths.iter().map(|path| (*path).to_owned()).collect(),
        ui: Some(object(json!({ "page": 3 }))),
    }
}

#[tokio::test]
async fn r103_r166_a_context_reaches_an_agent_only_within_its_approved_paths() {
    let bench = Bench::new().await;
    let id = agent(&bench).await;
    let peer = Peer::join(&bench.handle, id.as_str(), vec![tool("dev.agent/work")]).await;
    let within = placed("/srv/data/project", &["/srv/data/project/a.txt", "/srv/data"]);
    let mut wanted = new("dev.agent/work", json!({}));
    wanted.context = within.clone();
    bench.handle.runs().create(&owner(), wanted).await.expect("within");
    assert_eq!(peer.next().await.dispatch().spec.context, within);

    let outside = [
        placed("/srv", &[]),
        placed("/srv/database", &[]),
        placed("/srv/data/../secret", &[]),
        placed("srv/data", &[]),
        placed("/srv/data", &["/srv/data/x", "/etc/passwd"]),
    ];
    for context in outside {
        let mut wanted = new("dev.agent/work", json!({}));
        wanted.context = context.clone();
        let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("outside");
        assert!(fault.is(Code::PermissionDenied), "{context:?}: {fault}");
    }
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn r166_what_is_not_an_agent_gets_no_context() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let mut wanted = new("acme/work", json!({}));
    wanted.context = placed("/srv/data", &[]);
    bench.handle.runs().create(&owner(), wanted).await.expect("accepted");
    assert_eq!(peer.next().await.dispatch().spec.context, RunContext::default());
}

#[tokio::test]
async fn another_context_is_another_request() {
    let bench = Bench::new().await;
    let mut wanted = new("wharf/echo", json!({}));
    wanted.idempotency_key = Some("k".to_owned());
    let first = bench.handle.runs().create(&owner(), wanted.clone()).await.expect("accepted");
    let again = bench.handle.runs().create(&owner(), wanted.clone()).await.expect("the same");
    assert!(again.repeated && Arc::clone(&again.run).key == first.run.key);
    wanted.context = placed("/srv/data", &[]);
    let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("another");
    assert!(fault.is(Code::RunConflict), "{fault}");
}

#[tokio::test]
async fn only_operators_remove_runs() {
    let bench = Bench::new().await;
    let run = bench.finish("wharf/echo", json!({})).await;
    let plain = Caller::token("robot", rights(|n| n.verbs = Some([Verb::Run].into())));
    let fault = bench.handle.purges().purge(&plain, &run.key).await.expect_err("refused");
    assert!(fault.is(Code::PermissionDenied));
    bench.handle.purges().purge(&owner(), &run.key).await.expect("removed");
}
