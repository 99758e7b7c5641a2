//! The files an approval is pinned to: which they are, what is in them, and whether they are
//! still the same.
//!
//! They are all files in the provider's folder, since a program may read any of them, and those the
//! command names in any case. At every start they are read and compared. While it runs
//! they are compared by what the system says about them, and read again only if that has changed.

mod folder;
mod rules;
mod watch;

pub use rules::{FolderRules, IGNORE_FILE};
pub(crate) use watch::FileWatch;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};
use wharf_domain::provider::{Approval, Entrypoint};
use wharf_domain::{Manifest, Provider};
use wharf_vocab::{Code, Digest, Fault, ProviderId};

/// Files that one approval may be pinned to.
const FILES_MAX: usize = 64;
/// Bytes that these files may have together.
const BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Words of one argument that may name files.
const WORDS_MAX: usize = 500;
const CHUNK_BYTES: usize = 64 * 1024;
/// The name by which the folder itself is pinned: that nothing is in it but what is pinned.
const FOLDER: &str = ".";
/// Lines that tell of differences.
const LINES_MAX: usize = 10;

/// A manifest that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadManifest {
    /// Who it is.
    pub id: ProviderId,
    /// The digest of the file.
    pub hash: Digest,
    /// What it says.
    pub manifest: Manifest,
}

/// What a folder has to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadFolder {
    /// The folder, by its own path.
    pub folder: PathBuf,
    /// The manifests of its providers, at least one.
    pub manifests: Vec<ReadManifest>,
    /// What their owner should know, one sentence each.
    pub hints: Vec<String>,
}

/// Where a kind's manifests stand, and how they are read.
#[derive(Debug, Clone, Copy)]
pub struct ManifestFile {
    /// The file's name in a provider's folder.
    pub name: &'static str,
    /// What is wrong with a folder that cannot be taken.
    pub invalid: Code,
    /// Reads the manifest in a folder. It blocks, but only on a plain file.
    pub read: fn(&Path) -> Result<ReadManifest, Fault>,
    /// Reads the manifest of a provider that is known again. It blocks, but only on plain files.
    pub read_again: fn(&Path, &Provider) -> Result<ReadManifest, Fault>,
}

/// Whether all of an agent's folder is pinned, and not only what its command names.
pub(crate) fn is_whole(approval: &Approval) -> bool {
    approval.files.contains_key(FOLDER)
}

/// Digests of the files that an entrypoint names and, unless they are too many, of all others in
/// the folder, by their paths from it. It blocks.
pub(crate) fn digests(
    file: ManifestFile,
    folder: &Path,
    entrypoint: &Entrypoint,
) -> Result<BTreeMap<String, Digest>, Fault> {
    let mut left = BYTES_MAX;
    let mut digests = BTreeMap::new();
    for name in named(folder, entrypoint) {
        let digest =
            digest(&folder.join(&name), &mut left).map_err(|why| unpinned(file, &name, why))?;
        digests.insert(name, digest);
        if digests.len() > FILES_MAX {
            let message = format!("The entrypoint names more than {FILES_MAX} files.");
            return Err(Fault::new(file.invalid, message));
        }
    }
    let Some(all) = folder::list(folder, file.name) else { return Ok(digests) };
    for (name, entry) in &all {
        if !digests.contains_key(name) {
            let digest = entry.digest(&mut left).map_err(|why| unpinned(file, name, why))?;
            digests.insert(name.clone(), digest);
        }
    }
    let names: Vec<_> = all.keys().map(String::as_bytes).collect();
    digests.insert(FOLDER.to_owned(), Digest::of(&names));
    Ok(digests)
}

fn unpinned(file: ManifestFile, name: &str, why: &str) -> Fault {
    Fault::new(file.invalid, format!("The file {name} {why}."))
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
    let mut file = open_plain(&path).map_err(|_| "cannot be read")?;
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
    serde_json::from_value(hex::encode(hash.finalize()).into()).map_err(|_| "cannot be read")
}

/// How an agent's files differ from what was approved, one line each, and not too many of them.
/// It blocks.
pub(crate) fn differences(file: ManifestFile, agent: &Provider) -> Vec<String> {
    let Some(approval) = &agent.approval else { return Vec::new() };
    let folder = Path::new(&agent.folder);
    let mut lines = manifest_differences(file, agent, approval, folder);
    let names = named(folder, &agent.manifest.entrypoint);
    lines.extend(file_differences(file, approval, folder, names));
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn file_differences(
    file: ManifestFile,
    approval: &Approval,
    folder: &Path,
    mut names: Vec<String>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let all = if is_whole(approval) { folder::list(folder, file.name) } else { None };
    if is_whole(approval) && all.is_none() {
        lines.push("the folder has more in it than can be compared".to_owned());
    }
    let all = all.unwrap_or_default();
    let mut left = BYTES_MAX;
    for (name, approved) in approval.files.iter().filter(|(name, _)| *name != FOLDER) {
        let found = match all.get(name) {
            Some(entry) if !names.contains(name) => entry.digest(&mut left),
            _ => digest(&folder.join(name), &mut left),
        };
        match found {
            Ok(found) if found == *approved => {}
            Ok(_) => lines.push(format!("{name} was changed")),
            Err(why) => lines.push(format!("{name} {why}")),
        }
    }
    // A file that is read by its name may have come into being since.
    names.extend(all.into_keys());
    names.sort_unstable();
    names.dedup();
    let new = names.iter().filter(|name| !approval.files.contains_key(*name));
    lines.extend(new.map(|name| format!("{name} is new")));
    lines
}

fn manifest_differences(
    file: ManifestFile,
    agent: &Provider,
    approval: &Approval,
    folder: &Path,
) -> Vec<String> {
    let read = (file.read_again)(folder, agent);
    let file = file.name;
    let read = match read {
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
    if before.tool_server() != now.tool_server() {
        what.push("serves its tool in another way".to_owned());
    }
    if what.is_empty() {
        return vec![format!("{file} changed")];
    }
    vec![format!("{file} changed: {}", what.join(", "))]
}

/// Opens a regular file, following no link and waiting for nobody: a pipe or a device that has
/// the file's name is an error, not something to wait for.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
            rustix::io::Errno::LOOP => io::ErrorKind::InvalidInput.into(),
            other => io::Error::from(other),
        })?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
