//! Which files a program needs to begin: itself, its interpreter, and where those are installed.
//!
//! The owner approved the program, but nobody looked at a script's first line. So that line opens
//! next to nothing: a real program that it names, and the parts of its installation that programs
//! need, never a file of any other kind and never a folder of people.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use wharf_vocab::SandboxLevel;

use crate::shim::message::Order;

/// Scripts whose interpreter is a script, and so on, are followed no deeper than the kernel does.
const INTERPRETERS_MAX: usize = 5;
/// The kernel reads no longer first line.
const FIRST_LINE_BYTES: u64 = 256;
/// Folders that hold a program together with everything that any program there needs.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];
/// What belongs to the system itself and holds nobody's secrets.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/sbin", "/lib"];
/// Programs that look another one up by its name.
const LOOKS_UP: [&str; 2] = ["/usr/bin/env", "/bin/env"];
/// What a program needs of its installation.
const PARTS: [&str; 5] = ["bin", "lib", "lib64", "libexec", "pyvenv.cfg"];
/// What it needs besides, if there is the file after it.
const PARTS_IF: [(&str, &str); 2] = [("conf", "lib/modules"), ("jre", "jre/lib/rt.jar")];
/// More links than this on one way are a loop.
const LINKS_MAX: usize = 40;

/// Files and folders that must be readable for the program to begin, and for those that it starts,
/// as far as they are found. What is not found is left for the kernel to complain about.
pub(super) fn needed(order: &Order, cwd: &Path, is_shown: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for program in [&order.program].into_iter().chain(&order.starts) {
        let mut next = find(program, order, cwd);
        for depth in 0..INTERPRETERS_MAX {
            let Some(program) = next.filter(|program| is_program(program)) else { break };
            let Ok(real) = program.canonicalize() else { break };
            let is_open =
                is_shown(&real) || SYSTEM.iter().chain(&STORES).any(|dir| real.starts_with(dir));
            // A script of somebody else's may hold anything; only the owner can name one.
            if depth > 0 && !is_open && !is_machine_code(&real) {
                break;
            }
            add(&program, &real, order, &mut paths);
            next = interpreter(&program, order, cwd, &mut paths);
        }
    }
    paths
}

/// A program by its path, by its path from the working directory, or by its name.
fn find(program: &Path, order: &Order, cwd: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return Some(cwd.join(program));
    }
    let search = order.env.get("PATH").map_or("/bin:/usr/bin", String::as_str);
    std::env::split_paths(search)
        .map(|dir| cwd.join(dir).join(program))
        .find(|path| is_program(path))
}

/// Whether it is a file that may be executed, and no folder, pipe or device.
fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn is_machine_code(path: &Path) -> bool {
    let mut start = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == *b"\x7fELF"
}

/// What a script's first line names, also by way of `env`.
fn interpreter(
    script: &Path,
    order: &Order,
    cwd: &Path,
    paths: &mut Vec<PathBuf>,
) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(script).ok()?.take(FIRST_LINE_BYTES).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let (first, name) = named(line)?;
    let Some(name) = name else { return Some(first.to_owned()) };
    paths.push(first.to_owned());
    find(name, order, cwd)
}

/// The path that a first line names and, if that looks another program up, that one's name.
/// Lines in any other form name nothing: what `env` would make of its options is its business.
fn named(line: &str) -> Option<(&Path, Option<&Path>)> {
    let mut words = line.split_ascii_whitespace();
    let first = Path::new(words.next()?);
    if !first.is_absolute() {
        return None;
    }
    if !LOOKS_UP.iter().any(|path| first == Path::new(path)) {
        return Some((first, None));
    }
    let name = match (words.next()?, words.next()) {
        ("-S", Some(name)) => name,
        (name, None) => name,
        // The kernel hands all of it over as one word, which no program is named.
        _ => return None,
    };
    let is_bare = !name.starts_with('-') && !name.contains(['/', '=', '$', '\\', '"', '\'']);
    (is_bare && name != "." && name != "..").then(|| (first, Some(Path::new(name))))
}

