//! Environments of handlers: the interpreter and the packages that a manifest asks for.
//!
//! Packages are resolved once, when a folder is added, into a lock of versions and hashes that is
//! part of the tool's record. The environment is made of that lock, in a folder whose name is the
//! hash of all that went into it, so that tools with the same packages share it; it is only ever
//! read afterwards, and compared with what was installed before each launch. The machine's own uv
//! does the work, or its pip where there is no uv, fenced in, with a way out to the registry that
//! pip is set up with and nowhere else. Only wheels are taken: what builds a package is not what is
//! pinned. Whoever waits is told what is done.

mod interpreter;
mod lock;
mod maker;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, SemaphorePermit};
use wharf_domain::Provider;
use wharf_domain::provider::{MadeEnvironment, ToolEnvironment};
use wharf_hosting::packages::{TreeHash, prefix_of, remove_tree, show_python, telling};
use wharf_hosting::{Errand, random_hex, run_errand_for};
use wharf_ports::Steps;
use wharf_ports::launcher::{LaunchSpec, LogSpec};
use wharf_vocab::{Code, Digest, Fault, LaunchId, ProviderId};

use self::interpreter::Interpreter;
use self::maker::Maker;
use crate::tools::ToolServers;

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
    /// Where it is told what is done.
    pub(crate) steps: &'a Steps,
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
    let _turn = turn(needs.steps).await?;
    let work = WorkFolder::new(servers)?;
    let found = interpreter::find(servers, needs, &work.path).await?;
    let Some(name) = &needs.wanted.requirements else {
        return Ok(found.made(None, Vec::new()));
    };
    let mut maker = Maker::new(servers, needs, &work.path, &found);
    let locked = maker.resolve(name).await?;
    let key = key(&found, &lock::text(&locked));
    maker.install(&key, &locked).await?;
    Ok(found.made(Some(key), locked))
}

/// Makes an environment again as it was locked, if it is not there.
pub(crate) async fn restore(
    servers: &ToolServers,
    needs: Needs<'_>,
    made: &MadeEnvironment,
) -> Result<(), Fault> {
    let Some(key) = &made.key else { return Ok(()) };
    let _turn = turn(needs.steps).await?;
    let work = WorkFolder::new(servers)?;
    let interpreter = Interpreter::of(made);
    let maker = Maker::new(servers, needs, &work.path, &interpreter);
    maker.install(key, &made.packages).await
}

/// Waits until no other environment is made.
async fn turn(steps: &Steps) -> Result<SemaphorePermit<'static>, Fault> {
    if let Ok(turn) = TURN.try_acquire() {
        return Ok(turn);
    }
    steps.say("another environment is being made, this one comes next");
    TURN.acquire().await.map_err(|_| Fault::new(Code::CoreStopping, "The core is stopping."))
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
        spec.starts.push(python.clone());
        return python;
    };
    let environment = servers_folder.join(key);
    let python = environment.join("bin").join("python");
    spec.starts.push(python.clone());
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
    errand.starts.append(&mut spec.starts);
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
