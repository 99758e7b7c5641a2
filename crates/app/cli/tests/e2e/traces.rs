//! Traces of a whole core: from a request over REST through an agent and what it calls, to a
//! collector on a real socket.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use wharf_testkit::collector::{Collector, Reply, digits, named, said};

use crate::agents::{has_python, python_agent};
use crate::children;
use crate::support::{Api, Core, TestHome, wait_for};

const AGENT: &str = "dev.example.traced";
const CANARY: &str = "c4n4ry-trace-19ab";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

const PROGRAM: &str = r#"
import wharf_agent as wharf

def outer(call):
    said = call.call("wharf/echo", {"text": call.input["text"]})
    return {"trace": call.message.get("traceparent"), "said": said}

tool = wharf.Tool("outer", outer, "Has somebody else do it.", {"text": {"type": "string"}})
wharf.serve("dev.example.traced", "0.1.0", [tool])
"#;

fn folder() -> tempfile::TempDir {
    python_agent(AGENT, &["tool:invoke:wharf/echo"], PROGRAM)
}

/// A home whose core exports to this collector.
fn exporting(collector: &Collector) -> TestHome {
    let home = TestHome::new();
    let url = &collector.url;
    home.configure(&format!("[telemetry]\notlp = \"{url}\"\nservice_name = \"dock\"\n"));
    home
}

/// Starts a run in the caller's trace.
fn traced(core: &Core, body: &Value) -> Value {
    let headers = [
        ("traceparent", format!("00-{TRACE}-{CALLER}-01")),
        ("tracestate", "vendor=a1".to_owned()),
    ];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (status, answer, _) = Api::of(core).rpc("/v1/runs?wait=60s", &headers, body);
    assert!(status == 200 || status == 202, "{status}: {answer}");
    answer
}

#[test]
fn traces_go_from_the_caller_over_an_agent_to_what_it_calls() {
    if !has_python() {
        return;
    }
    let collector = Collector::new(&[]);
    let home = exporting(&collector);
    let folder = folder();
    let core = home.up();
    home.run(&["agents", "add", folder.path().to_str().expect("text")]).code(0);
    home.run(&["agents", "approve", AGENT, "--all"]).code(0);
    home.run(&["agents", "start", AGENT]).code(0);
    let tool = format!("{AGENT}/outer");
    let run = traced(&core, &json!({"tool": tool, "inputs": {"text": CANARY}}));
    assert_eq!(run["status"], "succeeded", "{run}");
    assert_eq!(run["outputs"]["said"]["text"], CANARY, "{run}");

    let of_run = |name: &str| {
        wait_for("the spans of the run", || {
            let spans = collector.spans();
            spans.iter().find(|span| span.name == name).cloned()
        })
    };
    let (outer, child) = (of_run(&format!("run {tool}")), of_run("run wharf/echo"));
    let spans = collector.spans();
    let attempt = named(&spans, &format!("attempt {tool}"));
    for span in [&outer, attempt, &child, named(&spans, "attempt wharf/echo")] {
        assert_eq!(digits(&span.trace_id), TRACE, "{span:?}");
        assert_eq!(span.trace_state, "vendor=a1", "{span:?}");
    }
    assert_eq!(digits(&outer.parent_span_id), CALLER);
    assert_eq!(attempt.parent_span_id, outer.span_id);
    assert_eq!(child.parent_span_id, attempt.span_id, "below the attempt that called it");
    let carried = format!("00-{TRACE}-{}-01", digits(&attempt.span_id));
    assert_eq!(run["outputs"]["trace"], carried, "the agent is told where it stands");
    assert_eq!(said(&outer, "wharf.run_id").as_deref(), run["run_id"].as_str());
    let shown = home.run(&["agents", "show", AGENT, "--json"]).code(0).json();
    assert_eq!(said(attempt, "wharf.launch_id").as_deref(), shown["launch_id"].as_str());
    assert!(!collector.holds(CANARY), "a payload was exported");

    let (status, metrics) = Api::of(&core).bytes("/metrics");
    let metrics = String::from_utf8(metrics).expect("text");
    assert_eq!(status, 200, "{metrics}");
    assert!(metrics.contains("wharf_telemetry_spans_exported_total "), "{metrics}");
    let doctor = home.run(&["doctor"]).code(0).stdout;
    assert!(doctor.contains("traces are taken at http://127.0.0.1:"), "{doctor}");
    core.stop().code(0);
}

const HANDLER: &str = "from wharf_sdk import Context, tool\n@tool\ndef where(context: Context) -> \
                       dict:\n    return {'parent': context.traceparent, 'state': \
                       context.tracestate}\n";
