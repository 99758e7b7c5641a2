//! Writing outputs to storage and to folders.

use std::io::Cursor;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use wharf_toolserver::transfer::Source;
use wharf_wire::run_v1::Written;

use crate::support::{Bench, Reply, Storage};

fn written(bytes: &[u8]) -> Written {
    Written { bytes: bytes.len() as u64, b3: blake3::hash(bytes).to_hex().to_string() }
}

#[tokio::test]
async fn t027_t030_values_become_files_with_length_type_and_hash() {
    let storage = Storage::always(Reply::new(200, "")).await;
    let bench = Bench::of(&storage);
    for (name, value, body, media_type) in [
        ("a.txt", json!("hä"), "hä", "text/plain; charset=utf-8"),
        ("a.json", json!({"a": 1}), r#"{"a":1}"#, "application/json"),
        ("a.png", json!([1.5]), "[1.5]", "image/png"),
        ("plain", json!(""), "", "application/octet-stream"),
    ] {
        let files = bench.output(&storage.url(&format!("/w1/{name}?X-Amz-Signature=1")));
        let put = files.put("x", Source::Value(value)).await.expect("written");
        assert_eq!(put, written(body.as_bytes()), "{name}");
        assert_eq!(files.written()["x"], put);
        let seen = storage.seen().pop().expect("a request");
        assert_eq!((seen.method.as_str(), seen.body.as_slice()), ("PUT", body.as_bytes()));
        assert_eq!(seen.header("content-length"), body.len().to_string(), "{name}");
        assert_eq!(seen.header("content-type"), media_type);
        assert_eq!(seen.header("transfer-encoding"), "");
    }
}

#[tokio::test]
async fn t028_only_what_storage_took_is_confirmed() {
    for (status, code) in [
        (403, "ERR_STORAGE_DENIED"),
        (404, "ERR_STORAGE"),
        (304, "ERR_STORAGE"),
        (500, "ERR_STORAGE"),
    ] {
        let storage = Storage::always(Reply::new(status, "")).await;
        let bench = Bench::of(&storage);
        let files = bench.output(&storage.url("/x"));
        let failure = files.put("x", Source::Value(json!(1))).await.expect_err(code);
        assert_eq!(failure.code, code, "{status}");
        assert!(files.written().is_empty());
    }
}

#[tokio::test]
async fn t029_an_upload_is_tried_again_from_its_first_byte() {
    let storage = Storage::start(|number, _| match number {
        0 => Reply::new(503, ""),
        1 => Reply::new(500, "").claiming(10),
        _ => Reply::new(201, ""),
    })
    .await;
    let bench = Bench::of(&storage);
    let body: Vec<u8> = (0..700_000).map(|at| (at % 253) as u8).collect();
    let files = bench.output(&storage.url("/x"));
    let path = files.folder().expect("a folder").join("out.bin");
    std::fs::write(&path, &body).expect("written");
    let put = files.put("x", Source::File(path)).await.expect("written");
    assert_eq!(put, written(&body));
    let seen = storage.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.body == body));
}

#[tokio::test]
async fn t032_storage_that_takes_nothing_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let mut bench = Bench::new(std::slice::from_ref(&origin));
    bench.policy.byte_timeout = Duration::from_millis(50);
    bench.policy.tries = 1;
    let files = bench.output(&format!("{origin}/x"));
    let source = Source::Bytes(Bytes::from(vec![0; 16 << 20]));
    let failure = files.put("x", source).await.expect_err("nobody takes it");
    assert_eq!(failure.code, "ERR_STORAGE");
    assert!(failure.message.contains("in time"), "{}", failure.message);
}

#[tokio::test]
async fn t027_streams_are_written_to_storage_with_their_length() {
    let storage = Storage::always(Reply::new(200, "")).await;
    let bench = Bench::of(&storage);
    let files = bench.output(&storage.url("/x"));
    let body = vec![3; 600_001];
    let put = files.put_stream("x", Cursor::new(body.clone())).await.expect("written");
    assert_eq!(put, written(&body));
    let seen = storage.seen().pop().expect("a request");
    assert_eq!(seen.header("content-length"), "600001");
    assert!(seen.body == body);
    let left = std::fs::read_dir(files.folder().expect("a folder")).expect("read").count();
    assert_eq!(left, 0, "what was gathered is gone");
}

#[tokio::test]
async fn t028_a_local_output_appears_whole_in_its_place() {
    let bench = Bench::new(&[]);
    bench.keep("r1/a/b/out.txt", b"old");
    let files = bench.output("/artifacts/r1/a/b/out.txt");
    let (mut writer, reader) = tokio::io::duplex(1024);
    let writing = files.put_stream("x", reader);
    let feeding = async {
        use tokio::io::AsyncWriteExt as _;
        writer.write_all(&vec![5; 400_000]).await.expect("fed");
        let before = std::fs::read(bench.artifact("r1/a/b/out.txt")).expect("the file");
        assert_eq!(before, b"old", "half of it is never seen");
        drop(writer);
    };
    let (put, ()) = tokio::join!(writing, feeding);
    assert_eq!(put.expect("written"), written(&vec![5; 400_000]));
    assert!(std::fs::read(bench.artifact("r1/a/b/out.txt")).expect("the file") == vec![5; 400_000]);
    let names = std::fs::read_dir(bench.artifact("r1/a/b")).expect("read").count();
    assert_eq!(names, 1, "nothing else is left");
}

