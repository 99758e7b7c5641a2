//! Trees that are hard to remove.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let trash = dir.path().join("trash");
    fs::create_dir(&trash).expect("made");
    (dir, trash)
}

/// Nests folders below `top` by descriptors, as no path is long enough; the last of them.
fn nest(top: &Path, name: &str, depth: usize) -> OwnedFd {
    let mut at = rustix::fs::open(top, FOLDER, Mode::empty()).expect("there");
    for _ in 0..depth {
        rustix::fs::mkdirat(&at, name, Mode::RWXU).expect("made");
        at = rustix::fs::openat(&at, name, FOLDER, Mode::empty()).expect("there");
    }
    at
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("there").next().is_none()
}

#[test]
fn r163_folders_nested_deeper_than_a_stack_or_a_path_are_removed() {
    let (_dir, trash) = folder();
    let long = "n".repeat(255);
    fs::create_dir(trash.join("room")).expect("made");
    nest(&trash.join("room"), "d", 18_000);
    nest(&trash.join("room"), &long, 3_000);
    // A small stack, so that the test tells a recursion on any machine.
    let path = trash.clone();
    let thread = std::thread::Builder::new().stack_size(192 * 1024);
    let removed = thread.spawn(move || entry(&path, OsStr::new("room"))).expect("starts");
    assert_eq!(removed.join().expect("no overflow"), Ok(()));
    assert!(is_empty(&trash));
}

#[test]
fn r163_links_are_removed_and_what_they_lead_to_stays() {
    let (dir, trash) = folder();
    let outside = dir.path().join("outside");
    fs::create_dir_all(outside.join("in")).expect("made");
    fs::write(outside.join("in/kept"), "kept").expect("writes");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o500)).expect("set");
    fs::create_dir_all(trash.join("room/a/b")).expect("made");
    symlink(&outside, trash.join("room/link")).expect("links");
    symlink(&outside, trash.join("room/a/b/link")).expect("links");
    symlink(outside.join("in/kept"), trash.join("room/a/file")).expect("links");
    symlink("nowhere", trash.join("room/a/dangling")).expect("links");
    assert_eq!(entry(&trash, OsStr::new("room")), Ok(()));
    symlink(&outside, trash.join("room")).expect("links");
    assert_eq!(entry(&trash, OsStr::new("room")), Ok(()));
    assert!(is_empty(&trash));
    assert_eq!(fs::read_to_string(outside.join("in/kept")).expect("there"), "kept");
    let mode = fs::metadata(&outside).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o500, "not even its mode was changed");
}

#[test]
fn r163_folders_that_are_closed_to_everybody_are_removed() {
    let (_dir, trash) = folder();
    for path in ["room/closed/in/deep", "room/read only/in", "room/empty"] {
        fs::create_dir_all(trash.join(path)).expect("made");
    }
    fs::write(trash.join("room/closed/in/deep/file"), "x").expect("writes");
    fs::write(trash.join("room/read only/file"), "x").expect("writes");
    for (path, mode) in [
        ("room/closed/in/deep", 0),
        ("room/closed/in", 0),
        ("room/closed", 0),
        ("room/read only", 0o500),
        ("room/empty", 0),
        ("room", 0),
    ] {
        fs::set_permissions(trash.join(path), fs::Permissions::from_mode(mode)).expect("set");
    }
    assert_eq!(entry(&trash, OsStr::new("room")), Ok(()));
    assert!(is_empty(&trash));
}

#[test]
fn r163_what_an_earlier_core_left_on_its_way_is_in_nobodys_way() {
    let (_dir, trash) = folder();
    fs::create_dir_all(trash.join("room/a/b/c")).expect("made");
    // The names that come next are taken.
    let next = new_name();
    let (start, number) = next.rsplit_once('-').expect("numbered");
    let number = u64::from_str_radix(number, 16).expect("a number");
    for taken in number..number + 20 {
        fs::create_dir_all(trash.join(format!("{start}-{taken:x}/full"))).expect("made");
    }
    assert_eq!(entry(&trash, OsStr::new("room")), Ok(()));
    assert!(!trash.join("room").exists());
    let names = fs::read_dir(&trash).expect("there").flatten().map(|found| found.file_name());
    let names: Vec<_> = names.collect();
    assert!(names.iter().all(|name| name.to_str().is_some_and(is_on_its_way)));
    for name in names {
        assert_eq!(entry(&trash, &name), Ok(()));
    }
    assert!(is_empty(&trash));
}

#[test]
fn r163_what_is_not_there_or_is_a_file_is_no_trouble() {
    let (_dir, trash) = folder();
    assert_eq!(entry(&trash, OsStr::new("nothing")), Ok(()));
    fs::write(trash.join("file"), "x").expect("writes");
    assert_eq!(entry(&trash, OsStr::new("file")), Ok(()));
    assert!(is_empty(&trash));
}
