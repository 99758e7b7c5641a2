//! The checkout as the chores see it: where it lies, what git tracks, what its files say.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A checkout of the repository.
#[derive(Debug)]
pub(crate) struct Repo {
    root: PathBuf,
}

impl Repo {
    /// The checkout this binary was built from.
    pub(crate) fn open() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask does not lie in a repository")?;
        Ok(Self::at(root))
    }

    /// A checkout at another place.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The absolute path of a file of the checkout.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// What a file says.
    pub(crate) fn read(&self, relative: &str) -> Result<String> {
        std::fs::read_to_string(self.path(relative))
            .with_context(|| format!("failed to read {relative}"))
    }

    /// What a command prints when it is run at the root.
    pub(crate) fn output_of(&self, program: &str, args: &[&str]) -> Result<String> {
        let output = Command::new(program)
            .args(args)
            .current_dir(&self.root)
            .output()
            .with_context(|| format!("failed to start {program}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            bail!("{program} {} failed: {}", args.join(" "), why.trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("{program} printed no text"))
    }

    /// The tracked files that are text and still stand in the checkout.
    pub(crate) fn tracked_texts(&self) -> Result<Vec<TextFile>> {
        let list = self.output_of("git", &["ls-files", "-z"])?;
        let mut files = Vec::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            // A file that was removed but not committed yet, and binary files, have no text.
            if let Ok(text) = std::fs::read_to_string(self.path(path)) {
                files.push(TextFile { path: path.to_owned(), text });
            }
        }
        Ok(files)
    }

    /// The names of the files of a folder that end in `.md`, sorted.
    pub(crate) fn markdown_names(&self, folder: &str) -> Result<Vec<String>> {
        let entries = std::fs::read_dir(self.path(folder))
            .with_context(|| format!("failed to read the folder {folder}"))?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// A file with its text; the path is relative to the root and uses `/`.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    /// Whether the file's name ends in one of these extensions.
    pub(crate) fn has_extension(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
    }
}
