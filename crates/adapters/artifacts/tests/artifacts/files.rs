//! The store of files through restarts, kills, full disks and sweeps.
//!
//! Where another process is needed, a test starts its own program again with one test of it,
//! which does nothing unless it is told a folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use wharf_artifacts::FileObjects;
use wharf_ports::{
    BoundVersions, ObjectError, ObjectErrorKind, ObjectInfo, ObjectUpload, PutObject,
};
use wharf_vocab::Timestamp;

use crate::support::body;

const FOLDER: &str = "WHARF_ARTIFACTS_TEST_FOLDER";

async fn put(files: &Arc<FileObjects>, key: &str, bytes: &[u8]) -> Result<ObjectInfo, ObjectError> {
    let media_type = "text/plain".to_owned();
    let put = PutObject { key: key.to_owned(), media_type, bytes: None, b3: None };
    Arc::clone(files).put(put, body(bytes)).await
}

async fn get(files: &Arc<FileObjects>, key: &str) -> Option<Vec<u8>> {
    let found = Arc::clone(files).get(key.to_owned(), None).await.expect("answered")?;
    Some(found.stream.try_collect::<Vec<_>>().await.expect("read").concat())
}

/// All files below a folder.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("read") {
        let path = entry.expect("read").path();
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn versions(folder: &Path) -> Vec<PathBuf> {
    all_files(folder).into_iter().filter(|path| !path.ends_with("head")).collect()
}

#[tokio::test]
async fn objects_and_uploads_outlive_a_restart() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    let before = put(&files, "w/file", b"content").await.expect("written");
    let key = "w/film".to_owned();
    let id = Arc::clone(&files).begin_upload(key.clone(), "video/mp4".to_owned()).await;
    let upload = ObjectUpload { key, id: id.expect("begun") };
    let first = Arc::clone(&files).put_part(upload.clone(), 1, 3, body(b"one")).await;
    first.expect("taken");
    drop(files);
    let files = FileObjects::open(home.path()).expect("opens again");
    assert_eq!(Arc::clone(&files).head("w/file".to_owned()).await, Ok(Some(before)));
    assert_eq!(get(&files, "w/file").await.as_deref(), Some(b"content".as_slice()));
    let parts = Arc::clone(&files).parts(upload.clone()).await.expect("answered").expect("there");
    assert_eq!(parts.len(), 1);
    Arc::clone(&files).put_part(upload.clone(), 2, 3, body(b"two")).await.expect("taken");
    let whole = Arc::clone(&files).complete_upload(upload, None).await.expect("completed");
    let b3 = blake3::hash(b"onetwo").to_hex();
    assert_eq!(whole.b3.expect("hashed").as_str(), b3.as_str());
    assert_eq!(get(&files, "w/film").await.as_deref(), Some(b"onetwo".as_slice()));
}

#[tokio::test]
async fn parts_in_order_become_the_object_without_a_copy() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    let key = "w/film".to_owned();
    let id = Arc::clone(&files).begin_upload(key.clone(), "video/mp4".to_owned()).await;
    let upload = ObjectUpload { key, id: id.expect("begun") };
    let part = |number, bytes: &'static [u8]| {
        let (files, upload) = (Arc::clone(&files), upload.clone());
        let length = bytes.len() as u64;
        async move { files.put_part(upload, number, length, body(bytes)).await }
    };
    part(1, b"one").await.expect("taken");
    let broken = ObjectError::new(ObjectErrorKind::Interrupted, "broken off");
    let pieces = [Ok("a longer beginning".into()), Err(broken)];
    let pieces = stream::iter(pieces).boxed();
    let refused = Arc::clone(&files).put_part(upload.clone(), 2, 30, pieces).await;
    assert_eq!(refused.expect_err("broken off").kind, ObjectErrorKind::Interrupted);
    let whole = home.path().join("uploads").join(&upload.id).join("whole");
    assert_eq!(fs::metadata(&whole).expect("there").len(), 3, "nothing of it is left");
    part(2, b"two").await.expect("taken");
    let written = fs::metadata(&whole).expect("there").ino();
    let info = Arc::clone(&files).complete_upload(upload, None).await.expect("completed");
    assert_eq!(info.b3.expect("hashed").as_str(), blake3::hash(b"onetwo").to_hex().as_str());
    assert_eq!(get(&files, "w/film").await.as_deref(), Some(b"onetwo".as_slice()));
    let found = all_files(&home.path().join("worlds"));
    let inodes: Vec<u64> = found.iter().map(|it| fs::metadata(it).expect("there").ino()).collect();
    assert!(inodes.contains(&written), "it is the very file: {found:?}");
}

