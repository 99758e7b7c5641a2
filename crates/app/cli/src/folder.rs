//! Folders as the core must be told of them.

use std::path::{Component, Path};

use crate::failure::{Failure, Result};

/// The path from the root, because the core has another working directory.
pub(crate) fn absolute(folder: &Path) -> Result<String> {
    let unreadable = |error| Failure::unreadable(folder.display(), &error);
    let mut path = std::path::absolute(folder).map_err(unreadable)?;
    // Where `..` leads depends on what is linked where, so the system must say.
    if path.components().any(|part| part == Component::ParentDir) {
        path = path.canonicalize().map_err(unreadable)?;
    }
    let wrong = |_| Failure::usage(format!("{} is not valid UTF-8", folder.display()));
    path.into_os_string().into_string().map_err(wrong)
}

/// The path without links and detours if it lies on this machine, else from the root.
pub(crate) fn canonical(folder: &Path) -> Result<String> {
    match folder.canonicalize() {
        Ok(path) => absolute(&path),
        Err(_) => absolute(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_told_by_its_path_from_the_root() {
        let dir = tempfile::tempdir().expect("a directory");
        let here = std::env::current_dir().expect("a directory");
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        assert_eq!(absolute(dir.path()), Ok(text(dir.path())));
        assert_eq!(absolute(Path::new("./hello")), Ok(text(&here.join("hello"))));
        std::fs::create_dir(dir.path().join("a")).expect("made");
        let real = dir.path().canonicalize().expect("there");
        assert_eq!(absolute(&dir.path().join("a/../a")), Ok(text(&real.join("a"))));
        assert!(absolute(&dir.path().join("none/../a")).is_err());
    }

    #[test]
    fn a_path_that_is_here_is_told_without_links_and_detours() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("a")).expect("made");
        std::os::unix::fs::symlink(dir.path().join("a"), dir.path().join("b")).expect("linked");
        let real = dir.path().canonicalize().expect("there").join("a");
        let real = real.to_str().expect("text");
        for typed in ["a", "a/", "./a/.", "b", "a/../b"] {
            assert_eq!(canonical(&dir.path().join(typed)).as_deref(), Ok(real), "{typed}");
        }
        let away = canonical(Path::new("/nowhere/here"));
        assert_eq!(away.as_deref(), Ok("/nowhere/here"), "it may be there for the core");
    }
}
