//! The reference agent as a core starts it: a process with an environment.

#[path = "../../../../crates/authors/sdk/tests/agent/core.rs"]
#[expect(dead_code, reason = "the SDK's own tests use more of it")]
mod core;

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use wharf_protocol::agent::{CallOutcome, Cancel, CoreEvent, CoreLimits, Refusal};
use wharf_vocab::Code;
use wharf_wire::agent_v1::{Chunk, TextChannel};

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
    core.session.cancel(core.now(), &id("s"), Cancel::default()).expect("open");
    let end = core.end("s");
    assert!(matches!(end.outcome, CallOutcome::Canceled(_)) && !end.unresponsive);
}

#[test]
fn r061_a_refused_agent_exits_with_failure_and_prints_no_token() {
    let listener = Listener::unix();
    let agent = Agent::start(&listener, |_| {});
    let (mut core, _) = Core::greeted(&listener, CoreLimits::default());
    core.session.refuse(core.now(), Refusal::Unauthorized).expect("a hello waits");
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
