//! Which files a program needs to begin: itself, its interpreter, and where those are installed.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wharf_vocab::SandboxLevel;

use crate::shim::message::Order;

/// Scripts whose interpreter is a script, and so on, are followed no deeper than the kernel does.
const INTERPRETERS_MAX: usize = 5;
/// The kernel reads no longer first line.
const FIRST_LINE_BYTES: u64 = 256;
/// Folders that hold a program together with everything that any program there needs.
const STORES: [&str; 2] = ["/nix/store", "/gnu/store"];
/// More links than this on one way are a loop.
const LINKS_MAX: usize = 40;

/// Files and folders that must be readable for the program to begin, as far as they are found.
/// What is not found is left for the kernel to complain about.
pub(super) fn needed(order: &Order, cwd: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut next = find(&order.program, order, cwd);
    for _ in 0..INTERPRETERS_MAX {
        let Some(program) = next else { break };
        add(&program, order, &mut paths);
        next = interpreter(&program, order, cwd, &mut paths);
    }
    paths
}

/// A program by its path, by its path from the working directory, or by its name.
fn find(program: &Path, order: &Order, cwd: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return Some(cwd.join(program));
    }
    let search = order.env.get("PATH").map_or("/bin:/usr/bin", String::as_str);
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(search).map(|dir| cwd.join(dir).join(program)).find(is_program)
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
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let first = PathBuf::from(words.next()?);
    if first.file_name().is_none_or(|name| name != "env") {
        return find(&first, order, cwd);
    }
    add(&first, order, paths);
    let is_name = |word: &&str| !word.starts_with('-') && !word.contains('=');
    find(Path::new(words.find(is_name)?), order, cwd)
}

/// Adds a program under each of its names, and where it is installed.
fn add(program: &Path, order: &Order, paths: &mut Vec<PathBuf>) {
    let mut name = program.to_owned();
    for _ in 0..LINKS_MAX {
        paths.extend(installed_in(&name, order));
        let Ok(target) = name.read_link() else { break };
        name = name.parent().unwrap_or(Path::new("/")).join(target);
    }
    if let Ok(real) = program.canonicalize() {
        paths.extend(installed_in(&real, order));
    }
    paths.push(program.to_owned());
}

/// The folder above a program's `bin`, if it is a place for programs rather than for people.
fn installed_in(program: &Path, order: &Order) -> Option<PathBuf> {
    if let Some(store) = STORES.iter().find(|store| program.starts_with(store)) {
        return Some(PathBuf::from(store));
    }
    let bin = program.parent()?;
    let prefix = bin.parent()?.canonicalize().ok()?;
    if bin.file_name()? != "bin" || prefix == Path::new("/") {
        return None;
    }
    if prefix.starts_with("/usr") {
        // Under `standard` all of this is there anyway.
        let strict = order.fence.level == SandboxLevel::Strict;
        return (strict && prefix != Path::new("/usr")).then(|| prefix.join("lib"));
    }
    is_for_programs(&prefix, order).then_some(prefix)
}

fn is_for_programs(prefix: &Path, order: &Order) -> bool {
    let homes = [Path::new("/home"), Path::new("/Users"), Path::new("/var/home")];
    let is_home = prefix == Path::new("/root")
        || prefix.file_name().is_some_and(|name| name == ".local")
        || prefix.parent().is_some_and(|parent| homes.contains(&parent))
        || homes.contains(&prefix);
    let holds = |path: &PathBuf| {
        path.starts_with(prefix) || path.canonicalize().is_ok_and(|path| path.starts_with(prefix))
    };
    let fence = &order.fence;
    let private = order.private_dirs.iter().chain(&fence.sockets);
    let private = private.chain(&fence.homes).chain(&fence.hidden);
    !is_home && !private.into_iter().any(holds)
}