/// Adds a program under each of its names, and where it is installed.
fn add(program: &Path, real: &Path, order: &Order, paths: &mut Vec<PathBuf>) {
    let mut name = program.to_owned();
    for _ in 0..LINKS_MAX {
        let prefix = name.parent().and_then(Path::parent);
        // A virtual environment only links to the program it was made of.
        if prefix.is_some_and(|prefix| prefix.join("pyvenv.cfg").is_file()) {
            paths.extend(installed_with(&name, order));
        }
        let Ok(target) = name.read_link() else { break };
        name = name.parent().unwrap_or(Path::new("/")).join(target);
    }
    paths.extend(installed_with(real, order));
    paths.push(program.to_owned());
}

/// What belongs to a program: parts of the folder above its `bin`, if that is a place for
/// programs rather than for people.
fn installed_with(program: &Path, order: &Order) -> Vec<PathBuf> {
    if let Some(store) = STORES.iter().find(|store| program.starts_with(store)) {
        return vec![PathBuf::from(store)];
    }
    let Some(bin) = program.parent().filter(|bin| bin.ends_with("bin")) else { return Vec::new() };
    let prefix = bin.parent().and_then(|prefix| prefix.canonicalize().ok());
    let Some(prefix) = prefix.filter(|prefix| prefix != Path::new("/")) else { return Vec::new() };
    if prefix.starts_with("/usr") {
        // Under `standard` all of this is there anyway.
        let strict = order.fence.level == SandboxLevel::Strict;
        let more = strict && prefix != Path::new("/usr");
        return more.then(|| prefix.join("lib")).into_iter().collect();
    }
    if !is_for_programs(&prefix, order) {
        return Vec::new();
    }
    let more = PARTS_IF.iter().filter(|(_, sign)| prefix.join(sign).is_file());
    PARTS.iter().chain(more.map(|(part, _)| part)).map(|part| prefix.join(part)).collect()
}

fn is_for_programs(prefix: &Path, order: &Order) -> bool {
    let homes = [Path::new("/home"), Path::new("/Users"), Path::new("/var/home")];
    let is_home = prefix == Path::new("/root")
        || prefix.file_name().is_some_and(|name| name == ".local")
        || prefix.parent().is_some_and(|parent| homes.contains(&parent))
        || homes.contains(&prefix)
        || is_somebodys_home(prefix);
    let holds = |path: &PathBuf| {
        path.starts_with(prefix) || path.canonicalize().is_ok_and(|path| path.starts_with(prefix))
    };
    let fence = &order.fence;
    let own = order.private_dirs.iter().chain(&order.given_dirs);
    let private = own.chain(&fence.sockets);
    let private = private.chain(&fence.homes).chain(&fence.hidden);
    !is_home && is_of_the_machine_or_ours(prefix) && !private.into_iter().any(holds)
}

fn is_somebodys_home(path: &Path) -> bool {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    users.lines().filter_map(|line| line.split(':').nth(5)).any(|home| Path::new(home) == path)
}

/// In a namespace of ours all users but us may look alike; then those are let pass as well.
fn is_of_the_machine_or_ours(path: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map(|data| data.uid());
    let (Ok(this), Ok(machine)) = (owner(path), owner(Path::new("/usr"))) else { return false };
    this == machine || this == rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_only_plain_first_lines_name_an_interpreter() {
        let env = Path::new("/usr/bin/env");
        let python = Some(Path::new("python3"));
        assert_eq!(named(" /usr/bin/env python3"), Some((env, python)));
        assert_eq!(named("/usr/bin/env -S python3 -u"), Some((env, python)));
        assert_eq!(named("/opt/x/bin/ruby -w"), Some((Path::new("/opt/x/bin/ruby"), None)));
        let nothing = [
            "",
            "python3",
            "../bin/python3",
            "/usr/bin/env",
            "/usr/bin/env -S",
            "/usr/bin/env -u /a/bin/x python3",
            "/usr/bin/env -S -u /a/bin/x python3",
            "/usr/bin/env -S --unset=/a/bin/x python3",
            "/usr/bin/env -S A=b python3",
            "/usr/bin/env -S /a/bin/x",
            "/usr/bin/env /a/bin/x",
            "/usr/bin/env -S ${HOME}",
            "/usr/bin/env -S ..",
            "/usr/bin/env python3 -u",
        ];
        for line in nothing {
            assert_eq!(named(line), None, "{line}");
        }
    }
}
