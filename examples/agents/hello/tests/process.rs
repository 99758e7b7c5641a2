//! The reference agent as a core starts it: a process with an environment.

#[path = "../../../../crates/authors/sdk/tests/process/core.rs"]
#[expect(dead_code, reason = "the SDK's own tests use more of it")]
mod core;

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use wharf_protocol::agent::{
    AdmissionRefusal, CallOutcome, CallRequest, CancelCall, CoreEvent, CoreLimits, InvokeReceived,
};
use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{CallContext, Chunk, TextChannel};

use crate::core::{Core, Listener, TOKEN, id};

/// How long an agent may take to end.
const END: Duration = Duration::from_secs(5);

/// The agent's process; killed if a test fails before it has ended.
struct Agent(Child);

impl Agent {
    fn start(listener: &Listener, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hello-agent"));
        command
            .env_clear()
            .env("OPENSENTIENCE_SOCKET", listener.address())
            .env("OPENSENTIENCE_SESSION_TOKEN", TOKEN)
            .env("OPENSENTIENCE_AGENT_ID", "dev.wharf.hello")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        change(&mut command);
        Self(command.spawn().expect("the agent starts"))
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).expect("the process is there");
    }

    /// How it ended, and all it has printed.
    #[track_caller]
    fn ended(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + END;
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < deadline, "the agent did not end in time");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        let (mut out, mut err) = (self.0.stdout.take(), self.0.stderr.take());
        out.as_mut().expect("piped").read_to_string(&mut text).expect("text");
        err.as_mut().expect("piped").read_to_string(&mut text).expect("text");
        assert!(!text.contains(TOKEN), "the token was printed");
        (status, text)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // One that has ended needs no end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn joined() -> (Core, Agent) {
    let listener = Listener::unix();
    let agent = Agent::start(&listener, |_| {});
    (Core::joined(&listener, CoreLimits::default()), agent)
}

#[test]
fn the_tools_do_what_they_say() {
    let (mut core, _agent) = joined();
    for (call_id, name, input, output) in [
        ("1", "hello_world", json!({}), json!({"greeting": "Hello, world!"})),
        ("2", "hello_world", json!({"name": "Ada"}), json!({"greeting": "Hello, Ada!"})),
        ("3", "stream_counter", json!({"n": 3, "delay_ms": 1}), json!({"counted": 3})),
        ("4", "sleep", json!({"ms": 1}), json!({"slept_ms": 1})),
        ("5", "invalid_input", json!({"must_be": -7}), json!({"integer": -7})),
    ] {
        core.call(call_id, name, &input);
        assert_eq!(core.output(call_id), output, "{name}");
    }
    let text = |n: u32| Chunk::Text { channel: TextChannel::Stdout, text: format!("{n}\n") };
    let chunks = core.chunks("3");
    assert_eq!((chunks.len(), &chunks[0], &chunks[4]), (6, &text(1), &text(3)));
    assert!(matches!(chunks[5], Chunk::Status { fraction: Some(1.0), .. }));
    core.assert_flawless();
}

#[test]
fn r088_wrong_input_is_refused() {
    let (mut core, _agent) = joined();
    for (n, input) in
        [json!({"must_be": "7"}), json!({"must_be": 1.5}), json!({})].iter().enumerate()
    {
        core.call(&n.to_string(), "invalid_input", input);
        assert!(core.failure(&n.to_string()).is(Code::ToolInvalidInput), "{input}");
    }
}

#[test]
fn r113_a_large_output_says_that_it_is_cut() {
    let (mut core, _agent) = joined();
    core.call("small", "large_output", &json!({"bytes": 10}));
    let small = core.output("small");
    assert_eq!((&small["text"], &small["truncated"]), (&json!("xxxxxxxxxx"), &json!(false)));
    core.call("large", "large_output", &json!({"bytes": 1_u64 << 40}));
    let large = core.output("large");
    assert_eq!((&large["bytes"], &large["truncated"]), (&json!(256 * 1024), &json!(true)));
}

#[test]
fn r130_sleep_is_canceled() {
    let (mut core, _agent) = joined();
    core.call("s", "sleep", &json!({"ms": 3_600_000}));
    core.session.cancel(core.now(), &id("s"), CancelCall::default()).expect("open");
    let end = core.end("s");
    assert!(matches!(end.outcome, CallOutcome::Canceled(_)) && !end.unresponsive);
}

