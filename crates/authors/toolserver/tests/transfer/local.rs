//! Files beneath the folder of artifacts, and attempts to get out of it.

use std::os::unix::fs::symlink;

use serde_json::json;
use tokio::io::AsyncReadExt as _;
use wharf_toolserver::transfer::{FileTransfer, Policy, Source};

use crate::support::Bench;

#[tokio::test]
async fn t023_a_local_input_is_a_copy_of_its_own() {
    let bench = Bench::new(&[]);
    bench.keep("r1/sub/in.txt", b"hello");
    let files = bench.input("/artifacts/r1/sub/in.txt");
    let fetched = files.fetch("x").await.expect("fetched");
    assert_eq!(fetched.bytes, 5);
    std::fs::write(&fetched.path, "changed in place").expect("written");
    let original = std::fs::read(bench.artifact("r1/sub/in.txt")).expect("the original");
    assert_eq!(original, b"hello");
    let mut streamed = String::new();
    let mut reading = files.open("x").await.expect("opened");
    reading.read_to_string(&mut streamed).await.expect("streamed");
    assert_eq!(streamed, "hello");
}

#[tokio::test]
async fn t026_nothing_leads_out_of_the_folder() {
    let bench = Bench::new(&[]);
    let outside = bench.folder.path().join("outside.txt");
    std::fs::write(&outside, "secret").expect("written");
    bench.keep("r1/plain.txt", b"plain");
    symlink(&outside, bench.artifact("r1/link")).expect("a link");
    symlink("plain.txt", bench.artifact("r1/near-link")).expect("a link");
    symlink(bench.folder.path(), bench.artifact("r1/folder-link")).expect("a link");
    symlink("/proc/self/root", bench.artifact("r1/magic")).expect("a link");
    std::fs::create_dir(bench.artifact("r1/folder")).expect("a folder");
    let fifo = bench.artifact("r1/fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).expect("a fifo");
    let socket = std::os::unix::net::UnixListener::bind(bench.artifact("r1/socket"));
    let _socket = socket.expect("a socket");
    for place in [
        "/artifacts/r1/link",
        "/artifacts/r1/near-link",
        "/artifacts/r1/folder-link/outside.txt",
        "/artifacts/r1/magic/etc/passwd",
        "/artifacts/r1/plain.txt/x",
        "/artifacts/r1/folder",
        "/artifacts/r1/fifo",
        "/artifacts/r1/socket",
        "/artifacts/r1/../r1/plain.txt",
        "/artifacts/../outside.txt",
        "/artifacts/r1/./plain.txt",
        "/artifacts/r1//plain.txt",
        "/etc/passwd",
    ] {
        let files = bench.input(place);
        assert_eq!(files.fetch("x").await.expect_err(place).code, "ERR_PATH", "{place}");
        assert_eq!(files.open("x").await.err().expect(place).code, "ERR_PATH", "{place}");
        let files = bench.output(place);
        assert_eq!(files.check_targets().await.expect_err(place).code, "ERR_PATH", "{place}");
        let failure = files.put("x", Source::Value(json!("gotcha"))).await.expect_err(place);
        assert_eq!(failure.code, "ERR_PATH", "{place}");
    }
    assert_eq!(std::fs::read(&outside).expect("the file"), b"secret");
    assert_eq!(std::fs::read(bench.artifact("r1/plain.txt")).expect("the file"), b"plain");
    let missing = bench.input("/artifacts/r1/missing.txt").fetch("x").await;
    assert_eq!(missing.expect_err("missing").code, "ERR_NOT_FOUND");
}

#[tokio::test]
async fn t026_files_of_other_runs_are_read_only_when_listed() {
    let bench = Bench::new(&[]);
    bench.keep("r0/state.json", b"{}");
    let inputs = json!({"x": "/artifacts/r0/state.json"});
    let listed = bench.run(inputs.clone(), json!({}), Some(&["x"]));
    assert_eq!(listed.read("x", 10).await.expect("read"), "{}");
    let guessed = bench.run(inputs.clone(), json!({}), None);
    assert_eq!(guessed.fetch("x").await.expect_err("another run's").code, "ERR_PATH");
    let listed_otherwise = bench.run(inputs.clone(), json!({}), Some(&[]));
    assert!(!listed_otherwise.is_reference("x", &inputs["x"]), "then it is text");
    // To write there is never allowed.
    let files = bench.run(json!({}), inputs, Some(&["x"]));
    assert_eq!(files.check_targets().await.expect_err("another run's").code, "ERR_PATH");
    let failure = files.put("x", Source::Value(json!("mine"))).await.expect_err("another run's");
    assert_eq!(failure.code, "ERR_PATH");
    assert_eq!(std::fs::read(bench.artifact("r0/state.json")).expect("the file"), b"{}");
}

#[tokio::test]
async fn t026_who_trusts_the_control_plane_reads_files_of_any_run_and_writes_its_own() {
    let mut bench = Bench::new(&[]);
    bench.policy.any_run = true;
    bench.keep("r0/state.json", b"{}");
    let outside = bench.folder.path().join("outside.txt");
    std::fs::write(&outside, "secret").expect("written");
    symlink(&outside, bench.artifact("r0/link")).expect("a link");
    let other = json!({"x": "/artifacts/r0/state.json"});
    let files = bench.run(other.clone(), json!({}), None);
    assert_eq!(files.read("x", 10).await.expect("read"), "{}");
    for place in
        ["/artifacts/r0/link", "/artifacts/r0/../../outside.txt", "/artifacts/../outside.txt"]
    {
        let files = bench.run(json!({"x": place}), json!({}), None);
        assert_eq!(files.fetch("x").await.expect_err(place).code, "ERR_PATH", "{place}");
    }
    let files = bench.run(json!({}), other, None);
    assert_eq!(files.check_targets().await.expect_err("another run's").code, "ERR_PATH");
    assert_eq!(std::fs::read(bench.artifact("r0/state.json")).expect("the file"), b"{}");
}

#[tokio::test]
async fn t026_without_a_folder_there_are_no_local_files() {
    let mut bench = Bench::new(&[]);
    bench.policy.artifacts = None;
    let failure = bench.input("/artifacts/r1/x").fetch("x").await.expect_err("no folder");
    assert_eq!(failure.code, "ERR_PATH");
    let failure = bench.output("/artifacts/r1/x").check_targets().await.expect_err("no folder");
    assert_eq!(failure.code, "ERR_PATH");
}

#[test]
fn a_policy_that_cannot_be_used_is_an_error_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("written");
    let scratch = folder.path().to_owned();
    let artifacts = Policy { artifacts: Some(file.clone()), scratch, ..Policy::default() };
    assert_eq!(FileTransfer::new(artifacts).expect_err("a file").code, "ERR_PATH");
    let scratch = Policy { scratch: file, ..Policy::default() };
    assert_eq!(FileTransfer::new(scratch).expect_err("a file").code, "ERR_PATH");
    let origins = vec!["s3.example".to_owned()];
    let origins = Policy { origins, ..Policy::default() };
    assert_eq!(FileTransfer::new(origins).expect_err("no origin").code, "ERR_EGRESS");
}
