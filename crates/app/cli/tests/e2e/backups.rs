//! Backups as their users meet them: taken beside a core that works, broken off, damaged,
//! encrypted, restored, started and read.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::children::{Finish as _, command};
use crate::page;
use crate::support::{Api, Core, Ended, TestHome, wait_for};

const MIB: usize = 1024 * 1024;

#[test]
fn the_page_about_operations_tells_the_truth() {
    let home = TestHome::new();
    let _core = home.up();
    let (ran, checked) = page::follow(&home, "operations.md");
    assert!(ran > 9 && checked > 25, "{ran} blocks were run, {checked} lines were looked for");
}

/// A folder for backups, and the commands that use it.
struct Shelf {
    dir: tempfile::TempDir,
}

impl Shelf {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    fn back_up(&self, home: &TestHome, more: &[&str]) -> Ended {
        home.run(&[&["backup", &self.text("b"), "--json"], more].concat())
    }

    fn verify(&self, home: &TestHome, more: &[&str]) -> Ended {
        home.run(&[&["backup", "verify", &self.text("b"), "--json"], more].concat())
    }

    /// Restores into another home.
    fn restore(&self, home: &TestHome, more: &[&str]) -> Ended {
        home.run(&[&["restore", &self.text("b"), "--json"], more].concat())
    }
}

fn put(home: &TestHome, world: &str, path: &str, content: &[u8]) {
    home.run_with(content, &["worlds", "put", world, path, "-"]).code(0);
}

/// Bytes that differ from place to place.
fn bytes(count: usize, seed: u8) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8 ^ (at / 251 % 256) as u8 ^ seed).collect()
}

/// All files of a world with what they hold, as its core gives them.
fn read_all(api: &Api, world: &str) -> Vec<(String, Vec<u8>)> {
    let listed = api.get(&format!("/v1/worlds/{world}/artifacts?limit=200&local=true"));
    let files = listed["items"].as_array().expect("a list").iter();
    files
        .map(|file| {
            let path = file["path"].as_str().expect("a path").to_owned();
            let (status, body) = api.bytes(&format!("/v1/worlds/{world}/files{path}"));
            assert_eq!(status, 200, "{path}");
            assert_eq!(file["b3"], blake3::hash(&body).to_hex().as_str(), "{path}");
            (path, body)
        })
        .collect()
}

fn error_of(ended: &Ended) -> Value {
    serde_json::from_str::<Value>(&ended.stderr).expect("an error")["error"]["code"].clone()
}

