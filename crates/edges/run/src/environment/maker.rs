//! What finds and installs packages: the machine's uv where there is one, otherwise the pip of the
//! interpreter. Both read and write the same lock, so an environment can be made again by either.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_domain::provider::LockedPackage;
use wharf_hosting::packages::{PythonTools, remove_tree};
use wharf_hosting::{Errand, blocking};
use wharf_vocab::Fault;

use super::interpreter::{self, Interpreter};
use super::{Needs, difference, failed, folder, lock, note, run, unusable, words, write};
use crate::manifest::packages;
use crate::tools::ToolServers;

/// How long one step may take.
const STEP_MAX: Duration = Duration::from_secs(900);
/// Packages that are named when they are installed.
const NAMED_MAX: usize = 8;
/// What a uv says that does not know what it is asked for: its lock is younger than it is.
const UNKNOWN_TO_UV: [&str; 2] = ["unexpected argument", "invalid value"];

/// Makes one environment.
pub(super) struct Maker<'a> {
    servers: &'a ToolServers,
    needs: Needs<'a>,
    work: &'a Path,
    interpreter: &'a Interpreter,
    uv: Option<PathBuf>,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        servers: &'a ToolServers,
        needs: Needs<'a>,
        work: &'a Path,
        interpreter: &'a Interpreter,
    ) -> Self {
        let uv = interpreter::looked_up("uv", &servers.options.search).ok();
        Self { servers, needs, work, interpreter, uv }
    }

    /// Which version of each package is installed, with its hash.
    pub(super) async fn resolve(&mut self, name: &str) -> Result<Vec<LockedPackage>, Fault> {
        let file = self.needs.folder.join(name);
        let bytes = tokio::fs::read(&file).await.map_err(|error| unusable(&file, &error))?;
        let named = packages(name, &bytes).map_err(failed)?;
        let wanted = self.work.join("requirements.txt");
        write(&wanted, &(named.join("\n") + "\n")).await?;
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let by = if self.uv.is_some() { "uv" } else { "pip" };
        let (provider, packages) = (&self.needs.id, named.len());
        tracing::info!(%provider, packages, by, "packages are resolved");
        self.say(&format!("resolving the packages of {name} with {by}"));
        let what = format!("The packages of {name} cannot be installed");
        if let Some(uv) = self.uv.clone() {
            match self.resolve_with_uv(&uv, &wanted, &what).await {
                Err(fault) if UNKNOWN_TO_UV.iter().any(|says| fault.message.contains(says)) => {
                    self.say("this uv is too old, so pip does it");
                    self.uv = None;
                }
                resolved => return resolved,
            }
        }
        self.resolve_with_pip(&wanted, &what).await
    }

    async fn resolve_with_uv(
        &self,
        uv: &Path,
        wanted: &Path,
        what: &str,
    ) -> Result<Vec<LockedPackage>, Fault> {
        let locked = self.work.join("pylock.toml");
        let mut errand = self.uv(uv, "compile").await?;
        errand.args.extend(words(&["--quiet", "--no-build", "--format", "pylock.toml"]));
        errand.args.extend(words(&["--no-python-downloads", "--python"]));
        errand.args.push(self.interpreter.path.display().to_string());
        errand.args.extend(["-o", &locked.display().to_string()].map(str::to_owned));
        errand.args.push(wanted.display().to_string());
        self.run(errand, what).await?;
        let text = tokio::fs::read(&locked).await.map_err(|error| unusable(&locked, &error))?;
        lock::of_uv(&text).map_err(failed)
    }

    async fn resolve_with_pip(
        &self,
        wanted: &Path,
        what: &str,
    ) -> Result<Vec<LockedPackage>, Fault> {
        let report = self.work.join("report.json");
        let mut errand = self.pip().await?;
        errand.args.extend(words(&["install", "--dry-run", "--ignore-installed", "--report"]));
        errand.args.push(report.display().to_string());
        errand.args.extend(words(&["--progress-bar", "off", "--only-binary", ":all:", "-r"]));
        errand.args.push(wanted.display().to_string());
        self.run(errand, what).await?;
        let text = tokio::fs::read(&report).await.map_err(|error| unusable(&report, &error))?;
        lock::of_pip(&text).map_err(failed)
    }

    /// Installs what is locked, unless it is there as it was installed.
    pub(super) async fn install(&self, key: &str, packages: &[LockedPackage]) -> Result<(), Fault> {
        let target = folder(self.servers).join(key);
        let looked_at = target.clone();
        if blocking(move || Ok(difference(&looked_at).is_none())).await? {
            return Ok(());
        }
        tracing::info!(provider = %self.needs.id, environment = key, "packages are installed");
        self.say(&format!("installing {}", counted(packages)));
        let emptied = target.clone();
        blocking(move || remove_tree(&emptied).map_err(|error| unusable(&emptied, &error))).await?;
        let locked = self.work.join("lock.txt");
        write(&locked, &lock::text(packages)).await?;
        let installed = self.fill(&target, &locked, packages.is_empty()).await;
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
        let python = target.join("bin").join("python").display().to_string();
        let mut errand = match &self.uv {
            Some(uv) => {
                let mut errand = self.uv(uv, "install").await?;
                errand.args.extend(words(&["--no-deps", "--require-hashes"]));
                errand.args.extend(words(&["--no-build", "--compile-bytecode", "--link-mode"]));
                errand.args.extend(["copy", "--python", &python].map(str::to_owned));
                errand
            }
            None => {
                let mut errand = self.pip().await?;
                errand.args.extend(["--python", &python].map(str::to_owned));
                errand.args.extend(words(&["install", "--no-deps", "--require-hashes"]));
                errand.args.extend(words(&["--progress-bar", "off", "--only-binary", ":all:"]));
                errand
            }
        };
        errand.args.extend(["-r", &lock.display().to_string()].map(str::to_owned));
        errand.write.push(target.to_owned());
        self.run(errand, "The packages cannot be installed").await
    }

    /// A command of uv that is like one of pip, with its way to packages. What stands in the tool's
    /// folder does not change where it looks.
    async fn uv(&self, program: &Path, command: &str) -> Result<Errand, Fault> {
        let mut errand = self.way(PythonTools::errand_of_uv).await?;
        errand.program = program.to_owned();
        let looks = std::mem::take(&mut errand.args);
        errand.args = words(&["--no-config", "--no-progress", "--color", "never", "--cache-dir"]);
        errand.args.push(self.work.join("uv").display().to_string());
        errand.args.extend(["pip", command].map(str::to_owned));
        errand.args.extend(looks);
        if let Some(wheels) = &self.needs.wanted.wheels {
            let wheels = self.needs.folder.join(wheels).display().to_string();
            errand.args.extend(["--no-index", "--find-links", &wheels].map(str::to_owned));
        }
        errand.read.push(program.to_owned());
        errand.read.extend(self.interpreter.readable());
        errand.write = vec![self.work.to_owned()];
        Ok(errand)
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
        let mut errand = self.way(PythonTools::errand).await?;
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

    /// The way to packages: where the machine's pip looks for them, and none to a folder of wheels.
    async fn way(&self, errand: fn(&PythonTools) -> Errand) -> Result<Errand, Fault> {
        if self.needs.wanted.wheels.is_some() {
            return Ok(Errand::default());
        }
        let found = PythonTools::find(&self.servers.options.search, self.needs.folder).await;
        let found =
            found.map_err(|fault| failed(fault.message.trim_end_matches('.').to_owned()))?;
        Ok(errand(&found))
    }

    async fn run(&self, mut errand: Errand, what: &str) -> Result<(), Fault> {
        errand.within = STEP_MAX;
        errand.steps = self.needs.steps.clone();
        run(self.servers, self.needs, errand, what).await
    }

    fn say(&self, line: &str) {
        self.needs.steps.say(line);
    }
}

/// How many packages there are, and which, as far as a line has room for them.
fn counted(packages: &[LockedPackage]) -> String {
    let named = packages.iter().take(NAMED_MAX);
    let named: Vec<_> = named.map(|it| format!("{} {}", it.name, it.version)).collect();
    let more = if packages.len() > NAMED_MAX { ", …" } else { "" };
    match packages {
        [] => "no packages".to_owned(),
        [one] => format!("{} {}", one.name, one.version),
        all => format!("{} packages: {}{more}", all.len(), named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_counted_and_the_first_are_named() {
        let package = |n: usize| LockedPackage {
            name: format!("p{n}"),
            version: "1".to_owned(),
            sha256: String::new(),
        };
        let packages: Vec<_> = (0..9).map(package).collect();
        assert_eq!(counted(&[]), "no packages");
        assert_eq!(counted(&packages[..1]), "p0 1");
        assert_eq!(counted(&packages[..2]), "2 packages: p0 1, p1 1");
        assert!(counted(&packages).ends_with("p7 1, …"));
    }
}