#[test]
fn r061_a_refused_agent_exits_with_failure_and_prints_no_token() {
    let listener = Listener::unix();
    let agent = Agent::start(&listener, |_| {});
    let (mut core, _) = Core::greeted(&listener, CoreLimits::default());
    core.session.refuse(core.now(), AdmissionRefusal::Unauthorized).expect("a hello waits");
    core.flush();
    let (status, text) = agent.ended();
    assert_eq!(status.code(), Some(1));
    assert!(text.contains("protocol.unauthorized"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn r064_the_agent_exits_when_its_core_is_gone() {
    let (mut core, agent) = joined();
    core.call("s", "sleep", &json!({"ms": 3_600_000}));
    drop(core);
    assert!(agent.ended().0.success());
}

#[test]
fn r164_a_terminated_agent_says_goodbye_ends_its_calls_and_exits_with_success() {
    let (mut core, agent) = joined();
    core.call("s", "stream_counter", &json!({"n": 4_000, "delay_ms": 60_000}));
    core.wait("a first number", |event| matches!(event, CoreEvent::Chunk { .. }).then_some(()));
    agent.signal(Signal::TERM);
    core.wait("goodbye", |event| matches!(event, CoreEvent::Goodbye { .. }).then_some(()));
    assert!(matches!(core.end("s").outcome, CallOutcome::Canceled(_)));
    let (status, text) = agent.ended();
    assert!(status.success(), "{status} {text}");
    core.assert_flawless();
}

#[test]
fn what_is_missing_in_the_environment_is_named() {
    for (variable, value, expect) in [
        ("OPENSENTIENCE_SOCKET", None, "OPENSENTIENCE_SOCKET is not set"),
        ("OPENSENTIENCE_SESSION_TOKEN", None, "OPENSENTIENCE_SESSION_TOKEN is not set"),
        ("OPENSENTIENCE_AGENT_ID", Some("other"), "it was started as other"),
        ("OPENSENTIENCE_SOCKET", Some("tcp:192.0.2.1:1"), "a loopback address"),
    ] {
        let listener = Listener::unix();
        let agent = Agent::start(&listener, |command| {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        });
        let (status, text) = agent.ended();
        assert_eq!(status.code(), Some(1));
        assert!(text.contains(expect), "{text}");
    }
}

fn invoke(core: &mut Core) -> InvokeReceived {
    core.wait("a call of another tool", |event| match event {
        CoreEvent::Invoke(received) => Some((**received).clone()),
        _ => None,
    })
}

/// Has an agent relay a call, succeed once and fail once, and be called off once.
fn relays(core: &mut Core) {
    let input = json!({"tool_id": "dev.wharf.other/echo", "input": {"a": 1}});
    core.call("r-1", "relay", &input);
    let received = invoke(core);
    assert_eq!(received.tool_id, "dev.wharf.other/echo");
    assert_eq!(received.parent_call_id, id("r-1"));
    assert_eq!(received.input["a"], 1);
    assert_eq!(received.echo.request_id.as_deref(), Some("request-r-1"));
    let chunk = Chunk::Text { channel: TextChannel::Stdout, text: "said".to_owned() };
    core.session.invoke_chunk(core.now(), &received.invoke_id, chunk.clone()).expect("open");
    let output = json!({"b": 2}).as_object().expect("an object").clone();
    let succeeded = CallOutcome::Succeeded(output);
    core.session.invoke_result(core.now(), &received.invoke_id, succeeded).expect("open");
    assert_eq!(core.output("r-1"), json!({"output": {"b": 2}}));
    assert_eq!(core.chunks("r-1"), [chunk]);

    core.seen.retain(|event| !matches!(event, CoreEvent::Invoke(_)));
    core.call("r-2", "relay", &input);
    let received = invoke(core);
    let fault = Fault::new(Code::PermissionDenied, "Not this one.");
    let failed = CallOutcome::Failed(fault);
    core.session.invoke_result(core.now(), &received.invoke_id, failed).expect("open");
    assert!(core.failure("r-2").is(Code::PermissionDenied));

    core.seen.retain(|event| !matches!(event, CoreEvent::Invoke(_)));
    core.call("r-3", "relay", &input);
    let received = invoke(core);
    core.session.cancel(core.now(), &id("r-3"), CancelCall::default()).expect("open");
    assert!(matches!(core.end("r-3").outcome, CallOutcome::Canceled(_)));
    let wanted = received.invoke_id.clone();
    core.wait("the call taken back", |event| match event {
        CoreEvent::InvokeCanceled { invoke_id } => (*invoke_id == wanted).then_some(()),
        _ => None,
    });
    core.assert_flawless();
}

#[test]
fn r159_it_calls_other_tools_and_takes_calls_back() {
    let (mut core, _agent) = joined();
    relays(&mut core);
}

#[test]
fn r153_r163_large_outputs_and_notes_become_files() {
    let (mut core, _agent) = joined();
    let folder = tempfile::tempdir().expect("a folder");
    let context = CallContext {
        outputs_dir: Some(folder.path().display().to_string()),
        ..CallContext::default()
    };
    let given = |call: &mut CallRequest| call.context = Some(context.clone());
    core.call_with("c-1", "large_output", &json!({"bytes": 5_000_000}), given);
    let output = core.output("c-1");
    assert_eq!(output["text"], json!({"$written": true}));
    assert_eq!(output["truncated"], false);
    let bytes = std::fs::metadata(folder.path().join("text")).expect("written").len();
    assert_eq!(bytes, 5_000_000);
    core.call_with("c-2", "write_note", &json!({"text": "remember"}), given);
    assert_eq!(core.output("c-2"), json!({"note": {"$written": true}}));
    let note = std::fs::read_to_string(folder.path().join("note")).expect("written");
    assert_eq!(note, "remember");
    core.assert_flawless();
}

#[test]
fn the_python_agent_inherits_its_connection_calls_tools_and_writes_files() {
    let (listener, own) = Listener::inherited();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hello-python");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "exec python3 -B agent.py 3<&0 </dev/null"])
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("OPENSENTIENCE_SOCKET", listener.address())
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(own)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let agent = Agent(shell.spawn().expect("the agent starts"));
    drop(shell);
    let mut core = Core::joined(&listener, CoreLimits::default());
    relays(&mut core);
    let outputs = tempfile::tempdir().expect("a folder");
    let outputs_dir = Some(outputs.path().display().to_string());
    core.call_with("c-1", "large_output", &json!({"bytes": 5_000_000}), |call| {
        call.context = Some(CallContext { outputs_dir, ..CallContext::default() });
    });
    assert_eq!(core.output("c-1")["text"], json!({"$written": true}));
    let bytes = std::fs::metadata(outputs.path().join("text")).expect("written").len();
    assert_eq!(bytes, 5_000_000);
    core.assert_flawless();
    drop(core);
    let (status, text) = agent.ended();
    assert!(status.success(), "{status}: {text}");
}

#[test]
fn an_inherited_connection_needs_no_token() {
    let (listener, own) = Listener::inherited();
    // A shell hands standard input on under the number that the agent is told.
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "exec \"$0\" 3<&0 </dev/null", env!("CARGO_BIN_EXE_hello-agent")])
        .env_clear()
        .env("OPENSENTIENCE_SOCKET", listener.address())
        .env("OPENSENTIENCE_AGENT_ID", "dev.wharf.hello")
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(own)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let agent = Agent(shell.spawn().expect("the agent starts"));
    drop(shell);
    let mut core = Core::joined(&listener, CoreLimits::default());
    core.call("c-1", "hello_world", &json!({}));
    assert_eq!(core.output("c-1"), json!({"greeting": "Hello, world!"}));
    core.assert_flawless();
    drop(core);
    let (status, text) = agent.ended();
    assert!(status.success(), "{status}: {text}");
}

#[test]
fn a_descriptor_that_is_no_connection_is_told() {
    let listener = Listener::unix();
    for address in ["fd:1", "fd:77", "fd:-1", "fd:x"] {
        let agent = Agent::start(&listener, |command| {
            command.env("OPENSENTIENCE_SOCKET", address);
        });
        let (status, text) = agent.ended();
        assert_eq!(status.code(), Some(1), "{address}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
