//! Files that tools give, and connections that agents inherit.

use std::os::fd::AsRawFd as _;

use serde_json::{Value, json};
use wharf_protocol::agent::{CallRequest, CoreLimits};
use wharf_vocab::Code;
use wharf_wire::agent_v1::CallContext;

use crate::core::{Core, Listener};
use crate::tools::{agent, joined, start_at};

fn with_folder(folder: &std::path::Path) -> impl FnOnce(&mut CallRequest) + use<> {
    let outputs_dir = Some(folder.display().to_string());
    move |call| call.context = Some(CallContext { outputs_dir, ..CallContext::default() })
}

#[test]
fn r163_a_tool_writes_a_file_and_names_it() {
    let (mut core, ..) = joined();
    let folder = tempfile::tempdir().expect("a folder");
    core.call_with("c-1", "draw", &json!({}), with_folder(folder.path()));
    assert_eq!(core.output("c-1"), json!({"picture": {"$written": true}}));
    let written = std::fs::read_to_string(folder.path().join("picture")).expect("written");
    assert_eq!(written, "<svg/>");
    core.call("c-2", "draw", &json!({}));
    assert!(core.failure("c-2").is(Code::ToolOutputTooLarge), "there is no folder");
}

#[test]
fn r153_an_output_that_is_too_large_becomes_a_file() {
    let (mut core, ..) = joined();
    let folder = tempfile::tempdir().expect("a folder");
    let large = 5 * 1024 * 1024;
    core.call_with("c-1", "tell", &json!({"n": 10}), with_folder(folder.path()));
    assert_eq!(core.output("c-1"), json!({"text": "x".repeat(10)}), "small text is given inline");
    core.call_with("c-2", "tell", &json!({"n": large}), with_folder(folder.path()));
    assert_eq!(core.output("c-2"), json!({"text": {"$written": true}}));
    let written = std::fs::metadata(folder.path().join("text")).expect("written");
    assert_eq!(written.len(), large);
    core.call("c-3", "tell", &json!({"n": large}));
    let fault = core.failure("c-3");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
    core.call("c-4", "double", &json!({"n": 1}));
    assert_eq!(core.output("c-4")["n"], Value::from(2), "and the agent goes on");
}

#[test]
fn an_agent_speaks_on_a_connection_that_it_inherited() {
    let (listener, own) = Listener::inherited();
    // The agent takes a descriptor of its own, so this one may be closed as soon as it runs.
    let running = start_at(agent().0, &format!("fd:{}", own.as_raw_fd()), "inherited");
    let mut core = Core::joined(&listener, CoreLimits::default());
    drop(own);
    core.call("c-1", "double", &json!({"n": 4}));
    assert_eq!(core.output("c-1"), json!({"n": 8}));
    core.assert_flawless();
    drop(core);
    running.ended_within(crate::core::PATIENCE).expect("an orderly end");
}
