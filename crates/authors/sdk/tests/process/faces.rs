//! An agent of the SDK served as a process: the same tools, with the core as their host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wharf_protocol::agent::{
    Additions, CallOutcome, CancelCall, CoreEvent, CoreLimits, InvokeReceived,
};
use wharf_sdk::builtin::{NOTIFY, Notice};
use wharf_sdk::host::served_by_name;
use wharf_sdk::{
    Active, Agent, AgentProcess, Answer, Code, Cx, Fault, JsonSchema, Object, Scope, Tool,
};
use wharf_wire::agent_v1::{
    AnswerStatus, Chunk, NoticeLevel, QuestionAnswer, QuestionAsk, QuestionId,
};

use crate::core::{Core, Listener, id};
use crate::tools::{Running, start, until};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Settings {
    airline: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Trip {
    to: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Status {
    step: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Small {
    #[schemars(range(max = 3))]
    n: u32,
}

const FLIGHT: Agent<Settings> = Agent::new("flight", "Finds flights.");
const SEARCH: Tool<Trip, Vec<String>, Status> =
    Tool::new("search", "Searches for flights.").side_effects(false);
const COUNT: Tool<u32, (), u32> = Tool::new("count", "Counts.");
const CONFIRM: Tool<(), String> = Tool::new("confirm", "Asks.");
const TELL: Tool<(), ()> = Tool::new("tell", "Tells.");
const COMPLETE: Tool<String, String> = Tool::new("complete", "Completes.");
const WHERE: Tool<(), Vec<f64>, String> = Tool::new("where", "Asks where the user is.");
const LOCATE: Tool<u32, Vec<f64>, String> =
    Tool::new("locate", "Where the user is.").at("browser/get-location");
const NOBODY: Tool<(), ()> = Tool::new("nobody", "Nobody does this.");
const LOST: Tool<(), ()> = Tool::new("lost", "Calls what nobody does.");
const PANIC: Tool<(), ()> = Tool::new("panic", "Panics.");
const LARGE: Tool<(), Small> = Tool::new("large", "Gives too much.");
const HANG: Tool<(), ()> = Tool::new("hang", "Never ends.");

async fn search(trip: Trip, cx: Cx<Status>) -> Result<Vec<String>, Fault> {
    let settings = cx.config::<Settings>()?;
    for step in 1..=3 {
        cx.progress(Status { step }).await;
    }
    cx.cost(40);
    cx.cost(2);
    Ok(vec![format!("{} to {}", settings.airline, trip.to)])
}

async fn count(to: u32, cx: Cx<u32>) -> Result<(), Fault> {
    for n in 1..=to {
        cx.progress(n).await;
    }
    Ok(())
}

async fn confirm((): (), cx: Cx) -> Result<String, Fault> {
    Ok(match cx.ask::<Confirm>("Really?").await? {
        Answer::Accepted(Confirm { ok }) => format!("accepted {ok}"),
        Answer::Declined => "declined".to_owned(),
        Answer::Cancelled => "cancelled".to_owned(),
        Answer::Denied => "denied".to_owned(),
        Answer::OffScript(text) => format!("off script: {text}"),
        Answer::Expired => "expired".to_owned(),
    })
}

async fn tell((): (), cx: Cx) -> Result<(), Fault> {
    let notice = Notice { message: "half".to_owned(), progress: Some(0.5), ..Notice::default() };
    NOTIFY.call(&cx, notice).await
}

async fn complete(prompt: String, cx: Cx) -> Result<String, Fault> {
    Ok(cx.sample(prompt).await?.text)
}

async fn locate((): (), cx: Cx<String>) -> Result<Vec<f64>, Fault> {
    let mut call = LOCATE.call(&cx, 7);
    while let Some(word) = call.progress().await {
        cx.progress(word).await;
    }
    call.await
}

async fn lost((): (), cx: Cx) -> Result<(), Fault> {
    NOBODY.call(&cx, ()).await
}

fn flight(root: &Scope, airline: &str, cleaned: &Arc<AtomicUsize>) -> Active<Settings> {
    let cleaned = Arc::clone(cleaned);
    FLIGHT
        .activate(root, Settings { airline: airline.to_owned() })
        .tool(&SEARCH, search)
        .tool(&COUNT, count)
        .tool(&CONFIRM, confirm)
        .tool(&TELL, tell)
        .tool(&COMPLETE, complete)
        .tool(&WHERE, locate)
        .tool(&LOST, lost)
        .tool(&PANIC, |(), _cx: Cx| async move { panic!("a panic with a canary in it") })
        .tool(&LARGE, |(), _cx: Cx| async move { Ok(Small { n: 4 }) })
        .tool(&HANG, move |(), cx: Cx| {
            let cleaned = Arc::clone(&cleaned);
            async move {
                cx.at_end(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    cleaned.fetch_add(1, Ordering::SeqCst);
                });
                cx.notify("hanging").await?;
                std::future::pending().await
            }
        })
        .remote(&LOCATE)
        .build()
        .expect("a usable agent")
}

/// A core that an agent has joined.
struct Joined {
    core: Core,
    cleaned: Arc<AtomicUsize>,
    root: Scope,
    _running: Running,
}

fn joined() -> Joined {
    joined_with(Additions::ALL)
}

fn joined_with(granted: Additions) -> Joined {
    let (root, cleaned) = (Scope::root(), Arc::default());
    let flight = flight(&root, "Crab Air", &cleaned);
    let listener = Listener::unix();
    let running = start(AgentProcess::of("dev.test.flight", "1.0.0", &flight), &listener);
    let (mut core, _) = Core::greeted(&listener, CoreLimits::default());
    core.session.accept(core.now(), granted).expect("a hello waits");
    core.wait("tools", |event| match event {
        CoreEvent::ToolsRegistered { rejected, .. } => {
            assert_eq!(rejected, &[]);
            Some(())
        }
        _ => None,
    });
    Joined { core, cleaned, root, _running: running }
}

fn unasked() -> QuestionId {
    QuestionId::new("?").expect("an id")
}

fn question(core: &mut Core, of: &str) -> QuestionAsk {
    core.wait("question", |event| match event {
        CoreEvent::Question(question) if question.call_id == id(of) => Some((**question).clone()),
        _ => None,
    })
}

fn invoke(core: &mut Core, of: &str) -> InvokeReceived {
    core.wait("invoke", |event| match event {
        CoreEvent::Invoke(invoke) if invoke.parent_call_id == id(of) => Some((**invoke).clone()),
        _ => None,
    })
}

fn object(value: &Value) -> Object {
    value.as_object().expect("an object").clone()
}

fn partial(value: &Value) -> Chunk {
    Chunk::Partial { json: object(value) }
}

#[test]
fn k015_k020_an_agent_is_served_with_its_configuration_and_its_progress_in_order() {
    let Joined { mut core, root: _root, .. } = joined();
    core.call("c", "search", &json!({"to": "Oslo"}));
    let end = core.end("c");
    let CallOutcome::Succeeded(output) = end.outcome else { panic!("{end:?}") };
    assert_eq!(Value::Object(output), json!({"value": ["Crab Air to Oslo"]}));
    assert_eq!(end.cost_micro, 42);
    let steps: Vec<_> = (1..=3).map(|step| partial(&json!({"step": step}))).collect();
    assert_eq!(core.chunks("c"), steps);
    core.assert_flawless();
}

#[test]
fn k020_values_that_are_no_objects_have_one_key_in_both_directions() {
    let Joined { mut core, root: _root, .. } = joined();
    core.call("c", "count", &json!({"value": 2}));
    assert_eq!(core.output("c"), json!({"value": null}));
    assert_eq!(core.chunks("c"), [partial(&json!({"value": 1})), partial(&json!({"value": 2}))]);
    core.call("d", "count", &json!({"value": "two"}));
    assert!(core.failure("d").is(Code::ToolInvalidInput));
    assert_eq!(core.chunks("d"), []);
}

#[test]
fn k016_two_agents_of_one_program_keep_their_configurations_apart() {
    let (root, cleaned) = (Scope::root(), Arc::default());
    let cores = ["Crab Air", "Gull Lines"].map(|airline| {
        let agent = flight(&root, airline, &cleaned);
        let listener = Listener::unix();
        let running = start(AgentProcess::of("dev.test.flight", "1", &agent), &listener);
        (Core::joined(&listener, CoreLimits::default()), running, airline)
    });
    for (mut core, _running, airline) in cores {
        core.call("c", "search", &json!({"to": "Rome"}));
        assert_eq!(core.output("c"), json!({"value": [format!("{airline} to Rome")]}));
    }
}

#[test]
fn k018_k019_every_end_of_a_question_reaches_the_tool_as_a_value() {
    let Joined { mut core, root: _root, .. } = joined();
    let answer = |status, value, text| QuestionAnswer { ask_id: unasked(), status, value, text };
    let value = |status, value: Value| answer(status, Some(value), None);
    let plain = |status| answer(status, None, None);
    let text = Some("perhaps".to_owned());
    let answers = [
        (value(AnswerStatus::Answered, json!({"ok": true})), "accepted true"),
        (plain(AnswerStatus::Declined), "declined"),
        (plain(AnswerStatus::Cancelled), "cancelled"),
        (plain(AnswerStatus::Denied), "denied"),
        (plain(AnswerStatus::Expired), "expired"),
        (answer(AnswerStatus::OffScript, None, text), "off script: perhaps"),
    ];
    for (number, (answer, expected)) in answers.into_iter().enumerate() {
        let call = format!("c{number}");
        core.call(&call, "confirm", &json!({}));
        let asked = question(&mut core, &call);
        assert_eq!(asked.title, "Really?");
        assert_eq!(asked.schema["properties"]["ok"]["type"], "boolean", "{}", asked.schema);
        core.session
            .answer(core.now(), QuestionAnswer { ask_id: asked.ask_id, ..answer })
            .expect("open");
        assert_eq!(core.output(&call), json!({"value": expected}));
    }
    core.assert_flawless();
}

#[test]
fn k018_a_core_that_does_not_let_it_ask_has_denied_the_question() {
    let Joined { mut core, root: _root, .. } = joined_with(Additions::default());
    core.call("c", "confirm", &json!({}));
    assert_eq!(core.output("c"), json!({"value": "denied"}));
    // Telling can fail, and says so.
    core.call("d", "tell", &json!({}));
    assert!(core.failure("d").is(Code::PermissionDenied));
}

#[test]
fn k019_a_message_is_a_notice_and_how_far_it_is_a_status() {
    let Joined { mut core, root: _root, .. } = joined();
    core.call("c", "tell", &json!({}));
    assert_eq!(core.output("c"), json!({"value": null}));
    let status = Chunk::Status { text: "half".to_owned(), fraction: Some(0.5) };
    assert_eq!(core.chunks("c"), [status]);
    let told = core.wait("notice", |event| match event {
        CoreEvent::Notice(notice) if notice.call_id == Some(id("c")) => {
            Some((notice.level, notice.text.clone()))
        }
        _ => None,
    });
    assert_eq!(told, (NoticeLevel::Info, "half".to_owned()));
}

#[test]
fn k019_a_completion_is_a_call_of_the_cores_model() {
    let Joined { mut core, root: _root, .. } = joined();
    core.call("c", "complete", &json!({"value": "Once upon"}));
    let asked = invoke(&mut core, "c");
    assert_eq!(asked.tool_id, "wharf/sample");
    assert_eq!(Value::Object(asked.input), json!({"prompt": "Once upon"}));
    let said = object(&json!({"text": "a time", "model": "m", "finishReason": "stop"}));
    let said = CallOutcome::Succeeded(said);
    core.session.invoke_result(core.now(), &asked.invoke_id, said).expect("open");
    assert_eq!(core.output("c"), json!({"value": "a time"}));
    core.call("d", "complete", &json!({"value": "x"}));
    let asked = invoke(&mut core, "d");
    let declined = CallOutcome::Failed(Fault::new(Code::ToolDeclined, "Not today."));
    core.session.invoke_result(core.now(), &asked.invoke_id, declined).expect("open");
    let fault = core.failure("d");
    assert!(fault.is(Code::ToolDeclined) && fault.message == "Not today.", "{fault}");
}

#[test]
fn k003_k016_a_tool_without_an_implementation_is_called_through_the_core() {
    let Joined { mut core, root: _root, .. } = joined();
    core.call("c", "where", &json!({}));
    let asked = invoke(&mut core, "c");
    assert_eq!(asked.tool_id, "browser/get-location");
    assert_eq!(Value::Object(asked.input), json!({"value": 7}));
    let piece = partial(&json!({"value": "looking"}));
    core.session.invoke_chunk(core.now(), &asked.invoke_id, piece.clone()).expect("open");
    let found = CallOutcome::Succeeded(object(&json!({"value": [1.5, 2.5]})));
    core.session.invoke_result(core.now(), &asked.invoke_id, found).expect("open");
    assert_eq!(core.output("c"), json!({"value": [1.5, 2.5]}));
    assert_eq!(core.chunks("c"), [piece]);
    // What does not fit the definition never reaches the tool.
    core.call("d", "where", &json!({}));
    let asked = invoke(&mut core, "d");
    let unfit = CallOutcome::Succeeded(object(&json!({"value": ["here"]})));
    core.session.invoke_result(core.now(), &asked.invoke_id, unfit).expect("open");
    assert!(core.failure("d").is(Code::ToolInvalidOutput));
}

#[test]
fn k003_a_tool_that_nobody_knows_is_named() {
    let Joined { mut core, root: _root, .. } = joined();
    core.call("c", "lost", &json!({}));
    let fault = core.failure("c");
    assert!(fault.is(Code::ToolUnavailable) && fault.message.contains("\"nobody\""), "{fault}");
}

#[test]
fn k004_a_panic_and_an_unfit_output_fail_their_call_and_no_other() {
    let Joined { mut core, root: _root, .. } = joined();
    core.call("c", "panic", &json!({}));
    let fault = core.failure("c");
    assert!(fault.is(Code::ToolInternal) && !fault.message.contains("canary"), "{fault}");
    core.call("d", "large", &json!({}));
    let fault = core.failure("d");
    assert!(fault.is(Code::ToolInvalidOutput), "{fault}");
    assert_eq!(fault.details["path"], "/n");
    core.call("e", "search", &json!({"to": "Oslo"}));
    core.output("e");
    core.assert_flawless();
}

#[test]
fn k012_k026_a_canceled_call_is_dropped_and_cleans_up_before_it_is_answered() {
    let Joined { mut core, cleaned, root: _root, .. } = joined();
    core.call("c", "hang", &json!({}));
    core.wait("hanging", |event| matches!(event, CoreEvent::Notice { .. }).then_some(()));
    core.session.cancel(core.now(), &id("c"), CancelCall::default()).expect("open");
    let end = core.end("c");
    assert!(matches!(end.outcome, CallOutcome::Canceled(_)), "{end:?}");
    assert_eq!(cleaned.load(Ordering::SeqCst), 1);
    core.assert_flawless();
}

#[test]
fn k010_k011_layers_stand_around_calls_that_are_served_also_when_added_later() {
    let Joined { mut core, root, .. } = joined();
    root.around(&SEARCH, |mut trip, next| async move {
        trip.to.push_str(" via Bergen");
        next.run(trip).await
    });
    core.call("c", "search", &json!({"to": "Oslo"}));
    assert_eq!(core.output("c"), json!({"value": ["Crab Air to Oslo via Bergen"]}));
}

#[test]
fn k021_a_scope_that_is_closed_serves_no_more_calls() {
    let Joined { mut core, root, cleaned, .. } = joined();
    core.call("c", "hang", &json!({}));
    core.wait("hanging", |event| matches!(event, CoreEvent::Notice { .. }).then_some(()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(root.close());
    assert!(core.failure("c").is(Code::ToolCanceled));
    until(|| cleaned.load(Ordering::SeqCst) == 1);
}

#[test]
fn k002_what_nobody_provided_cannot_be_served() {
    let root = Scope::root();
    let agent = flight(&root, "x", &Arc::default());
    assert!(AgentProcess::of("a.b", "1", &agent).build().is_ok());
    let served = |name| served_by_name(&agent, name).map(drop);
    let error = served("nobody").expect_err("not there");
    assert!(error.to_string().contains("nobody provided the tool \"nobody\""), "{error}");
    // A tool that is executed elsewhere is called through the core, not offered to it.
    let error = served("locate").expect_err("remote");
    assert!(error.to_string().contains("\"locate\""), "{error}");
    let checked = AgentProcess::of("a.b", "1", &agent).build().expect("usable");
    let names = checked.tool_ids();
    assert!(names.contains(&"a.b/search") && !names.contains(&"a.b/locate"), "{names:?}");
}
