//! Folders of calls in the hands of honest and of hostile agents.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use wharf_vocab::{Code, Isolation, LaunchId, ProviderId};

use super::*;
use crate::remove::put_away_all;
use crate::transfer::FILES_MAX;

struct Stage {
    dir: tempfile::TempDir,
    places: Places,
    rooms: CallFolders,
    room: CallFolder,
}

fn stage() -> Stage {
    let dir = tempfile::tempdir().expect("a folder");
    let places = places(dir.path(), Isolation::Shared);
    let mut rooms = CallFolders::open(&places).expect("opens");
    let room = rooms.take(&attempt("a-1")).expect("made");
    Stage { dir, places, rooms, room }
}

fn places(agents: &Path, isolation: Isolation) -> Places {
    let id = ProviderId::new("dev.example.hello").expect("valid");
    Places::new(agents, &id, &LaunchId::new("l-1").expect("valid"), isolation)
}

fn attempt(id: &str) -> AttemptId {
    AttemptId::new(id).expect("valid")
}

impl Stage {
    fn out(&self, name: &str) -> PathBuf {
        PathBuf::from(self.room.outputs_path()).join(name)
    }

    fn open(&self, key: &str) -> Result<String, Fault> {
        let (file, bytes) = self.room.open_output(key)?;
        let text = io::read_to_string(file).expect("readable");
        assert_eq!(text.len() as u64, bytes);
        Ok(text)
    }

    #[track_caller]
    fn refused(&self, key: &str, words: &str) {
        for fault in [
            self.room.open_output(key).map(drop).expect_err("not a file to take"),
            self.room.bytes_of(&[key.to_owned()], u64::MAX).map(drop).expect_err("nor its size"),
        ] {
            assert!(fault.is(Code::ToolInvalidOutput), "{fault}");
            assert!(fault.message.contains(words), "{fault}");
        }
    }
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).expect("exists").permissions().mode() & 0o777
}

#[test]
fn r163_files_go_in_and_out_under_the_names_of_inputs_and_outputs() {
    let stage = stage();
    for folder in [stage.room.outputs_path(), stage.room.inputs_path()] {
        assert_eq!(mode(folder), 0o700);
    }
    fs::write(stage.room.output_path("report.txt"), "hello").expect("writes");
    assert_eq!(stage.open("report.txt").expect("opens"), "hello");
    assert_eq!(stage.out("report.txt"), PathBuf::from(stage.room.output_path("report.txt")));
    let mut file = stage.room.create_input("picture.png").expect("made");
    file.write_all(b"bytes").expect("writes");
    let path = stage.room.input_path("picture.png");
    assert_eq!(fs::read(&path).expect("readable"), b"bytes");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(PathBuf::from(path), Path::new(&stage.room.inputs_path()).join("picture.png"));
    stage.room.create_input("picture.png").expect_err("there is one");
}

#[test]
fn r163_names_that_no_file_may_bear_are_given_another_inside_the_folder() {
    let stage = stage();
    let keys = ["../secret", "a/b", ".hidden", "", "..", "a\0b", "ä", &"x".repeat(129)];
    let mut names = std::collections::BTreeSet::new();
    for key in keys {
        assert!(!is_plain_name(key), "{key}");
        for (path, folder) in [
            (stage.room.input_path(key), stage.room.inputs_path()),
            (stage.room.output_path(key), stage.room.outputs_path()),
        ] {
            let path = PathBuf::from(path);
            assert_eq!(path.parent(), Some(Path::new(&folder)), "{key}");
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            assert!(!is_plain_name(name), "{name} is no key's own");
            names.insert(name.to_owned());
        }
        fs::write(stage.room.output_path(key), key).expect("writes");
        assert_eq!(stage.open(key).expect("opens"), key);
    }
    assert_eq!(names.len(), keys.len(), "each has its own");
}

