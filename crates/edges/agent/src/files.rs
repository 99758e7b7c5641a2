//! The files an approval is pinned to: which they are, what is in them, and whether they are
//! still the same.
//!
//! At every start they are read and compared. While the agent runs they are compared before each
//! call by what the system says about them, and read again only if that has changed.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use wharf_domain::Agent;
use wharf_domain::agent::{Approval, Entrypoint};
use wharf_vocab::{Code, Digest, Fault};

use crate::manifest;

/// Files that one approval may be pinned to.
const FILES_MAX: usize = 64;
/// Bytes that these files may have together.
const BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Words of one argument that may name files.
const WORDS_MAX: usize = 500;
const CHUNK_BYTES: usize = 64 * 1024;

/// Digests of the files that an entrypoint names, by their paths from the folder. It blocks.
pub(crate) fn digests(
    folder: &Path,
    entrypoint: &Entrypoint,
) -> Result<BTreeMap<String, Digest>, Fault> {
    let mut left = BYTES_MAX;
    let mut digests = BTreeMap::new();
    for name in named(folder, entrypoint) {
        let digest = digest(&folder.join(&name), &mut left).map_err(|why| {
            Fault::new(Code::AgentManifestInvalid, format!("The file {name} {why}."))
        })?;
        digests.insert(name, digest);
        if digests.len() > FILES_MAX {
            let message = format!("The entrypoint names more than {FILES_MAX} files.");
            return Err(Fault::new(Code::AgentManifestInvalid, message));
        }
    }
    Ok(digests)
}

