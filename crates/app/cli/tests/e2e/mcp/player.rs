//! A client of others, as a program that does the steps it is given and prints what came of each.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use serde_json::{Value, json};

use super::stage::{Stage, script};
use crate::support::{LONG, wait_for};

/// The clients that play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Player {
    /// TypeScript, first generation.
    V1,
    /// TypeScript, second generation.
    V2,
    /// TypeScript, second generation, with the package for the tasks of 2026-07-28.
    Tasks,
    /// Python, `mcp`.
    Python,
    /// Python, `fastmcp`.
    FastMcp,
}

impl Player {
    fn program(self) -> &'static str {
        match self {
            Self::V1 => "clients/v1.mjs",
            Self::V2 => "clients/v2.mjs",
            Self::Tasks => "clients/tasks.mjs",
            Self::Python => "clients/mcp_client.py",
            Self::FastMcp => "clients/fastmcp_client.py",
        }
    }

    /// Starts it at a door of the core, such as `/mcp`, with what it shall do.
    pub(crate) fn start(self, stage: &Stage, door: &str, spec: &Value) -> Play {
        let script = script(self.program());
        let mut command = match self {
            Self::V1 | Self::V2 | Self::Tasks => stage.peers.node(&script),
            Self::Python | Self::FastMcp => stage.peers.python(&script),
        };
        command.arg(spec.to_string());
        command.env("WHARF_MCP", stage.door(door)).env("WHARF_TOKEN", stage.core().token());
        // Clients that start `wharf mcp` by themselves pass this on.
        command.env("WHARF_HOME", stage.home.path());
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the client starts");
        let (told, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = told.send(line);
            }
        });
        let mut stderr = child.stderr.take().expect("piped");
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = std::io::Read::read_to_string(&mut stderr, &mut text);
            text
        });
        let stdin = child.stdin.take();
        Play { child, stdin, lines, errors: Some(errors), who: format!("{self:?} {spec}") }
    }

    /// Lets it do everything, and gives what came of each step.
    #[track_caller]
    pub(crate) fn plays(self, stage: &Stage, door: &str, spec: &Value) -> Vec<Value> {
        self.start(stage, door, spec).into_end()
    }
}

/// A client that is playing; it is killed when the test ends.
pub(crate) struct Play {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<std::thread::JoinHandle<String>>,
    who: String,
}

impl Play {
    /// The next line it prints.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(LONG) {
            // Libraries print notes of their own too.
            Ok(line) => Some(serde_json::from_str(&line).unwrap_or(json!({ "note": line }))),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{} says nothing", self.who),
        }
    }

    /// Reads on until a line has this key, and gives what stands there.
    #[track_caller]
    pub(crate) fn until(&mut self, key: &str) -> Value {
        let mut seen = Vec::new();
        while let Some(line) = self.next() {
            if !line[key].is_null() {
                return line[key].clone();
            }
            seen.push(line);
        }
        let wrong = self.stderr();
        panic!("{} never said {key}: {seen:?} {wrong}", self.who);
    }

    /// Reads on until a step is over, and gives all of its line.
    #[track_caller]
    pub(crate) fn step(&mut self, name: &str) -> Value {
        let mut seen = Vec::new();
        while let Some(line) = self.next() {
            if line["step"] == name {
                return line;
            }
            seen.push(line);
        }
        let wrong = self.stderr();
        panic!("{} never did {name}: {seen:?} {wrong}", self.who);
    }

    /// Types a line.
    pub(crate) fn type_line(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        writeln!(stdin, "{text}").expect("it reads");
    }

    /// kill -9, and nothing else.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// All lines of steps, in their order; every other line is joined to its step under `said`.
    #[track_caller]
    pub(crate) fn into_end(mut self) -> Vec<Value> {
        let (mut steps, mut said) = (Vec::new(), Vec::new());
        while let Some(mut line) = self.next() {
            if line["step"].is_string() {
                line["said"] = Value::Array(std::mem::take(&mut said));
                steps.push(line);
            } else {
                said.push(line);
            }
        }
        let status = wait_for("the end of a client", || self.child.try_wait().expect("a child"));
        let wrong = self.stderr();
        assert!(status.success(), "{}: {said:?} {wrong}", self.who);
        steps
    }

    fn stderr(&mut self) -> String {
        let _ = self.child.kill();
        self.errors.take().and_then(|it| it.join().ok()).unwrap_or_default()
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