const MODULE: &str = "import { tool } from \"wharf-sdk\";\nexport const there = tool({ input: {}, run: \
                      (_, cx) => ({ parent: cx.traceparent, state: cx.tracestate }) });\n";

#[test]
fn traces_are_told_to_handlers_in_python_and_typescript() {
    if !has_python() || wharf_skips::lacks("node") {
        return;
    }
    let collector = Collector::new(&[]);
    let home = exporting(&collector);
    let core = home.up();
    for (name, file, text) in [("where", "where.py", HANDLER), ("there", "there.ts", MODULE)] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(file);
        std::fs::write(&path, text).expect("written");
        home.run(&["tools", "add", path.to_str().expect("text"), "--approve"]).code(0);
        let tool = format!("local/{name}@1");
        let run = traced(&core, &json!({"tool": tool, "inputs": {}}));
        let attempt = wait_for("the span of the attempt", || {
            let name = format!("attempt {tool}");
            collector.spans().into_iter().find(|span| span.name == name)
        });
        let carried = format!("00-{TRACE}-{}-01", digits(&attempt.span_id));
        assert_eq!(run["outputs"]["parent"], carried, "{run}");
        assert_eq!(run["outputs"]["state"], "vendor=a1", "{run}");
    }
    core.stop().code(0);
}

/// A real collector, which passes on what it takes; it is killed when the test ends.
struct Rotel(Child, String);

