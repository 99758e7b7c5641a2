//! A command as somebody typed it, made into one that starts the same whatever the core's own
//! surroundings are, with what it must be able to read.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use wharf_domain::Manifest;
use wharf_domain::permission::{PathGlob, Permission};
use wharf_domain::provider::McpServing;
use wharf_hosting::PATH;
use wharf_hosting::packages::is_system;
use wharf_vocab::{Code, Fault, shown};

/// What makes a folder the root of a project, whose other parts a script needs.
const PROJECT_SIGNS: [&str; 4] = ["package.json", "pyproject.toml", "setup.py", "node_modules"];
/// How far above a script the root of its project is looked for.
const LEVELS_MAX: usize = 4;
/// The kernel reads no longer first line.
const FIRST_LINE_BYTES: u64 = 256;
/// Programs that fetch what they run, and what to say instead.
const FETCHERS: &[(&str, &str)] = &[
    ("npx", "npm"),
    ("bunx", "npm"),
    ("pnpx", "npm"),
    ("npm", "npm"),
    ("pnpm", "npm"),
    ("yarn", "npm"),
    ("uvx", "pypi"),
    ("pipx", "pypi"),
    ("uv", "pypi"),
];
/// Programs that run something outside of the fence.
const CONTAINERS: &[&str] = &["docker", "podman", "nerdctl"];

/// Where a command was typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// The working directory.
    pub(crate) cwd: Option<PathBuf>,
    /// Where programs are looked for, first to last; those of the core and of launches come after.
    pub(crate) search: Vec<PathBuf>,
    /// The owner's home, which is never opened as a whole.
    pub(crate) user_home: Option<PathBuf>,
    /// Folders that no process ever sees.
    pub(crate) hidden: Vec<PathBuf>,
}

/// Makes the program and the script of a command absolute and adds the permissions to read what
/// they need. It blocks.
pub(crate) fn settle(manifest: &mut Manifest, around: &Surroundings) -> Result<(), Fault> {
    let is_command =
        manifest.mcp().is_some_and(|it| it.how == McpServing::Command && it.package.is_none());
    if !is_command {
        return Ok(());
    }
    let entry = &mut manifest.entrypoint;
    let program = around.find(&entry.program)?;
    if let Some(program) = &program {
        entry.program = program.display().to_string();
    }
    let mut read = Vec::new();
    if let Some(program) = program {
        if let Some(interpreter) = looked_up(&program).filter(|name| !is_usual(name)) {
            let found = around.find(&interpreter)?;
            let script = std::mem::take(&mut entry.program);
            entry.program = found.map_or(interpreter, |found| found.display().to_string());
            entry.args.insert(0, script);
        }
        read.extend(around.project_of(&program));
    }
    for arg in &mut entry.args {
        let Some(script) = around.named(arg) else { continue };
        if !script.is_file() {
            // What a server does with a folder is for its owner to say.
            *arg = script.display().to_string();
            continue;
        }
        let folder = around.project_of(&script);
        let real = std::fs::canonicalize(&script).unwrap_or_else(|_| script.clone());
        // A link that leads out of what is shown would lead nowhere.
        let is_shown = folder.as_ref().is_some_and(|folder| script.starts_with(folder));
        let path = if is_shown || is_system(&script) { script } else { real };
        *arg = path.display().to_string();
        read.extend(folder);
    }
    read.sort_unstable();
    read.dedup();
    for path in read {
        let below = if path.is_dir() { "/**" } else { "" };
        let permission = format!("filesystem:read:{}{below}", path.display());
        let covered = |has: &String| match (Permission::parse(has), Permission::parse(&permission))
        {
            (Ok(has), Ok(wanted)) => has.covers(&wanted),
            _ => false,
        };
        // A path that no permission can name is told of in a hint.
        if Permission::parse(&permission).is_ok() && !manifest.permissions.iter().any(covered) {
            manifest.permissions.push(permission);
        }
    }
    Ok(())
}

/// What an owner should know before approving a server, one sentence each. It blocks.
pub(crate) fn hints(manifest: &Manifest) -> Vec<String> {
    let Some(details) = manifest.mcp().filter(|details| details.how == McpServing::Command) else {
        return Vec::new();
    };
    let entry = &manifest.entrypoint;
    let name = Path::new(&entry.program).file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let mut hints = Vec::new();
    if details.package.is_none() {
        hints.extend(fetches(name, &entry.args));
        hints.extend(CONTAINERS.contains(&name).then(|| {
            format!(
                "{name} starts what is outside of the fence; it takes --sandbox none, and then \
                 nothing keeps it from this machine."
            )
        }));
    }
    let permissions: Vec<_> =
        manifest.permissions.iter().filter_map(|text| Permission::parse(text).ok()).collect();
    let sees = |path: &str| permissions.iter().any(|has| has.allows_read(path));
    let paths = entry.args.iter().filter(|arg| arg.starts_with('/') && Path::new(arg).exists());
    for path in paths.filter(|path| !is_system(Path::new(path)) && !sees(path)).take(5) {
        let is_folder = Path::new(path).is_dir();
        let below = if is_folder { "/**" } else { "" };
        hints.push(match PathGlob::parse(&format!("{path}{below}")) {
            Ok(glob) => format!(
                "It is told of {path} and cannot see it; add --permission filesystem:read:{glob}, \
                 or filesystem:write:{glob} if it may change it."
            ),
            Err(why) => format!("It is told of {} and cannot see it: it {why}.", shown(path, 300)),
        });
    }
    hints
}

