//! Looking for manifests below a folder that nobody trusts: nothing is run, no link is followed,
//! nothing is waited for, and it ends.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wharf_ports::providers::{FoundProvider, Scan};
use wharf_vocab::{Code, Fault};

use crate::manifest;

/// Where a scan gives up looking.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanBounds {
    depth: usize,
    manifests: usize,
    entries: usize,
    time: Duration,
}

impl Default for ScanBounds {
    fn default() -> Self {
        Self { depth: 10, manifests: 2_000, entries: 200_000, time: Duration::from_secs(10) }
    }
}

/// Folders that hold what tools have fetched or built, not what somebody wrote.
const SKIPPED: [&str; 12] = [
    "node_modules",
    "target",
    "_build",
    "deps",
    "venv",
    "env",
    "__pycache__",
    "site-packages",
    "vendor",
    "dist",
    "build",
    "elm-stuff",
];

/// Looks for manifests. It blocks.
pub(crate) fn scan(folder: &Path, bounds: ScanBounds) -> Result<Scan, Fault> {
    let root =
        std::fs::canonicalize(folder).ok().filter(|root| root.is_dir()).ok_or_else(|| {
            let message = format!("There is no folder {}.", folder.display());
            Fault::new(Code::RequestInvalid, message)
        })?;
    let mut walk = Walk {
        bounds,
        until: Instant::now() + bounds.time,
        entries: 0,
        scan: Scan { found: Vec::new(), cut_short: None },
    };
    let mut open = vec![(root, 0)];
    while let Some((folder, depth)) = open.pop() {
        let mut below = walk.look_into(&folder, depth);
        if walk.is_over() {
            break;
        }
        // The last one pushed is looked into first, so that the order is that of names.
        below.sort_unstable_by(|one, two| two.cmp(one));
        open.extend(below.into_iter().map(|folder| (folder, depth + 1)));
    }
    walk.scan.found.sort_by(|one, two| one.folder.cmp(&two.folder));
    Ok(walk.scan)
}

struct Walk {
    bounds: ScanBounds,
    until: Instant,
    entries: usize,
    scan: Scan,
}

impl Walk {
    /// Takes the folder's manifest, and answers the folders in it that are to be looked into.
    fn look_into(&mut self, folder: &Path, depth: usize) -> Vec<PathBuf> {
        let mut below = Vec::new();
        // A folder that may not be read has nothing to show.
        let Ok(entries) = std::fs::read_dir(folder) else { return below };
        for entry in entries {
            self.entries += 1;
            if self.is_over() {
                return below;
            }
            let Ok(entry) = entry else { continue };
            if entry.file_name() == manifest::FILE_NAME {
                self.take(folder);
            } else if is_interesting(&entry) {
                if depth < self.bounds.depth {
                    below.push(entry.path());
                } else {
                    self.note(format!("folders more than {} deep were left out", depth));
                }
            }
        }
        below
    }

    fn take(&mut self, folder: &Path) {
        if self.scan.found.len() >= self.bounds.manifests {
            let most = self.bounds.manifests;
            return self.note(format!("there are more than {most} manifests"));
        }
        let manifest = manifest::read(folder).map(|read| (read.id, read.manifest));
        self.scan.found.push(FoundProvider { folder: folder.to_owned(), manifest });
    }

    fn is_over(&mut self) -> bool {
        let enough =
            self.scan.found.len() >= self.bounds.manifests && self.scan.cut_short.is_some();
        if self.entries > self.bounds.entries {
            self.note(format!("there are more than {} files", self.bounds.entries));
            return true;
        }
        if Instant::now() >= self.until {
            self.note(format!("it took longer than {} s", self.bounds.time.as_secs()));
            return true;
        }
        enough
    }

    fn note(&mut self, why: String) {
        self.scan.cut_short.get_or_insert(why);
    }
}

