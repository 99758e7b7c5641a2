//! `docs/worlds.md`, command by command, and files that break off on their way.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::agents::has_python;
use crate::children::{Finish as _, command};
use crate::page;
use crate::support::{TestHome, mode, wait_for};

#[test]
fn t036_the_page_about_worlds_tells_the_truth() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let (ran, checked) = page::follow(&home, "worlds.md");
    assert!(ran > 10 && checked > 30, "{ran} blocks were run, {checked} lines were looked for");
}

/// A file of this many bytes that has no two equal parts.
fn write(path: &Path, mib: u32) {
    let block: Vec<u8> =
        (0..1024 * 1024_u32).flat_map(|n| [n as u8, (n >> 9) as u8]).take(1 << 20).collect();
    let mut bytes = Vec::new();
    for number in 0..mib {
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&block[4..]);
    }
    std::fs::write(path, bytes).expect("written");
}

fn uploads(home: &TestHome) -> usize {
    let cache = home.path().parent().expect("a folder").join(".cache/wharf/uploads");
    std::fs::read_dir(cache).map_or(0, Iterator::count)
}

#[test]
fn t040_a_large_file_survives_a_kill_of_the_core_and_of_the_command() {
    let home = TestHome::new();
    let core = home.up();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("large.bin");
    write(&file, 100);
    let file = file.to_str().expect("text");
    let put = ["worlds", "put", "default", "/large.bin", file];
    // The command is stopped as soon as something is there to go on with.
    let running = home.spawn(&put);
    wait_for("the upload to begin", || (uploads(&home) == 1).then_some(()));
    running.signal(Signal::INT);
    let stopped = running.wait();
    let ended_first = stopped.code == Some(0);
    assert!(ended_first || stopped.code == Some(4), "{stopped:#?}");
    assert!(ended_first || stopped.stderr.contains("resumes the upload"), "{stopped:#?}");
    core.kill();
    let _core = home.up();
    let done = home.run(&put).code(0);
    assert!(ended_first || done.stderr.contains("resuming: "), "{done:#?}");
    assert_eq!(uploads(&home), 0, "what is done is forgotten");
    let back = folder.path().join("back.bin");
    home.run(&["worlds", "get", "default", "/large.bin", back.to_str().expect("text")]).code(0);
    assert!(std::fs::read(file).expect("there") == std::fs::read(back).expect("there"));
    let again = home.run(&["worlds", "put", "default", "/large.bin", file, "--no-resume"]).code(0);
    assert!(!again.stderr.contains("resuming"), "{again:#?}");
}

#[test]
fn t031_a_path_that_leads_out_is_refused_before_anything_is_sent() {
    let home = TestHome::new();
    let _core = home.up();
    home.run_with(b"keep", &["worlds", "put", "default", "/a/keep", "-"]).code(0);
    for path in ["/a/../a/keep", "/../keep", "a/keep", "/a//keep", "/a/./keep", "/", ""] {
        for arguments in [
            &["worlds", "rm", "default", path, "--yes", "-r"][..],
            &["worlds", "get", "default", path, "-"],
            &["worlds", "put", "default", path, "-"],
            &["artifacts", "trace", "default", path],
        ] {
            // `rm -r /` is a way to say all, so it is not tried here.
            if path == "/" && arguments[1] == "rm" {
                continue;
            }
            let ended = home.run(arguments).code(2);
            assert!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{ended:#?}");
        }
    }
    let listed = home.run(&["worlds", "ls", "default", "-r", "--json"]).code(0).json();
    let paths: Vec<_> =
        listed.as_array().expect("a list").iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["/a/keep"]);
}

#[test]
fn what_get_writes_to_stays_what_it_is() {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt};
    let home = TestHome::new();
    let _core = home.up();
    home.run_with(b"new", &["worlds", "put", "default", "/f", "-"]).code(0);
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let get =
        |path: &Path| home.run(&["worlds", "get", "default", "/f", path.to_str().expect("text")]);
    // A secret file stays one, and a link to it a link.
    std::fs::write(at("secret"), "old").expect("written");
    std::fs::set_permissions(at("secret"), PermissionsExt::from_mode(0o600)).expect("set");
    std::os::unix::fs::symlink("secret", at("link")).expect("made");
    get(&at("link")).code(0);
    assert!(at("link").is_symlink());
    assert_eq!(std::fs::read(at("secret")).expect("there"), b"new");
    assert_eq!(mode(&at("secret")), 0o600);
    // Whoever reads a pipe gets the bytes, and it stays a pipe.
    let made = command("mkfifo").arg(at("pipe")).finish();
    assert!(made.status.success());
    let pipe = at("pipe");
    let reader = std::thread::spawn(move || std::fs::read(pipe).expect("readable"));
    get(&at("pipe")).code(0);
    wait_for("the reader of the pipe", || reader.is_finished().then_some(()));
    assert_eq!(reader.join().expect("read"), b"new");
    assert!(std::fs::metadata(at("pipe")).expect("there").file_type().is_fifo());
    // Standard output by its other name is the same, and the facts do not get in between.
    let out = home.run(&["worlds", "get", "default", "/f", "/dev/stdout", "--json"]).code(0);
    assert_eq!(out.stdout, "new");
    let missing = get(&at("no/f")).code(2);
    let expect = format!("there is no folder {} [", at("no").display());
    assert!(missing.stderr.contains(&expect), "{missing:#?}");
    let names = std::fs::read_dir(folder.path()).expect("readable").count();
    assert_eq!(names, 3, "no parts are left");
}

