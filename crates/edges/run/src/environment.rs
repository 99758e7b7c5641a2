//! Environments of handlers: the interpreter and the packages that a manifest asks for.
//!
//! Packages are resolved once, when a folder is added, into a lock of versions and hashes that is
//! part of the tool's record. The environment is made of that lock, in a folder whose name is the
//! hash of all that went into it, so that tools with the same packages share it; it is only ever
//! read afterwards, and compared with what was installed before each launch. The machine's own pip
//! does the work, fenced in, with a way out to its registry and nowhere else. Only wheels are
//! taken: what builds a package is not what is pinned.

mod interpreter;
mod lock;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use wharf_domain::Provider;
use wharf_domain::provider::{MadeEnvironment, ToolEnvironment};
use wharf_hosting::packages::{
    PythonTools, TreeHash, prefix_of, remove_tree, show_python, telling,
};
use wharf_hosting::{Errand, blocking, random_hex, run_errand_for};
use wharf_ports::launcher::{LaunchSpec, LogSpec};
use wharf_vocab::{Code, Digest, Fault, LaunchId, ProviderId};

use self::interpreter::Interpreter;
use crate::manifest::packages;
use crate::tools::ToolServers;

/// How long one step may take.
const STEP_MAX: Duration = Duration::from_secs(900);
/// What unfinished work is called in the folder of environments.
const WORK: &str = "work-";
/// Environments are made one after the other.
static TURN: Semaphore = Semaphore::const_new(1);

/// Who an environment is made for.
#[derive(Clone, Copy)]
pub(crate) struct Needs<'a> {
    pub(crate) id: &'a ProviderId,
    pub(crate) folder: &'a Path,
    pub(crate) wanted: &'a ToolEnvironment,
}

/// What was installed, beside the environment.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct InstallNote {
    #[serde(flatten)]
    tree: TreeHash,
}

/// Makes the environment of a handler, or finds that it is there.
pub(crate) async fn make(
    servers: &ToolServers,
    needs: Needs<'_>,
) -> Result<MadeEnvironment, Fault> {
    let _turn = TURN.acquire().await.map_err(|_| stopping())?;
    let work = WorkFolder::new(servers)?;
    let found = interpreter::find(servers, needs, &work.path).await?;
    let Some(name) = &needs.wanted.requirements else {
        return Ok(found.made(None, Vec::new()));
    };
    let maker = Maker { servers, needs, work: &work.path, interpreter: &found };
    let locked = maker.resolve(name).await?;
    let key = key(&found, &lock::text(&locked));
    maker.install(&key, &lock::text(&locked)).await?;
    Ok(found.made(Some(key), locked))
}

/// Makes an environment again as it was locked, if it is not there.
pub(crate) async fn restore(
    servers: &ToolServers,
    needs: Needs<'_>,
    made: &MadeEnvironment,
) -> Result<(), Fault> {
    let Some(key) = &made.key else { return Ok(()) };
    let _turn = TURN.acquire().await.map_err(|_| stopping())?;
    let work = WorkFolder::new(servers)?;
    let interpreter = Interpreter::of(made);
    let maker = Maker { servers, needs, work: &work.path, interpreter: &interpreter };
    maker.install(key, &lock::text(&made.packages)).await
}

/// Refuses a launch whose environment is not what was installed. It blocks.
pub(crate) fn inspect(servers: &ToolServers, made: &MadeEnvironment) -> Result<(), Fault> {
    let drifted = |why: String| Err(Fault::new(Code::AgentDrifted, why));
    match &made.key {
        Some(key) => match difference(&folder(servers).join(key)) {
            None => Ok(()),
            Some(why) => drifted(format!("of its environment {key}: {why}")),
        },
        None if Path::new(&made.interpreter).exists() => Ok(()),
        None => drifted(format!("its interpreter {} is gone", made.interpreter)),
    }
}

