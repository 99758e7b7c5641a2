//! Asking, telling, and completions by a model.

use serde::{Deserialize, Serialize};
use serde_json::json;
use wharf_sdk::builtin::{
    self, Answer, Completion, ELICIT, Level, Message, NOTIFY, Notice, Prompt, Question, SAMPLE,
    Said,
};
use wharf_sdk::transport::{Kind, Reply};
use wharf_sdk::{Code, Cx, Fault, JsonSchema, Scope, Tool};

use crate::support::{Log, answers, code};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

fn answered(reply: Answer) -> Scope {
    let scope = Scope::root();
    scope
        .provide(&ELICIT, move |_, _cx| std::future::ready(Ok(reply.clone())))
        .expect("a built-in can be provided");
    scope
}

#[tokio::test]
async fn k018_every_ending_of_a_question_is_a_value() {
    for (reply, expected) in [
        (Answer::Accepted(json!({"ok": true})), Answer::Accepted(Confirm { ok: true })),
        (Answer::Declined, Answer::Declined),
        (Answer::Cancelled, Answer::Cancelled),
        (Answer::Denied, Answer::Denied),
        (Answer::OffScript("Maybe.".to_owned()), Answer::OffScript("Maybe.".to_owned())),
    ] {
        assert_eq!(builtin::ask(&answered(reply), "Go on?").await, Ok(expected));
    }
}

#[tokio::test]
async fn k018_an_answer_is_checked() {
    let scope = answered(Answer::Accepted(json!({"ok": "canary"})));
    let fault = builtin::ask::<Confirm>(&scope, "Go on?").await.expect_err("it does not fit");
    assert!(fault.is(Code::AskAnswerInvalid));
    assert_eq!(fault.details["path"], "/ok");
    assert!(!fault.message.contains("canary"));
}

#[tokio::test]
async fn k018_every_ending_over_a_transport_is_a_value_and_only_trouble_is_an_error() {
    for (answer, expected) in [
        (Reply::Accepted(json!({"ok": true})), Answer::Accepted(Confirm { ok: true })),
        (Reply::Declined, Answer::Declined),
        (Reply::Cancelled, Answer::Cancelled),
        (Reply::Denied, Answer::Denied),
        (Reply::OffScript("Maybe.".to_owned()), Answer::OffScript("Maybe.".to_owned())),
    ] {
        let scope = Scope::root().with_transport(answers(vec![], move |request| {
            assert_eq!((request.kind, &*request.method), (Kind::Elicit, "form"));
            assert_eq!(request.payload["message"], "Go on?");
            assert_eq!(request.payload["schema"]["properties"]["ok"]["type"], "boolean");
            assert_eq!(request.payload.as_object().expect("an object").len(), 2);
            answer.clone()
        }));
        assert_eq!(builtin::ask(&scope, "Go on?").await, Ok(expected));
    }
    let lost = Scope::root().with_transport(answers(vec![], |_| Reply::Lost));
    assert_eq!(code(builtin::ask::<Confirm>(&lost, "Go on?").await), "transport.lost");
    assert_eq!(code(builtin::ask::<Confirm>(&Scope::root(), "?").await), "tool.unavailable");
}

#[tokio::test]
async fn k017_the_callers_own_word_for_a_question_stands_on_the_wire() {
    let scope = Scope::root().with_transport(answers(vec![], |request| {
        assert_eq!(request.method, "colour");
        assert!(request.payload.get("type").is_none());
        Reply::Accepted(json!("red"))
    }));
    let mut question = Question::form("Which?", json!({"type": "string"}));
    question.word = "colour".to_owned();
    assert_eq!(ELICIT.call(&scope, question).await, Ok(Answer::Accepted(json!("red"))));
}

#[tokio::test]
async fn k018_notify_acknowledges_and_can_fail() {
    let scope = Scope::root().with_transport(answers(vec![], |request| {
        assert_eq!((request.kind, &*request.method), (Kind::Notify, "notification"));
        assert_eq!(
            request.payload,
            json!({"message": "Half.", "progress": 0.5, "level": "warning"})
        );
        Reply::Acknowledged
    }));
    let notice = Notice::new("Half.").progress(0.5).level(Level::Warning);
    assert_eq!(NOTIFY.call(&scope, notice).await, Ok(()));
    let lost = Scope::root().with_transport(answers(vec![], |_| Reply::Lost));
    assert_eq!(code(builtin::notify(&lost, "Half.").await), "transport.lost");
}

#[tokio::test]
async fn k018_sample_gives_what_the_model_said_and_declined_is_an_error() {
    let scope = Scope::root().with_transport(answers(vec![], |request| {
        assert_eq!((request.kind, &*request.method), (Kind::Elicit, "sample"));
        assert_eq!(request.payload["maxTokens"], 150);
        assert_eq!(request.payload["prompt"], json!([{"role": "user", "content": "Hi."}]));
        let usage = json!({"in": 1});
        Reply::Accepted(
            json!({"text": "Ho.", "usage": usage, "model": "m", "finishReason": "stop"}),
        )
    }));
    let said = Message { role: "user".to_owned(), content: "Hi.".to_owned() };
    let completion = SAMPLE
        .call(&scope, Prompt::conversation(vec![said]).max_tokens(150))
        .await
        .expect("it works");
    assert_eq!(completion.text, "Ho.");
    assert_eq!(completion.finish_reason.as_deref(), Some("stop"));
    let declined = Scope::root().with_transport(answers(vec![], |_| Reply::Declined));
    assert_eq!(code(builtin::sample(&declined, "Hi.").await), "tool.declined");
}

#[tokio::test]
async fn k017_built_ins_are_ordinary_tools_and_can_be_redacted() {
    const WRITE: Tool<String, String> = Tool::new("write", "Writes a letter.");
    async fn write(to: String, cx: Cx) -> Result<String, Fault> {
        cx.notify(format!("Writing to {to}")).await?;
        Ok(cx.sample(format!("Write to {to}.")).await?.text)
    }
    let log = Log::default();
    let scope = Scope::root();
    scope.provide(&WRITE, write).expect("a good tool");
    let told = log.clone();
    scope
        .provide(&NOTIFY, move |notice, _cx| {
            told.say(notice.message);
            std::future::ready(Ok(()))
        })
        .expect("a built-in can be provided");
    scope
        .provide(&SAMPLE, |prompt, _cx| async move {
            let Said::Text(text) = prompt.prompt else { return Ok(Completion::default()) };
            Ok(Completion { text, ..Completion::default() })
        })
        .expect("a built-in can be provided");
    let hide = |text: &str| text.replace("Ada", "[name]");
    let redact = wharf_sdk::layers::Redact::input(hide);
    scope.layer(wharf_sdk::Lane::Outer, &SAMPLE, redact.clone().fields(["prompt"]));
    scope.layer(wharf_sdk::Lane::Outer, &NOTIFY, redact);
    assert_eq!(WRITE.call(&scope, "Ada".to_owned()).await, Ok("Write to [name].".to_owned()));
    assert_eq!(log.take(), ["Writing to [name]"]);
}
