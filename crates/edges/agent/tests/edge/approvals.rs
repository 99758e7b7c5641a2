//! Calls that need somebody's word first.

use serde_json::{Value, json};
use wharf_domain::run::RunContext;
use wharf_domain::{Ask, Outcome, Resolution, Scope};
use wharf_vocab::{AskKind, Code, RunStatus};

use crate::agent::{Agent, LONG};
use crate::stage::{Stage, new, object, owner};
use crate::troupe::{CALLER, Part, tool};

async fn approval(stage: &Stage) -> Ask {
    let deadline = tokio::time::Instant::now() + LONG;
    loop {
        if let Some(view) = stage.handle.asks().inbox(None, 10).await.expect("lists").pop() {
            assert_eq!(view.ask.spec.kind, AskKind::Approval);
            return view.ask;
        }
        assert!(tokio::time::Instant::now() < deadline, "nobody asks for an approval");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

async fn allow(stage: &Stage, ask: &Ask) {
    let allow = Resolution::Allow { scope: Scope::Run };
    stage.handle.asks().resolve(&owner(), &ask.spec.ask_id, allow).await.expect("open");
}

/// The next call; nothing else came before it.
async fn next_call(agent: &mut Agent) -> Value {
    agent.call().await
}

#[tokio::test]
async fn r087_nothing_is_sent_before_the_approval_which_then_is_the_cause() {
    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["echo"]);
    let mut act = tool(CALLER, "act");
    act["requires_directive"] = json!(true);
    part.tools.push(act);
    let (_, mut agent) = part.enter(&mut stage).await;
    let run = stage.run("act", json!({"n": 1})).await.expect("accepted");
    let ask = approval(&stage).await;
    assert_eq!(
        stage.handle.runs().get(&run.key).await.expect("known").status(),
        RunStatus::Waiting
    );
    // A call that needs nobody's word overtakes it, so nothing of it has been sent.
    stage.run("echo", json!({})).await.expect("accepted");
    let call = next_call(&mut agent).await;
    assert_eq!(call["payload"]["tool_id"], "dev.example.hello/echo");
    assert_eq!(call["causation_id"], Value::Null);
    agent.succeed(&call, json!({})).await;
    allow(&stage, &ask).await;
    let call = next_call(&mut agent).await;
    assert_eq!(call["payload"]["tool_id"], "dev.example.hello/act");
    assert_eq!(call["causation_id"], ask.spec.ask_id.as_str());
    assert_eq!(call["payload"]["context"]["approval"], ask.spec.ask_id.as_str());
    assert_eq!(call["payload"]["idempotency_key"], run.key.run.as_str());
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r087_a_proposal_of_the_agent_is_approved_and_the_call_made_again() {
    let mut stage = Stage::new().await;
    let (_, mut agent) = Part::new(CALLER, &["send"]).enter(&mut stage).await;
    let mut wanted = new("send", object(json!({"to": "all"})));
    wanted.idempotency_key = Some("k1".into());
    let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let first = next_call(&mut agent).await;
    let payload = json!({
        "call_id": first["payload"]["call_id"], "status": "failed",
        "error": {
            "code": "tool.directive_required", "message": "Somebody has to agree.",
            "details": {"proposal": {"title": "Send 40 letters", "letters": 40}},
        },
    });
    agent.send("agent.tool.result", payload, json!({"request_id": first["request_id"]})).await;
    let ask = approval(&stage).await;
    assert!(ask.spec.title.contains("Send 40 letters"), "{}", ask.spec.title);
    assert!(!stage.handle.runs().get(&run.key).await.expect("known").is_over());
    allow(&stage, &ask).await;
    let second = next_call(&mut agent).await;
    assert_ne!(second["payload"]["call_id"], first["payload"]["call_id"]);
    assert_eq!(second["request_id"], first["request_id"]);
    assert_eq!(second["payload"]["idempotency_key"], "k1");
    assert_eq!(second["payload"]["idempotency_key"], first["payload"]["idempotency_key"]);
    assert_eq!(second["payload"]["input"], first["payload"]["input"]);
    assert_eq!(second["causation_id"], ask.spec.ask_id.as_str());
    agent.succeed(&second, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r087_without_a_proposal_the_wish_for_an_approval_is_a_plain_failure() {
    let mut stage = Stage::new().await;
    let (_, mut agent) = Part::new(CALLER, &["send"]).enter(&mut stage).await;
    let run = stage.run("send", json!({})).await.expect("accepted");
    let call = next_call(&mut agent).await;
    agent.fail(&call, "tool.directive_required", false).await;
    let run = stage.end_of(&run.key).await;
    let fault = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(fault.is(Code::ToolDirectiveRequired), "{fault}");
    assert_eq!(fault.details["executed"], "no");
}

#[tokio::test]
async fn r103_r166_a_call_holds_what_the_caller_gave_and_nothing_of_the_core() {
    let mut stage = Stage::new().await;
    let may = &["filesystem:read:/srv/project/**"];
    let (launch, mut agent) = Part::new(CALLER, &["echo"]).may(may).enter(&mut stage).await;
    let mut wanted = new("echo", object(json!({"a": 1})));
    wanted.context = RunContext {
        project_root: Some("/srv/project".into()),
        resource_paths: vec!["/srv/project/a.txt".into()],
        ui: Some(object(json!({"theme": "dark"}))),
    };
    let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let call = next_call(&mut agent).await;
    let context = &call["payload"]["context"];
    assert_eq!(context["project_root"], "/srv/project");
    assert_eq!(context["resource_paths"], json!(["/srv/project/a.txt"]));
    assert_eq!(context["ui"], json!({"theme": "dark"}));
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    let known = [
        "inputs_dir",
        "mode",
        "outputs_dir",
        "project_root",
        "resource_paths",
        "ui",
        "call_id",
        "caller",
        "context",
        "idempotency_key",
        "input",
        "timeout_ms",
        "tool_id",
        "actor",
        "correlation_id",
        "id",
        "payload",
        "request_id",
        "ts",
        "type",
        "v",
    ];
    for key in [keys(context), keys(&call["payload"]), keys(&call)].concat() {
        assert!(known.contains(&key.as_str()), "{key} is new in a call; may it hold a secret?");
    }
    let text = call.to_string();
    assert!(!text.contains(launch.env("OPENSENTIENCE_SESSION_TOKEN")));
    for secret in launch.spec.secrets.iter() {
        assert!(!text.contains(&format!("{secret:?}")), "a secret of the launch is in a call");
    }
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}