/// Lets a launch run its handler in its environment; the interpreter.
pub(crate) fn equip(
    servers_folder: &Path,
    made: &MadeEnvironment,
    spec: &mut LaunchSpec,
) -> PathBuf {
    let Some(key) = &made.key else {
        let python = PathBuf::from(&made.interpreter);
        spec.fence.read.extend(interpreter::readable(&python));
        return python;
    };
    let environment = servers_folder.join(key);
    let python = environment.join("bin").join("python");
    show_python(&python, spec);
    // It lies in the home, of which a launch sees only what is its own.
    spec.given_dirs.push(environment);
    python
}

/// The same for a command that is run once.
pub(crate) fn equip_errand(
    servers_folder: &Path,
    made: &MadeEnvironment,
    errand: &mut Errand,
) -> Result<PathBuf, Fault> {
    let unnamed = |_| Fault::new(Code::CoreInternal, "A launch cannot be named.");
    let launch = LaunchId::new("errand").map_err(unnamed)?;
    let log = LogSpec::at(servers_folder.join("none"));
    let mut spec = LaunchSpec::new(launch, "python3", servers_folder, log);
    let python = equip(servers_folder, made, &mut spec);
    errand.read.append(&mut spec.fence.read);
    errand.given.append(&mut spec.given_dirs);
    errand.env.append(&mut spec.env);
    Ok(python)
}

/// Removes environments that no tool has, and what was left unfinished. It blocks.
pub(crate) fn sweep(folder: &Path, used: &BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if used.contains(name.strip_suffix(".json").unwrap_or(name)) {
            continue;
        }
        match remove_tree(&entry.path()) {
            Ok(()) => tracing::info!(environment = name, "an environment that no tool has is gone"),
            Err(error) => tracing::warn!(environment = name, %error, "it cannot be removed"),
        }
    }
}

/// Removes one environment. It blocks.
pub(crate) fn remove(servers: &ToolServers, key: &str) {
    let target = folder(servers).join(key);
    let removed = std::fs::remove_file(note_of(&target)).and_then(|()| remove_tree(&target));
    if let Err(error) = removed {
        tracing::warn!(environment = key, %error, "an environment cannot be removed");
    }
}

/// The environment that a tool's record names.
pub(crate) fn key_of(agent: &Provider) -> Option<&String> {
    made_of(agent)?.key.as_ref()
}

/// What was made for a tool.
pub(crate) fn made_of(agent: &Provider) -> Option<&MadeEnvironment> {
    agent.manifest.tool_server()?.environment.as_ref()?.made.as_ref()
}

/// Where environments lie.
pub(crate) fn folder(servers: &ToolServers) -> &Path {
    &servers.options.environments
}

struct Maker<'a> {
    servers: &'a ToolServers,
    needs: Needs<'a>,
    work: &'a Path,
    interpreter: &'a Interpreter,
}