#[tokio::test]
async fn t028_a_stream_that_breaks_leaves_nothing() {
    let bench = Bench::new(&[]);
    let files = bench.output("/artifacts/r1/out.txt");
    let broken = tokio_util::io::StreamReader::new(futures::stream::iter([
        Ok(Bytes::from_static(b"half")),
        Err(std::io::Error::other("broken")),
    ]));
    assert_eq!(files.put_stream("x", broken).await.expect_err("broken").code, "ERR_STORAGE");
    let left = std::fs::read_dir(bench.artifact("r1")).expect("read").count();
    assert_eq!(left, 0);
    assert!(files.written().is_empty());
}

#[tokio::test]
async fn t028_places_that_cannot_be_written_are_found_before_the_handler_starts() {
    let bench = Bench::new(&["http://127.0.0.1:9".to_owned()]);
    bench.keep("r1/file", b"");
    bench.keep("r1/locked/x", b"");
    let locked = bench.artifact("r1/locked");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).expect("locked");
    for (place, code) in [
        (json!("s3://bucket/key"), "ERR_INPUTS"),
        (json!("somewhere"), "ERR_INPUTS"),
        (json!(null), "ERR_INPUTS"),
        (json!(7), "ERR_INPUTS"),
        (json!("https://example.com/x"), "ERR_EGRESS"),
        (json!("/artifacts/r1/file/x"), "ERR_PATH"),
        (json!("/tmp/x"), "ERR_PATH"),
    ] {
        let files = bench.run(json!({}), json!({"x": place}), None);
        assert_eq!(files.check_targets().await.expect_err(code).code, code, "{place}");
        let failure = files.put("x", Source::Value(json!(1))).await.expect_err(code);
        assert_eq!(failure.code, code, "{place}");
    }
    if !rustix::process::geteuid().is_root() {
        let files = bench.output("/artifacts/r1/locked/y");
        assert_eq!(files.check_targets().await.expect_err("locked").code, "ERR_PATH");
    }
    let places = json!({"a": "/artifacts/r1/new/folder/a", "b": "http://127.0.0.1:9/b"});
    let files = bench.run(json!({}), places, None);
    files.check_targets().await.expect("all can be written");
    assert!(bench.artifact("r1/new/folder").is_dir());
}

#[tokio::test]
async fn t028_only_files_of_the_runs_own_folder_are_taken() {
    let bench = Bench::new(&[]);
    let files = bench.output("/artifacts/r1/out");
    let folder = files.folder().expect("a folder");
    let outside = bench.folder.path().join("secret");
    std::fs::write(&outside, "secret").expect("written");
    symlink(&outside, folder.join("link")).expect("a link");
    for (path, code) in [
        (outside.clone(), "ERR_PATH"),
        (folder.join("link"), "ERR_PATH"),
        (folder.join("../../secret"), "ERR_PATH"),
        (folder.clone(), "ERR_PATH"),
        ("/etc/passwd".into(), "ERR_PATH"),
        (folder.join("missing"), "ERR_HANDLER"),
    ] {
        let failure = files.put("x", Source::File(path.clone())).await.expect_err(code);
        assert_eq!(failure.code, code, "{}", path.display());
    }
    assert!(!bench.artifact("r1/out").exists());
    let failure = files.put("y", Source::Value(Value::Null)).await.expect_err("no such key");
    assert_eq!(failure.code, "ERR_INPUTS");
}

#[tokio::test]
async fn t028_one_output_is_written_by_one_writer_at_a_time() {
    let bench = Bench::new(&[]);
    let files = bench.output("/artifacts/r1/out");
    let (writer, reader) = tokio::io::duplex(16);
    let first = files.put_stream("x", reader);
    let second = async {
        let failure = files.put("x", Source::Value(json!("second"))).await.expect_err("taken");
        assert_eq!(failure.code, "ERR_HANDLER");
        drop(writer);
    };
    let (first, ()) = tokio::join!(biased; first, second);
    assert_eq!(first.expect("written"), written(b""));
    let again = files.put("x", Source::Value(json!("again"))).await.expect("written");
    assert_eq!(again, written(b"again"));
    let mut file = tokio::fs::File::open(bench.artifact("r1/out")).await.expect("the file");
    let mut text = String::new();
    file.read_to_string(&mut text).await.expect("read");
    assert_eq!(text, "again");
}
