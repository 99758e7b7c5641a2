//! Programs in Rust that offer tools to the core and call its tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wharf_sdk::operative::{self, Connect, Operative};
use wharf_sdk::transport::{Address, Link, Named, Options, sse};
use wharf_sdk::{Code, Cx, Fault, Scope, Tool, builtin, principal};

use crate::support::{self, Core, TestHome, wait_for};

type Words = BTreeMap<String, String>;

const GREET: Tool<Words, Words, String> = Tool::new("greet", "Greets somebody.");
const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");
const TWICE: Tool<Words, Words> = Tool::new("twice", "Has the core say it again.");
const ASK: Tool<Words, Words> = Tool::new("ask", "Asks somebody.");
const LONG: Tool<Words, Words> = Tool::new("long", "Takes for ever.");
const ECHO: Tool<Value, Value> = Tool::new("wharf-echo", "Says the same again.");

fn words(pairs: &[(&str, &str)]) -> Words {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// What a program in Rust offers, and how it is told that a call was called off.
fn desk() -> (Scope, tokio::sync::mpsc::Receiver<()>) {
    let scope = Scope::root();
    let greet = |ask: Words, cx: Cx<String>| async move {
        cx.progress("thinking".to_owned()).await;
        match ask.get("name").map_or("nobody", String::as_str) {
            "nobody" => Err(Fault::new(Code::ToolFailed, "There is nobody.")),
            name => Ok(words(&[("hello", name)])),
        }
    };
    scope.provide(&GREET, greet).expect("provided");
    scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("provided");
    let twice = |said: Words, cx: Cx| async move {
        // The core is asked for its own tool, as part of the same run.
        const ECHO: Tool<Words, Words> = Tool::new("echo", "");
        ECHO.call(&cx, said).await
    };
    scope.provide(&TWICE, twice).expect("provided");
    let ask = |_: Words, cx: Cx| async move {
        match cx.ask::<Words>("Which one?").await? {
            wharf_sdk::Answer::Accepted(answer) => Ok(answer),
            other => Err(Fault::new(Code::ToolFailed, format!("{other:?}"))),
        }
    };
    scope.provide(&ASK, ask).expect("provided");
    let (told, called_off) = tokio::sync::mpsc::channel(4);
    let long = move |_: Words, cx: Cx| {
        let told = told.clone();
        cx.at_end(async move {
            // A test that has ended does not want to know.
            let _ = told.send(()).await;
        });
        std::future::pending::<Result<Words, Fault>>()
    };
    scope.provide(&LONG, long).expect("provided");
    (scope, called_off)
}

fn token(home: &TestHome, arguments: &[&str]) -> String {
    let arguments = [&["token", "create"], arguments].concat();
    home.run(&arguments).code(0).stdout.trim().to_owned()
}

/// Waits until a run is under way, and gives its id.
fn under_way(home: &TestHome) -> String {
    wait_for("a run is under way", || {
        let runs = home.run(&["runs", "--json"]).code(0).json();
        let mut runs = runs.as_array().cloned().unwrap_or_default().into_iter();
        let run = runs.find(|run| run["status"] == "running")?;
        Some(run["run_id"].as_str().expect("an id").to_owned())
    })
}

async fn connected(home: &TestHome, core: &Core, scope: &Scope) -> Operative {
    // What it serves, and what it calls while it does.
    let tools = ["--verb", "serve", "--tool", "desk/*", "--tool", "wharf/echo"];
    let token = Some(token(home, &tools));
    let backoff = std::time::Duration::from_millis(50);
    let connect = Connect { token, backoff, ..Connect::new("desk") };
    operative::connect(scope, &core.url(), connect).await.expect("connected")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k032_a_rust_program_offers_tools_and_wharf_run_calls_them() {
    let home = TestHome::new();
    let core = home.up();
    let (scope, mut called_off) = desk();
    let operative = connected(&home, &core, &scope).await;
    let mut tools = operative.tools();
    tools.sort();
    let expected = ["desk/ask", "desk/double", "desk/greet", "desk/long", "desk/twice"];
    assert_eq!(tools, expected);
    let greeted = home.run(&["run", "desk/greet", "name=Ada"]).code(0);
    assert_eq!(greeted.json()["outputs"], json!({"hello": "Ada"}));
    let twice = home.run(&["run", "desk/twice", "said=again"]).code(0);
    assert_eq!(twice.json()["outputs"], json!({"said": "again"}));
    let failed = home.run(&["run", "desk/greet", "name=nobody"]).code(1);
    assert!(format!("{failed:?}").contains("There is nobody."), "{failed:?}");
    home.run(&["run", "desk/greet", "--input", r#"{"name": 5}"#]).code(2);

    let running = home.spawn(&["run", "desk/long"]);
    let id = under_way(&home);
    home.run(&["runs", "cancel", &id]).code(0);
    running.wait().code(4);
    cleaned_up(&mut called_off).await;
    operative.stop().await;
    core.stop().code(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k019_a_rust_program_asks_through_the_core_while_it_works() {
    let home = TestHome::new();
    let core = home.up();
    let (scope, _) = desk();
    let operative = connected(&home, &core, &scope).await;
    let running = home.spawn(&["run", "desk/ask"]);
    let id = wait_for("the question is there", || {
        let inbox = home.run(&["inbox", "--json"]).code(0).json();
        inbox[0]["ask_id"].as_str().map(str::to_owned)
    });
    home.run(&["answer", &id, "--value", r#"{"which": "this one"}"#]).code(0);
    assert_eq!(running.wait().code(0).json()["outputs"], json!({"which": "this one"}));
    operative.stop().await;
    core.stop().code(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k032_a_rust_program_finds_its_core_again() {
    let home = TestHome::new();
    let core = home.up();
    let address = core.url().trim_start_matches("http://").to_owned();
    let (scope, _) = desk();
    let mut operative = connected(&home, &core, &scope).await;
    core.kill();
    assert!(operative.connected(false).await);
    let core = home.up_on(&address, &[]);
    assert!(operative.connected(true).await);
    let greeted = home.run(&["run", "desk/greet", "name=Ada"]).code(0);
    assert_eq!(greeted.json()["outputs"], json!({"hello": "Ada"}));
    core.stop().code(0);
}

/// Waits until a call that was called off has cleaned up.
async fn cleaned_up(called_off: &mut tokio::sync::mpsc::Receiver<()>) {
    let told = tokio::time::timeout(support::LONG, called_off.recv()).await;
    told.expect("waited in vain for its clean-up").expect("its clean-up ran");
}

async fn calls_everything(link: Link) {
    let named = Named::new(link).named(&ECHO, "wharf/echo").named(&LONG, "desk/long");
    let scope = Scope::root().with_transport(named);
    let echo = ECHO.call(&scope, json!({"a": [1, "two"]})).await;
    assert_eq!(echo, Ok(json!({"a": [1, "two"]})));
    let mut call = GREET.call(&scope, words(&[("name", "Ada")]));
    assert_eq!(call.progress().await.as_deref(), Some("thinking"));
    assert_eq!(call.await, Ok(words(&[("hello", "Ada")])));
    assert_eq!(DOUBLE.call(&scope, 21).await, Ok(42), "what is no object passes as it is");
    let fault = GREET.call(&scope, words(&[("name", "nobody")])).await.expect_err("it fails");
    assert!(fault.message.contains("There is nobody."), "{fault:?}");
    const NOBODYS: Tool<(), ()> = Tool::new("nobody/knows", "");
    assert!(NOBODYS.call(&scope, ()).await.is_err());
    let notice = builtin::Notice { message: "so".to_owned(), ..builtin::Notice::default() };
    assert_eq!(builtin::NOTIFY.call(&scope, notice).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k032_a_rust_program_calls_tools_of_the_core() {
    let home = TestHome::new();
    let core = home.up();
    let (served, mut called_off) = desk();
    let operative = connected(&home, &core, &served).await;
    let token = core.token();
    let link = principal::connect(&core.url(), Some(&token), "default").await.expect("let in");
    calls_everything(link.clone()).await;
    // Whoever goes takes along what it began.
    let scope = Scope::root().with_transport(link.clone());
    let call = tokio::spawn(LONG.call(&scope, Words::new()));
    under_way(&home);
    link.close().await;
    assert!(call.await.expect("ended").is_err_and(|fault| fault.is(Code::TransportLost)));
    cleaned_up(&mut called_off).await;
    operative.stop().await;
    core.stop().code(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k032_a_rust_program_calls_tools_over_server_sent_events() {
    let home = TestHome::new();
    let core = home.up();
    let (served, _) = desk();
    let operative = connected(&home, &core, &served).await;
    let address = Address::parse(&core.url()).expect("an address").at("/v1/tool/sse");
    let address = address.with("role", "principal");
    let options = Options { token: Some(core.token()), ..Options::default() };
    let link = sse::connect_to(&address, &options).await.expect("let in");
    calls_everything(link).await;
    operative.stop().await;
    core.stop().code(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k032_a_rust_program_without_the_right_is_refused() {
    let home = TestHome::new();
    let core = home.up();
    let (scope, _) = desk();
    for token in [None, Some(token(&home, &["--verb", "serve", "--tool", "other/*"]))] {
        let connect = Connect { token, ..Connect::new("desk") };
        let refused = operative::connect(&scope, &core.url(), connect).await;
        let error = refused.expect_err("refused");
        let refused = wharf_sdk::Error::is_passing(&error);
        assert!(!refused, "trying again does not help: {error:?}");
    }
    core.stop().code(0);
}
