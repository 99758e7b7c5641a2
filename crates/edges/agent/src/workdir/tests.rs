//! Rooms in the hands of honest and of hostile agents.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use std::sync::Arc;

use wharf_vocab::{AgentId, Isolation, LaunchId};

use super::*;

struct Stage {
    dir: tempfile::TempDir,
    places: Places,
    rooms: Rooms,
    room: Room,
}

fn stage() -> Stage {
    let dir = tempfile::tempdir().expect("a folder");
    let places = places(dir.path(), Isolation::Shared);
    let mut rooms = Rooms::open(&places).expect("opens");
    let room = rooms.take(&attempt("a-1")).expect("made");
    Stage { dir, places, rooms, room }
}

fn places(agents: &Path, isolation: Isolation) -> Places {
    let id = AgentId::new("dev.example.hello").expect("valid");
    Places::new(agents, &id, &LaunchId::new("l-1").expect("valid"), isolation)
}

fn attempt(id: &str) -> AttemptId {
    AttemptId::new(id).expect("valid")
}

impl Stage {
    fn out(&self, name: &str) -> PathBuf {
        PathBuf::from(self.room.outputs_path()).join(name)
    }

    fn kept(&self) -> PathBuf {
        self.places.outputs.join("default/r-1")
    }

    fn shelf(&self, bytes_max: u64) -> Shelf {
        Shelf { folder: self.places.outputs.clone(), bytes_max, ledger: Arc::default() }
    }

    fn keep(&self, key: &str) -> Result<Object, Fault> {
        let mut outputs = Object::from_iter([(key.to_owned(), json!({"$written": true}))]);
        outputs.insert("n".to_owned(), json!(1));
        self.room.keep_written(&mut outputs, &self.shelf(1 << 30), &self.kept()).map(|()| outputs)
    }

    #[track_caller]
    fn refused(&self, key: &str, code: Code, words: &str) {
        let fault = self.keep(key).expect_err("not a file to keep");
        assert!(fault.is(code), "{fault}");
        assert!(fault.message.contains(words), "{fault}");
        assert!(!self.kept().exists(), "nothing is kept of it");
    }
}

#[test]
fn r163_a_written_file_is_kept_where_the_agent_cannot_reach_it() {
    let stage = stage();
    let mode = fs::metadata(stage.room.outputs_path()).expect("exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    fs::write(stage.out("report.txt"), "hello").expect("writes");
    let outputs = stage.keep("report.txt").expect("kept");
    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let file = json!({"$file": {"path": "report.txt", "bytes": 5, "sha256": sha256}});
    assert_eq!(outputs["report.txt"], file);
    assert_eq!(outputs["n"], 1);
    // The agent still has the file open, and writes on.
    fs::write(stage.out("report.txt"), "other").expect("writes");
    let kept = fs::read_to_string(stage.kept().join("report.txt")).expect("readable");
    assert_eq!(kept, "hello");
    let mode = |path: &Path| fs::metadata(path).expect("exists").permissions().mode() & 0o777;
    assert_eq!(mode(&stage.kept().join("report.txt")), 0o600);
    assert_eq!(mode(&stage.kept()), 0o700);
}

#[test]
fn r163_what_is_no_ordinary_file_of_that_name_is_refused() {
    let stage = stage();
    let invalid = Code::ToolInvalidOutput;
    stage.refused("missing", invalid, "output missing is not there");
    symlink("/etc/passwd", stage.out("link")).expect("links");
    stage.refused("link", invalid, "cannot be opened as an ordinary file");
    fs::create_dir(stage.out("folder")).expect("makes");
    stage.refused("folder", invalid, "is not an ordinary file");
    let fifo = stage.out("fifo");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, mode, 0).expect("makes");
    stage.refused("fifo", invalid, "is not an ordinary file");
    fs::write(stage.dir.path().join("secret"), "s").expect("writes");
    fs::hard_link(stage.dir.path().join("secret"), stage.out("hard")).expect("links");
    stage.refused("hard", invalid, "has another name besides");
    for key in ["../secret", "a/b", ".hidden", "", "..", "a\0b", "ä", &"x".repeat(129)] {
        stage.refused(key, invalid, "needs a name of letters");
    }
}

#[test]
fn r163_files_are_bounded_in_size_and_number() {
    let stage = stage();
    let huge = File::create(stage.out("huge")).expect("made");
    huge.set_len(CALL_BYTES_MAX + 1).expect("sparse");
    stage.refused("huge", Code::ToolOutputTooLarge, "larger than 64 MiB");
    let many = (0..=FILES_MAX).map(|n| (format!("f{n}"), json!({"$written": true})));
    let shelf = stage.shelf(1 << 30);
    let kept = stage.room.keep_written(&mut many.collect(), &shelf, &stage.kept());
    let fault = kept.expect_err("many");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
}

#[test]
fn r163_many_files_with_holes_are_counted_together_before_any_is_copied() {
    let stage = stage();
    let keys: Vec<_> = (0..3).map(|n| format!("f{n}")).collect();
    for key in &keys {
        let hole = File::create(stage.out(key)).expect("made");
        hole.set_len(CALL_BYTES_MAX / 2).expect("sparse");
    }
    let keep = |count: usize, bytes_max| {
        let named = keys.iter().take(count).map(|key| (key.clone(), json!({"$written": true})));
        let mut outputs: Object = named.collect();
        stage.room.keep_written(&mut outputs, &stage.shelf(bytes_max), &stage.kept())
    };
    let fault = keep(3, 1 << 30).expect_err("too much for a call");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
    assert!(fault.message.contains("64 MiB together"), "{fault}");
    let fault = keep(1, CALL_BYTES_MAX / 2).expect_err("too much for the agent");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
    assert!(fault.message.contains("remove some"), "{fault}");
    assert!(!stage.places.outputs.exists(), "nothing was copied");
    keep(2, 1 << 30).expect("as much as a call may give");
}