#[test]
fn r163_what_is_no_ordinary_file_of_that_name_is_refused() {
    let stage = stage();
    stage.refused("missing", "output missing is not there");
    symlink("/etc/passwd", stage.out("link")).expect("links");
    stage.refused("link", "cannot be opened as an ordinary file");
    fs::create_dir(stage.out("folder")).expect("makes");
    stage.refused("folder", "is not an ordinary file");
    let fifo = stage.out("fifo");
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
        .expect("makes");
    stage.refused("fifo", "is not an ordinary file");
    fs::write(stage.dir.path().join("secret"), "s").expect("writes");
    fs::hard_link(stage.dir.path().join("secret"), stage.out("hard")).expect("links");
    stage.refused("hard", "has another name besides");
}

#[test]
fn r163_files_are_bounded_in_size_and_number() {
    let stage = stage();
    let keys: Vec<_> = (0..3).map(|n| format!("f{n}")).collect();
    for key in &keys {
        let hole = File::create(stage.out(key)).expect("made");
        hole.set_len(6 << 30).expect("sparse");
    }
    assert_eq!(stage.room.bytes_of(&keys, 18 << 30).expect("just as much"), 18 << 30);
    let fault = stage.room.bytes_of(&keys, (18 << 30) - 1).expect_err("one byte more");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
    assert!(fault.message.contains("disk limit"), "{fault}");
    let many: Vec<_> = (0..=FILES_MAX).map(|n| format!("f{n}")).collect();
    let fault = stage.room.bytes_of(&many, u64::MAX).expect_err("many");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
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
    stage.refused("key", "is not there");
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
    let mut rooms = CallFolders::open(&places).expect("opens");
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
            if let Ok((file, _)) = stage.room.open_output("key") {
                let text = io::read_to_string(file).expect("readable");
                assert!(text.is_empty() || text == "own", "{text}");
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
    let mut again = |rooms: &mut CallFolders, room: CallFolder| {
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
    fs::rename(&room.given, room.given.with_extension("moved")).expect("renames");
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

/// What a core that was killed leaves: rooms that nobody gives back.
fn left_behind(places: &Places) {
    let mut rooms = CallFolders::open(places).expect("opens");
    let room = rooms.take(&attempt("a-1")).expect("made");
    fs::write(room.output_path("large"), "bytes").expect("writes");
    std::mem::forget(rooms);
}

#[test]
fn r163_rooms_that_a_killed_core_left_are_put_away_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let places = places(dir.path(), Isolation::Shared);
    put_away_all(&places.data, &places.gone).expect("an agent that was never called");
    left_behind(&places);
    fs::write(places.data.join("kept"), "the agent's own").expect("writes");
    put_away_all(&places.data, &places.gone).expect("put away");
    assert!(!places.data.join("runs").exists());
    assert!(places.data.join("kept").exists(), "what the agent keeps stays");
    assert_eq!(fs::read_dir(&places.gone).expect("there").count(), 1, "about to be removed");
    left_behind(&places);
}

#[test]
fn r163_what_is_put_away_is_never_what_a_link_leads_to() {
    let dir = tempfile::tempdir().expect("a folder");
    let places = places(dir.path(), Isolation::Shared);
    let outside = dir.path().join("outside");
    fs::create_dir_all(outside.join("runs/kept")).expect("made");
    fs::create_dir_all(&places.data).expect("made");
    symlink(outside.join("runs"), places.data.join("runs")).expect("links");
    put_away_all(&places.data, &places.gone).expect("put away");
    assert!(fs::symlink_metadata(places.data.join("runs")).is_err(), "the link is gone");
    fs::remove_dir(&places.data).expect("empty");
    symlink(&outside, &places.data).expect("links");
    put_away_all(&places.data, &places.gone).expect_err("no folder of the agent's");
    assert!(outside.join("runs/kept").exists());
}

#[test]
fn an_output_whose_name_is_too_long_is_told_how_long_it_may_be() {
    let fault = unnameable();
    assert!(fault.is(Code::ToolInvalidOutput));
    assert!(fault.message.contains("at most 128 bytes"), "{fault}");
    assert!(is_plain_name(&"x".repeat(128)) && !is_plain_name(&"x".repeat(129)));
}
