//! Tools that call back while they work.

use wharf_sdk::builtin::{Answer, ELICIT, NOTIFY, Notice};
use wharf_sdk::{Code, Cx, Fault, Scope, Tool, operative};

use crate::carrier::{Carrier, over_every_transport, soon, until};
use crate::tools::*;

over_every_transport![
    k003_a_tool_calls_back_whoever_called_it,
    k018_a_tool_asks_whoever_called_it,
    k026_what_a_tool_asked_for_is_called_off_with_it,
    k003_a_tool_of_nobody_is_not_sent_around_in_a_circle,
];

const OUTER: Tool<String, String> = Tool::new("outer", "Asks for help.");

async fn outer(said: String, cx: Cx) -> Result<String, Fault> {
    let echo = ECHO.call(&cx, Text { text: said }).await?;
    Ok(format!("{} again", echo.text))
}

async fn k003_a_tool_calls_back_whoever_called_it(carrier: Carrier) {
    let there = Scope::root();
    there.provide(&OUTER, outer).expect("provided");
    let (here, ..) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&there);
    let _helping = operative::serve(&here, &ends.caller);
    let calls = (0..20).map(|n| OUTER.call(&caller, n.to_string()));
    for (n, said) in soon(futures::future::join_all(calls)).await.into_iter().enumerate() {
        assert_eq!(said, Ok(format!("{n} again")));
    }
}

async fn k018_a_tool_asks_whoever_called_it(carrier: Carrier) {
    let there = Scope::root();
    let asks = |message: String, cx: Cx| async move {
        cx.notify("one moment").await?;
        match cx.ask::<Text>(message).await? {
            Answer::Accepted(answer) => Ok(answer.text),
            other => Err(Fault::new(Code::ToolFailed, format!("{other:?}"))),
        }
    };
    there.provide(&OUTER, asks).expect("provided");
    let here = Scope::root();
    let yes = |_question, _cx| async { Ok(Answer::Accepted(serde_json::json!({"text": "yes"}))) };
    here.provide(&ELICIT, yes).expect("provided");
    here.provide(&NOTIFY, |_notice: Notice, _cx| async { Ok(()) }).expect("provided");
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&there);
    let _helping = operative::serve(&here, &ends.caller);
    assert_eq!(soon(OUTER.call(&caller, "well?".to_owned())).await, Ok("yes".to_owned()));
}

async fn k026_what_a_tool_asked_for_is_called_off_with_it(carrier: Carrier) {
    let there = Scope::root();
    let waits = |_, cx: Cx| async move {
        HANG.call(&cx, ()).await?;
        Ok(String::new())
    };
    there.provide(&OUTER, waits).expect("provided");
    let (here, seen, _) = served();
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&there);
    let _helping = operative::serve(&here, &ends.caller);
    let call = tokio::spawn(OUTER.call(&caller, String::new()));
    until("the tool waits for help", || seen.begun() == 1).await;
    call.abort();
    until("the help is called off", || seen.cleaned() == 1).await;
}

async fn k003_a_tool_of_nobody_is_not_sent_around_in_a_circle(carrier: Carrier) {
    let there = Scope::root();
    there.remote(&ECHO, None).expect("remote");
    let here = Scope::root();
    here.remote(&ECHO, None).expect("remote");
    let ends = carrier.ends().await;
    let (caller, _serving) = ends.serve(&there);
    let _helping = operative::serve(&here, &ends.caller);
    let fault = soon(ECHO.call(&caller, Text { text: String::new() })).await.expect_err("nobody");
    assert!(fault.is(Code::ToolNotFound), "{fault:?}");
}