/// The files an entrypoint names: its program if that is a path, and what arguments name below
/// the folder.
fn named(folder: &Path, entrypoint: &Entrypoint) -> Vec<String> {
    let mut names = Vec::new();
    let program = &entrypoint.program;
    if program.contains('/') && folder.join(program).is_file() {
        names.push(tidy(program));
    }
    for word in entrypoint.args.iter().flat_map(|arg| words(arg)) {
        let path = Path::new(word);
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        let below = path.is_relative() && !word.is_empty() && path.components().all(is_plain);
        let inside = below || path.starts_with(folder);
        if inside && folder.join(word).is_file() {
            names.push(tidy(word));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// An argument, and the words in it: what a shell is told to do names files too.
fn words(arg: &str) -> impl Iterator<Item = &str> {
    const BETWEEN: &[char] =
        &[' ', '\t', '\n', '\'', '"', ';', '&', '|', '(', ')', '<', '>', '=', '`', '$', ','];
    std::iter::once(arg).chain(arg.split(BETWEEN).take(WORDS_MAX))
}

/// `./agent.py` and `agent.py` are one file.
fn tidy(name: &str) -> String {
    let path: PathBuf =
        Path::new(name).components().filter(|part| *part != Component::CurDir).collect();
    path.display().to_string()
}

/// The digest of a file, read piece by piece. What is wrong is the end of a sentence.
fn digest(path: &Path, left: &mut u64) -> Result<Digest, &'static str> {
    // A link is followed here, because what it leads to is what would be started.
    let path = std::fs::canonicalize(path).map_err(|_| "is gone")?;
    let mut file = manifest::open_plain(&path).map_err(|_| "cannot be read")?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = file.read(&mut chunk).map_err(|_| "cannot be read")?;
        if count == 0 {
            break;
        }
        *left = left.checked_sub(count as u64).ok_or("is too large to be pinned")?;
        hash.update(&chunk[..count]);
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    serde_json::from_value(hex.into()).map_err(|_| "cannot be read")
}

/// How an agent's files differ from what was approved, one line each. It blocks.
pub(crate) fn differences(agent: &Agent) -> Vec<String> {
    let Some(approval) = &agent.approval else { return Vec::new() };
    let folder = Path::new(&agent.folder);
    let mut lines = manifest_differences(agent, approval, folder);
    let mut left = BYTES_MAX;
    for (name, approved) in &approval.files {
        match digest(&folder.join(name), &mut left) {
            Ok(found) if found == *approved => {}
            Ok(_) => lines.push(format!("{name} was changed")),
            Err(why) => lines.push(format!("{name} {why}")),
        }
    }
    // A file that an argument names may have come into being since.
    for name in named(folder, &agent.manifest.entrypoint) {
        if !approval.files.contains_key(&name) {
            lines.push(format!("{name} is new"));
        }
    }
    lines
}

fn manifest_differences(agent: &Agent, approval: &Approval, folder: &Path) -> Vec<String> {
    let file = manifest::FILE_NAME;
    let read = match manifest::read(folder) {
        Ok(read) => read,
        Err(_) if !folder.join(file).exists() => return vec![format!("{file} is gone")],
        Err(fault) => {
            return vec![format!("{file} changed: {}", fault.message.trim_end_matches('.'))];
        }
    };
    if read.hash == approval.manifest_hash {
        return Vec::new();
    }
    let (before, now) = (&agent.manifest, &read.manifest);
    let mut what = Vec::new();
    if read.id != agent.id {
        what.push(format!("it is now {}", read.id));
    }
    let list =
        |items: Vec<&String>| items.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let more: Vec<_> = now.permissions.iter().filter(|p| !before.permissions.contains(p)).collect();
    if !more.is_empty() {
        what.push(format!("asks for {} in addition", list(more)));
    }
    let less: Vec<_> = before.permissions.iter().filter(|p| !now.permissions.contains(p)).collect();
    if !less.is_empty() {
        what.push(format!("does not ask for {} any more", list(less)));
    }
    if before.entrypoint != now.entrypoint {
        what.push("is started in another way".to_owned());
    }
    if before.version != now.version {
        what.push(format!("has the version {} instead of {}", now.version, before.version));
    }
    if before.limits != now.limits {
        what.push("has other limits".to_owned());
    }
    if what.is_empty() {
        return vec![format!("{file} changed")];
    }
    vec![format!("{file} changed: {}", what.join(", "))]
}

/// What the system says about a file; when none of it has changed, neither has the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The pinned files of an agent that runs, as they looked when they were last compared.
#[derive(Debug)]
pub(crate) struct Watch {
    seen: Mutex<Vec<(PathBuf, Option<Identity>)>>,
}

impl Watch {
    /// Looks at the files of an approval. It must be made before they are compared, so that a
    /// change in between is seen.
    pub(crate) fn of(agent: &Agent) -> Self {
        let folder = Path::new(&agent.folder);
        let files = agent.approval.iter().flat_map(|approval| approval.files.keys());
        let paths = files.map(|name| folder.join(name)).chain([folder.join(manifest::FILE_NAME)]);
        Self { seen: Mutex::new(paths.map(|path| (path.clone(), look(&path))).collect()) }
    }

    /// Whether nothing has changed since; cheap enough for every call.
    pub(crate) fn is_unchanged(&self) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().all(|(path, identity)| identity.is_some() && look(path) == *identity)
    }

    /// Takes the files as another look found them.
    pub(crate) fn replace(&self, other: Self) {
        let other = other.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = other;
    }
}

/// Follows links as starting the file would; the manifest itself is never read through one.
fn look(path: &Path) -> Option<Identity> {
    let found = std::fs::metadata(path).ok()?;
    Some(Identity {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::agent::{AgentEntry, AgentInput, Terms};
    use wharf_domain::{Caller, Severity};
    use wharf_vocab::Timestamp;

    /// An agent's folder on disk, added and approved as it lies there.
    fn approved(folder: &Path) -> Agent {
        let read = manifest::read(folder).expect("valid");
        let files = digests(folder, &read.manifest.entrypoint).expect("readable");
        let add = AgentInput::Add {
            folder: folder.display().to_string(),
            manifest_hash: read.hash,
            manifest: read.manifest,
        };
        let approve =
            AgentInput::Approve { permissions: Vec::new(), files, terms: Terms::default() };
        let by = Caller::owner().to_ref();
        [add, approve]
            .iter()
            .fold(None, |agent: Option<Agent>, input| {
                let decided = Agent::decide(agent.as_ref(), &read.id, input, &by).expect("legal");
                let (entry, record): (AgentEntry, _) = decided.expect("a change");
                assert_eq!(record.severity, Severity::Info);
                Agent::apply(agent, &read.id, Timestamp(1), &entry)
            })
            .expect("known")
    }

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::write(folder.join(name), text).expect("written");
    }

    fn manifest(version: &str, permissions: &str) -> String {
        format!(
            r#"{{"id":"dev.example.hello","version":"{version}","permissions":[{permissions}],
            "entrypoint":{{"type":"command","value":"./run.sh","args":
            ["agent.py","--mode","./lib/more.py","../outside.py","missing.py"]}}}}"#
        )
    }

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(dir.path().join("lib")).expect("made");
        for name in ["run.sh", "agent.py", "lib/more.py"] {
            write(dir.path(), name, "one");
        }
        write(dir.path(), manifest::FILE_NAME, &manifest("1", r#""env:read:A""#));
        dir
    }

    #[test]
    fn the_files_an_entrypoint_names_are_pinned_and_no_others() {
        let dir = folder();
        let agent = approved(dir.path());
        let approval = agent.approval.as_ref().expect("approved");
        let names: Vec<_> = approval.files.keys().map(String::as_str).collect();
        assert_eq!(names, ["agent.py", "lib/more.py", "run.sh"]);
        assert_eq!(approval.files["agent.py"], Digest::of_bytes(b"one"));
        assert_eq!(differences(&agent), Vec::<String>::new());
    }

    #[test]
    fn files_in_what_a_shell_is_told_are_pinned_too() {
        let dir = folder();
        let told = "cd . && exec env MODE=x python3 -u './agent.py' --more=lib/more.py";
        let entrypoint =
            Entrypoint { program: "sh".to_owned(), args: vec!["-c".to_owned(), told.to_owned()] };
        let pinned = digests(dir.path(), &entrypoint).expect("readable");
        assert_eq!(pinned.into_keys().collect::<Vec<_>>(), ["agent.py", "lib/more.py"]);
    }

    #[test]
    fn r084_every_difference_is_told_in_one_line() {
        let dir = folder();
        let agent = approved(dir.path());
        write(dir.path(), "agent.py", "two");
        std::fs::remove_file(dir.path().join("lib/more.py")).expect("removed");
        write(dir.path(), "missing.py", "new");
        write(dir.path(), manifest::FILE_NAME, &manifest("2", r#""network:egress:x.dev""#));
        assert_eq!(
            differences(&agent),
            [
                "opensentience.agent.json changed: asks for network:egress:x.dev in addition, \
                 does not ask for env:read:A any more, has the version 2 instead of 1",
                "agent.py was changed",
                "lib/more.py is gone",
                "missing.py is new",
            ]
        );
        std::fs::remove_file(dir.path().join(manifest::FILE_NAME)).expect("removed");
        assert_eq!(differences(&agent)[0], "opensentience.agent.json is gone");
    }

    #[test]
    fn a_watch_sees_changes_also_of_the_same_length_and_renames_over() {
        let dir = folder();
        let agent = approved(dir.path());
        let watch = Watch::of(&agent);
        assert!(watch.is_unchanged());
        write(dir.path(), "unrelated.txt", "x");
        assert!(watch.is_unchanged());
        write(dir.path(), "new.py", "two");
        std::fs::rename(dir.path().join("new.py"), dir.path().join("agent.py")).expect("renamed");
        assert!(!watch.is_unchanged());
        watch.replace(Watch::of(&agent));
        assert!(watch.is_unchanged());
        std::fs::remove_file(dir.path().join("run.sh")).expect("removed");
        assert!(!watch.is_unchanged());
    }

    #[test]
    fn too_many_files_are_not_pinned() {
        let dir = folder();
        let args: Vec<_> = (0..70).map(|number| format!("f{number}")).collect();
        for name in &args {
            write(dir.path(), name, "x");
        }
        let entrypoint = Entrypoint { program: "./run.sh".to_owned(), args };
        let fault = digests(dir.path(), &entrypoint).expect_err("too many");
        assert!(fault.message.contains("64"), "{fault}");
    }
}