/// The core works while the backup is taken: files come, are replaced and are removed, runs read
/// and write. Whatever the backup caught is whole.
#[test]
fn t040_a_backup_beside_a_busy_core_can_be_started_and_every_file_read() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    home.configure("[log]\nlevel = \"warn\"\n");
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--publish", "staged"]).code(0);
    for (at, size) in [3, 70_000, 2 * MIB].into_iter().enumerate() {
        put(&home, "lab", &format!("/in/{at}.bin"), &bytes(size, 1));
    }
    put(&home, "default", "/empty", b"");
    home.run_with(b"hush", &["secret", "set", "KEY"]).code(0);
    let api = Api::of(&core);
    let run = json!({"tool": "wharf/echo", "world": "lab", "run_id": "r1",
        "inputs": {"text.world": "/in/0.bin"}, "outputs": {"text.world": "/out/a", "x.local": "/x"}});
    api.start(&run);
    assert_eq!(api.end_of("lab", "r1")["status"], "succeeded");
    let kept = read_all(&api, "lab");
    let done = AtomicBool::new(false);
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| churn(&core, &done));
        let first = shelf.back_up(&home, &[]).code(0).json();
        let again: Vec<_> =
            (0..3).map(|_| shelf.back_up(&home, &["--incremental"]).code(0).json()).collect();
        done.store(true, Ordering::Relaxed);
        (first, again)
    });
    assert_eq!(taken.0["missing"], json!([]), "{taken:?}");
    assert!(taken.0["copied_bytes"].as_u64().expect("a number") >= 2 * MIB as u64);
    for again in &taken.1 {
        let copied = again["copied_bytes"].as_u64().expect("a number");
        assert!(copied < MIB as u64, "only what is new is copied: {again}");
    }
    shelf.verify(&home, &[]).code(0);

    let other = TestHome::new();
    shelf.restore(&other, &[]).code(0);
    home.run(&["audit", "verify"]).code(0);
    other.run(&["audit", "verify"]).code(0);
    let doctor = other.run(&["doctor", "--hash", "--json"]).code(0).json();
    let files = doctor.as_array().expect("a list").iter().find(|line| line["name"] == "files");
    assert_eq!(files.expect("looked at")["verdict"], "ok", "{doctor}");
    assert!(!other.path().join("run/storage.port").exists(), "the original keeps its port");
    assert_eq!(
        std::fs::read(other.path().join("wharf.toml")).expect("restored"),
        std::fs::read(home.path().join("wharf.toml")).expect("there")
    );
    // Both run side by side, and the copy has the original's owner and secrets.
    let copy = other.up();
    assert_eq!(copy.token(), core.token());
    let copied = Api::of(&copy);
    let found = read_all(&copied, "lab");
    for file in kept {
        assert!(found.contains(&file), "{} is missing", file.0);
    }
    read_all(&copied, "default");
    assert_eq!(copied.get("/v1/runs/r1?world=lab")["status"], "succeeded");
    let trace = copied.get("/v1/worlds/lab/trace?path=/in/0.bin");
    assert_eq!(trace["read"][0]["run_id"], "r1", "{trace}");
    assert!(other.run(&["secret", "list"]).code(0).stdout.contains("KEY"));
    let run = json!({"tool": "wharf/echo", "world": "lab", "run_id": "r2",
        "inputs": {"text.world": "/in/0.bin"}});
    copied.start(&run);
    assert_eq!(copied.end_of("lab", "r2")["status"], "succeeded");
    copy.stop().code(0);
    other.run(&["audit", "verify"]).code(0);
}

/// Puts, replaces and removes files until it is told to stop.
fn churn(core: &Core, done: &AtomicBool) {
    let api = Api::of(core);
    let mut round = 0;
    while !done.load(Ordering::Relaxed) {
        round += 1;
        for name in ["a", "b", "c"] {
            let file = format!("/v1/worlds/default/files/churn/{name}");
            let (status, answer) = api.ask("PUT", &file, &json!(format!("{name} {round}")));
            assert!(status == 200 || status == 201, "{status} {answer}");
        }
        let gone = if round % 2 == 0 { "a" } else { "c" };
        let file = format!("/v1/worlds/default/files/churn/{gone}");
        assert_eq!(api.ask("DELETE", &file, &Value::Null).0, 204);
    }
}

/// Outputs that were staged when the backup was taken are published by whoever restores it.
#[test]
fn t047_a_publication_under_way_goes_on_in_a_restored_home() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--publish", "staged"]).code(0);
    let api = Api::of(&core);
    // Something is in the way of the output, so that it stays staged.
    assert_eq!(api.ask("PUT", "/v1/worlds/lab/files/out", &json!("x")).0, 201);
    let place = object_of(&home, "lab");
    assert_eq!(api.ask("DELETE", "/v1/worlds/lab/files/out", &Value::Null).0, 204);
    std::fs::create_dir_all(place.parent().expect("a shelf")).expect("made");
    std::fs::write(&place, "in the way").expect("written");
    api.start(&json!({"tool": "wharf/echo", "world": "lab", "run_id": "r1",
        "inputs": {"a": "text"}, "outputs": {"a.world": "/out"}}));
    wait_for("the publication to be stuck", || {
        home.log().contains("outputs could not be published").then_some(())
    });
    shelf.back_up(&home, &[]).code(0);
    core.kill();
    let other = TestHome::new();
    shelf.restore(&other, &[]).code(0);
    let core = other.up();
    let api = Api::of(&core);
    assert_eq!(api.end_of("lab", "r1")["status"], "succeeded");
    assert_eq!(api.bytes("/v1/worlds/lab/files/out"), (200, b"text".to_vec()));
}

/// The folder of the only object of a world.
fn object_of(home: &TestHome, world: &str) -> PathBuf {
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let shelves = names(&home.path().join("objects/worlds").join(world));
    let mut objects: Vec<_> = shelves.iter().flat_map(|shelf| names(shelf)).collect();
    assert_eq!(objects.len(), 1, "{objects:?}");
    objects.pop().expect("one")
}

