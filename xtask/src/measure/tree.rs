//! All Rust files of a commit or of the checkout, sorted into crates and into what they are for.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::source::Source;
use crate::repo::Repo;

/// A crate's files.
#[derive(Debug)]
pub(super) struct Crate {
    /// Below `crates/`, as in the table of the direction.
    pub(super) folder: String,
    /// Whether its code ships: not below `proof/` or `examples/`, and not `xtask`.
    pub(super) ships: bool,
    pub(super) files: Vec<Source>,
}

/// What the checkout holds, also what is not committed.
pub(super) fn checkout(repo: &Repo) -> Result<Vec<Crate>> {
    let files = repo.tracked_texts()?;
    Ok(sort(files.into_iter().map(|file| (file.path, file.text))))
}

/// What a commit holds.
pub(super) fn commit(repo: &Repo, name: &str) -> Result<Vec<Crate>> {
    Ok(sort(untar(&archive(repo, &[name])?)))
}

/// How files that have another name since a commit were called then, by their names now.
pub(super) fn renames(repo: &Repo, since: &str) -> Result<BTreeMap<String, String>> {
    let args = ["diff", "--find-renames=35%", "-l20000", "--diff-filter=R", "--name-status", since];
    let text = String::from_utf8(git(repo, &args)?).context("a name is not UTF-8")?;
    let moved = text.lines().filter_map(|line| {
        let mut fields = line.split('\t').skip(1).map(str::to_owned);
        let (then, now) = (fields.next()?, fields.next()?);
        Some((now, then))
    });
    Ok(moved.collect())
}

fn archive(repo: &Repo, what: &[&str]) -> Result<Vec<u8>> {
    git(repo, &[&["archive", "--format=tar"], what].concat())
}

fn git(repo: &Repo, args: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("git").args(args).current_dir(repo.path("")).output();
    let output = output.context("failed to start git")?;
    if !output.status.success() {
        bail!("git failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// The text files of an archive as git writes it.
fn untar(bytes: &[u8]) -> impl Iterator<Item = (String, String)> {
    const BLOCK: usize = 512;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let (head, body) = rest.split_at_checked(BLOCK)?;
            let field = |from: usize, to: usize| {
                let field = head[from..to].split(|it| *it == 0).next().unwrap_or(&[]);
                String::from_utf8_lossy(field).trim().to_owned()
            };
            let size = usize::from_str_radix(&field(124, 136), 8).ok()?;
            let content = body.get(..size)?;
            rest = body.get(size.next_multiple_of(BLOCK)..)?;
            let (name, prefix) = (field(0, 100), field(345, 500));
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if let (b'0', Ok(text)) = (head[156], std::str::from_utf8(content)) {
                return Some((path, text.to_owned()));
            }
        }
    })
}

fn sort(files: impl Iterator<Item = (String, String)>) -> Vec<Crate> {
    let files: Vec<(String, String)> = files.collect();
    let manifests = files.iter().filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"));
    let homes: Vec<String> = manifests.map(|it| format!("{it}/")).collect();
    let mut crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    // What a new project begins with is text for this one.
    let is_code = |path: &str| path.ends_with(".rs") && !path.contains("/templates/");
    for (path, text) in files.iter().filter(|(path, _)| is_code(path)) {
        let homes = homes.iter().filter(|home| path.starts_with(home.as_str()));
        let Some(home) = homes.max_by_key(|home| home.len()) else { continue };
        crates.entry(home.clone()).or_default().push(Source::read(path, text));
    }
    let crates = crates.into_iter().map(|(home, mut files)| {
        mark_tests(&home, &mut files);
        let home = home.trim_end_matches('/');
        let folder = home.strip_prefix("crates/").unwrap_or(home).to_owned();
        let ships = !["proof/", "examples/", "xtask"].iter().any(|it| folder.starts_with(it))
            && home.starts_with("crates/");
        Crate { folder, ships, files }
    });
    crates.collect()
}

/// Marks files that do not ship: of the folders of tests, benchmarks and examples, of modules that
/// are declared for tests, and of the suite that every store must pass.
fn mark_tests(home: &str, files: &mut [Source]) {
    let modules: Vec<String> = files.iter().flat_map(Source::test_modules).collect();
    for file in files {
        let path = &file.path;
        let inside = |folder: &str| path[home.len()..].starts_with(folder);
        let declared = |module: &String| {
            path.strip_prefix(module.as_str()).is_some_and(|it| it == ".rs" || it.starts_with('/'))
        };
        if ["tests/", "benches/", "examples/", "src/contract"].iter().any(|it| inside(it))
            || modules.iter().any(declared)
        {
            file.mark_as_test();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_nearest_crate_and_tests_are_known() {
        let files = [
            ("crates/kernel/a/Cargo.toml", ""),
            ("crates/kernel/a/src/lib.rs", "#[cfg(test)]\nmod far;\nfn a() {}\n"),
            ("crates/kernel/a/src/far/near.rs", "fn b() {}\n"),
            ("crates/kernel/a/tests/all.rs", "fn c() {}\n"),
            ("crates/proof/b/Cargo.toml", ""),
            ("crates/proof/b/src/lib.rs", "fn d() {}\n"),
        ];
        let crates = sort(files.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())));
        let [a, b] = crates.as_slice() else { panic!("{crates:?}") };
        assert_eq!((a.folder.as_str(), a.ships, a.files.len()), ("kernel/a", true, 3));
        assert!(!b.ships);
        let code: usize = a.files.iter().map(|it| it.production_lines().count()).sum();
        assert_eq!(code, 1);
    }

    #[test]
    fn an_archive_of_this_repository_can_be_read() {
        let repo = Repo::open().expect("opens");
        let archive = archive(&repo, &["HEAD", "xtask/Cargo.toml", "xtask/src/main.rs"]);
        let crates = sort(untar(&archive.expect("git answers")));
        let [xtask] = crates.as_slice() else { panic!("{crates:?}") };
        assert_eq!((xtask.folder.as_str(), xtask.files.len()), ("xtask", 1));
    }
}