#[tokio::test]
async fn parts_that_are_not_all_in_order_make_the_same_object() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    // Numbers in the order in which they are sent; the last of each number counts.
    let orders = [[1, 3, 2, 4], [2, 1, 3, 4], [1, 2, 1, 3], [1, 2, 3, 2]];
    for (case, order) in orders.iter().enumerate() {
        let key = format!("w/film-{case}");
        let id = Arc::clone(&files).begin_upload(key.clone(), String::new()).await;
        let upload = ObjectUpload { key: key.clone(), id: id.expect("begun") };
        let mut newest = std::collections::BTreeMap::new();
        for (sent, number) in order.iter().enumerate() {
            let bytes = format!("{number} sent as {sent};").repeat(sent + 1);
            let length = bytes.len() as u64;
            let part = Arc::clone(&files);
            let part = part.put_part(upload.clone(), *number, length, body(bytes.as_bytes())).await;
            part.expect("taken");
            newest.insert(*number, bytes);
        }
        let expected: String = newest.into_values().collect();
        let info = Arc::clone(&files).complete_upload(upload, None).await.expect("completed");
        let b3 = blake3::hash(expected.as_bytes()).to_hex();
        assert_eq!(info.b3.expect("hashed").as_str(), b3.as_str(), "{order:?}");
        assert_eq!(get(&files, &key).await, Some(expected.into_bytes()), "{order:?}");
    }
}

#[tokio::test]
async fn others_can_neither_read_nor_enter() {
    let home = tempfile::tempdir().expect("a folder");
    let root = home.path().join("objects");
    let files = FileObjects::open(&root).expect("opens");
    put(&files, "w/a secret path", b"content").await.expect("written");
    let id = Arc::clone(&files).begin_upload("w/x".to_owned(), String::new()).await;
    let upload = ObjectUpload { key: "w/x".to_owned(), id: id.expect("begun") };
    Arc::clone(&files).put_part(upload, 1, 1, body(b"x")).await.expect("taken");
    let found = all_files(&root);
    assert_eq!(found.len(), 5, "{found:?}");
    for path in found {
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        assert_eq!(mode(path.parent().expect("a folder")), 0o700, "{}", path.display());
        assert!(!path.to_string_lossy().contains("secret"), "{}", path.display());
    }
    assert_eq!(fs::metadata(&root).expect("there").permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn what_a_kill_left_half_written_is_removed() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    put(&files, "w/file", b"content").await.expect("written");
    drop(files);
    let tmp = home.path().join("tmp");
    fs::write(tmp.join("half"), b"hal").expect("written");
    fs::create_dir(tmp.join("folder")).expect("made");
    fs::write(tmp.join("folder/part"), b"hal").expect("written");
    // Killed when the version was in its place but no head named it.
    let head = all_files(home.path()).into_iter().find(|path| path.ends_with("head"));
    let object = head.expect("a head").parent().expect("a folder").to_owned();
    fs::write(object.join("999999999999999-0000000000000000"), b"never named").expect("written");
    let files = FileObjects::open(home.path()).expect("opens");
    assert_eq!(fs::read_dir(&tmp).expect("there").count(), 0);
    assert_eq!(get(&files, "w/file").await.as_deref(), Some(b"content".as_slice()));
    let freed = Arc::clone(&files)
        .sweep(Timestamp(1_000_000_000_000_000), BoundVersions::new())
        .await
        .expect("swept");
    assert_eq!(freed, "never named".len() as u64);
    assert_eq!(get(&files, "w/file").await.as_deref(), Some(b"content".as_slice()));
    put(&files, "w/file", b"again").await.expect("written");
    assert_eq!(get(&files, "w/file").await.as_deref(), Some(b"again".as_slice()));
}

#[tokio::test]
async fn replaced_versions_stay_until_they_are_swept() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    let mut written = Vec::new();
    for content in ["one", "second", "the third"] {
        let info = put(&files, "w/file", content.as_bytes()).await.expect("written");
        written.push(info.tag);
    }
    assert_eq!(versions(home.path()).len(), 3);
    let moment =
        |tag: &str| Timestamp(tag.split_once('-').expect("a moment").0.parse().expect("ms"));
    let sweep =
        async |before| Arc::clone(&files).sweep(before, BoundVersions::new()).await.expect("swept");
    assert_eq!(sweep(moment(&written[1])).await, 0, "the first was replaced just then");
    assert_eq!(sweep(moment(&written[2])).await, 3, "the first was replaced before");
    assert_eq!(versions(home.path()).len(), 2);
    assert_eq!(sweep(Timestamp(moment(&written[2]).0 + 1)).await, 6);
    assert_eq!(sweep(Timestamp(u64::MAX)).await, 0, "what counts is never swept");
    assert_eq!(get(&files, "w/file").await.as_deref(), Some(b"the third".as_slice()));
}