#[test]
fn r163_folders_swapped_for_links_lead_nowhere() {
    let stage = stage();
    let outside = stage.dir.path().join("outside");
    fs::create_dir_all(outside.join("out")).expect("made");
    fs::write(outside.join("out/key"), "not the agent's").expect("writes");
    // The folder that was handed out is renamed, and a link takes its place.
    let given = stage.room.path.clone();
    fs::rename(&given, given.with_extension("old")).expect("renames");
    symlink(&outside, &given).expect("links");
    stage.refused("key", Code::ToolInvalidOutput, "is not there");
    let Stage { dir: _dir, places, mut rooms, room } = stage;
    rooms.give_back(room);
    assert!(rooms.free.is_empty(), "such a room is not used again");
    assert!(!given.exists(), "the link is gone");
    assert!(outside.join("out/key").exists(), "what it led to is not");
    // The whole folder of rooms is swapped.
    drop(rooms);
    let runs = places.data.join("runs");
    fs::remove_dir_all(&runs).expect("removes");
    symlink(&outside, &runs).expect("links");
    let mut rooms = Rooms::open(&places).expect("opens");
    rooms.take(&attempt("a-2")).expect("made");
    assert!(!fs::symlink_metadata(&runs).expect("there").is_symlink());
    assert_eq!(fs::read_dir(&outside).expect("there").count(), 1, "nothing was added");
}

#[test]
fn r163_a_name_that_changes_hands_all_the_time_never_yields_a_foreign_file() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let stage = stage();
    let secret = stage.dir.path().join("secret");
    fs::write(&secret, "the core's own").expect("writes");
    let (key, other) = (stage.out("key"), stage.out("other"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                fs::write(&other, "own").expect("writes");
                fs::rename(&other, &key).expect("renames");
                symlink(&secret, &other).expect("links");
                fs::rename(&other, &key).expect("renames");
            }
        });
        for _ in 0..300 {
            if stage.keep("key").is_ok() {
                let kept = fs::read_to_string(stage.kept().join("key")).expect("readable");
                assert!(kept.is_empty() || kept == "own", "{kept}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_room_is_used_again_only_if_it_is_as_it_was() {
    let Stage { dir: _dir, places: _places, mut rooms, room } = stage();
    let first = room.path.clone();
    rooms.give_back(room);
    let room = rooms.take(&attempt("a-2")).expect("kept");
    assert_eq!(room.path, first);
    fs::write(PathBuf::from(room.inputs_path()).join("x"), "x").expect("writes");
    rooms.give_back(room);
    let room = rooms.take(&attempt("a-3")).expect("made");
    assert_ne!(room.path, first);
    assert!(!first.exists());
    let path = room.path.clone();
    rooms.give_back(room);
    drop(rooms);
    assert!(!path.exists(), "nothing is left when the connection ends");
}

#[test]
fn what_changed_in_a_room_is_seen_by_when_it_changed() {
    let Stage { dir: _dir, places: _places, mut rooms, room } = stage();
    let mut number = 0;
    let mut again = |rooms: &mut Rooms, room: Room| {
        let path = room.path.clone();
        rooms.give_back(room);
        number += 1;
        let mut next = rooms.take(&attempt(&format!("b-{number}"))).expect("made");
        // Handed out so late that every change can be told from the last one.
        while !next.was_old() {
            std::thread::sleep(Duration::from_millis(5));
            next.given_at = SystemTime::now();
        }
        let kept = next.path == path;
        (next, kept)
    };
    let (room, kept) = again(&mut rooms, room);
    assert!(kept, "nothing was done to it");
    let (room, kept) = again(&mut rooms, room);
    assert!(kept, "nor now");
    fs::write(PathBuf::from(room.outputs_path()).join("x"), "x").expect("writes");
    let (room, kept) = again(&mut rooms, room);
    assert!(!kept, "a file was left behind");
    fs::rename(room.path.join("in"), room.path.join("moved")).expect("renames");
    let (room, kept) = again(&mut rooms, room);
    assert!(!kept, "a folder was moved");
    fs::rename(&room.path, room.path.with_extension("moved")).expect("renames");
    let (_, kept) = again(&mut rooms, room);
    assert!(!kept, "all of it was moved");
}

#[test]
fn r163_what_an_agent_nests_without_end_is_removed_with_its_room() {
    let Stage { dir: _dir, places, mut rooms, room } = stage();
    let mut at = rustix::fs::open(room.outputs_path(), FOLDER, Mode::empty()).expect("there");
    for _ in 0..18_000 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).expect("made");
        at = rustix::fs::openat(&at, "d", FOLDER, Mode::empty()).expect("there");
    }
    drop(at);
    // What an earlier core left is not in the way.
    fs::create_dir_all(places.gone.join("gone-1-1/full")).expect("made");
    let thread = std::thread::Builder::new().stack_size(192 * 1024);
    let give_back = thread.spawn(move || rooms.give_back(room)).expect("starts");
    give_back.join().expect("no overflow");
    let names = fs::read_dir(&places.gone).expect("there").flatten();
    assert_eq!(names.map(|left| left.file_name()).collect::<Vec<_>>(), ["gone-1-1"]);
}
