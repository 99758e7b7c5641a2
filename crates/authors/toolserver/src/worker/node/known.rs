//! What is known of the files beside a handler before Node reads them: their text without types, or
//! why that cannot be had, which is told when somebody imports them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{KNOWN, is_for_node, strip};

/// Files that are looked at, and how large they may be, each and together.
const FILES_MAX: usize = 2_000;
const FILE_BYTES_MAX: u64 = 2 << 20;
const BYTES_MAX: u64 = 32 << 20;
/// Folders in which no sources of the handler are.
const LEFT_OUT: [&str; 6] = ["node_modules", "dist", "target", "venv", "__pycache__", "coverage"];

/// What is written for Node.
#[derive(Debug, Serialize)]
struct KnownFolder {
    folder: PathBuf,
    files: BTreeMap<String, KnownFile>,
}

#[derive(Debug, Default, Serialize)]
struct KnownFile {
    /// The file with its text without types.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<PathBuf>,
    module: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

/// Writes down what is known of a handler and of all below its folder.
pub(super) fn write(handler: &Path, to: &Path) -> io::Result<()> {
    let folder = handler.parent().unwrap_or(Path::new("/"));
    let texts = to.join("texts");
    std::fs::create_dir_all(&texts)?;
    let mut files = BTreeMap::new();
    for (number, path) in sources(handler, folder).into_iter().enumerate() {
        let Ok(source) = std::fs::read_to_string(&path) else { continue };
        let has_types = path.extension().is_some_and(|end| end.to_string_lossy().ends_with("ts"));
        let known = match strip::strip(&path, &source) {
            // A plain file is read where it is.
            Ok(_) if !has_types => continue,
            Ok(stripped) => {
                let text = texts.join(format!("{number}.js"));
                std::fs::write(&text, stripped.text)?;
                KnownFile { text: Some(text), module: stripped.is_module, ..KnownFile::default() }
            }
            Err(error) => {
                KnownFile { why: Some(error.why), line: Some(error.line), ..KnownFile::default() }
            }
        };
        files.insert(path.display().to_string(), known);
    }
    let known = serde_json::to_vec(&KnownFolder { folder: folder.to_owned(), files })?;
    std::fs::write(to.join(KNOWN), known)
}

/// The handler first, then the others; no more than fit.
fn sources(handler: &Path, folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![handler.to_owned()];
    let (mut open, mut bytes) = (vec![folder.to_owned()], 0);
    while let Some(folder) = open.pop() {
        let Ok(inside) = std::fs::read_dir(&folder) else { continue };
        for entry in inside.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            // Links are left out: what counts is what they lead to.
            let Ok(meta) = entry.metadata() else { continue };
            if name.starts_with('.') || path == handler {
                continue;
            }
            if meta.is_dir() && !LEFT_OUT.contains(&&*name) {
                open.push(path);
            } else if meta.is_file() && is_source(&path) && meta.len() <= FILE_BYTES_MAX {
                bytes += meta.len();
                if found.len() >= FILES_MAX || bytes > BYTES_MAX {
                    return found;
                }
                found.push(path);
            }
        }
    }
    found
}

fn is_source(path: &Path) -> bool {
    let stem = path.file_stem().map(Path::new).and_then(Path::extension);
    is_for_node(path) && stem != Some(OsStr::new("d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_a_handler_are_known_and_those_of_packages_are_not() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |name: &str| dir.path().join("tool").join(name);
        for (name, text) in [
            ("handler.ts", "export const a: number = 1;"),
            ("lib/more.mts", "enum E { A }"),
            ("plain.js", "export const a = 1;"),
            ("broken.js", "\nconst = 1;"),
            ("types.d.ts", "declare const x: number;"),
            ("node_modules/x/index.ts", "export {};"),
            (".hidden/x.ts", ""),
            ("read.me", ""),
        ] {
            std::fs::create_dir_all(at(name).parent().expect("a folder")).expect("made");
            std::fs::write(at(name), text).expect("written");
        }
        write(&at("handler.ts"), dir.path()).expect("written");
        let known = std::fs::read(dir.path().join(KNOWN)).expect("there");
        let known: serde_json::Value = serde_json::from_slice(&known).expect("JSON");
        let files = known["files"].as_object().expect("an object");
        let names: Vec<_> = files.keys().map(|path| Path::new(path).file_name()).collect();
        let expected = ["broken.js", "handler.ts", "more.mts"];
        assert_eq!(names, expected.map(|name| Some(OsStr::new(name))));
        let of = |name: &str| &files[&at(name).display().to_string()];
        let text = of("handler.ts")["text"].as_str().expect("a file");
        assert_eq!(std::fs::read_to_string(text).expect("there"), "export const a         = 1;");
        assert_eq!(of("broken.js")["line"], 2);
        assert!(of("lib/more.mts")["why"].as_str().is_some_and(|why| why.contains("an enum")));
    }
}
