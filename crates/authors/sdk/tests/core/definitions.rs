//! Definitions, their implementations, and how they are found.

use serde::{Deserialize, Serialize};
use serde_json::json;
use wharf_sdk::{
    Code, Cx, Error, Fault, FaultCode, Implemented, JsonSchema, Scope, Tool, Within, boxed,
};

use crate::support::{DOUBLE, code};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
struct Trip {
    destination: String,
    #[schemars(range(min = 1, max = 9))]
    seats: u8,
}

const BOOK: Tool<Trip, String, u8> = Tool::new("book", "Books a trip.");

const OWN: Tool<u32, u32, (), Implemented> = Tool::new("own", "Has its own implementation.")
    .implemented(|n, _cx| boxed(async move { Ok(n) }));

#[test]
fn k001_a_definition_is_a_value_without_state() {
    let copy = BOOK;
    assert_eq!((copy.name(), copy.description()), ("book", "Books a trip."));
    assert_eq!(format!("{BOOK:?}"), r#"Tool { name: "book", .. }"#);
}

#[test]
fn k001_schemas_come_from_the_types() {
    let scope = Scope::root();
    scope.provide(&BOOK, |_, _| async { Ok(String::new()) }).expect("a good tool");
    scope.provide(&DOUBLE, |n, _| async move { Ok(n) }).expect("a good tool");
    let agent = wharf_sdk::Agent::<()>::new("a", "An agent.");
    let active = agent
        .activate(&scope, ())
        .tool(&BOOK, |_, _| async { Ok(String::new()) })
        .tool(&DOUBLE, |n, _| async move { Ok(n) })
        .build()
        .expect("a good agent");
    let tools = active.tools();
    let book = tools[0].definition();
    assert_eq!(book.input["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(book.input["properties"]["seats"]["maximum"], 9);
    assert_eq!(book.input["required"], json!(["destination", "seats"]));
    assert_eq!(book.output["type"], "string");
    assert_eq!(book.progress.as_ref().expect("it says something")["type"], "integer");
    assert_eq!(tools[1].definition().progress, None, "a tool that says nothing has no such schema");
}

#[tokio::test]
async fn k002_an_implementation_can_be_in_the_definition() {
    assert_eq!(OWN.call(&Scope::root(), 3).await, Ok(3));
}

#[tokio::test]
async fn k002_an_implementation_can_be_given_in_a_scope() {
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    assert_eq!(DOUBLE.call(&scope, 4).await, Ok(8));
}

#[tokio::test]
async fn k002_an_own_implementation_stays_whatever_a_scope_has_of_that_name() {
    const SAME: Tool<u32, u32> = Tool::new("own", "Has the same name.");
    let scope = Scope::root();
    scope.provide(&SAME, |n, _cx| async move { Ok(n + 100) }).expect("a good tool");
    assert_eq!(OWN.call(&scope, 3).await, Ok(3));
    assert_eq!(SAME.call(&scope, 3).await, Ok(103));
}

#[tokio::test]
async fn k002_two_definitions_of_one_name_and_type_keep_their_own_implementations() {
    const OTHER: Tool<u32, u32, (), Implemented> =
        Tool::new("own", "Another one.").implemented(|n, _cx| boxed(async move { Ok(n + 7) }));
    let scope = Scope::root();
    for _ in 0..3 {
        assert_eq!(OWN.call(&scope, 1).await, Ok(1));
        assert_eq!(OTHER.call(&scope, 1).await, Ok(8));
    }
}

#[tokio::test]
async fn k003_without_implementation_and_transport_the_tool_is_named() {
    let fault = DOUBLE.call(&Scope::root(), 1).await.expect_err("nobody executes it");
    assert!(fault.is(Code::ToolUnavailable));
    assert!(fault.message.contains("\"double\""), "{}", fault.message);
    assert_eq!(fault.details["executed"], "no");
}

#[tokio::test]
async fn k004_calls_are_independent() {
    let scope = Scope::root();
    let (let_go, wait) = tokio::sync::watch::channel(false);
    scope
        .provide(&DOUBLE, move |n, _cx| {
            let mut wait = wait.clone();
            async move {
                if n == 1 {
                    wait.wait_for(|go| *go).await.expect("somebody lets it go");
                }
                Ok(2 * n)
            }
        })
        .expect("a good tool");
    let first = tokio::spawn(DOUBLE.call(&scope, 1));
    for n in 2..50 {
        assert_eq!(DOUBLE.call(&scope, n).await, Ok(2 * n), "the first one waits still");
    }
    let_go.send(true).expect("it waits");
    assert_eq!(first.await.expect("it does not panic"), Ok(2));
}

#[tokio::test]
async fn k004_a_fault_reaches_the_caller_as_it_is() {
    let scope = Scope::root();
    let own = FaultCode::parse("acme.no_stock").expect("a well-formed code");
    let given = Fault::with_code(own, "There is none left.", true).with("item", "anchor");
    let clone = given.clone();
    scope
        .provide(&DOUBLE, move |_, _cx| std::future::ready(Err(clone.clone())))
        .expect("a good tool");
    assert_eq!(DOUBLE.call(&scope, 1).await, Err(given));
}

#[tokio::test]
async fn k005_json_is_checked_before_anything_happens() {
    let scope = Scope::root();
    let agent = wharf_sdk::Agent::<()>::new("travel", "Travels.");
    let ran = crate::support::Log::default();
    let log = ran.clone();
    let active = agent
        .activate(&scope, ())
        .tool(&BOOK, move |trip: Trip, _cx| {
            log.say("ran");
            async move { Ok(trip.destination) }
        })
        .build()
        .expect("a good agent");
    let book = &active.tools()[0];
    let call = |input| book.call(active.place(), input, None);
    for (input, path) in [
        (json!({"destination": "Tokyo", "seats": 10}), "/seats"),
        (json!({"destination": 7, "seats": 1}), "/destination"),
        (json!({"seats": 1}), ""),
        (json!("Tokyo"), ""),
    ] {
        let fault = call(input).await.expect_err("it does not fit");
        assert!(fault.is(Code::ToolInvalidInput));
        assert_eq!(fault.details["path"], path);
    }
    assert_eq!(ran.len(), 0);
    assert_eq!(call(json!({"destination": "Tokyo", "seats": 1})).await, Ok(json!("Tokyo")));
    assert_eq!(ran.len(), 1);
}

#[tokio::test]
async fn k005_an_output_that_breaks_its_schema_does_not_leave() {
    const AGAIN: Tool<u8, Trip> = Tool::new("again", "The same trip again.");
    let scope = Scope::root();
    let active = wharf_sdk::Agent::<()>::new("travel", "Travels.")
        .activate(&scope, ())
        .tool(&AGAIN, |seats: u8, _cx| async move {
            Ok(Trip { destination: "Tokyo".to_owned(), seats })
        })
        .build()
        .expect("a good agent");
    let again = &active.tools()[0];
    assert!(again.call(active.place(), json!(9), None).await.is_ok());
    let fault = again.call(active.place(), json!(10), None).await.expect_err("too many seats");
    assert!(fault.is(Code::ToolInvalidOutput));
    assert_eq!(fault.details["path"], "/seats");
}

#[tokio::test]
async fn k005_typed_calls_are_not_written_as_json() {
    /// Cannot be written at all.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Unwritable(u8);
    impl Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("never"))
        }
    }
    const KEEP: Tool<Unwritable, Unwritable> = Tool::new("keep", "Keeps it.");
    let scope = Scope::root();
    scope.provide(&KEEP, |value, _cx| async move { Ok(value) }).expect("a good tool");
    assert_eq!(KEEP.call(&scope, Unwritable(3)).await, Ok(Unwritable(3)));
}

