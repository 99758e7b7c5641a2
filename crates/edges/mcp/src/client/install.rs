//! Packages that are installed once into a server's folder.
//!
//! The machine's own `npm` or `pip` does it, in a fence whose one way out leads to the registry that
//! the machine is set up with. What came of it is written down beside it, as one hash over all
//! files; that note is pinned with the approval, and before each launch the files are compared with
//! it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wharf_domain::Provider;
use wharf_domain::provider::McpPackage;
use wharf_hosting::packages::{
    NodeTools, PythonTools, TreeHash, remove_tree, show_node, show_python, telling,
};
use wharf_hosting::{Errand, blocking, run_errand};
use wharf_ports::launcher::LaunchSpec;
use wharf_vocab::{Code, Fault};

use super::McpServers;

/// The folder of a Python package's own environment, in the server's folder.
const PYTHON: &str = "venv";
/// The folder of Node's packages, in the server's folder.
const NODE: &str = "node_modules";
/// The note about what was installed, in the server's folder.
const NOTE: &str = "wharf.package.json";
/// How long one step of an installation may take.
const STEP_MAX: Duration = Duration::from_secs(600);

/// What was installed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct InstallNote {
    package: String,
    #[serde(flatten)]
    tree: TreeHash,
}

/// Installs the package of a server, unless it is there as it was installed.
pub(crate) async fn install(
    servers: &Arc<McpServers>,
    agent: &Provider,
    package: &McpPackage,
) -> Result<(), Fault> {
    let folder = PathBuf::from(&agent.folder);
    let target = folder.join(target_name(package));
    let (name, looked_at) = (full_name(package), folder.clone());
    if blocking(move || Ok(difference(&looked_at, &name).is_none())).await? {
        return Ok(());
    }
    let emptied = target.clone();
    blocking(move || remove_tree(&emptied).map_err(|error| unwritable(&emptied, &error))).await?;
    let installed = match package {
        McpPackage::Npm(text) => install_npm(servers, agent, &target, text).await,
        McpPackage::Pypi(text) => install_pypi(servers, agent, &target, text).await,
    };
    let name = full_name(package);
    blocking(move || match installed {
        Ok(()) => note(&folder, &target, &name),
        Err(fault) => {
            // What is half there must not be taken for whole.
            let _ = remove_tree(&target);
            Err(fault)
        }
    })
    .await
}

async fn install_npm(
    servers: &Arc<McpServers>,
    agent: &Provider,
    target: &Path,
    package: &str,
) -> Result<(), Fault> {
    let scope = package.strip_prefix('@').and_then(|rest| rest.split('/').next());
    let search = servers.options.search.clone();
    let tools = NodeTools::find(&search, Path::new(&agent.folder), scope).await?;
    let mut errand = tools.errand();
    errand.args.extend(
        // Scripts of packages are not for installing: what they would do is not what is pinned.
        [
            "install",
            "--ignore-scripts",
            "--no-save",
            "--no-package-lock",
            "--no-audit",
            "--no-fund",
        ]
        .map(str::to_owned),
    );
    errand.args.extend(["--prefix".to_owned(), agent.folder.clone(), package.to_owned()]);
    errand.write = vec![target.to_owned()];
    run(servers, agent, package, errand).await
}

async fn install_pypi(
    servers: &Arc<McpServers>,
    agent: &Provider,
    target: &Path,
    package: &str,
) -> Result<(), Fault> {
    let tools = PythonTools::find(&servers.options.search, Path::new(&agent.folder)).await?;
    let mut errand = tools.errand();
    errand.hosts.clear();
    errand.args = vec!["-m".to_owned(), "venv".to_owned(), target.display().to_string()];
    errand.write = vec![target.to_owned()];
    run(servers, agent, package, errand).await?;
    let mut errand = tools.errand();
    errand.program = target.join("bin").join("python");
    let args = ["-m", "pip", "install", "--no-input", "--no-cache-dir", package];
    errand.args = args.map(str::to_owned).to_vec();
    errand.write = vec![target.to_owned()];
    run(servers, agent, package, errand).await
}

/// Runs one step. What went wrong is told as its program tells it.
async fn run(
    servers: &Arc<McpServers>,
    agent: &Provider,
    package: &str,
    mut errand: Errand,
) -> Result<(), Fault> {
    errand.within = STEP_MAX;
    let end = run_errand(&**servers, agent, errand).await?;
    if end.is_success() {
        return Ok(());
    }
    let why = match &end.exit {
        None => "it took too long".to_owned(),
        Some(exit) => telling(&end.errors).unwrap_or_else(|| exit.how.to_string()),
    };
    let message = format!("The package {package} cannot be installed: {why}.");
    Err(Fault::new(Code::AgentStartFailed, message))
}