impl Rotel {
    /// Starts one that passes traces on to this address; nothing if it is not installed.
    fn start(onward: &str) -> Option<Self> {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/tools/python/lib");
        let pythons = std::fs::read_dir(tools).into_iter().flatten().flatten();
        let mut programs = pythons.map(|it| it.path().join("site-packages/rotel/rotel-agent"));
        let Some(program) = programs.find(|program| program.exists()) else {
            wharf_skips::skip("rotel is missing: run scripts/setup.sh check");
            return None;
        };
        let free = || {
            let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
            socket.local_addr().expect("bound").to_string()
        };
        let (http, grpc) = (free(), free());
        let mut command = children::command(program);
        command.args(["start", "--otlp-http-endpoint", &http, "--otlp-grpc-endpoint", &grpc]);
        command.args(["--exporter", "otlp", "--otlp-exporter-protocol", "http"]);
        command.args(["--otlp-exporter-endpoint", onward, "--batch-timeout", "100ms"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("it starts");
        let collector = Self(child, format!("http://{http}"));
        wait_for("the collector to listen", || TcpStream::connect(&http).ok());
        Some(collector)
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn traces_are_taken_and_passed_on_whole_by_a_collector_of_others() {
    let collector = Collector::new(&[]);
    let Some(between) = Rotel::start(&collector.url) else { return };
    let home = TestHome::new();
    let url = &between.1;
    home.configure(&format!("[telemetry]\notlp = \"{url}\"\nservice_name = \"dock\"\n"));
    let core = home.up();
    let doctor = home.run(&["doctor"]).code(0).stdout;
    assert!(doctor.contains("traces are taken at http://127.0.0.1:"), "{doctor}");
    let run = traced(&core, &json!({"tool": "wharf/echo", "inputs": {"text": CANARY}}));
    assert_eq!(run["status"], "succeeded", "{run}");
    let arrived = |name: &str| {
        wait_for(name, || collector.spans().into_iter().find(|span| span.name == name))
    };
    let (whole, attempt) = (arrived("run wharf/echo"), arrived("attempt wharf/echo"));
    assert_eq!(digits(&whole.trace_id), TRACE, "{whole:?}");
    assert_eq!(digits(&whole.parent_span_id), CALLER, "{whole:?}");
    assert_eq!(attempt.parent_span_id, whole.span_id);
    assert_eq!(said(&whole, "wharf.run_id").as_deref(), run["run_id"].as_str());
    assert!(whole.end_time_unix_nano >= whole.start_time_unix_nano, "{whole:?}");
    assert!(!collector.holds(CANARY), "a payload was exported");
    core.stop().code(0);
}

#[test]
fn traces_of_a_run_that_outlives_its_core_are_told_once_and_whole() {
    let collector = Collector::new(&[]);
    let home = exporting(&collector);
    let core = home.up();
    let (_, begun, _) = {
        let body = json!({"tool": "wharf/ask", "inputs": {"question": CANARY}, "run_id": "r1"});
        let head = format!("00-{TRACE}-{CALLER}-01");
        Api::of(&core).rpc("/v1/runs", &[("traceparent", &head)], &body)
    };
    let open = |core: &Core| {
        wait_for("the question", || {
            let asks = Api::of(core).get("/v1/asks");
            Some(asks["items"].get(0)?["ask_id"].as_str()?.to_owned())
        })
    };
    open(&core);
    core.kill();
    assert!(collector.spans().is_empty(), "nothing is over");
    let core = home.up();
    let ask = open(&core);
    home.run(&["answer", &ask, "blue"]).code(0);
    let run = Api::of(&core).end_of("default", "r1");
    assert_eq!(run["status"], "succeeded", "{run}");
    core.stop().code(0);
    let spans = collector.spans();
    let told = named(&spans, "run wharf/ask");
    assert_eq!(
        (digits(&told.trace_id), digits(&told.parent_span_id)),
        (TRACE.to_owned(), CALLER.to_owned(),)
    );
    let created = run["created_at"].as_str().expect("a time");
    assert_eq!(begun["run_id"], "r1");
    let whole = told.end_time_unix_nano - told.start_time_unix_nano;
    assert!(whole > 0 && !created.is_empty(), "{told:?}");
    named(&spans, "wait ask");
    assert!(!collector.holds(CANARY), "a payload was exported");
}

#[test]
fn traces_that_nobody_takes_are_told_of_and_hold_nothing_up() {
    let collector = Collector::new(&[Reply::Refuse(503)]);
    let home = exporting(&collector);
    let core = home.up();
    home.run(&["run", "wharf/echo", "text=a"]).code(0);
    let said = |text: &str| wait_for(text, || home.log().contains(text).then_some(()));
    said("the collector takes no traces");
    said("the collector takes traces again");
    core.stop().code(0);
    let nobody = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        socket.local_addr().expect("bound")
    };
    home.configure(&format!("[telemetry]\notlp = \"http://{nobody}\"\n"));
    let doctor = home.run(&["doctor"]).code(0).stdout;
    assert!(doctor.contains("traces are not taken at"), "{doctor}");
    let core = home.up();
    home.run(&["run", "wharf/echo", "text=b"]).code(0);
    core.stop().code(0);
}

#[test]
fn traces_begin_at_every_door_that_starts_runs() {
    let collector = Collector::new(&[]);
    let home = exporting(&collector);
    let core = home.up();
    let api = Api::of(&core);
    let tool = json!({"text": "a"});
    let run = json!({"query": "mutation { createRun(input: {tool: \"wharf/echo\", inputs: {}}) { runId } }"});
    let request = json!({"id": "q1", "kind": "elicit", "type": "wharf/echo", "payload": tool});
    let doors = [
        ("/v1/runs", json!({"tool": "wharf/echo", "inputs": tool})),
        ("/graphql", run),
        ("/v1/tasks", json!({"agent": "wharf/echo", "input": tool})),
        ("/v1/tool/sse?role=principal&detach=true&session=0123456789abcdef", request),
    ];
    // Its secret is the token that all these calls carry.
    let (status, trigger) = api.ask(
        "POST",
        "/v1/triggers",
        &json!({"name": "t", "tool": "wharf/echo", "proof": "token", "secret": core.token()}),
    );
    assert_eq!(status, 201, "{trigger}");
    let hook = trigger["path"].as_str().expect("a path");
    let doors = doors.into_iter().chain([(hook, tool.clone())]);
    let mut callers = Vec::new();
    let parent = |number: usize| format!("{number:016x}");
    for (number, (path, body)) in doors.enumerate() {
        let caller = parent(number + 1);
        let trace = format!("00-{TRACE}-{caller}-01");
        let (status, answer, _) = api.rpc(path, &[("traceparent", &trace)], &body);
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        callers.push((caller, path));
    }
    let accept = ("accept", "application/json, text/event-stream");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    let (status, answer, session) = api.rpc("/mcp", &[accept], &hello);
    assert_eq!(status, 200, "{answer}");
    let named = [accept, ("mcp-session-id", &session), ("mcp-protocol-version", "2025-06-18")];
    for (number, in_message) in [(8, true), (9, false)] {
        let (caller, other) = (parent(number), format!("00-{TRACE}-{CALLER}-01"));
        let own = format!("00-{TRACE}-{caller}-01");
        let mut params = json!({"name": "wharf__echo", "arguments": tool});
        if in_message {
            params["_meta"] = json!({"traceparent": own});
        }
        let header = if in_message { &other } else { &own };
        let headers = [&named[..], &[("traceparent", header.as_str())]].concat();
        let call =
            json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
        let (status, answer, _) = api.rpc("/mcp", &headers, &call);
        assert!(status == 200 && answer["result"].is_object(), "{status}: {answer}");
        callers.push((caller, if in_message { "_meta of /mcp" } else { "headers of /mcp" }));
    }
    for (caller, door) in callers {
        wait_for(&format!("the run of {door}"), || {
            let spans = collector.spans();
            let is_below = |id: &[u8]| digits(id) == caller;
            spans.into_iter().find(|span| is_below(&span.parent_span_id))
        });
    }
    core.stop().code(0);
}