#[tokio::test]
async fn k006_a_child_shadows_and_the_parents_stays() {
    let parent = Scope::root();
    parent.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let child = parent.child();
    child.provide(&DOUBLE, |_, _cx| async move { Ok(0) }).expect("a child may");
    assert_eq!(DOUBLE.call(&child, 5).await, Ok(0));
    assert_eq!(DOUBLE.call(&parent, 5).await, Ok(10));
    assert_eq!(DOUBLE.call(&child.child(), 5).await, Ok(0));
    drop(child);
    assert_eq!(DOUBLE.call(&parent.child(), 5).await, Ok(10));
}

#[tokio::test]
async fn k006_a_tool_calls_others_as_its_caller_sees_them() {
    const QUADRUPLE: Tool<u32, u32> = Tool::new("quadruple", "Four times as much.");
    async fn quadruple(n: u32, cx: Cx) -> Result<u32, Fault> {
        let twice = DOUBLE.call(&cx, n).await?;
        DOUBLE.call(&cx, twice).await
    }
    let parent = Scope::root();
    parent.provide(&QUADRUPLE, quadruple).expect("a good tool");
    parent.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let child = parent.child();
    child.provide(&DOUBLE, |n, _cx| async move { Ok(n + 1) }).expect("a child may");
    assert_eq!(QUADRUPLE.call(&parent, 1).await, Ok(4));
    assert_eq!(QUADRUPLE.call(&child, 1).await, Ok(3));
}