fn lying(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |path: PathBuf| match path.metadata() {
        Ok(found) if found.is_dir() => lying(&path),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(|entry| size(entry.path())).sum()
}

#[test]
fn t040_kill_9_in_the_middle_of_a_backup_leaves_none_or_the_one_before() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    let core = home.up();
    put(&home, "default", "/small", b"small");
    let large = |seed: u8| put(&home, "default", "/large", &bytes(48 * MIB, seed));
    large(1);
    let killed = |more: &[&str]| {
        let before = lying(&shelf.path("b"));
        let running = home.spawn(&[&["backup", &shelf.text("b")], more].concat());
        wait_for("some of it to be written", || {
            (lying(&shelf.path("b")) > before + MIB as u64).then_some(())
        });
        running.signal(Signal::KILL);
        assert_eq!(running.wait().code, None, "it was not over yet");
    };
    killed(&[]);
    for ended in [shelf.verify(&home, &[]), shelf.restore(&TestHome::new(), &[])] {
        assert_eq!((ended.code, error_of(&ended)), (Some(1), json!("backup.incomplete")));
    }
    let again = shelf.back_up(&home, &[]).code(1);
    assert_eq!(error_of(&again), "backup.occupied");
    assert!(again.stderr.contains("--incremental resumes"), "{again:?}");
    shelf.back_up(&home, &["--incremental"]).code(0);
    let whole = shelf.verify(&home, &[]).code(0).json();
    assert_eq!(whole["objects"], 2, "{whole}");

    // A second one that is killed leaves the first as it was.
    large(2);
    killed(&["--incremental"]);
    assert_eq!(shelf.verify(&home, &[]).code(0).json()["taken_at"], whole["taken_at"]);
    core.kill();
    shelf.back_up(&home, &["--incremental"]).code(0);
    let other = TestHome::new();
    shelf.restore(&other, &[]).code(0);
    let core = other.up();
    let (status, found) = Api::of(&core).bytes("/v1/worlds/default/files/large");
    assert!(status == 200 && found == bytes(48 * MIB, 2));
    let used = lying(&shelf.path("b"));
    assert!(used < 60 * MIB as u64, "what no state needs is removed: {used}");
}

#[test]
fn t040_a_backup_on_a_full_disk_says_so_and_is_none() {
    if wharf_skips::lacks("unshare") {
        return;
    }
    if !command("unshare").args(["-rm", "true"]).finish().status.success() {
        return wharf_skips::skip("a small disk cannot be mounted here: unshare -rm is refused");
    }
    let (home, shelf) = (TestHome::new(), Shelf::new());
    let _core = home.up();
    put(&home, "default", "/large", &bytes(8 * MIB, 1));
    std::fs::create_dir(shelf.path("disk")).expect("made");
    let script = "mount -t tmpfs -o size=4m none disk
        \"$WHARF\" backup disk/b --json; echo $?
        \"$WHARF\" backup verify disk/b --json; echo $?
        mount -o remount,size=64m disk
        \"$WHARF\" backup disk/b --incremental --json >/dev/null; echo $?
        \"$WHARF\" backup verify disk/b --json >/dev/null; echo $?";
    let output = command("unshare")
        .args(["-rm", "sh", "-c", script])
        .current_dir(shelf.dir.path())
        .env("WHARF", env!("CARGO_BIN_EXE_wharf"))
        .env("WHARF_HOME", home.path())
        .finish();
    let said = String::from_utf8_lossy(&output.stderr);
    let codes: Vec<_> = std::str::from_utf8(&output.stdout).expect("text").lines().collect();
    assert_eq!(codes, ["1", "1", "0", "0"], "{said}");
    assert!(said.contains("backup.full") && said.contains("disk is full"), "{said}");
    assert!(said.contains("backup.incomplete"), "{said}");
}

