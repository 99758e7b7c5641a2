//! Files that arrive in parts.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use wharf_vocab::limits::{UPLOAD_PART_BYTES_MAX, UPLOAD_PART_BYTES_MIN};

use crate::files::b3;
use crate::support::client::Answer;
use crate::support::{Edge, eventually};

/// A part that is as small as one before the last may be, with bytes of its own.
fn part(seed: u8) -> Vec<u8> {
    let bytes = usize::try_from(UPLOAD_PART_BYTES_MIN).expect("fits");
    (0..bytes).map(|at| seed.wrapping_add(at.to_le_bytes()[0])).collect()
}

async fn begin(edge: &Edge, path: &str) -> String {
    let answer = edge.post("/v1/worlds/default/uploads", json!({"path": path})).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let upload = answer.json();
    assert_eq!((&upload["path"], &upload["parts"]), (&json!(path), &json!([])));
    assert_eq!(upload["part_bytes_min"], UPLOAD_PART_BYTES_MIN);
    upload["upload_id"].as_str().expect("an id").to_owned()
}

fn at(upload: &str, what: &str, path: &str) -> String {
    format!("/v1/worlds/default/uploads/{upload}{what}?path={path}")
}

async fn put(edge: &Edge, upload: &str, number: u32, bytes: Vec<u8>) -> Answer {
    let path = at(upload, &format!("/parts/{number}"), "/big");
    edge.call("PUT", &path).bytes(bytes).send().await
}

async fn parts(edge: &Edge, upload: &str) -> Value {
    edge.get(&at(upload, "", "/big")).await.json()["parts"].clone()
}

#[tokio::test]
async fn t040_an_upload_goes_on_where_the_connection_broke() {
    let edge = Edge::start().await;
    let upload = begin(&edge, "/big").await;
    let (first, second) = (part(1), b"the end".to_vec());
    let answer = put(&edge, &upload, 1, first.clone()).await;
    assert_eq!(answer.json(), json!({"part": 1, "bytes": first.len()}));

    // The second part breaks off half-way.
    let path = at(&upload, "/parts/2", "/big");
    let head = edge.call("PUT", &path).header("content-length", "1000000").head();
    let mut stream = TcpStream::connect(edge.server.addr()).await.expect("connects");
    stream.write_all(head.as_bytes()).await.expect("sends");
    stream.write_all(&vec![0; 100_000]).await.expect("sends");
    eventually(async || (edge.objects.taken() > first.len() as u64).then_some(())).await;
    drop(stream);

    let arrived = json!([{"part": 1, "bytes": first.len()}]);
    assert_eq!(parts(&edge, &upload).await, arrived, "what has arrived is known");
    assert_eq!(put(&edge, &upload, 2, second.clone()).await.status, 200);
    let whole = [first, second].concat();
    let done = json!({"b3": b3(&whole), "bytes": whole.len(), "media_type": "video/mp4"});
    let answer = edge.post(&at(&upload, "/complete", "/big"), done).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let shown = answer.json();
    assert_eq!((&shown["b3"], &shown["bytes"]), (&json!(b3(&whole)), &json!(whole.len())));
    assert_eq!(shown["media_type"], "video/mp4");
    assert!(edge.read("/big").await.body == whole, "it is read back as it was sent");
    edge.get(&at(&upload, "", "/big")).await.refused(404, "upload.not_found");
}

#[tokio::test]
async fn a_part_that_is_sent_again_replaces_the_one_before() {
    let edge = Edge::start().await;
    let upload = begin(&edge, "/big").await;
    for bytes in [b"old".to_vec(), b"newer".to_vec()] {
        assert_eq!(put(&edge, &upload, 1, bytes).await.status, 200);
    }
    assert_eq!(parts(&edge, &upload).await, json!([{"part": 1, "bytes": 5}]));
    let complete = edge.call("POST", &at(&upload, "/complete", "/big")).send().await;
    assert_eq!(complete.status, 201, "the body may be empty: {}", complete.text());
    assert_eq!(edge.read("/big").await.text(), "newer");
}

#[tokio::test]
async fn an_upload_that_is_not_what_it_should_be_becomes_no_file() {
    let edge = Edge::start().await;
    for wrong in [json!({"b3": b3(b"other")}), json!({"bytes": 4})] {
        let upload = begin(&edge, "/big").await;
        assert_eq!(put(&edge, &upload, 1, b"hello".to_vec()).await.status, 200);
        let answer = edge.post(&at(&upload, "/complete", "/big"), wrong).await;
        answer.refused(422, "artifact.checksum");
        edge.read("/big").await.refused(404, "artifact.not_found");
    }
    let upload = begin(&edge, "/big").await;
    let error = edge.post(&at(&upload, "/complete", "/big"), json!({"b3": "x"})).await;
    assert_eq!(error.refused(400, "request.invalid")["details"]["field"], "b3");
}

#[tokio::test]
async fn an_upload_that_is_given_up_is_gone() {
    let edge = Edge::start().await;
    let upload = begin(&edge, "/big").await;
    assert_eq!(put(&edge, &upload, 1, b"hello".to_vec()).await.status, 200);
    let gone = edge.call("DELETE", &at(&upload, "", "/big")).send().await;
    assert_eq!(gone.status, 204, "{}", gone.text());
    put(&edge, &upload, 2, b"x".to_vec()).await.refused(404, "upload.not_found");
    let complete = edge.post(&at(&upload, "/complete", "/big"), json!({})).await;
    complete.refused(404, "upload.not_found");
    edge.read("/big").await.refused(404, "artifact.not_found");
}

#[tokio::test]
async fn an_upload_is_named_by_its_id_and_its_file() {
    let edge = Edge::start().await;
    let upload = begin(&edge, "/big").await;
    for path in [at(&upload, "", "/other"), at("none", "", "/big"), at("..%2f..", "", "/big")] {
        edge.get(&path).await.refused(404, "upload.not_found");
    }
    let unnamed = format!("/v1/worlds/default/uploads/{upload}");
    assert_eq!(
        edge.get(&unnamed).await.refused(400, "request.invalid")["details"]["field"],
        "path"
    );
    for number in ["0", "10001", "x"] {
        let path = at(&upload, &format!("/parts/{number}"), "/big");
        let error = edge.call("PUT", &path).bytes(b"x".to_vec()).send().await;
        assert_eq!(error.refused(400, "request.invalid")["details"]["field"], "part");
    }
    // A part says how large it is, and is not too large.
    let path = at(&upload, "/parts/1", "/big");
    let call = edge.call("PUT", &path).header("transfer-encoding", "chunked");
    let error = call.send().await.refused(400, "request.invalid");
    assert_eq!(error["details"]["field"], "Content-Length");
    let large = (UPLOAD_PART_BYTES_MAX + 1).to_string();
    let call = edge.call("PUT", &path).header("content-length", &large);
    call.send().await.refused(413, "request.too_large");
}