#[test]
fn k006_two_tools_of_one_name_in_one_scope_are_an_error() {
    const OTHER: Tool<String, String> = Tool::new("double", "Says it twice.");
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(n) }).expect("the first one");
    let error = scope.provide(&OTHER, |text, _cx| async move { Ok(text) });
    assert_eq!(error, Err(Error::SameName { name: "double".to_owned() }));
    let error = scope.remote(&DOUBLE, None);
    assert_eq!(error, Err(Error::SameName { name: "double".to_owned() }));
    scope.offer(&OWN).expect("another name");
    assert_eq!(scope.offer(&OWN), Err(Error::SameName { name: "own".to_owned() }));
}

#[tokio::test]
async fn k006_a_tool_of_other_types_is_told_from_its_namesake() {
    const OTHER: Tool<String, String> = Tool::new("double", "Says it twice.");
    let scope = Scope::root();
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("the first one");
    let fault = OTHER.call(&scope, "a".to_owned()).await.expect_err("it is another tool");
    assert!(fault.is(Code::ToolConflict));
    assert!(fault.message.contains("\"double\""));
    assert_eq!(DOUBLE.call(&scope, 1).await, Ok(2), "the first one is not harmed");
    let child = scope.child();
    child
        .provide(&OTHER, |text: String, _cx| async move { Ok(text.repeat(2)) })
        .expect("a child may");
    assert_eq!(OTHER.call(&child, "a".to_owned()).await, Ok("aa".to_owned()));
}

#[tokio::test]
async fn k006_no_name_of_a_user_is_one_of_ours() {
    const FAKE: Tool<wharf_sdk::builtin::Notice, ()> = Tool::new("wharf:notify", "Is not ours.");
    let scope = Scope::root();
    assert!(matches!(scope.provide(&FAKE, |_, _cx| async { Ok(()) }), Err(Error::ToolName { .. })));
    let log = crate::support::Log::default();
    let layer = log.clone();
    scope.around(&FAKE, move |notice, next| {
        layer.say("seen");
        async move { next.run(notice).await }
    });
    scope.provide(&wharf_sdk::builtin::NOTIFY, |_, _cx| async { Ok(()) }).expect("ours");
    assert_eq!(wharf_sdk::builtin::notify(&scope, "hello").await, Ok(()));
    assert_eq!(log.len(), 0, "a layer around the fake does not see the real one");
    let notice = wharf_sdk::builtin::Notice::new("hello");
    assert_eq!(code(FAKE.call(&scope, notice).await), "tool.not_found");
    for name in ["form", "confirmation", "sample", "notification"] {
        let reserved: Tool<(), ()> = Tool::new(name, "Means something on the wire.");
        let error = scope.provide(&reserved, |_, _cx| async { Ok(()) });
        assert_eq!(error, Err(Error::ReservedName { name: name.to_owned() }));
    }
    for name in ["", "a b", "ä", "a/b", "a:b"] {
        let bad: Tool<(), ()> = Tool::new(name, "Has a bad name.");
        let error = scope.provide(&bad, |_, _cx| async { Ok(()) });
        assert_eq!(error, Err(Error::ToolName { name: name.to_owned() }));
    }
}
