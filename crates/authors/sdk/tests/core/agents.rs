//! Agents: tools with a configuration that they share.

use serde::{Deserialize, Serialize};
use serde_json::json;
use wharf_sdk::{Agent, Cx, Error, Fault, JsonSchema, Scope, Tool, layers::Timeout};

use crate::support::{DOUBLE, Log, code};

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Settings {
    /// Who pays.
    #[schemars(length(max = 8))]
    key: String,
    #[serde(default = "three")]
    attempts: u8,
}

fn three() -> u8 {
    3
}

const KEY: Tool<(), String> = Tool::new("key", "Its key.");
const BOTH: Tool<(), String> = Tool::new("both", "Its key, twice.");
const SHOP: Agent<Settings> = Agent::new("shop", "Sells things.");

async fn key(_: (), cx: Cx) -> Result<String, Fault> {
    Ok(cx.config::<Settings>()?.key.clone())
}

async fn both(_: (), cx: Cx) -> Result<String, Fault> {
    Ok(KEY.call(&cx, ()).await? + &KEY.call(&cx, ()).await?)
}

fn shop(scope: &Scope, key_of: &str) -> wharf_sdk::Active<Settings> {
    SHOP.activate(scope, Settings { key: key_of.to_owned(), attempts: 1 })
        .tool(&KEY, key)
        .tool(&BOTH, both)
        .build()
        .expect("a good agent")
}

#[tokio::test]
async fn k015_tools_read_the_configuration_of_their_agent() {
    let root = Scope::root();
    let shop = shop(&root, "a");
    assert_eq!(KEY.call(&shop, ()).await, Ok("a".to_owned()));
    assert_eq!(shop.config().key, "a");
    assert_eq!(shop.agent().name(), "shop");
    let names: Vec<_> = shop.tools().iter().map(|tool| tool.definition().name).collect();
    assert_eq!(names, ["key", "both"]);
}

#[tokio::test]
async fn k015_outside_of_an_agent_there_is_a_clear_error() {
    let scope = Scope::root();
    scope.provide(&KEY, key).expect("a good tool");
    let fault = KEY.call(&scope, ()).await.expect_err("there is no agent");
    assert_eq!(fault.code.as_str(), "config.invalid");
    assert!(fault.message.contains("\"key\"") && fault.message.contains("Settings"));
}

#[test]
fn k015_a_configuration_is_checked_when_the_agent_is_built() {
    let root = Scope::root();
    let config = Settings { key: "much too long".to_owned(), attempts: 1 };
    let error = SHOP.activate(&root, config).build().expect_err("it does not fit");
    assert!(matches!(&error, Error::Config { path, .. } if path == "/key"), "{error}");
    assert!(!error.to_string().contains("much too long"), "a key may be secret");
}

#[test]
fn k015_defaults_are_applied_and_what_is_missing_is_named() {
    let root = Scope::root();
    let active = SHOP.activate_json(&root, json!({"key": "a"})).expect("it fits").build();
    assert_eq!(active.expect("a good agent").config().attempts, 3);
    for (config, path) in [
        (json!({}), "the top level"),
        (json!({"key": 7}), "/key"),
        (json!({"key": "a", "attempts": 256}), "/attempts"),
        (json!({"key": "much too long"}), "/key"),
    ] {
        let error = SHOP.activate_json(&root, config).expect_err("it does not fit");
        assert!(matches!(&error, Error::Config { path: at, .. } if at == path), "{error}");
    }
}

#[tokio::test]
async fn k015_an_agent_is_callable_without_configuration_too() {
    const PLAIN: Agent = Agent::new("plain", "Needs nothing.");
    let root = Scope::root();
    let plain = PLAIN
        .activate_default(&root)
        .tool(&DOUBLE, |n, _cx| async move { Ok(2 * n) })
        .build()
        .expect("a good agent");
    assert_eq!(DOUBLE.call(&plain, 1).await, Ok(2));
    let shop = SHOP.activate_default(&root).tool(&KEY, key).build().expect("a good agent");
    assert_eq!(KEY.call(&shop, ()).await, Ok(String::new()));
}

#[tokio::test]
async fn k016_two_instances_do_not_mix() {
    let root = Scope::root();
    let (a, b) = (shop(&root, "a"), shop(&root, "b"));
    let calls = (0..50).map(|n| BOTH.call(if n % 2 == 0 { &a } else { &b }, ()));
    let keys = futures::future::join_all(calls).await;
    for (n, key) in keys.into_iter().enumerate() {
        assert_eq!(key.as_deref(), Ok(if n % 2 == 0 { "aa" } else { "bb" }));
    }
}

#[tokio::test]
async fn k016_calls_of_siblings_pass_through_layers() {
    let root = Scope::root();
    let shop = shop(&root, "a");
    shop.scope().around(&KEY, |input, next| async move { Ok(next.run(input).await? + "!") });
    assert_eq!(BOTH.call(&shop, ()).await, Ok("a!a!".to_owned()));
}