#[test]
fn files_are_removed_only_when_that_is_confirmed() {
    let home = TestHome::new();
    let _core = home.up();
    for name in ["/d/1", "/d/2", "/e"] {
        home.run_with(name.as_bytes(), &["worlds", "put", "default", name, "-"]).code(0);
    }
    let count = || {
        let listed = home.run(&["worlds", "ls", "default", "-r", "--json"]).code(0).json();
        listed.as_array().map_or(0, Vec::len)
    };
    let asked = home.run(&["worlds", "rm", "default", "/e"]).code(2);
    assert!(asked.stderr.contains("--yes"), "{asked:#?}");
    let folder = home.run(&["worlds", "rm", "default", "/d/", "--yes"]).code(2);
    assert!(folder.stderr.contains("-r"), "{folder:#?}");
    home.run(&["worlds", "remove", "default"]).code(2);
    assert_eq!(count(), 3);
    home.run(&["worlds", "rm", "default", "/d/", "-r", "--yes"]).code(0);
    assert_eq!(count(), 1);
    home.run(&["worlds", "rm", "default", "/d/1", "--yes"]).code(2);
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else_from_it() {
    let home = TestHome::new();
    let _core = home.up();
    let put = |names: &[&str]| {
        for name in names {
            home.run_with(b"x", &["worlds", "put", "default", name, "-"]).code(0);
        }
    };
    let rm = |arguments: &[&str]| {
        home.run(&[&["worlds", "rm", "default", "--yes", "-r"], arguments].concat())
    };
    put(&["/a", "/b", "/d/1", "/d/2"]);
    let ended = rm(&["/a", "/nope", "/d/", "/no/", "/b"]).code(1);
    let said: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(
        (said[0], said[2], said[4]),
        ("removed /a", "removed 2 files below /d/", "removed /b")
    );
    assert!(said[1].starts_with("error: There is no file /nope in "), "{said:#?}");
    assert!(said[3].starts_with("error: There is nothing below /no/ in "), "{said:#?}");
    assert_eq!(said[5..], ["removed 4 files; 2 could not be removed"]);
    // A program reads the same.
    put(&["/a", "/b"]);
    let ended = rm(&["/a", "/nope", "/b", "--json"]).code(1);
    let expect = serde_json::json!({"world": "default", "removed": ["/a", "/b"], "failed": 1});
    assert_eq!(ended.json(), expect);
    let error: Value = serde_json::from_str(&ended.stderr).expect("one error");
    assert_eq!(error["error"]["code"], "artifact.not_found");
    // What is the only thing named fails as it does elsewhere.
    for path in ["/nope", "/nope/"] {
        let ended = rm(&[path, "--json"]).code(2);
        assert!(ended.stdout.is_empty(), "{ended:#?}");
    }
    assert!(rm(&["/d"]).code(2).stderr.contains("End the path with / to name a folder."));
    assert_eq!(rm(&["/", "--json"]).code(0).json()["failed"], 0, "an empty world is no error");
}

#[test]
fn a_world_with_runs_stays_and_a_program_is_told_of_one_that_goes() {
    let home = TestHome::new();
    let _core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    let nap = ["run", "wharf/sleep", "ms=60000", "--world", "lab", "--run-id", "nap", "--detach"];
    home.run(&nap).code(0);
    let remove = ["worlds", "remove", "lab", "--force", "--yes", "--json"];
    let kept = home.run(&remove).code(1);
    assert!(kept.stderr.contains("cancel them first") && kept.stdout.is_empty(), "{kept:#?}");
    home.run(&["runs", "cancel", "nap", "--world", "lab"]).code(0);
    let gone = wait_for("the run to end", || {
        let ended = home.run(&remove);
        (ended.code == Some(0)).then_some(ended)
    });
    assert_eq!(gone.json(), serde_json::json!({"world": "lab", "removed": true}));
    home.run(&["worlds", "show", "lab"]).code(2);
}

#[test]
fn settings_of_a_world_are_changed_one_by_one() {
    let home = TestHome::new();
    let _core = home.up();
    let create = ["worlds", "create", "lab", "--limit-micro", "5", "--retention", "2d", "--json"];
    assert_eq!(home.run(&create).code(0).json()["retention_days"], 2);
    let set = |option: &str, value: &str| -> Value {
        home.run(&["worlds", "set", "lab", option, value, "--json"]).code(0).json()
    };
    let rules = r#"[{"tool":"wharf/echo","approve":true}]"#;
    assert_eq!(set("--policy", rules)["policy"][0]["audience"], "person");
    assert_eq!(set("--publish", "staged")["publish"], "staged");
    let world = set("--retention", "none");
    assert!(world.get("retention_days").is_none(), "{world}");
    assert_eq!((&world["limit_micro"], &world["publish"]), (&5.into(), &"staged".into()));
    assert!(set("--limit-micro", "none").get("limit_micro").is_none());
    let shown = home.run(&["worlds", "show", "lab", "--json"]).code(0).json();
    assert_eq!(
        (&shown["usage"]["files"], &shown["policy"][0]["when"]),
        (&0.into(), &"always".into())
    );
    home.run(&["worlds", "set", "lab", "--policy", "{}"]).code(2);
}