#[test]
fn an_encrypted_backup_shows_nothing_and_opens_with_its_key_only() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    let core = home.up();
    let secret = "the quick brown fox jumps over the lazy dog";
    put(&home, "default", "/named-so", secret.as_bytes());
    put(&home, "default", "/large", &bytes(200_000, 3));
    for name in ["key", "other"] {
        home.run(&["backup", "key", &shelf.text(name)]).code(0);
    }
    home.run(&["backup", "key", &shelf.text("key")]).code(1);
    let key = ["--key-file", &shelf.text("key")];
    shelf.back_up(&home, &key).code(0);
    put(&home, "default", "/more", b"more");
    shelf.back_up(&home, &[&["--incremental"][..], &key].concat()).code(0);
    let found = shelf.verify(&home, &key).code(0).json();
    assert_eq!((&found["objects"], &found["encrypted"]), (&json!(3), &json!(true)));
    for (more, code) in [(vec![], 2), (vec!["--key-file".to_owned(), shelf.text("other")], 2)] {
        let more: Vec<_> = more.iter().map(String::as_str).collect();
        for ended in [shelf.verify(&home, &more), shelf.restore(&TestHome::new(), &more)] {
            assert_eq!((ended.code, error_of(&ended)), (Some(code), json!("backup.key_invalid")));
        }
    }
    let token = core.token();
    for file in all_files(&shelf.path("b")) {
        let content = std::fs::read(&file).expect("there");
        for text in [secret, "named-so", &token] {
            let has = content.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!has, "{text} can be read in {}", file.display());
        }
        let hash = blake3::hash(secret.as_bytes()).to_hex();
        assert!(!file.display().to_string().contains(hash.as_str()), "{}", file.display());
    }
    assert!(!home.path().join("run/backup.db").exists());
    let other = TestHome::new();
    shelf.restore(&other, &key).code(0);
    let copy = other.up();
    assert_eq!(read_all(&Api::of(&copy), "default"), read_all(&Api::of(&core), "default"));
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let below = |path: PathBuf| if path.is_dir() { all_files(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

#[test]
fn a_damaged_backup_is_found_out_and_never_half_restored() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    let core = home.up();
    put(&home, "default", "/file", &bytes(100_000, 9));
    core.stop().code(0);
    shelf.back_up(&home, &[]).code(0);
    let blob = all_files(&shelf.path("b/blobs"))
        .into_iter()
        .find(|path| path.metadata().expect("there").len() == 100_000);
    let blob = blob.expect("the file's content");
    let whole = std::fs::read(&blob).expect("there");
    let mut flipped = whole.clone();
    flipped[77] ^= 1;
    let gone: Option<&[u8]> = None;
    for content in [Some(&flipped[..]), Some(&whole[..500]), gone] {
        match content {
            Some(content) => std::fs::write(&blob, content).expect("written"),
            None => std::fs::remove_file(&blob).expect("removed"),
        }
        let found = shelf.verify(&home, &[]).code(1).json();
        let findings = found["findings"].as_array().expect("a list");
        assert!(findings.len() == 1 && findings[0].to_string().contains("default/file"), "{found}");
        let other = TestHome::new();
        let refused = shelf.restore(&other, &[]).code(1);
        assert_eq!(error_of(&refused), "backup.damaged");
        assert_eq!(std::fs::read_dir(other.path()).expect("made").count(), 0, "nothing is left");
    }
    std::fs::write(&blob, whole).expect("written");
    shelf.verify(&home, &[]).code(0);
}

#[test]
fn what_is_there_is_never_overwritten() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    let core = home.up();
    put(&home, "default", "/file", b"one");
    std::fs::create_dir(shelf.path("b")).expect("made");
    std::fs::write(shelf.path("b/mine"), "mine").expect("written");
    let inside = home.path().join("b").display().to_string();
    for dir in [shelf.text("b"), inside] {
        for more in [&[][..], &["--incremental"]] {
            let refused = home.run(&[&["backup", &dir, "--json"], more].concat()).code(1);
            assert_eq!(error_of(&refused), "backup.occupied", "{dir}");
        }
    }
    std::fs::remove_file(shelf.path("b/mine")).expect("removed");
    shelf.back_up(&home, &[]).code(0);
    // A home in use is not touched at all; one that is not is put aside when that is wanted.
    for more in [&[][..], &["--replace"]] {
        assert_eq!(error_of(&shelf.restore(&home, more).code(1)), "home.locked");
    }
    put(&home, "default", "/file", b"two");
    core.stop().code(0);
    assert_eq!(error_of(&shelf.restore(&home, &[]).code(1)), "backup.occupied");
    let restored = shelf.restore(&home, &["--replace"]).code(0).json();
    let aside = PathBuf::from(restored["aside"].as_str().expect("put aside"));
    assert!(aside.join("wharf.db").exists(), "{restored}");
    let core = home.up();
    assert_eq!(Api::of(&core).bytes("/v1/worlds/default/files/file").1, b"one");
    core.stop().code(0);

    // Half a restored home is not started.
    std::fs::write(home.path().join("restore.incomplete"), "").expect("written");
    let refused = home.run(&["up", "--json"]).code(1);
    assert!(refused.stderr.contains("backup.incomplete"), "{refused:?}");
    let doctor = home.run(&["doctor"]).code(1);
    assert!(doctor.stdout.contains("was not restored to the end"), "{doctor:?}");
}

