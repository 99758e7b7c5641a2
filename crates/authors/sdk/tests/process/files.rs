//! Files that tools give, and connections that agents inherit.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;

use serde_json::{Value, json};
use wharf_protocol::agent::{CallRequest, CoreLimits};
use wharf_vocab::{Code, Object};
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

fn with_files(given: &str, turned: &str) -> impl FnOnce(&mut CallRequest) + use<> {
    let outputs = [("turned".to_owned(), turned.to_owned())].into();
    let input = Object::from_iter([("given".to_owned(), given.into())]);
    move |call| {
        call.input = input;
        let refs = Some(vec!["given".to_owned()]);
        call.context = Some(CallContext { refs, outputs: Some(outputs), ..CallContext::default() });
    }
}

#[test]
fn r163_a_tool_reads_and_writes_files_where_the_core_says() {
    let (mut core, ..) = joined();
    let folder = tempfile::tempdir().expect("a folder");
    let (given, turned) = (folder.path().join("in"), folder.path().join("_out"));
    std::fs::write(&given, "abc").expect("writes");
    let (given, turned) = (given.display().to_string(), turned.display().to_string());
    core.call_with("c-1", "turn", &json!({}), with_files(&given, &turned));
    assert_eq!(core.output("c-1"), json!({"turned": {"$written": true}}));
    assert_eq!(std::fs::read_to_string(turned).expect("written"), "cba");
    core.call("c-2", "turn", &json!({"given": given}));
    let fault = core.failure("c-2");
    assert!(fault.is(Code::ToolInvalidInput), "a text is no reference: {fault}");
}

#[test]
fn r163_a_tool_reads_and_writes_addresses_as_it_does_files() {
    let (mut core, ..) = joined();
    let large = "0123456789".repeat(100_000);
    let store = Store::start(&[
        ("GET /w/in?sig=1 HTTP/1.1", 200, &large),
        ("PUT /w/out?sig=2 HTTP/1.1", 200, ""),
        ("GET /w/in?sig=1 HTTP/1.1", 404, ""),
        ("GET /w/in?sig=1 HTTP/1.1", 500, ""),
        ("GET /w/in?sig=1 HTTP/1.1", 200, "abc"),
        ("PUT /w/out?sig=2 HTTP/1.1", 403, ""),
    ]);
    let (given, turned) = (store.url("/w/in?sig=1"), store.url("/w/out?sig=2"));
    core.call_with("c-1", "turn", &json!({}), with_files(&given, &turned));
    assert_eq!(core.output("c-1"), json!({"turned": {"$written": true}}));
    for (id, code) in [
        ("c-2", Code::ArtifactNotFound),
        ("c-3", Code::StorageUnavailable),
        ("c-4", Code::StorageDenied),
    ] {
        core.call_with(id, "turn", &json!({}), with_files(&given, &turned));
        let fault = core.failure(id);
        assert!(fault.is(code), "{fault}");
        assert!(!fault.message.contains("sig="), "{fault}");
    }
    let taken = store.taken();
    assert_eq!(taken[1].len(), large.len());
    assert!(taken[1].starts_with("9876543210"));
}

/// A store that answers what it was told to, one connection after the other.
struct Store {
    port: u16,
    thread: std::thread::JoinHandle<Vec<String>>,
}

impl Store {
    fn start(answers: &[(&str, u16, &str)]) -> Self {
        let owned = |(line, status, body): &(&str, u16, &str)| {
            ((*line).to_owned(), *status, (*body).to_owned())
        };
        let answers: Vec<_> = answers.iter().map(owned).collect();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let port = listener.local_addr().expect("bound").port();
        let serve = move || {
            let answer = |(line, status, body): (String, u16, String)| {
                let (stream, _) = listener.accept().expect("connects");
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    stream.read_line(&mut head).expect("a line");
                }
                assert!(head.starts_with(&line), "{head}");
                assert!(head.contains(&format!("Host: 127.0.0.1:{port}\r\n")), "{head}");
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let length = length.map_or(0, |length| length.parse().expect("a number"));
                let mut taken = vec![0; length];
                stream.read_exact(&mut taken).expect("all of it");
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.get_mut().write_all(head.as_bytes()).expect("written");
                stream.get_mut().write_all(body.as_bytes()).expect("written");
                String::from_utf8(taken).expect("text")
            };
            answers.into_iter().map(answer).collect()
        };
        Self { port, thread: std::thread::spawn(serve) }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The bodies that came, once all was answered.
    fn taken(self) -> Vec<String> {
        self.thread.join().expect("all was asked for as it should be")
    }
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