/// Whether an entry is a folder of its own that somebody may keep agents in.
fn is_interesting(entry: &DirEntry) -> bool {
    // The type is the entry's own: a link to a folder is a link.
    let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return is_folder };
    is_folder && !name.starts_with('.') && !SKIPPED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const MANIFEST: &str = r#"{"id":"dev.example.hello","version":"1","permissions":[],
        "entrypoint":{"type":"command","value":"./touch-canary"}}"#;

    fn put(folder: &Path, bytes: &[u8]) {
        std::fs::create_dir_all(folder).expect("made");
        std::fs::write(folder.join(manifest::FILE_NAME), bytes).expect("written");
    }

    #[test]
    fn r157_a_hostile_tree_ends_in_bounded_time_and_nothing_is_run_or_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("tree");
        put(&root.join("good"), MANIFEST.as_bytes());
        let canary = "#!/bin/sh\ntouch canary\n";
        std::fs::write(root.join("good/touch-canary"), canary).expect("written");
        let runnable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(root.join("good/touch-canary"), runnable).expect("set");
        put(&root.join("binary"), &[0, 159, 146, 150, 255]);
        put(&root.join("huge"), &vec![b'x'; 300_000]);
        put(&root.join("malformed"), b"{\"id\":");
        put(&root.join(".hidden"), MANIFEST.as_bytes());
        put(&root.join("node_modules/dep"), MANIFEST.as_bytes());
        put(&dir.path().join("outside"), MANIFEST.as_bytes());
        symlink(dir.path().join("outside"), root.join("link-out")).expect("linked");
        symlink(&root, root.join("good/loop")).expect("linked");
        std::fs::create_dir_all(root.join("linked-manifest")).expect("made");
        let target = dir.path().join("outside").join(manifest::FILE_NAME);
        symlink(target, root.join("linked-manifest").join(manifest::FILE_NAME)).expect("linked");
        std::fs::create_dir_all(root.join("pipe")).expect("made");
        let pipe = root.join("pipe").join(manifest::FILE_NAME);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        let mut deep = root.join("deep");
        for _ in 0..40 {
            deep = deep.join("d");
        }
        put(&deep, MANIFEST.as_bytes());
        std::fs::create_dir_all(root.join("many")).expect("made");
        for number in 0..10_000 {
            std::fs::write(root.join(format!("many/f{number}")), "").expect("written");
        }
        put(&root.join("closed"), MANIFEST.as_bytes());
        let none = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(root.join("closed"), none).expect("set");

        let began = Instant::now();
        let scan = scan(&root, ScanBounds::default()).expect("scanned");
        assert!(began.elapsed() < Duration::from_secs(10));
        let of = |name: &str| scan.found.iter().find(|found| found.folder.ends_with(name));
        assert!(of("good").expect("found").manifest.is_ok());
        for bad in ["binary", "huge", "malformed", "linked-manifest", "pipe"] {
            let fault = of(bad).expect("found").manifest.as_ref().expect_err(bad);
            assert!(fault.is(Code::AgentManifestInvalid), "{bad}: {fault}");
        }
        for unseen in [".hidden", "dep", "outside", "link-out", "loop", "d"] {
            assert!(of(unseen).is_none(), "{unseen}");
        }
        assert!(!root.join("good/canary").exists(), "something was run");
        assert!(scan.cut_short.expect("deep").contains("deep"));
        let open = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(root.join("closed"), open).expect("set");
    }

    #[test]
    fn r157_a_scan_stops_at_its_bounds_and_says_so() {
        let dir = tempfile::tempdir().expect("a folder");
        for number in 0..20 {
            put(&dir.path().join(format!("a{number}")), MANIFEST.as_bytes());
        }
        let few = ScanBounds { manifests: 5, ..ScanBounds::default() };
        let cut = scan(dir.path(), few).expect("scanned");
        assert_eq!(cut.found.len(), 5);
        assert!(cut.cut_short.expect("cut short").contains("more than 5 manifests"));
        let few = ScanBounds { entries: 3, ..ScanBounds::default() };
        assert!(scan(dir.path(), few).expect("scanned").cut_short.is_some());
        let no_time = ScanBounds { time: Duration::ZERO, ..ScanBounds::default() };
        assert!(scan(dir.path(), no_time).expect("scanned").cut_short.is_some());
        let all = scan(dir.path(), ScanBounds::default()).expect("scanned");
        assert_eq!((all.found.len(), all.cut_short), (20, None));
        assert!(scan(&dir.path().join("nothing"), ScanBounds::default()).is_err());
    }
}
