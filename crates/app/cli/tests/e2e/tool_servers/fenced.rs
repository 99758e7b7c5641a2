//! What reaches a fenced tool server: approved variables, approved hosts, files.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::json;

use super::examples::words;
use super::{add, file, handler, storage, text};
use crate::agents::has_python;
use crate::support::TestHome;

/// Tells what it sees.
const LOOKS: &str = r#"
import os, urllib.request
from libs.runtime_common.hydration import hydrate_inputs

def entry(payload, emit, ctrl):
    inputs, seen = payload["inputs"], {"cost_micro": 0}
    if "variable" in inputs:
        seen["variable"] = os.environ.get(inputs["variable"])
    if "url" in inputs:
        try:
            with urllib.request.urlopen(inputs["url"], timeout=20) as answer:
                seen["answer"] = answer.read().decode()
        except OSError as error:
            seen["answer"] = "refused"
    if "file" in inputs:
        seen["by_address"] = inputs["file"].startswith("http")
        seen["text"] = hydrate_inputs(inputs)["file"].decode()
        seen["copy"] = seen["text"].upper()
    return seen
"#;

/// A port on which every request is answered.
fn answering() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut read = [0; 4096];
            let _ = stream.read(&mut read);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nthere",
            );
        }
    });
    port
}

fn outputs(home: &TestHome, arguments: &[&str]) -> serde_json::Value {
    let all = [&["run", "test/looks@1"], arguments].concat();
    home.run(&all).code(0).json()["outputs"].clone()
}

#[test]
fn t043_a_fenced_handler_sees_approved_variables_and_no_others() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up_with(&[("APPROVED_WORD", "ahoy"), ("OTHER_WORD", "silence")]);
    let permissions = "permissions = [\"env:read:APPROVED_WORD\"]";
    let folder = handler("test/looks@1", LOOKS, permissions);
    add(&home, folder.path());
    assert_eq!(outputs(&home, &["variable=APPROVED_WORD"])["variable"], "ahoy");
    assert_eq!(outputs(&home, &["variable=OTHER_WORD"])["variable"], json!(null));
}

#[test]
#[cfg(target_os = "linux")]
fn t025_a_fenced_handler_reaches_approved_hosts_and_no_others() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let (near, far) = (answering(), answering());
    let permissions = format!("permissions = [\"network:egress:127.0.0.1:{near}\"]");
    let folder = handler("test/looks@1", LOOKS, &permissions);
    add(&home, folder.path());
    let answer = |port: u16| {
        let url = format!("url=http://127.0.0.1:{port}/");
        outputs(&home, &[&url])["answer"].clone()
    };
    assert_eq!(answer(near), "there");
    assert_eq!(answer(far), "refused");
}

#[test]
fn t032_t033_files_come_as_paths_or_as_addresses_and_are_the_same() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    home.run_with(b"ahoy", &["worlds", "put", "default", "/in.txt", "-"]).code(0);
    let permission = format!("[\"network:egress:{}\"]", storage(&home));
    for (permissions, level, by_address) in
        [("[]", "standard", false), (permission.as_str(), "standard", true), ("[]", "basic", true)]
    {
        let folder = handler("test/looks@1", LOOKS, &format!("permissions = {permissions}"));
        let added = ["tools", "add", text(folder.path()), "--approve", "--sandbox", level];
        home.run(&added).code(0);
        let seen = outputs(&home, &["file.world=/in.txt", "--out", "copy.world=/out.txt"]);
        assert_eq!(seen["by_address"], by_address, "{permissions} {level}: {seen}");
        assert_eq!(seen["text"], "ahoy");
        assert_eq!(seen["copy"], "world://default/out.txt");
        assert_eq!(file(&home, "/out.txt"), "AHOY");
        home.run(&["worlds", "rm", "default", "/out.txt", "--yes"]).code(0);
        home.run(&["tools", "disable", "test/looks@1"]).code(0);
        home.run(&["tools", "remove", "test/looks@1"]).code(0);
    }
}

#[test]
fn t023_t033_a_program_that_gets_addresses_is_told_where_storage_is() {
    let home = TestHome::new();
    let _core = home.up();
    home.run_with(b"one two two", &["worlds", "put", "default", "/in.txt", "-"]).code(0);
    let permission = format!("[\"network:egress:{}\"]", storage(&home));
    for (permissions, level) in [("[]", "basic"), (permission.as_str(), "standard")] {
        let folder = words(permissions);
        let added = ["tools", "add", text(folder.path()), "--approve", "--sandbox", level];
        home.run(&added).code(0);
        let files = ["text.world=/in.txt", "--out", "table.world=/table.txt"];
        let run = home.run(&[&["run", "text/words@1"], &files[..]].concat()).code(0).json();
        assert_eq!(run["outputs"]["words"], 3, "{level}");
        assert_eq!(file(&home, "/table.txt"), "one\t1\ntwo\t2\n", "{level}");
        home.run(&["worlds", "rm", "default", "/table.txt", "--yes"]).code(0);
        home.run(&["tools", "disable", "text/words@1"]).code(0);
        home.run(&["tools", "remove", "text/words@1"]).code(0);
    }
}

#[test]
fn t043_a_handler_starts_in_the_strictest_sandbox_and_still_gets_its_files() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = handler("test/looks@1", LOOKS, "");
    let add = ["tools", "add", text(folder.path()), "--approve", "--sandbox", "strict"];
    let added = home.run(&add).code(0);
    if !added.stdout.contains("in the sandbox strict") {
        return wharf_skips::skip("this machine has no sandbox that is strict");
    }
    home.run_with(b"words", &["worlds", "put", "default", "/in.txt", "-"]).code(0);
    let seen = outputs(&home, &["variable=PATH", "file.world=/in.txt"]);
    assert_eq!(seen["copy"], "WORDS");
}
