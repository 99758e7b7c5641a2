//! Uploads to a core that breaks off, forgets and refuses.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::scripted::{Reply, Request, Scripted, ScriptedClient as _};

/// Small sizes, so that much happens to few bytes.
const SIZES: Sizes = Sizes { whole_bytes_max: 64 * 1024, part_bytes: 32 * 1024 };

/// Parts of an upload as a core keeps them.
type Parts = Arc<Mutex<std::collections::BTreeMap<u32, Vec<u8>>>>;

fn artifact(bytes: &[u8]) -> serde_json::Value {
    json!({"world": "lab", "path": "/in/f", "bytes": bytes.len(), "media_type": "x",
        "b3": blake3::hash(bytes).to_hex().as_str(), "direction": "out"})
}

fn upload(parts: &Parts) -> Reply {
    let parts = parts.lock();
    let parts: Vec<_> =
        parts.iter().map(|(n, bytes)| json!({"part": n, "bytes": bytes.len()})).collect();
    let upload = json!({"upload_id": "u1", "world": "lab", "path": "/in/f",
        "part_bytes_min": 1024, "parts": parts});
    Reply::Json(201, upload)
}

/// Answers like a core.
fn serve(request: &Request, parts: &Parts) -> Reply {
    let line = request.line.split('?').next().unwrap_or_default();
    let base = "/v1/worlds/lab/uploads";
    if line == format!("POST {base}") || line == format!("GET {base}/u1") {
        return upload(parts);
    }
    if let Some(part) = line.strip_prefix(&format!("PUT {base}/u1/parts/")) {
        let part = part.parse().expect("a number");
        parts.lock().insert(part, request.bytes.clone());
        return Reply::Json(200, json!({"part": part, "bytes": request.bytes.len()}));
    }
    if line == format!("POST {base}/u1/complete") {
        let whole = parts.lock().values().flatten().copied().collect::<Vec<_>>();
        return Reply::Json(201, artifact(&whole));
    }
    if line.starts_with("PUT /v1/worlds/lab/files/") {
        return Reply::Json(201, artifact(&request.bytes));
    }
    Reply::Json(204, json!(null))
}

struct Case {
    scripted: Scripted,
    dir: tempfile::TempDir,
    to: RemoteFile,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        Self {
            scripted: Scripted::new(),
            dir,
            to: RemoteFile::new("lab", "/in/f").expect("a path"),
        }
    }

    fn file(&self, bytes: &[u8]) -> LocalFile {
        let path = self.dir.path().join("f");
        std::fs::write(&path, bytes).expect("written");
        LocalFile::new(&path).expect("opened")
    }

    fn memory(&self) -> UploadMemory {
        UploadMemory::at(self.dir.path().join("memory.json"))
    }

    async fn put(&self, file: &LocalFile) -> (Result<Artifact>, Kept) {
        let mut upload = Upload::new(self.scripted.client(), &self.to);
        upload.sizes = SIZES;
        let put = upload.send_remembered(file, &self.memory(), true).await;
        (put, upload.kept())
    }

    fn lines(&self) -> Vec<String> {
        self.scripted.seen().into_iter().map(|request| request.line).collect()
    }
}

