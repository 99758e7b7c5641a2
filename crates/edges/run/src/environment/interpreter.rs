//! The interpreter that a manifest asks for.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use wharf_domain::provider::{LockedPackage, MadeEnvironment};
use wharf_hosting::Errand;
use wharf_hosting::packages::is_system;
use wharf_vocab::Fault;

use super::{Needs, failed, prefix_of, run, unusable, words};
use crate::tools::ToolServers;

/// How long an interpreter may take to say what it is.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// Says what an interpreter is.
const LOOK: &str = "import json, sys; open(sys.argv[1], 'w').write(json.dumps({'version': \
                    '.'.join(map(str, sys.version_info[:3]))}))";

/// An interpreter of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// How it is started. One that belongs to an environment is known by its path.
    pub(super) path: PathBuf,
    /// The program itself.
    pub(super) real: PathBuf,
    pub(super) version: String,
}

#[derive(Deserialize)]
struct InterpreterFacts {
    version: String,
}

impl Interpreter {
    /// The one that an environment was made with.
    pub(super) fn of(made: &MadeEnvironment) -> Self {
        let path = PathBuf::from(&made.interpreter);
        let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        Self { path, real, version: made.version.clone() }
    }

    /// What became of it.
    pub(super) fn made(
        &self,
        key: Option<String>,
        packages: Vec<LockedPackage>,
    ) -> MadeEnvironment {
        let interpreter = self.path.display().to_string();
        MadeEnvironment { interpreter, version: self.version.clone(), key, packages }
    }

    /// A command of it.
    pub(super) fn errand(&self) -> Errand {
        let program = self.path.clone();
        Errand { program, args: words(&["-I"]), read: self.readable(), ..Errand::default() }
    }

    /// What it needs to read.
    pub(super) fn readable(&self) -> Vec<PathBuf> {
        readable(&self.path)
    }
}

/// What an interpreter needs to read besides the system: what it and its environment were installed
/// with.
pub(super) fn readable(path: &Path) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut all = vec![prefix_of(path), prefix_of(&real)];
    all.dedup();
    all.retain(|path| !is_system(path) && path != Path::new("/"));
    all
}

/// Finds the interpreter and asks it for its version, fenced in: it may come with the tool.
pub(super) async fn find(
    servers: &ToolServers,
    needs: Needs<'_>,
    work: &Path,
) -> Result<Interpreter, Fault> {
    let asked = needs.wanted.python.as_deref();
    let path = path_of(asked, needs.folder, &servers.options.search).map_err(failed)?;
    let real = std::fs::canonicalize(&path).map_err(|error| unusable(&path, &error))?;
    let answer = work.join("python.json");
    let mut found = Interpreter { path, real, version: String::new() };
    let mut errand = found.errand();
    errand.args.extend(words(&["-c", LOOK]));
    errand.args.push(answer.display().to_string());
    errand.write = vec![work.to_owned()];
    errand.within = LOOK_MAX;
    let what = format!("The interpreter {} cannot be used", found.path.display());
    run(servers, needs, errand, &what).await?;
    let text = tokio::fs::read(&answer).await.map_err(|error| unusable(&answer, &error))?;
    let said: InterpreterFacts = serde_json::from_slice(&text).map_err(|_| failed(what))?;
    let is_whole = |one: &str| !one.is_empty() && one.bytes().all(|byte| byte.is_ascii_digit());
    if !said.version.split('.').all(is_whole) || said.version.len() > 20 {
        return Err(failed(format!("{} does not say its version", found.path.display())));
    }
    if let Some(wanted) = asked.filter(|text| is_version(text))
        && said.version != wanted
        && !said.version.starts_with(&format!("{wanted}."))
    {
        let path = found.path.display();
        return Err(failed(format!(
            "The manifest's python asks for {wanted}, and {path} is {}",
            said.version
        )));
    }
    found.version = said.version;
    Ok(found)
}

/// Where the interpreter is. What is wrong is a sentence without its end.
fn path_of(asked: Option<&str>, folder: &Path, search: &[PathBuf]) -> Result<PathBuf, String> {
    match asked {
        // The one that handlers have anyway.
        None => {
            let usual: Vec<_> = std::env::split_paths(wharf_hosting::PATH).collect();
            looked_up("python3", &usual).or_else(|_| looked_up("python3", search))
        }
        Some(version) if is_version(version) => {
            let parts: Vec<_> = version.split('.').take(2).collect();
            looked_up(&format!("python{}", parts.join(".")), search)
        }
        Some(path) if path.contains('/') => {
            let path = folder.join(path);
            let is_there = path.is_file();
            is_there.then_some(path.clone()).ok_or_else(|| {
                format!("The manifest's python names {}, which is not there", path.display())
            })
        }
        Some(name) => looked_up(name, search),
    }
}

/// A program on the search path. Scripts that choose another program, as version managers have
/// them, are passed over: they would choose anew at each start.
pub(super) fn looked_up(name: &str, search: &[PathBuf]) -> Result<PathBuf, String> {
    let candidates = search.iter().map(|folder| folder.join(name)).filter(|path| path.is_file());
    let (programs, scripts): (Vec<_>, Vec<_>) = candidates.partition(|path| is_program(path));
    match (programs.into_iter().next(), scripts.first()) {
        (Some(program), _) => Ok(program),
        (None, Some(script)) => Err(format!(
            "There is no interpreter {name} on the core's PATH but {}, which is a script that \
             chooses one; name the interpreter by its path",
            script.display()
        )),
        (None, None) => Err(format!("There is no interpreter {name} on the core's PATH")),
    }
}

fn is_program(path: &Path) -> bool {
    let mut start = [0; 2];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start != *b"#!"
}

fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('.').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_is_a_path_or_a_version_on_the_search_path() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join(name);
        for folder in ["tool/venv/bin", "shims", "bin"] {
            std::fs::create_dir_all(at(folder)).expect("made");
        }
        std::fs::write(at("tool/venv/bin/python"), "ELF").expect("written");
        std::fs::write(at("shims/python3.12"), "#!/bin/sh\n").expect("written");
        std::fs::write(at("shims/python3.9"), "#!/bin/sh\n").expect("written");
        std::fs::write(at("bin/python3.12"), "ELF").expect("written");
        let search = [at("shims"), at("bin")];
        let found = |asked| path_of(Some(asked), &at("tool"), &search);
        assert_eq!(found("venv/bin/python"), Ok(at("tool").join("venv/bin/python")));
        assert_eq!(found("3.12"), Ok(at("bin/python3.12")));
        assert_eq!(found("3.12.4"), Ok(at("bin/python3.12")));
        assert_eq!(found("python3.12"), Ok(at("bin/python3.12")));
        assert!(found("3.9").is_err_and(|why| why.contains("a script that chooses one")));
        assert!(found("3.8").is_err_and(|why| why.contains("no interpreter python3.8")));
        assert!(found("./none").is_err_and(|why| why.contains("not there")));
    }

    #[test]
    fn what_is_not_the_systems_is_shown() {
        assert!(readable(Path::new("/usr/bin/python3")).is_empty());
        assert_eq!(readable(Path::new("/nowhere/v/bin/python")), [Path::new("/nowhere/v")]);
    }
}