#[tokio::test]
async fn k011_a_layer_of_an_agent_concerns_that_agent_only() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Other {}
    const OTHER: Agent<()> = Agent::new("other", "Is another.");
    const NAMESAKE: Agent<Other> = Agent::new("shop", "Has the same name.");
    let root = Scope::root();
    root.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).expect("a good tool");
    let shop = shop(&root, "a");
    let other = OTHER.activate(&root, ()).build().expect("a good agent");
    let namesake = NAMESAKE.activate(&root, Other {}).build().expect("a good agent");
    SHOP.around(&root, &DOUBLE, |n, next| async move { Ok(next.run(n).await? + 100) }).around(
        &root,
        &KEY,
        |input, next| async move { Ok(next.run(input).await? + "!") },
    );
    assert_eq!(DOUBLE.call(&shop, 1).await, Ok(102));
    assert_eq!(DOUBLE.call(&shop.scope().child(), 1).await, Ok(102));
    assert_eq!(KEY.call(&shop, ()).await, Ok("a!".to_owned()));
    assert_eq!(DOUBLE.call(&other, 1).await, Ok(2));
    assert_eq!(DOUBLE.call(&namesake, 1).await, Ok(2));
    assert_eq!(DOUBLE.call(&root, 1).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn k011_one_layer_around_all_or_several_tools_of_an_agent() {
    use crate::support::WAIT;
    let root = Scope::root();
    root.provide(&WAIT, |_, _cx| std::future::pending()).expect("a good tool");
    let shop = shop(&root, "a");
    SHOP.around_all(&root, Timeout::after_secs(1));
    assert_eq!(code(WAIT.call(&shop, ()).await), "tool.timeout");
    let other = Agent::<()>::new("other", "Is another.");
    other.around_each(&root, &[&WAIT, &KEY], Timeout::after_secs(2));
    let other = other.activate(&root, ()).build().expect("a good agent");
    assert_eq!(code(WAIT.call(&other, ()).await), "tool.timeout");
    let mut outside = WAIT.call(&root, ());
    assert!(tokio::time::timeout(std::time::Duration::from_secs(60), &mut outside).await.is_err());
}

#[tokio::test]
async fn k011_layers_of_one_instance_do_not_concern_the_other() {
    let root = Scope::root();
    let a = SHOP
        .activate(&root, Settings { key: "a".to_owned(), attempts: 1 })
        .tool(&KEY, key)
        .around(&KEY, |input, next| async move { Ok(next.run(input).await?.to_uppercase()) })
        .build()
        .expect("a good agent");
    let b = shop(&root, "b");
    assert_eq!(KEY.call(&a, ()).await, Ok("A".to_owned()));
    assert_eq!(KEY.call(&b, ()).await, Ok("b".to_owned()));
}

#[tokio::test]
async fn k016_a_tool_may_activate_another_agent() {
    const NESTED: Tool<(), String> = Tool::new("nested", "Asks another shop.");
    async fn nested(_: (), cx: Cx) -> Result<String, Fault> {
        let config = Settings { key: "in".to_owned(), attempts: 1 };
        let inner = SHOP.activate(&cx, config).tool(&KEY, key).build();
        let inner = inner.map_err(|e| Fault::new(wharf_sdk::Code::ConfigInvalid, e.to_string()))?;
        Ok(KEY.call(&inner, ()).await? + &KEY.call(&cx, ()).await?)
    }
    let root = Scope::root();
    let shop = shop(&root, "out");
    shop.scope().provide(&NESTED, nested).expect("a good tool");
    assert_eq!(NESTED.call(&shop, ()).await, Ok("inout".to_owned()));
}

#[test]
fn k006_what_is_wrong_with_an_agent_is_told_at_build() {
    let root = Scope::root();
    let built = SHOP.activate_default(&root).tool(&KEY, key).tool(&KEY, key).build();
    assert_eq!(built.expect_err("twice"), Error::SameName { name: "key".to_owned() });
}

#[tokio::test]
async fn k021_an_agent_that_is_dropped_calls_its_calls_off() {
    use crate::support::{OnDrop, WAIT};
    let root = Scope::root();
    let log = Log::default();
    let told = log.clone();
    let agent = Agent::<()>::new("waiter", "Waits.")
        .activate(&root, ())
        .tool(&WAIT, move |_, _cx| {
            let dropped = OnDrop(told.clone(), "dropped");
            async move {
                std::future::pending::<()>().await;
                drop(dropped);
                Ok(())
            }
        })
        .build()
        .expect("a good agent");
    let call = tokio::spawn(WAIT.call(&agent, ()));
    tokio::task::yield_now().await;
    drop(agent);
    assert_eq!(log.take(), ["dropped"]);
    assert_eq!(code(call.await.expect("it does not panic")), "tool.canceled");
}