/// Somewhat more than goes in one piece, and different everywhere.
fn large() -> Vec<u8> {
    (0..SIZES.whole_bytes_max + 5).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn a_small_file_goes_with_its_hash_and_its_length() {
    let mut case = Case::new();
    let mut calls = 0;
    let parts = Parts::default();
    case.scripted
        .start(move |request| {
            calls += 1;
            if calls == 1 { Reply::Break } else { serve(request, &parts) }
        })
        .await;
    let file = case.file(b"small");
    let (put, kept) = case.put(&file).await;
    assert_eq!(put.expect("put").bytes, 5);
    assert_eq!(kept, Kept::Nothing);
    let seen = case.scripted.seen();
    assert_eq!(seen.len(), 2, "a lost answer is asked for again");
    let b3 = blake3::hash(b"small").to_hex();
    assert_eq!(seen[1].header("wharf-b3"), Some(b3.as_str()));
    assert_eq!(seen[1].header("content-length"), Some("5"));
    assert_eq!(seen[1].bytes, b"small");
}

#[tokio::test]
async fn a_core_that_is_not_there_is_not_waited_for() {
    let mut case = Case::new();
    case.scripted.start(|_| Reply::Break).await.stop().await;
    let file = case.file(b"small");
    let error = case.put(&file).await.0.expect_err("nobody there");
    assert!(error.message().ends_with("start it with: wharf up"), "{error:?}");
}

#[tokio::test]
async fn a_changed_answer_is_noticed() {
    let mut case = Case::new();
    case.scripted.start(|_| Reply::Json(201, artifact(b"other"))).await;
    let file = case.file(b"small");
    let error = case.put(&file).await.0.expect_err("changed");
    assert!(error.is(Code::ArtifactChecksum));
}

#[tokio::test]
async fn a_large_file_goes_in_parts_of_which_a_broken_one_is_sent_again() {
    let mut case = Case::new();
    let bytes = large();
    let parts = Parts::default();
    let (core, mut broke) = (Arc::clone(&parts), false);
    case.scripted
        .start(move |request| {
            if request.line.contains("/parts/2?") && !std::mem::replace(&mut broke, true) {
                return Reply::Break;
            }
            serve(request, &core)
        })
        .await;
    let file = case.file(&bytes);
    let put = case.put(&file).await.0.expect("put");
    assert_eq!(put.bytes, bytes.len() as u64);
    assert_eq!(case.memory().read(), None, "what is done is forgotten");
    let lines = case.lines();
    let query = "?path=%2Fin%2Ff";
    let part = |n| format!("PUT /v1/worlds/lab/uploads/u1/parts/{n}{query}");
    assert_eq!(lines[1..5], [part(1), part(2), part(2), part(3)]);
    let complete = case.scripted.seen().pop().expect("requests").body.expect("JSON");
    let b3 = blake3::hash(&bytes).to_hex();
    assert_eq!(complete, json!({"b3": b3.as_str(), "bytes": bytes.len()}));
}

#[tokio::test]
async fn the_same_command_goes_on_with_what_has_arrived() {
    let mut case = Case::new();
    let bytes = large();
    let parts = Parts::default();
    let core = Arc::clone(&parts);
    // The third part finds the store full, which ends the first command.
    case.scripted
        .start(move |request| match request.line.contains("/parts/3?") {
            true => {
                let error = json!({"code": "storage.full", "message": "full", "retryable": true});
                Reply::Json(503, json!({"error": error}))
            }
            false => serve(request, &core),
        })
        .await;
    let file = case.file(&bytes);
    let (put, kept) = case.put(&file).await;
    assert!(put.expect_err("full").is(Code::StorageFull));
    assert_eq!(kept, Kept::Resumable { bytes: 2 * SIZES.part_bytes });
    let before = case.lines().len();
    case.scripted.start(move |request| serve(request, &parts)).await;
    assert_eq!(case.put(&file).await.0.expect("put").bytes, bytes.len() as u64);
    let query = "?path=%2Fin%2Ff";
    let expect = [
        format!("GET /v1/worlds/lab/uploads/u1{query}"),
        format!("PUT /v1/worlds/lab/uploads/u1/parts/3{query}"),
        format!("POST /v1/worlds/lab/uploads/u1/complete{query}"),
    ];
    assert_eq!(case.lines()[before..], expect);
}

#[tokio::test]
async fn an_upload_is_looked_up_again_when_the_answer_gets_lost() {
    let mut case = Case::new();
    let bytes = large();
    let file = case.file(&bytes);
    let started = super::super::resume::StartedUpload {
        upload_id: "u1".to_owned(),
        part_bytes: SIZES.part_bytes,
    };
    assert!(case.memory().keep(&started));
    let (parts, mut broke) = (Parts::default(), false);
    let first = bytes[..SIZES.part_bytes as usize].to_vec();
    parts.lock().insert(1, first);
    case.scripted
        .start(move |request| {
            let looks = request.line.starts_with("GET ");
            if looks && !std::mem::replace(&mut broke, true) {
                return Reply::Break;
            }
            serve(request, &parts)
        })
        .await;
    assert_eq!(case.put(&file).await.0.expect("put").bytes, bytes.len() as u64);
    let lines = case.lines();
    assert_eq!(lines[0], lines[1], "it is looked up twice");
    assert!(lines[2].contains("/parts/2?"), "what has arrived is not sent again: {lines:#?}");
}

#[tokio::test]
async fn an_upload_that_the_core_has_forgotten_is_begun_again() {
    let mut case = Case::new();
    let bytes = large();
    let file = case.file(&bytes);
    let started = super::super::resume::StartedUpload {
        upload_id: "old".to_owned(),
        part_bytes: SIZES.part_bytes,
    };
    assert!(case.memory().keep(&started));
    let parts = Parts::default();
    case.scripted
        .start(move |request| match request.line.contains("/uploads/old") {
            true => {
                let error = json!({"code": "upload.not_found", "message": "?", "retryable": false});
                Reply::Json(404, json!({"error": error}))
            }
            false => serve(request, &parts),
        })
        .await;
    assert_eq!(case.put(&file).await.0.expect("put").bytes, bytes.len() as u64);
    assert!(case.lines().iter().any(|line| line == "POST /v1/worlds/lab/uploads"));
}

#[tokio::test]
async fn parts_that_do_not_fit_are_given_up() {
    let mut case = Case::new();
    let file = case.file(&large());
    let parts = Parts::default();
    case.scripted
        .start(move |request| match request.line.contains("/complete?") {
            true => {
                let error = json!({"code": "artifact.checksum", "message": "?", "retryable": true});
                Reply::Json(422, json!({"error": error}))
            }
            false => serve(request, &parts),
        })
        .await;
    let (put, kept) = case.put(&file).await;
    assert!(put.expect_err("damaged").is(Code::ArtifactChecksum));
    assert_eq!(kept, Kept::Nothing);
    assert_eq!(case.memory().read(), None);
    assert!(case.lines().last().expect("requests").starts_with("DELETE "));
}

#[tokio::test]
async fn a_file_that_is_there_although_the_answer_got_lost_is_enough() {
    let mut case = Case::new();
    let bytes = large();
    let file = case.file(&bytes);
    let (parts, mut completed) = (Parts::default(), 0);
    case.scripted
        .start(move |request| {
            if request.line.contains("/complete?") {
                completed += 1;
                let error = json!({"code": "upload.not_found", "message": "?", "retryable": false});
                return if completed == 1 {
                    Reply::Break
                } else {
                    Reply::Json(404, json!({"error": error}))
                };
            }
            if request.line.contains("/artifacts?") {
                return Reply::Json(200, json!({"items": [artifact(&bytes)], "next_cursor": null}));
            }
            serve(request, &parts)
        })
        .await;
    assert!(case.put(&file).await.0.is_ok());
}