#[test]
fn t040_the_doctor_and_a_backup_name_files_that_the_store_has_lost() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    let _core = home.up();
    home.run(&["worlds", "create", "lab"]).code(0);
    put(&home, "lab", "/kept", b"kept");
    let line = |name: &str, more: &[&str]| {
        let told = home.run(&[&["doctor", "--json"], more].concat()).json();
        let line = told.as_array().expect("a list").iter().find(|line| line["name"] == name);
        line.expect("looked at").clone()
    };
    assert_eq!(line("files", &[])["verdict"], "ok");
    let object = object_of(&home, "lab");
    let version = all_files(&object).into_iter().find(|path| !path.ends_with("head"));
    let version = version.expect("a version");
    // Changed on the disk: only reading it tells.
    std::fs::write(&version, "KEPT").expect("written");
    assert_eq!(line("files", &[])["verdict"], "ok");
    let deep = line("files", &["--hash"]);
    assert!(deep["text"].to_string().contains("damaged on the disk"), "{deep}");
    std::fs::remove_dir_all(&object).expect("removed");
    let lost = line("files", &[]);
    assert_eq!(lost["verdict"], "fail", "{lost}");
    assert!(lost["text"].to_string().contains("lab/kept"), "{lost}");
    let taken = shelf.back_up(&home, &[]).code(1).json();
    assert_eq!(taken["missing"], json!(["lab/kept"]));
    shelf.verify(&home, &[]).code(0);
    // An object that nobody knows is counted, with what to do when it is old.
    put(&home, "lab", "/known", b"known");
    let known = object_of(&home, "lab");
    let copy = known.with_file_name("0".repeat(64));
    std::fs::create_dir(&copy).expect("made");
    let head = std::fs::read_to_string(known.join("head")).expect("there");
    let head: Value = serde_json::from_str(&head).expect("JSON");
    let mut unknown = head.clone();
    unknown["key"] = json!("lab/unknown");
    unknown["written_at"] = json!(1_000);
    std::fs::write(copy.join("head"), unknown.to_string()).expect("written");
    let version = head["version"].as_str().expect("a name");
    std::fs::copy(known.join(version), copy.join(version)).expect("copied");
    let left = line("leftovers", &[]);
    assert_eq!(left["verdict"], "warn", "{left}");
    assert!(left["text"].to_string().contains("1 objects with 5 bytes"), "{left}");
}

#[test]
fn files_in_an_s3_are_listed_and_left_there() {
    let (home, shelf) = (TestHome::new(), Shelf::new());
    home.configure(
        "[artifacts]\nkind = \"s3\"\nendpoint = \"http://127.0.0.1:9\"\nbucket = \"b\"\n\
         key_id = \"k\"\nsecret_file = \"s3.secret\"\n",
    );
    std::fs::write(home.path().join("s3.secret"), "secret-of-s3").expect("written");
    let _core = home.up();
    let taken = shelf.back_up(&home, &[]).code(0).json();
    assert_eq!(taken["by_reference"], true, "{taken}");
    assert_eq!(shelf.verify(&home, &[]).code(0).json()["by_reference"], true);
    let other = TestHome::new();
    shelf.restore(&other, &[]).code(0);
    assert_eq!(
        std::fs::read(other.path().join("s3.secret")).expect("restored"),
        b"secret-of-s3",
        "what the configuration names is taken, too"
    );
}