impl Maker<'_> {
    /// Which version of each package is installed, with its hash.
    async fn resolve(
        &self,
        name: &str,
    ) -> Result<Vec<wharf_domain::provider::LockedPackage>, Fault> {
        let file = self.needs.folder.join(name);
        let bytes = tokio::fs::read(&file).await.map_err(|error| unusable(&file, &error))?;
        let named = packages(name, &bytes).map_err(failed)?;
        let wanted = self.work.join("requirements.txt");
        write(&wanted, &(named.join("\n") + "\n")).await?;
        if named.is_empty() {
            return Ok(Vec::new());
        }
        tracing::info!(tool = %self.needs.id, packages = named.len(), "packages are resolved");
        let report = self.work.join("report.json");
        let mut errand = self.pip().await?;
        errand.args.extend(words(&["install", "--dry-run", "--ignore-installed", "--report"]));
        errand.args.push(report.display().to_string());
        errand.args.extend(words(&["--only-binary", ":all:", "-r"]));
        errand.args.push(wanted.display().to_string());
        self.run(errand, &format!("The packages of {name} cannot be installed")).await?;
        let text = tokio::fs::read(&report).await.map_err(|error| unusable(&report, &error))?;
        lock::read(&text).map_err(failed)
    }

    /// Installs what is locked, unless it is there as it was installed.
    async fn install(&self, key: &str, lock: &str) -> Result<(), Fault> {
        let target = folder(self.servers).join(key);
        let looked_at = target.clone();
        if blocking(move || Ok(difference(&looked_at).is_none())).await? {
            return Ok(());
        }
        tracing::info!(tool = %self.needs.id, environment = key, "packages are installed");
        let emptied = target.clone();
        blocking(move || remove_tree(&emptied).map_err(|error| unusable(&emptied, &error))).await?;
        let locked = self.work.join("lock.txt");
        write(&locked, lock).await?;
        let installed = self.fill(&target, &locked, lock.is_empty()).await;
        blocking(move || match installed {
            Ok(()) => note(&target),
            Err(fault) => {
                // What is half there must not be taken for whole.
                let _ = remove_tree(&target);
                Err(fault)
            }
        })
        .await
    }

    async fn fill(&self, target: &Path, lock: &Path, is_empty: bool) -> Result<(), Fault> {
        let mut errand = self.interpreter.errand();
        errand.args.extend(words(&["-m", "venv", "--without-pip"]));
        errand.args.push(target.display().to_string());
        errand.write = vec![target.to_owned()];
        self.run(errand, "The environment cannot be made").await?;
        if is_empty {
            return Ok(());
        }
        let mut errand = self.pip().await?;
        errand.args.push("--python".to_owned());
        errand.args.push(target.join("bin").join("python").display().to_string());
        errand.args.extend(words(&["install", "--no-deps", "--require-hashes"]));
        errand.args.extend(words(&["--only-binary", ":all:", "-r"]));
        errand.args.push(lock.display().to_string());
        errand.write.push(target.to_owned());
        self.run(errand, "The packages cannot be installed").await
    }

    /// A command of a pip that belongs to the interpreter, with its way to packages.
    async fn pip(&self) -> Result<Errand, Fault> {
        let own = self.work.join("pip");
        let python = own.join("bin").join("python");
        if !python.exists() {
            let mut errand = self.interpreter.errand();
            errand.args.extend(words(&["-m", "venv"]));
            errand.args.push(own.display().to_string());
            errand.write = vec![own.clone()];
            self.run(errand, "The interpreter cannot make an environment").await?;
        }
        let mut errand = match &self.needs.wanted.wheels {
            Some(_) => Errand::default(),
            None => {
                let search = &self.servers.options.search;
                let found = PythonTools::find(search, self.needs.folder).await;
                found
                    .map_err(|fault| failed(fault.message.trim_end_matches('.').to_owned()))?
                    .errand()
            }
        };
        errand.program = python;
        errand.args = words(&["-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]);
        errand.args.push("--no-cache-dir".to_owned());
        if let Some(wheels) = &self.needs.wanted.wheels {
            let wheels = self.needs.folder.join(wheels).display().to_string();
            // Options of the command itself come later; these are known to all of its commands.
            errand.env.insert("PIP_NO_INDEX".to_owned(), "1".to_owned());
            errand.env.insert("PIP_FIND_LINKS".to_owned(), wheels);
        }
        errand.read.extend(self.interpreter.readable());
        errand.write = vec![self.work.to_owned()];
        Ok(errand)
    }

    async fn run(&self, mut errand: Errand, what: &str) -> Result<(), Fault> {
        errand.within = STEP_MAX;
        run(self.servers, self.needs, errand, what).await
    }
}

/// Runs one step. What went wrong is told as its program tells it.
async fn run(
    servers: &ToolServers,
    needs: Needs<'_>,
    errand: Errand,
    what: &str,
) -> Result<(), Fault> {
    let folder = needs.folder.display().to_string();
    let end = run_errand_for(servers, needs.id, &folder, errand).await?;
    if end.is_success() {
        return Ok(());
    }
    let why = match &end.exit {
        None => "it took too long".to_owned(),
        Some(exit) => telling(&end.errors).unwrap_or_else(|| exit.how.to_string()),
    };
    Err(failed(format!("{what}: {why}")))
}

/// What differs between an environment and what was installed, as the end of a sentence. It
/// blocks.
fn difference(target: &Path) -> Option<String> {
    let text = std::fs::read(note_of(target)).ok();
    let Some(note) = text.and_then(|text| serde_json::from_slice::<InstallNote>(&text).ok()) else {
        return Some("it is not there; approve the tool again to make it".to_owned());
    };
    match TreeHash::of(target) {
        Ok(tree) if tree == note.tree => None,
        Ok(_) => Some("its files are not the ones that were installed".to_owned()),
        Err(why) => Some(why),
    }
}

/// Writes down what was installed. It blocks.
fn note(target: &Path) -> Result<(), Fault> {
    let tree = TreeHash::of(target).map_err(failed)?;
    let text = serde_json::to_string(&InstallNote { tree }).unwrap_or_default();
    let path = note_of(target);
    std::fs::write(&path, text).map_err(|error| unusable(&path, &error))
}

fn note_of(target: &Path) -> PathBuf {
    target.with_extension("json")
}

/// The name of an environment: of the interpreter, and of each package with its hash.
fn key(interpreter: &Interpreter, lock: &str) -> String {
    let real = interpreter.real.display().to_string();
    let parts = [real.as_bytes(), interpreter.version.as_bytes(), lock.as_bytes()];
    Digest::of(&parts).to_string().chars().filter(char::is_ascii_alphanumeric).take(32).collect()
}

/// A folder for what is needed meanwhile. It goes when it is dropped.
struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    fn new(servers: &ToolServers) -> Result<Self, Fault> {
        let path = folder(servers).join(format!("{WORK}{}", random_hex(8)?));
        let made = std::fs::create_dir_all(folder(servers));
        // Nobody but the core's user is to read along or to put something in.
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = made.and_then(|()| builder.create(&path));
        made.map_err(|error| unusable(&path, &error))?;
        Ok(Self { path })
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

async fn write(path: &Path, text: &str) -> Result<(), Fault> {
    tokio::fs::write(path, text).await.map_err(|error| unusable(path, &error))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn failed(mut why: String) -> Fault {
    why.push('.');
    Fault::new(Code::ToolEnvironmentFailed, why)
}

fn unusable(path: &Path, error: &std::io::Error) -> Fault {
    failed(format!("{} cannot be used: {error}", path.display()))
}

fn stopping() -> Fault {
    Fault::new(Code::CoreStopping, "The core is stopping.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_that_no_tool_has_are_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["aa", "bb", "work-00"] {
            std::fs::create_dir(dir.path().join(name)).expect("made");
            std::fs::write(dir.path().join(name).join("x"), "").expect("written");
            std::fs::write(dir.path().join(format!("{name}.json")), "{}").expect("written");
        }
        sweep(dir.path(), &BTreeSet::from(["aa".to_owned()]));
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .expect("read")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        left.sort_unstable();
        assert_eq!(left, ["aa", "aa.json"]);
    }

    #[test]
    fn any_other_file_is_another_environment() {
        let dir = tempfile::tempdir().expect("a folder");
        let target = dir.path().join("aa");
        std::fs::create_dir(&target).expect("made");
        assert!(difference(&target).is_some_and(|why| why.contains("not there")));
        note(&target).expect("noted");
        assert_eq!(difference(&target), None);
        std::fs::write(target.join("more.py"), "").expect("written");
        assert!(difference(&target).is_some_and(|why| why.contains("not the ones")));
    }

    #[test]
    fn an_environment_has_another_name_when_anything_of_it_is_different() {
        let found = |real: &str, version: &str| Interpreter {
            path: real.into(),
            real: real.into(),
            version: version.to_owned(),
        };
        let one = key(&found("/usr/bin/python3", "3.11.2"), "a==1\n");
        assert_eq!(one.len(), 32);
        for other in [
            key(&found("/usr/bin/python3", "3.11.3"), "a==1\n"),
            key(&found("/opt/bin/python3", "3.11.2"), "a==1\n"),
            key(&found("/usr/bin/python3", "3.11.2"), "a==2\n"),
        ] {
            assert_ne!(one, other);
        }
    }
}
