//! Tools that are executed elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::json;
use wharf_sdk::transport::{Kind, Reply};
use wharf_sdk::{Agent, Code, Fault, JsonSchema, Scope, Tool};

use crate::support::{DOUBLE, Log, Silent, WAIT, answers, code};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Spot {
    #[schemars(range(min = -90, max = 90))]
    lat: i32,
}

const LOCATE: Tool<String, Spot, String> = Tool::new("get-location", "Where the user is.");

fn located(lat: i32) -> Reply {
    Reply::Accepted(json!({"lat": lat}))
}

async fn locate(scope: &Scope) -> Result<Spot, Fault> {
    LOCATE.call(scope, "high".to_owned()).await
}

#[tokio::test]
async fn k003_a_call_without_implementation_goes_to_the_nearest_transport() {
    let parent = Scope::root().with_transport(answers(vec![], |_| located(1)));
    let child = parent.child().with_transport(answers(vec![], |_| located(2)));
    assert_eq!(locate(&parent).await, Ok(Spot { lat: 1 }));
    assert_eq!(locate(&child).await, Ok(Spot { lat: 2 }));
    assert_eq!(locate(&parent.child()).await, Ok(Spot { lat: 1 }));
    assert_eq!(locate(&child.child()).await, Ok(Spot { lat: 2 }));
}

#[tokio::test]
async fn k003_the_transport_is_found_at_call_time() {
    let scope = Scope::root();
    let child = scope.child();
    assert_eq!(code(locate(&child).await), "tool.unavailable");
    scope.set_transport(answers(vec![], |_| located(1)));
    assert_eq!(locate(&child).await, Ok(Spot { lat: 1 }));
    scope.set_transport(answers(vec![], |_| located(2)));
    assert_eq!(locate(&child).await, Ok(Spot { lat: 2 }));
}

#[tokio::test]
async fn k003_what_goes_out_is_the_name_and_the_input() {
    let log = Log::default();
    let seen = log.clone();
    let scope = Scope::root().with_transport(answers(vec![], move |request| {
        assert_eq!(request.kind, Kind::Elicit);
        seen.say(format!("{} {} {}", request.method, request.payload, request.heard));
        located(0)
    }));
    locate(&scope).await.expect("it is answered");
    assert_eq!(log.take(), [r#"get-location "high" false"#]);
}

#[tokio::test]
async fn k002_an_implementation_is_preferred_to_a_transport() {
    let scope = Scope::root().with_transport(answers(vec![], |_| located(1)));
    scope.provide(&LOCATE, |_, _cx| async { Ok(Spot { lat: 5 }) }).expect("a good tool");
    assert_eq!(locate(&scope).await, Ok(Spot { lat: 5 }));
    let child = scope.child();
    child.remote(&LOCATE, None).expect("a child may send it elsewhere");
    assert_eq!(locate(&child).await, Ok(Spot { lat: 1 }));
}

#[tokio::test]
async fn k005_an_output_from_elsewhere_is_checked_before_the_caller_sees_it() {
    for (content, path) in
        [(json!({"lat": 91}), "/lat"), (json!({"lat": "canary"}), "/lat"), (json!(null), "")]
    {
        let answer = content.clone();
        let scope =
            Scope::root().with_transport(answers(vec![], move |_| Reply::Accepted(answer.clone())));
        let fault = locate(&scope).await.expect_err("it does not fit");
        assert!(fault.is(Code::ToolInvalidOutput), "{content}");
        assert_eq!(fault.details["path"], path);
        assert!(!fault.message.contains("canary"));
    }
}

#[tokio::test]
async fn k003_every_ending_elsewhere_has_its_code() {
    let fault = Fault::new(Code::ToolBusy, "Not now.");
    for (answer, expected) in [
        (Reply::Declined, "tool.declined"),
        (Reply::Denied, "permission.denied"),
        (Reply::Cancelled, "tool.canceled"),
        (Reply::OffScript("Hm.".to_owned()), "tool.failed"),
        (Reply::Failed(fault), "tool.busy"),
        (Reply::Lost, "transport.lost"),
    ] {
        let scope = Scope::root().with_transport(answers(vec![], move |_| answer.clone()));
        assert_eq!(code(locate(&scope).await), expected);
    }
}

#[tokio::test]
async fn k020_progress_from_elsewhere_is_the_same_as_from_here() {
    let pieces = vec![json!("asking"), json!(7), json!("found")];
    let scope = Scope::root().with_transport(answers(pieces, |request| {
        assert!(request.heard);
        located(3)
    }));
    let mut call = LOCATE.call(&scope, "high".to_owned());
    let mut heard = Vec::new();
    while let Some(piece) = call.progress().await {
        heard.push(piece);
    }
    assert_eq!(heard, ["asking", "found"], "what does not fit the type is nobody's");
    assert_eq!(call.await, Ok(Spot { lat: 3 }));
}

#[tokio::test]
async fn k012_layers_stand_around_calls_that_go_elsewhere_and_dropping_calls_those_off() {
    let log = Log::default();
    let scope = Scope::root().with_transport(Silent(log.clone()));
    let seen = log.clone();
    scope.around(&WAIT, move |input, next| {
        seen.say("layer");
        async move { next.run(input).await }
    });
    let mut call = WAIT.call(&scope, ());
    assert!(futures::poll!(&mut call).is_pending());
    assert_eq!(log.take(), ["layer"]);
    drop(call);
    assert_eq!(log.take(), ["called off"]);
}

#[tokio::test]
async fn k021_closing_a_scope_calls_off_what_went_elsewhere() {
    let log = Log::default();
    let scope = Scope::root().with_transport(Silent(log.clone()));
    let call = tokio::spawn(WAIT.call(&scope, ()));
    tokio::task::yield_now().await;
    scope.close().await;
    assert_eq!(log.take(), ["called off"]);
    assert_eq!(code(call.await.expect("it does not panic")), "tool.canceled");
}

#[tokio::test]
async fn k010_a_namesake_of_other_types_is_no_way_around_a_layer_to_a_tool_elsewhere() {
    const LOOSE: Tool<serde_json::Value, serde_json::Value> =
        Tool::new("get-location", "Takes anything.");
    let scope = Scope::root().with_transport(answers(vec![], |_| located(1)));
    scope.around(&LOCATE, |_, _next| async {
        Err(Fault::new(Code::PermissionDenied, "Nobody may know."))
    });
    assert_eq!(code(locate(&scope).await), "permission.denied");
    assert_eq!(code(LOOSE.call(&scope, json!("high")).await), "tool.conflict");
}

#[tokio::test]
async fn k016_local_and_remote_tools_mix_and_a_tool_may_have_its_own_transport() {
    const WEATHER: Tool<u8, Spot> = Tool::new("weather", "The weather.");
    let root = Scope::root().with_transport(answers(vec![], |_| located(10)));
    let agent = Agent::<()>::new("guide", "Knows the way.");
    let guide = agent
        .activate(&root, ())
        .tool(&DOUBLE, |n, _cx| async move { Ok(2 * n) })
        .remote(&LOCATE)
        .remote_over(&WEATHER, answers(vec![], |_| located(20)))
        .build()
        .expect("a good agent");
    assert_eq!(DOUBLE.call(&guide, 4).await, Ok(8));
    assert_eq!(LOCATE.call(&guide, "high".to_owned()).await, Ok(Spot { lat: 10 }));
    assert_eq!(WEATHER.call(&guide, 0).await, Ok(Spot { lat: 20 }));
    assert_eq!(WEATHER.call(&root, 0).await, Ok(Spot { lat: 10 }), "outside of the agent");
}
