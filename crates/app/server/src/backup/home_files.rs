//! What of a home a backup takes besides database and objects.
//!
//! Everything that Wharf itself keeps, by name, and files that the configuration names. The folder
//! may serve for more than a home, so that what else lies there is nobody's here.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path};

use wharf_vocab::Fault;

use super::Watcher;
use super::blobs::Blobs;
use super::manifest::{ByteDigest, FileKind, HomeFile, Manifest};
use super::place::names;
use crate::Home;
use crate::anchors::is_anchor;
use crate::home::unreadable;

/// Folders of which everything is taken, but for what is left out below.
const FOLDERS: [&str; 6] = ["run", "secrets", "agents", "tools", "mcp", "mcp-servers"];
/// What `run` holds for the core that is up, or for this machine alone: a copy that is started
/// beside the original must not want its port.
const RUN_LEFT_OUT: [&str; 5] = ["core.json", "lock", "agents.sock", "storage.port", "backup.db"];
/// What a provider's folder holds for processes and calls that are under way.
const LAUNCHED: [&str; 3] = ["launches", "gone", "tmp"];

/// The anchors of the audit as they are now. They must be read before the database is copied: one
/// that is newer than the database would say that records were cut off.
pub(super) fn anchors(home: &Home) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let folder = home.run_folder();
    let read = || {
        let mut found = Vec::new();
        for name in names(&folder)?.into_iter().filter(|name| is_anchor(name)) {
            match fs::read(folder.join(&name)) {
                Ok(content) => found.push((format!("run/{name}"), content)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    };
    read().map_err(|error: io::Error| unreadable(&folder, &error))
}

/// Takes the files of a home into a backup.
pub(super) struct HomeFileBackup<'a, 'b> {
    pub(super) home: &'a Home,
    pub(super) blobs: &'a mut Blobs<'b>,
    /// What the last complete state says; files that were not changed since are not read again.
    pub(super) before: Option<&'a Manifest>,
    pub(super) watcher: &'a mut dyn Watcher,
    pub(super) files: Vec<HomeFile>,
}

impl HomeFileBackup<'_, '_> {
    /// Takes everything but the anchors, which are given.
    pub(super) fn take_all(&mut self, anchors: &[(String, Vec<u8>)]) -> Result<(), Fault> {
        self.watcher.begin("keys, settings and folders of providers", None);
        for name in self.top_level()? {
            self.take(&name)?;
        }
        for (path, content) in anchors {
            let content = self.blobs.put(&mut content.as_slice(), None, self.watcher)?;
            let kind = FileKind::File { content, changed_ns: 0 };
            self.files.push(HomeFile { path: path.clone(), mode: 0o600, kind });
        }
        Ok(())
    }

    /// `wharf.toml` with what it names, and the folders.
    fn top_level(&self) -> Result<BTreeSet<String>, Fault> {
        let config = self.home.config_file();
        let mut wanted: BTreeSet<String> = FOLDERS.map(str::to_owned).into();
        let text = match fs::read_to_string(&config) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(wanted),
            Err(error) => return Err(unreadable(&config, &error)),
        };
        wanted.insert("wharf.toml".to_owned());
        if let Ok(table) = text.parse::<toml::Table>() {
            let mut named = Vec::new();
            texts(&toml::Value::Table(table), &mut named);
            let is_here = |path: &String| {
                let inside =
                    Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
                // The database is taken in a way of its own.
                inside && !path.ends_with(".db") && self.home.path().join(path).is_file()
            };
            wanted.extend(named.into_iter().filter(is_here));
        }
        Ok(wanted)
    }

    fn take(&mut self, path: &str) -> Result<(), Fault> {
        let full = self.home.path().join(path);
        let found = match full.symlink_metadata() {
            Ok(found) => found,
            // It has gone meanwhile, or was never there.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unreadable(&full, &error)),
        };
        let mode = found.permissions().mode() & 0o7777;
        let kind = if found.is_dir() {
            FileKind::Folder
        } else if found.is_symlink() {
            let to = fs::read_link(&full).map_err(|error| unreadable(&full, &error))?;
            FileKind::Link { to: to.to_string_lossy().into_owned() }
        } else if found.is_file() {
            match self.content(path, &full, &found)? {
                Some(kind) => kind,
                None => return Ok(()),
            }
        } else {
            // Sockets and the like belong to a process.
            return Ok(());
        };
        let is_folder = kind == FileKind::Folder;
        self.files.push(HomeFile { path: path.to_owned(), mode, kind });
        if is_folder {
            for name in names(&full).map_err(|error| unreadable(&full, &error))? {
                let below = format!("{path}/{name}");
                if !is_left_out(&below) {
                    self.take(&below)?;
                }
            }
        }
        Ok(())
    }

    /// The content of a file; none if it has gone meanwhile.
    fn content(
        &mut self,
        path: &str,
        full: &Path,
        found: &Metadata,
    ) -> Result<Option<FileKind>, Fault> {
        let changed_ns = found.mtime().saturating_mul(1_000_000_000) + found.mtime_nsec();
        if let Some(content) = self.unchanged(path, found.len(), changed_ns)
            && self.blobs.has(&content)?
        {
            return Ok(Some(FileKind::File { content, changed_ns }));
        }
        let mut file = match File::open(full) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(full, &error)),
        };
        let content = self.blobs.put(&mut file, None, self.watcher)?;
        Ok(Some(FileKind::File { content, changed_ns }))
    }

    fn unchanged(&self, path: &str, bytes: u64, changed: i64) -> Option<ByteDigest> {
        let before = self.before?.files.iter().find(|file| file.path == path)?;
        match &before.kind {
            FileKind::File { content, changed_ns } => {
                (content.bytes == bytes && *changed_ns == changed).then(|| content.clone())
            }
            _ => None,
        }
    }
}

/// Whether a path in the home is of no use in a copy of it.
fn is_left_out(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["run", name] => RUN_LEFT_OUT.contains(&name) || is_anchor(name) || name.ends_with(".new"),
        ["agents" | "tools" | "mcp", _, name] => LAUNCHED.contains(&name),
        _ => false,
    }
}

/// All texts in a configuration.
fn texts(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => found.push(text.clone()),
        toml::Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        toml::Value::Table(table) => table.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_process_is_left_out() {
        for path in [
            "run/core.json",
            "run/lock",
            "run/storage.port",
            "run/audit.anchors",
            "run/owner.token.new",
            "agents/0123/launches",
            "tools/0123/gone",
        ] {
            assert!(is_left_out(path), "{path}");
        }
        for path in ["run/owner.token", "run/node.id", "agents/0123/data", "agents/x/data/tmp"] {
            assert!(!is_left_out(path), "{path}");
        }
    }
}