/// Writes down what was installed. It blocks.
fn note(folder: &Path, target: &Path, package: &str) -> Result<(), Fault> {
    let unusable = |why: String| {
        let message = format!("The package {package} cannot be pinned: {why}.");
        Fault::new(Code::AgentStartFailed, message)
    };
    let tree = TreeHash::of(target).map_err(unusable)?;
    let note = InstallNote { package: package.to_owned(), tree };
    let text = serde_json::to_string_pretty(&note).unwrap_or_default();
    let path = folder.join(NOTE);
    std::fs::write(&path, text).map_err(|error| unwritable(&path, &error))
}

/// How what is there differs from what was installed, as the end of a sentence. It blocks.
fn difference(folder: &Path, package: &str) -> Option<String> {
    let text = std::fs::read(folder.join(NOTE)).ok();
    let note = text.and_then(|text| serde_json::from_slice::<InstallNote>(&text).ok());
    let Some(note) = note.filter(|note| note.package == package) else {
        return Some("it is not installed".to_owned());
    };
    let target = folder.join(if package.starts_with("npm:") { NODE } else { PYTHON });
    match TreeHash::of(&target) {
        Ok(tree) if tree == note.tree => None,
        Ok(_) => Some("its files are not the ones that were installed".to_owned()),
        Err(why) => Some(why),
    }
}

/// Refuses a launch whose package is not what was installed. It blocks.
pub(crate) fn inspect(agent: &Provider, package: &McpPackage) -> Result<(), Fault> {
    match difference(Path::new(&agent.folder), &full_name(package)) {
        None => Ok(()),
        Some(why) => Err(Fault::new(Code::AgentDrifted, format!("of its package: {why}"))),
    }
}

/// Lets a launch begin with the program of its package.
pub(crate) fn equip(
    package: &McpPackage,
    search: &[PathBuf],
    spec: &mut LaunchSpec,
) -> Result<(), Fault> {
    let programs = match package {
        McpPackage::Npm(_) => spec.cwd.join(NODE).join(".bin"),
        McpPackage::Pypi(_) => spec.cwd.join(PYTHON).join("bin"),
    };
    let program = programs.join(&spec.program);
    if !program.exists() {
        let message = format!(
            "The package has no program {}; name one in command, of those in {}.",
            spec.program.display(),
            programs.display()
        );
        return Err(Fault::new(Code::AgentStartFailed, message));
    }
    spec.program = program;
    match package {
        McpPackage::Npm(_) => show_node(search, spec),
        McpPackage::Pypi(_) => show_python(&spec.program.with_file_name("python"), spec),
    }
    Ok(())
}

fn target_name(package: &McpPackage) -> &'static str {
    match package {
        McpPackage::Npm(_) => NODE,
        McpPackage::Pypi(_) => PYTHON,
    }
}

fn full_name(package: &McpPackage) -> String {
    match package {
        McpPackage::Npm(text) => format!("npm:{text}"),
        McpPackage::Pypi(text) => format!("pypi:{text}"),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Fault {
    let message = format!("{} cannot be written: {error}.", path.display());
    Fault::new(Code::AgentStartFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m047_any_other_file_is_another_package() {
        let dir = tempfile::tempdir().expect("a folder");
        let (folder, target) = (dir.path(), dir.path().join(NODE));
        std::fs::create_dir_all(target.join("a")).expect("made");
        std::fs::write(target.join("a/index.js"), "1").expect("written");
        assert!(difference(folder, "npm:a@1.0.0").is_some_and(|it| it.contains("not installed")));
        note(folder, &target, "npm:a@1.0.0").expect("noted");
        assert_eq!(difference(folder, "npm:a@1.0.0"), None);
        assert!(difference(folder, "npm:a@1.0.1").is_some(), "another version");
        std::fs::write(target.join("a/more.js"), "2").expect("written");
        assert!(difference(folder, "npm:a@1.0.0").is_some_and(|it| it.contains("not the ones")));
        std::fs::remove_file(target.join("a/more.js")).expect("removed");
        assert_eq!(difference(folder, "npm:a@1.0.0"), None);
    }
}
