//! Large files pass through little memory.

use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use wharf_toolserver::transfer::{FileTransfer, Source};

use crate::support::{Bench, files};

const FILE_BYTES: usize = 256 << 20;
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// A number of kibibytes from this process's status, in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    let number = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    number.parse::<u64>().expect("a number") * 1024
}

/// Sends a large file to whoever asks and takes one from whoever sends. It keeps nothing.
async fn endless(listener: TcpListener) {
    let piece = Arc::new(vec![42; 256 << 10]);
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let piece = Arc::clone(&piece);
        tokio::spawn(async move {
            let mut stream = BufReader::new(stream);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.expect("a head"));
            }
            if head.starts_with(b"PUT") {
                let mut body = (&mut stream).take(FILE_BYTES as u64);
                tokio::io::copy(&mut body, &mut tokio::io::sink()).await.expect("taken");
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(answer).await.expect("answered");
            } else {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {FILE_BYTES}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.expect("answered");
                for _ in 0..FILE_BYTES / piece.len() {
                    stream.write_all(&piece).await.expect("sent");
                }
            }
            let _ = stream.shutdown().await;
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t023_t027_what_passes_needs_little_memory_however_much_it_is() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(endless(listener));
    let bench = Bench::new(std::slice::from_ref(&origin));
    let transfer = FileTransfer::new(bench.policy.clone()).expect("a policy");
    let outputs = json!({"far": format!("{origin}/out"), "near": "/artifacts/r1/near"});
    let inputs = json!({"x": format!("{origin}/in")});
    let (run, _reports) = files(&transfer, inputs, outputs, Some(&["x"]));
    // The highest mark is of the whole process, so it is lowered to what is used now.
    std::fs::write("/proc/self/clear_refs", "5").expect("the mark is lowered");
    let before = status("VmRSS");
    let fetched = run.fetch("x").await.expect("fetched");
    assert_eq!(fetched.bytes, FILE_BYTES as u64);
    let far = run.put("far", Source::File(fetched.path)).await.expect("written");
    assert_eq!(far.bytes, FILE_BYTES as u64);
    let reading = run.open("x").await.expect("opened");
    let near = run.put_stream("near", reading).await.expect("written");
    assert_eq!(near, far);
    let growth = status("VmHWM").saturating_sub(before);
    assert!(growth < GROWTH_BYTES_MAX, "{growth}");

    // What it needs does not depend on how much passes: four times as much needs no more, so ten
    // gibibytes do not either.
    std::fs::write("/proc/self/clear_refs", "5").expect("the mark is lowered");
    let before = status("VmRSS");
    for _ in 0..4 {
        let mut reading = run.open("x").await.expect("opened");
        let passed = tokio::io::copy(&mut reading, &mut tokio::io::sink()).await.expect("read");
        assert_eq!(passed, FILE_BYTES as u64);
    }
    let growth = status("VmHWM").saturating_sub(before);
    assert!(growth < GROWTH_BYTES_MAX, "a gibibyte in a row needs {growth} bytes more");
    server.abort();
}
