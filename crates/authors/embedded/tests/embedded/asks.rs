//! Questions and approvals of runs.

use serde_json::{Value, json};
use wharf_embedded::{AskKind, Code, Embedded, RunStatus};
use wharf_sdk::Answer;
use wharf_sdk::Scope;
use wharf_sdk::builtin::ask;

use crate::tools::{Confirm, FLIGHT, SEARCH, Settings, Up, asked, eventually, search, up};

#[tokio::test]
async fn k018_k019_a_question_waits_in_the_inbox_and_every_answer_reaches_the_tool() {
    let Up { core, root: _root, .. } = up().await;
    let answers = [
        (Answer::Accepted(json!({"ok": true})), "accepted true"),
        (Answer::Declined, "declined"),
        (Answer::Cancelled, "cancelled"),
        (Answer::OffScript("perhaps".to_owned()), "off script: perhaps"),
    ];
    for (answer, expected) in answers {
        let run = core.run("flight/confirm", Value::Null).start().await.expect("accepted");
        let ask = asked(&core, &run).await;
        assert_eq!((ask.kind, ask.title.as_str()), (AskKind::Question, "Really?"));
        assert_eq!(core.inbox().await.expect("readable"), std::slice::from_ref(&ask));
        assert_eq!(core.find(&run).await.expect("there").status, RunStatus::Waiting);
        let unfit = core.answer(&ask.id, Answer::Accepted(json!({"ok": 1}))).await;
        assert!(unfit.expect_err("it does not fit").is(Code::AskAnswerInvalid));
        core.answer(&ask.id, answer).await.expect("answered");
        assert_eq!(core.wait(&run).await.expect("succeeded"), json!(expected));
        let late = core.answer(&ask.id, Answer::Declined).await.expect_err("decided");
        assert!(late.is(Code::AskDecided), "{late}");
    }
    assert_eq!(core.inbox().await.expect("readable"), []);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k018_a_question_that_nobody_waits_for_is_taken_back() {
    let Up { core, root: _root, .. } = up().await;
    let run = core.run("flight/hasty", Value::Null).start().await.expect("accepted");
    assert_eq!(core.wait(&run).await.expect("succeeded"), json!("went on"));
    assert_eq!(core.inbox().await.expect("readable"), []);
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k018_k022_a_scope_of_the_program_asks_through_the_core() {
    let core = Embedded::in_memory().await.expect("a core");
    let scope = Scope::root().with_transport(core.transport("default").expect("a world"));
    let answering = async {
        eventually(async || !core.inbox().await.expect("readable").is_empty()).await;
        let ask = core.inbox().await.expect("readable").remove(0);
        core.answer(&ask.id, Answer::Accepted(json!({"ok": true}))).await.expect("answered");
    };
    let (answer, ()) = tokio::join!(ask::<Confirm>(&scope, "Well?"), answering);
    assert!(matches!(answer, Ok(Answer::Accepted(Confirm { ok: true }))));
    core.close().await.expect("closed");
}

#[tokio::test]
async fn k019_a_tool_that_needs_approval_runs_once_it_is_allowed() {
    let root = Scope::root();
    let core = Embedded::in_memory().await.expect("a core");
    let careful = FLIGHT
        .activate(&root, Settings { airline: "Crab Air".to_owned() })
        .tool(&SEARCH.requires_directive(true), search)
        .build()
        .expect("a usable agent");
    core.offer("flight", &careful).await.expect("offered");
    let start = || core.run("flight/search", json!({"to": "Oslo"})).start();
    let run = start().await.expect("accepted");
    let ask = asked(&core, &run).await;
    assert_eq!(ask.kind, AskKind::Approval);
    core.allow(&ask.id).await.expect("allowed");
    assert_eq!(core.wait(&run).await.expect("succeeded"), json!(["Crab Air to Oslo"]));
    let run = start().await.expect("accepted");
    core.deny(&asked(&core, &run).await.id, "Not today.").await.expect("denied");
    assert!(core.wait(&run).await.expect_err("refused").is(Code::AskDenied));
    assert_eq!(core.find(&run).await.expect("there").status, RunStatus::Refused);
    core.close().await.expect("closed");
}
