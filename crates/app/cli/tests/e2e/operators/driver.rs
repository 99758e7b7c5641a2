//! An operator in a process of its own, driven by lines and followed by what it prints.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::children;
use crate::support::{Api, Core, LONG, TestHome, wait_for};

/// An operator that is driven line by line; it is killed when the test ends.
pub(crate) struct Operator {
    child: Child,
    stdin: Option<ChildStdin>,
    events: Receiver<Value>,
    /// Its seat.
    pub(crate) sid: String,
}

impl Operator {
    /// Starts a program that prints a line of JSON for all that happens, and waits for its seat.
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|_| json!({"text": line}));
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let mut operator = Self { child, stdin, events, sid: String::new() };
        let seat = operator.wait("seat");
        operator.sid = seat["sid"].as_str().expect("an id").to_owned();
        operator.wait("connected");
        operator
    }

    /// `wharf operator` with these arguments.
    pub(crate) fn wharf(home: &TestHome, arguments: &[&str]) -> Self {
        Self::start(home.wharf(&[&["operator", "--json"], arguments].concat()))
    }

    /// The next event of this kind.
    #[track_caller]
    pub(crate) fn wait(&self, kind: &str) -> Value {
        loop {
            let event = self.events.recv_timeout(LONG);
            let event = event.unwrap_or_else(|error| panic!("waiting for {kind}: {error}"));
            if event["type"] == kind || event["event"] == kind {
                return event;
            }
            assert_ne!(event["type"], "error", "waiting for {kind}: {event}");
        }
    }

    /// The next event, which says that something was wrong.
    #[track_caller]
    pub(crate) fn wait_error(&self) -> Value {
        loop {
            let event = self.events.recv_timeout(LONG);
            let event = event.unwrap_or_else(|error| panic!("waiting for an error: {error}"));
            if event["type"] == "error" {
                return event;
            }
        }
    }

    /// The next job for this agent.
    #[track_caller]
    pub(crate) fn wait_spawn(&self, agent: &str) -> Value {
        loop {
            let spawn = self.wait("spawn");
            if spawn["agent"] == agent {
                return spawn;
            }
        }
    }

    /// Types a line.
    pub(crate) fn type_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        writeln!(stdin, "{line}").expect("it reads");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn code(mut self) -> Option<i32> {
        wait_for("the end of the operator", || self.child.try_wait().expect("a child")).code()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn python(core: &Core, variables: &[(&str, &str)]) -> Operator {
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../examples/operators/python/operator.py");
    let mut command = children::command("python3");
    // It is a program, so it is asked about runs of others.
    let verbs = json!({"verbs": ["operate", "run", "read", "answer", "approve"]});
    let (status, made) = Api::of(core).ask("POST", "/v1/tokens", &verbs);
    assert_eq!(status, 201, "{made}");
    let token = made["token"].as_str().expect("a token");
    command.arg("-B").arg(program).env("WHARF_URL", core.url()).env("WHARF_TOKEN", token);
    command.envs(variables.iter().copied());
    Operator::start(command)
}

/// Starts a task without waiting for its end, and gives its run.
#[track_caller]
pub(crate) fn detached(api: &Api, mut task: Value) -> String {
    task["detach"] = true.into();
    let (status, answer) = api.ask("POST", "/v1/tasks", &task);
    assert_eq!(status, 202, "{answer}");
    answer["run_id"].as_str().expect("a run").to_owned()
}

pub(crate) fn gated(operator: &Operator, text: &str) -> Value {
    json!({"agent": "wharf/echo", "input": {"text": text},
        "operator": {"spawn_hook_id": operator.sid}})
}
