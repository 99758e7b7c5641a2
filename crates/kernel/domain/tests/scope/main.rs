//! Where a run's data comes from and goes to: nothing that anybody can write leads out of a world.

mod fuzz;
mod keys;
mod paths;
mod places;
mod properties;

use serde_json::Value;
use wharf_domain::scope::{Intent, Plan, resolve};
use wharf_vocab::{Fault, Object, RunId, WorldId};

fn world() -> WorldId {
    WorldId::new("w").expect("a world id")
}

fn run() -> RunId {
    RunId::new("r2").expect("a run id")
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// What the run `r2` of the world `w` means by these inputs and outputs; a tool takes `prompt` as
/// it is.
fn resolved(inputs: Value, outputs: Value, continues: Option<&str>) -> Result<Plan, Fault> {
    let (world, run) = (world(), run());
    let (inputs, outputs) = (object(inputs), object(outputs));
    let continues = continues.map(|run| RunId::new(run).expect("a run id"));
    let is_literal = |name: &str| name == "prompt";
    resolve(&Intent {
        world: &world,
        run: &run,
        continues: continues.as_ref(),
        inputs: &inputs,
        outputs: &outputs,
        is_literal: &is_literal,
    })
}

/// Checks that a request is refused with a code, and that the refusal names the key.
fn assert_refused(answer: Result<Plan, Fault>, code: wharf_vocab::Code, key: &str) {
    let fault = answer.expect_err(key);
    assert!(fault.is(code), "{key}: {fault:?}");
    assert_eq!(fault.details.get("key"), Some(&key.into()), "{fault:?}");
    assert!(fault.message.contains(&format!("`{key}`")), "{}", fault.message);
    assert!(fault.message.ends_with('.'), "{}", fault.message);
}
