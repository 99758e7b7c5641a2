//! What cargo says about the crates of the workspace, and the rules for their manifests.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::repo::Repo;

/// One crate of the workspace.
#[derive(Debug)]
pub(super) struct CrateFacts {
    /// The package's name.
    pub(super) name: String,
    /// Its folder below `crates/`, or below the root if it lies elsewhere.
    pub(super) folder: String,
    /// Its manifest, relative to the root.
    pub(super) manifest: String,
    /// What it depends on.
    pub(super) uses: Vec<Use>,
}

/// One dependency. Build scripts count as code, since what they use ends in the same build.
#[derive(Debug)]
pub(super) enum Use {
    /// Another crate of the workspace.
    Workspace { folder: String, in_tests: bool },
    /// A crate from elsewhere.
    External { name: String, in_tests: bool },
}

/// Asks cargo for all crates of the workspace.
pub(super) fn read(repo: &Repo) -> Result<Vec<CrateFacts>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let text =
        repo.output_of(&cargo, &["metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    parse(&text)
}

fn parse(metadata: &str) -> Result<Vec<CrateFacts>> {
    let metadata: Value = serde_json::from_str(metadata).context("cargo printed no JSON")?;
    let root = Path::new(text(&metadata, "workspace_root")?);
    let packages = metadata["packages"].as_array().context("cargo named no packages")?;

    let mut folders = BTreeMap::new();
    for package in packages {
        let manifest = relative(root, text(package, "manifest_path")?)?;
        folders.insert(text(package, "name")?, manifest);
    }
    let mut crates = Vec::new();
    for package in packages {
        let name = text(package, "name")?;
        let manifest = folders.get(name).context("a package has no manifest")?.clone();
        let mut uses = Vec::new();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = text(dependency, "name")?;
            let in_tests = dependency["kind"].as_str() == Some("dev");
            uses.push(match folders.get(target).filter(|_| dependency["path"].is_string()) {
                Some(manifest) => Use::Workspace { folder: folder_of(manifest), in_tests },
                None => Use::External { name: target.to_owned(), in_tests },
            });
        }
        crates.push(CrateFacts {
            name: name.to_owned(),
            folder: folder_of(&manifest),
            manifest,
            uses,
        });
    }
    crates.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(crates)
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo did not say {key}"))
}

fn relative(root: &Path, path: &str) -> Result<String> {
    let path = Path::new(path).strip_prefix(root).context("a crate lies outside the repository")?;
    Ok(path.to_string_lossy().replace('\\', "/"))
}

fn folder_of(manifest: &str) -> String {
    let folder = manifest.trim_end_matches("Cargo.toml").trim_end_matches('/');
    folder.strip_prefix("crates/").unwrap_or(folder).to_owned()
}

/// Every crate takes its lints from the workspace, so that one list holds for all.
pub(super) fn check(repo: &Repo, crates: &[CrateFacts]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for facts in crates {
        if !inherits_lints(&repo.read(&facts.manifest)?) {
            findings.push(format!(
                "{} does not take the workspace's lints; add [lints] with workspace = true",
                facts.manifest
            ));
        }
    }
    Ok(findings)
}

fn inherits_lints(manifest: &str) -> bool {
    let mut section = "";
    for line in manifest.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let setting: String = line.split_whitespace().collect();
        match (section, setting.as_str()) {
            ("[lints]", "workspace=true") | ("", "lints.workspace=true") => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_metadata_becomes_facts() {
        let metadata = r#"{"workspace_root":"/w","packages":[
            {"name":"wharf-vocab","manifest_path":"/w/crates/kernel/vocab/Cargo.toml",
             "dependencies":[{"name":"serde","kind":null}]},
            {"name":"wharf-domain","manifest_path":"/w/crates/kernel/domain/Cargo.toml",
             "dependencies":[{"name":"wharf-vocab","kind":null,"path":"/w/crates/kernel/vocab"},
                             {"name":"proptest","kind":"dev"}]}]}"#;
        let crates = parse(metadata).expect("parses");
        assert_eq!(crates[0].folder, "kernel/domain");
        assert!(matches!(&crates[0].uses[0],
            Use::Workspace { folder, in_tests: false } if folder == "kernel/vocab"));
        assert!(matches!(&crates[0].uses[1],
            Use::External { name, in_tests: true } if name == "proptest"));
        assert_eq!(crates[1].manifest, "crates/kernel/vocab/Cargo.toml");
    }

    #[test]
    fn lints_are_inherited_only_by_saying_so() {
        assert!(inherits_lints("[package]\nname = \"a\"\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nname = \"a\"\n"));
        assert!(!inherits_lints("[lints]\n# workspace = true\n"));
        assert!(!inherits_lints("[lints]\nworkspace = false\n"));
        assert!(!inherits_lints("[lints.rust]\nx = \"warn\"\n[dependencies]\nworkspace = true\n"));
    }

    #[test]
    fn this_repository_follows_its_direction() {
        let repo = Repo::open().expect("opens");
        let crates = read(&repo).expect("cargo answers");
        assert_eq!(super::super::direction::check(&crates), Vec::<String>::new());
        assert_eq!(check(&repo, &crates).expect("reads"), Vec::<String>::new());
    }
}
