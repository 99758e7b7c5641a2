//! Downloads from a core that breaks off, forgets and lies.

use std::path::Path;

use super::*;
use crate::files::partial::partial_path;
use crate::scripted::{Reply, Request, Scripted, ScriptedClient as _};

const TEXT: &[u8] = b"what was written is what is read";

/// Answers like a core that holds `TEXT`, but only `arrive` bytes of each answer arrive.
fn serve(request: &Request, b3: &str, arrive: usize) -> Reply {
    let etag = format!("etag: \"{b3}\"\r\nwharf-b3: {b3}\r\n");
    match request.header("range") {
        None => Reply::Bytes(200, etag, TEXT.to_vec(), arrive),
        Some(range) => {
            let from = range.trim_start_matches("bytes=").trim_end_matches('-');
            let from: usize = from.parse().expect("a number");
            let range =
                format!("content-range: bytes {from}-{}/{}\r\n", TEXT.len() - 1, TEXT.len());
            Reply::Bytes(206, format!("{etag}{range}"), TEXT[from..].to_vec(), arrive)
        }
    }
}

fn hash() -> String {
    blake3::hash(TEXT).to_hex().to_string()
}

async fn fetch(scripted: &Scripted, target: &Path) -> Result<Downloaded> {
    let file = RemoteFile::new("lab", "/out/a b.txt").expect("a path");
    Download::new(scripted.client(), &file).to_file(target).await
}

fn left_over(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).expect("readable").flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn a_file_arrives_whole_over_connections_that_break() {
    let dir = tempfile::tempdir().expect("a folder");
    let target = dir.path().join("a.txt");
    let mut scripted = Scripted::new();
    scripted.start(|request| serve(request, &hash(), 20)).await;
    let fetched = fetch(&scripted, &target).await.expect("fetched");
    assert_eq!((fetched.bytes, fetched.checked), (TEXT.len() as u64, true));
    assert_eq!(std::fs::read(&target).expect("there"), TEXT);
    assert_eq!(left_over(dir.path()), ["a.txt"], "nothing else is left");
    let seen = scripted.seen();
    assert_eq!(seen[0].line, "GET /v1/worlds/lab/files/out/a%20b.txt");
    assert_eq!(seen[1].header("range"), Some("bytes=20-"));
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn what_is_there_is_not_fetched_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let target = dir.path().join("a.txt");
    let etag = format!("\"{}\"", hash());
    let partial = partial_path(&target, Some(&etag)).expect("a name");
    std::fs::write(&partial, &TEXT[..7]).expect("written");
    let mut scripted = Scripted::new();
    scripted.start(|request| serve(request, &hash(), TEXT.len())).await;
    fetch(&scripted, &target).await.expect("fetched");
    assert_eq!(std::fs::read(&target).expect("there"), TEXT);
    assert_eq!(scripted.seen()[1].header("range"), Some("bytes=7-"));
    assert_eq!(left_over(dir.path()), ["a.txt"]);
}

#[tokio::test]
async fn a_part_of_another_version_is_not_gone_on_with() {
    let dir = tempfile::tempdir().expect("a folder");
    let target = dir.path().join("a.txt");
    let other = partial_path(&target, Some("\"other\"")).expect("a name");
    std::fs::write(&other, "another text").expect("written");
    let mut scripted = Scripted::new();
    scripted.start(|request| serve(request, &hash(), TEXT.len())).await;
    fetch(&scripted, &target).await.expect("fetched");
    assert_eq!(std::fs::read(&target).expect("there"), TEXT);
    assert_eq!(scripted.seen().len(), 1);
    assert_eq!(left_over(dir.path()), ["a.txt"], "nobody will go on with the other part");
}

#[tokio::test]
async fn damaged_bytes_never_take_the_files_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let target = dir.path().join("a.txt");
    std::fs::write(&target, "old").expect("written");
    let mut scripted = Scripted::new();
    let wrong = blake3::hash(b"something else").to_hex().to_string();
    scripted.start(move |request| serve(request, &wrong, TEXT.len())).await;
    let error = fetch(&scripted, &target).await.expect_err("damaged");
    assert!(error.is(Code::ArtifactChecksum));
    assert_eq!(error.status(), 500);
    assert_eq!(std::fs::read(&target).expect("there"), b"old");
    assert_eq!(left_over(dir.path()), ["a.txt"]);
}

#[tokio::test]
async fn a_file_that_is_replaced_meanwhile_is_not_mixed() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut scripted = Scripted::new();
    scripted
        .start(|request| {
            let b3 = if request.header("range").is_some() { "new".to_owned() } else { hash() };
            serve(request, &b3, 5)
        })
        .await;
    let error = fetch(&scripted, &dir.path().join("a.txt")).await.expect_err("mixed");
    assert!(error.message().contains("was replaced while it was being fetched"), "{error:?}");
    assert_eq!(left_over(dir.path()), [""; 0], "there is nothing to go on from");
}

#[tokio::test]
async fn a_device_takes_the_bytes_as_they_come_and_may_be_full() {
    let mut scripted = Scripted::new();
    scripted.start(|request| serve(request, &hash(), 20)).await;
    let file = RemoteFile::new("lab", "/out/a b.txt").expect("a path");
    let to = async |path: &str| {
        let out = std::fs::File::options().append(true).open(path).expect("opened");
        Download::new(scripted.client(), &file).to_writer(out, path).await
    };
    let fetched = to("/dev/null").await.expect("fetched");
    assert_eq!((fetched.bytes, fetched.checked), (TEXT.len() as u64, true));
    let error = to("/dev/full").await.expect_err("full");
    assert!(error.message().starts_with("cannot write to /dev/full: "), "{error:?}");
}
