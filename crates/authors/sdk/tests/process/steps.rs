//! Durable tools: the steps that they ask for, and what they get when they are repeated.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use wharf_protocol::agent::{CallOutcome, CoreEvent, CoreLimits, InvokeReceived};
use wharf_sdk::{AgentProcess, Cx, Fault, Tool};
use wharf_vocab::Code;

use crate::core::{Core, Listener, id};
use crate::tools::{Running, start};

const FETCH: Tool<String, usize> = Tool::new("fetch", "Reads a page.").at("web/fetch");
const WALK: Tool<(), Vec<usize>> = Tool::new("walk", "Takes its steps.").durable(true);
const TWICE: Tool<(), ()> = Tool::new("twice", "Uses one name twice at once.").durable(true);

/// How often local code ran.
static ROLLED: AtomicUsize = AtomicUsize::new(0);

async fn walk(_: (), cx: Cx) -> Result<Vec<usize>, Fault> {
    let first = cx.step("fetch", &FETCH, "a".to_owned()).await?;
    let rolled = async || Ok(ROLLED.fetch_add(1, Ordering::Relaxed) + 40);
    let rolled = cx.local("roll", rolled).await?;
    let (left, right) = tokio::join!(
        cx.step("fetch", &FETCH, "b".to_owned()),
        cx.step("other", &FETCH, "c".to_owned())
    );
    Ok(vec![first, rolled, left?, right?])
}

async fn twice(_: (), cx: Cx) -> Result<(), Fault> {
    let both = || cx.step("fetch", &FETCH, "a".to_owned());
    tokio::try_join!(both(), both()).map(drop)
}

const MANY: Tool<Vec<String>, Vec<usize>> =
    Tool::new("many", "Takes many steps of one name.").durable(true);

async fn many(urls: Vec<String>, cx: Cx) -> Result<Vec<usize>, Fault> {
    let mut all = cx.each("fetch", &FETCH, urls).at_once(2).await?;
    all.push(cx.step("fetch", &FETCH, "z".to_owned()).await?);
    Ok(all)
}

fn joined() -> (Core, Running) {
    let listener = Listener::unix();
    let agent = AgentProcess::new("dev.test.steps", "1.0.0").tool(&WALK, walk).tool(&TWICE, twice);
    let agent = agent.tool(&MANY, many);
    let running = start(agent, &listener);
    (Core::joined(&listener, CoreLimits::default()), running)
}

fn invoked(core: &mut Core, call: &str, n: usize) -> InvokeReceived {
    let mut seen = 0;
    core.wait("a step", |event| match event {
        CoreEvent::Invoke(received) if received.parent_call_id == id(call) => {
            seen += 1;
            (seen > n).then(|| (**received).clone())
        }
        _ => None,
    })
}

fn answer(core: &mut Core, received: &InvokeReceived, given: Value) {
    let Value::Object(output) = given else { panic!("an object") };
    let outcome = CallOutcome::Succeeded(output);
    core.session.invoke_result(core.now(), &received.invoke_id, outcome).expect("open");
}

/// Answers what an attempt asks until it is over; `kept` is what the core has of its local code.
fn attempt(core: &mut Core, call: &str, kept: &mut Option<Value>) -> Value {
    core.call(call, "walk", &json!({}));
    let first = invoked(core, call, 0);
    assert_eq!((first.tool_id.as_str(), &first.input["value"]), ("web/fetch", &json!("a")));
    assert_eq!(first.step.as_ref().map(ToString::to_string).as_deref(), Some("fetch#1"));
    answer(core, &first, json!({"value": 1}));
    let turns = if kept.is_some() { 1 } else { 2 };
    for turn in 0..turns {
        let mut seen = 0;
        let local = core.wait("a value", |event| match event {
            CoreEvent::StepLocal(local) if local.call_id == id(call) => {
                seen += 1;
                (seen > turn).then(|| (**local).clone())
            }
            _ => None,
        });
        assert_eq!((local.step.name(), local.step.n()), ("roll", 1));
        assert_eq!(local.value.is_some(), turn == 1, "it asks first");
        *kept = kept.take().or(local.value);
        core.session.step_kept(core.now(), &id(call), &local.step, Ok(kept.clone())).expect("open");
    }
    for n in [1, 2] {
        let step = invoked(core, call, n);
        let named = step.step.as_ref().expect("a step");
        assert!(["fetch#2", "other#1"].contains(&named.to_string().as_str()), "{named}");
        answer(core, &step, json!({"value": named.n()}));
    }
    core.output(call)
}

#[test]
fn f022_f023_f028_a_durable_tool_asks_for_the_same_steps_each_time() {
    let (mut core, _running) = joined();
    let mut kept = None;
    let first = attempt(&mut core, "c-1", &mut kept);
    assert_eq!(first, json!({"value": [1, 40, 2, 1]}));
    assert_eq!(attempt(&mut core, "c-2", &mut kept), first);
    assert_eq!(ROLLED.load(Ordering::Relaxed), 1, "what was kept does not run again");
    core.assert_flawless();
}

#[test]
fn f022_f024_each_does_so_many_at_once_and_keeps_their_order() {
    let (mut core, _running) = joined();
    core.call("c-1", "many", &json!({"value": ["a", "b", "c"]}));
    let mut begun: Vec<InvokeReceived> = (0..2).map(|n| invoked(&mut core, "c-1", n)).collect();
    let numbers = |begun: &[InvokeReceived]| -> Vec<String> {
        begun.iter().filter_map(|one| one.step.as_ref()).map(ToString::to_string).collect()
    };
    assert_eq!(numbers(&begun), ["fetch#1", "fetch#2"]);
    // The third begins when one of them is over, and not sooner.
    answer(&mut core, &begun[1], json!({"value": 2}));
    begun.push(invoked(&mut core, "c-1", 2));
    answer(&mut core, &begun[2], json!({"value": 3}));
    answer(&mut core, &begun[0], json!({"value": 1}));
    begun.push(invoked(&mut core, "c-1", 3));
    assert_eq!(numbers(&begun[2..]), ["fetch#3", "fetch#4"]);
    answer(&mut core, &begun[3], json!({"value": 4}));
    assert_eq!(core.output("c-1"), json!({"value": [1, 2, 3, 4]}));
    core.assert_flawless();
}

#[test]
fn f024_one_name_twice_at_once_is_refused() {
    let (mut core, _running) = joined();
    core.call("c-1", "twice", &json!({}));
    // The first is not answered, so it is under way for as long as there is a second.
    let fault = core.failure("c-1");
    assert!(fault.is(Code::StepInUse) && fault.message.contains("`fetch`"), "{fault}");
}

#[test]
fn r175_a_definition_says_that_it_is_durable() {
    assert!(WALK.terms().durable && !FETCH.terms().durable);
    let (core, _running) = joined();
    let said = core.seen.iter().find_map(|event| match event {
        CoreEvent::ToolsRegistered { added, .. } => added.first().cloned(),
        _ => None,
    });
    let capabilities = said.and_then(|tool| tool.capabilities).expect("registered");
    assert!(capabilities.contains(&"durable".to_owned()), "{capabilities:?}");
}