#[tokio::test]
async fn a_copy_shares_its_bytes_and_a_sweep_does_not_count_them() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    put(&files, "w/from", b"content").await.expect("written");
    let copy = async || Arc::clone(&files).copy("w/from".to_owned(), "w/to".to_owned()).await;
    let first = copy().await.expect("copied");
    let found = versions(home.path());
    assert_eq!(found.len(), 2);
    let inode = |path: &PathBuf| fs::metadata(path).expect("there").ino();
    assert_eq!(inode(&found[0]), inode(&found[1]));
    assert_eq!(copy().await, Ok(first), "twice is once");
    assert_eq!(versions(home.path()).len(), 2);
    put(&files, "w/from", b"changed").await.expect("written");
    let freed =
        Arc::clone(&files).sweep(Timestamp(u64::MAX), BoundVersions::new()).await.expect("swept");
    assert_eq!(freed, 0, "the copy still has them");
    assert_eq!(get(&files, "w/to").await.as_deref(), Some(b"content".as_slice()));
}

#[tokio::test]
async fn removing_the_last_object_of_a_run_removes_its_folder() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    for path in ["w/@r1/a", "w/@r1/b", "w/kept"] {
        put(&files, path, b"x").await.expect("written");
    }
    for path in ["w/@r1/a", "w/@r1/b"] {
        Arc::clone(&files).delete(path.to_owned()).await.expect("removed");
    }
    assert!(!home.path().join("worlds/w/@r1").exists());
    Arc::clone(&files).delete("w/kept".to_owned()).await.expect("removed");
    assert_eq!(all_files(home.path()), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(home.path().join("worlds")).expect("there").count(), 0);
}

#[tokio::test]
async fn a_key_may_be_a_folder_of_others_too() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    let keys = ["w/a", "w/a-b", "w/a/b", "w/a/b/c"];
    for key in keys {
        put(&files, key, b"x").await.expect("written");
    }
    let list = async |after: Option<&str>, limit| {
        let after = after.map(str::to_owned);
        let found = Arc::clone(&files).list("w/".to_owned(), after, limit).await.expect("listed");
        found.into_iter().map(|entry| entry.key).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 10).await, keys);
    assert_eq!(list(Some("w/a"), 2).await, keys[1..3]);
}

#[tokio::test]
async fn a_put_that_nobody_waits_for_leaves_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let files = FileObjects::open(home.path()).expect("opens");
    let large = vec![7; 4 * 1024 * 1024];
    let endless = body(&large).chain(stream::pending()).boxed();
    let put =
        PutObject { key: "w/file".to_owned(), media_type: String::new(), bytes: None, b3: None };
    let mut putting = Arc::clone(&files).put(put, endless).boxed();
    let begun = Instant::now();
    let tmp = home.path().join("tmp");
    let count = || fs::read_dir(&tmp).expect("there").count();
    while count() == 0 {
        let polled = tokio::time::timeout(Duration::from_millis(20), &mut putting).await;
        assert!(polled.is_err() && begun.elapsed() < Duration::from_secs(20), "never begun");
    }
    drop(putting);
    while count() != 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it was left behind");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(get(&files, "w/file").await, None);
}

fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    command
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[tokio::test]
async fn whoever_is_killed_while_writing_leaves_a_whole_object() {
    let home = tempfile::tempdir().expect("a folder");
    for round in 0..10_u64 {
        let mut command = again("files::writes_until_it_is_killed", home.path());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        // Another number of writes each time spreads the kills.
        let wanted = usize::try_from(1 + round * 2).expect("small");
        let lines = out.lines().map(|line| line.expect("read"));
        assert_eq!(lines.filter(|line| line.contains("wrote")).take(wanted).count(), wanted);
        child.kill().expect("killed");
        child.wait().expect("ends");
        let files = FileObjects::open(home.path()).expect("opens");
        assert_eq!(fs::read_dir(home.path().join("tmp")).expect("there").count(), 0);
        let head = Arc::clone(&files).head("w/file".to_owned()).await.expect("answered");
        let head = head.expect("there");
        let found = get(&files, "w/file").await.expect("there");
        assert_eq!(found.len() as u64, head.bytes);
        assert_eq!(blake3::hash(&found).to_hex().as_str(), head.b3.expect("known").as_str());
    }
}

#[tokio::test]
async fn writes_until_it_is_killed() {
    let Some(folder) = folder() else { return };
    let files = FileObjects::open(folder).expect("opens");
    for (digit, size) in (b'1'..=b'9').cycle().zip((1..).map(|n| 700_000 + n % 7 * 90_001)) {
        put(&files, "w/file", &vec![digit; size]).await.expect("written");
        // The harness's own lines come without a break.
        writeln!(std::io::stdout(), "\nwrote").expect("heard");
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_nothing_is_left_behind() {
    let home = tempfile::tempdir().expect("a folder");
    let mount = "mount -t tmpfs -o size=8m none \"$1\"";
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        command.arg(home.path());
        command
    };
    if !shell(mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return wharf_skips::skip("no small disk can be mounted here, so none could be filled");
    }
    let mut command = shell(&format!("{mount} && shift && exec \"$@\""));
    command.arg(std::env::current_exe().expect("a program"));
    command.args(["--exact", "files::fills_a_small_disk", "--nocapture"]);
    let done = command.env(FOLDER, home.path()).output().expect("starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("filled"), "{said}");
}

#[tokio::test]
async fn fills_a_small_disk() {
    let Some(folder) = folder() else { return };
    let files = FileObjects::open(&folder).expect("opens");
    put(&files, "w/file", b"before").await.expect("written");
    let large = vec![7; 12 * 1024 * 1024];
    for key in ["w/file", "w/new"] {
        let refused = put(&files, key, &large).await.expect_err("no room");
        assert_eq!(refused.kind, ObjectErrorKind::Full, "{refused}");
    }
    let key = "w/film".to_owned();
    let id = Arc::clone(&files).begin_upload(key.clone(), String::new()).await;
    let upload = ObjectUpload { key, id: id.expect("begun") };
    let bytes = large.len() as u64;
    let refused = Arc::clone(&files).put_part(upload.clone(), 1, bytes, body(&large)).await;
    assert_eq!(refused.expect_err("no room").kind, ObjectErrorKind::Full);
    // A part in a file of its own, of which there is no room for a copy.
    let half = &large[..4 * 1024 * 1024];
    let bytes = half.len() as u64;
    Arc::clone(&files).put_part(upload.clone(), 2, bytes, body(half)).await.expect("taken");
    let refused = Arc::clone(&files).complete_upload(upload.clone(), None).await;
    assert_eq!(refused.expect_err("no room").kind, ObjectErrorKind::Full);
    assert_eq!(
        Arc::clone(&files).parts(upload.clone()).await.expect("answered").map(|p| p.len()),
        Some(1)
    );
    Arc::clone(&files).abort_upload(upload).await.expect("given up");
    // No room for a head either.
    fs::write(folder.join("ballast"), &large).expect_err("fills the disk");
    let refused = put(&files, "w/new", b"small").await.expect_err("no room");
    assert_eq!(refused.kind, ObjectErrorKind::Full, "{refused}");
    fs::remove_file(folder.join("ballast")).expect("removed");
    assert_eq!(all_files(&folder).len(), 2, "a head and a version");
    assert_eq!(get(&files, "w/file").await.as_deref(), Some(b"before".as_slice()));
    assert_eq!(get(&files, "w/new").await, None);
    put(&files, "w/new", b"after").await.expect("there is room again");
    writeln!(std::io::stdout(), "filled").expect("heard");
}