/// What to say of a program that fetches what it runs.
fn fetches(name: &str, args: &[String]) -> Option<String> {
    let (_, kind) = FETCHERS.iter().find(|(fetcher, _)| *fetcher == name)?;
    let words = || args.iter().filter(|arg| !arg.starts_with('-'));
    let verbs = ["exec", "x", "dlx", "run", "tool"];
    let needs_verb = matches!(name, "npm" | "pnpm" | "yarn" | "pipx" | "uv");
    if needs_verb && !words().next().is_some_and(|word| verbs.contains(&word.as_str())) {
        return None;
    }
    let package = words().find(|word| !verbs.contains(&word.as_str()));
    let (option, sign) = if *kind == "npm" { ("--npm", "@") } else { ("--pypi", "==") };
    let package = package.map_or("PACKAGE", |package| {
        let bare = match package.rfind('@') {
            Some(at) if at > 0 => &package[..at],
            _ => package,
        };
        bare.split("==").next().unwrap_or(bare)
    });
    Some(format!(
        "{name} fetches code when it starts, which the fence does not let it do; add it with \
         {option} {}{sign}VERSION, which installs it once.",
        shown(package, 200)
    ))
}

impl Surroundings {
    /// The program of a command by its whole path; `None` if a launch finds it by its name, or
    /// lies in the server's own folder.
    fn find(&self, program: &str) -> Result<Option<PathBuf>, Fault> {
        let path = Path::new(program);
        if program.contains('/') {
            let Some(cwd) = &self.cwd else { return Ok(path.is_absolute().then(|| path.into())) };
            let path = plain(&cwd.join(path));
            return match is_program(&path) {
                true => Ok(Some(path)),
                false => Err(no_program(program, "it is not there or not executable")),
            };
        }
        if let Some(found) = look_for(program, self.search.iter().cloned()) {
            return Ok((!is_usual(program) || !is_system(&found)).then_some(found));
        }
        if is_usual(program) {
            return Ok(None);
        }
        let own = std::env::var_os("PATH").unwrap_or_default();
        let found = look_for(program, std::env::split_paths(&own));
        found.map(Some).ok_or_else(|| no_program(program, "no folder of PATH has it"))
    }

    /// The file or folder that an argument names, if it does. A word without a dot or a slash is
    /// no path, whatever happens to have its name.
    fn named(&self, arg: &str) -> Option<PathBuf> {
        if arg.starts_with('-') || !arg.contains(['/', '.']) {
            return None;
        }
        let path = match &self.cwd {
            Some(cwd) => plain(&cwd.join(arg)),
            None => Path::new(arg).is_absolute().then(|| plain(Path::new(arg)))?,
        };
        path.exists().then_some(path)
    }

    /// What a script needs around it: all packages beside it, or its project, or itself alone.
    /// `None` if it lies where every program can read. Links on the way are followed.
    fn project_of(&self, script: &Path) -> Option<PathBuf> {
        let real = std::fs::canonicalize(script).ok()?;
        if is_system(&real) {
            return None;
        }
        let packages = real.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
        if let Some(packages) = packages {
            return Some(packages.to_owned());
        }
        let folders = real.ancestors().skip(1).take(LEVELS_MAX);
        let is_project = |folder: &&Path| PROJECT_SIGNS.iter().any(|it| folder.join(it).exists());
        let project = folders.take_while(|folder| self.may_be_shown(folder)).find(is_project);
        let folder = real.parent().filter(|folder| self.may_be_shown(folder));
        let is_script = !is_machine_code(&real);
        Some(project.or(folder.filter(|_| is_script)).unwrap_or(&real).to_owned())
    }

    /// Whether a folder is one of a program rather than of people or of the core.
    fn may_be_shown(&self, folder: &Path) -> bool {
        let own = self.user_home.iter().chain(&self.hidden);
        let shared = ["/", "/home", "/root", "/tmp", "/var", "/var/tmp", "/opt", "/srv", "/mnt"];
        let holds = |kept: &PathBuf| {
            let real = std::fs::canonicalize(kept).unwrap_or_else(|_| kept.clone());
            real.starts_with(folder)
        };
        !shared.iter().any(|path| folder == Path::new(path))
            && folder.parent() != Some(Path::new("/home"))
            && !own.into_iter().any(holds)
    }
}

/// Whether a name is found where launches look for programs.
fn is_usual(name: &str) -> bool {
    look_for(name, std::env::split_paths(PATH)).is_some()
}

fn look_for(name: &str, mut folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.find_map(|folder| {
        let path = folder.join(name);
        (folder.is_absolute() && is_program(&path)).then_some(path)
    })
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The name of the program that a script wants to be looked up.
fn looked_up(script: &Path) -> Option<String> {
    let start = beginning(script)?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    words.next().filter(|first| first.ends_with("/env"))?;
    let name = words.find(|word| *word != "-S")?;
    let is_bare = !name.starts_with('-') && !name.contains(['/', '=']);
    is_bare.then(|| name.to_owned())
}

fn is_machine_code(path: &Path) -> bool {
    beginning(path).is_some_and(|start| start.starts_with(b"\x7fELF"))
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(FIRST_LINE_BYTES).read_to_end(&mut start).ok()?;
    Some(start)
}

/// A path without segments that only go back and forth, whatever there is.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

fn no_program(name: &str, why: &str) -> Fault {
    let message = format!("The program {} cannot be started: {why}.", shown(name, 300));
    Fault::new(Code::AgentManifestInvalid, message).with("field", "command")
}
