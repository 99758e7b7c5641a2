//! Lists what `console/dist` and `docs` hold, so that it becomes a part of the program. It builds nothing: a
//! folder that is not there is an empty list.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use miniz_oxide::deflate::compress_to_vec;

fn main() -> io::Result<()> {
    let mut cargo = io::stdout();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = own.join("../../../console/dist");
    let mut files = Vec::new();
    // A folder that cargo is told to watch and that is not there would be built for every time;
    // `make console` touches this file once it has made the folder.
    if dist.join("index.html").is_file() {
        let dist = dist.canonicalize()?;
        writeln!(cargo, "cargo::rerun-if-changed={}", dist.display())?;
        list(&dist, &dist, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (name, path) in files {
        table.push_str(&format!("    ({name:?}, include_bytes!({path:?})),\n"));
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("dist.rs"), table)?;
    fs::write(out.join("docs.rs"), docs(&own.join("../../.."), &out, &mut cargo)?)
}

/// Documents that lie beside the code.
const BESIDE: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "sdks/typescript/README.md",
];

/// As small as it gets; it is done once for each change of a document.
const LEVEL: u8 = 9;

/// All documents, packed into a file: where each lies in the repository, and how long it is.
fn docs(repo: &Path, out: &Path, cargo: &mut impl io::Write) -> io::Result<String> {
    let mut files = Vec::new();
    let docs = repo.join("docs");
    if docs.is_dir() {
        let docs = docs.canonicalize()?;
        list(&docs, &docs, &mut files)?;
        files.retain(|(name, _)| name.ends_with(".md"));
        for (name, _) in &mut files {
            name.insert_str(0, "docs/");
        }
        for folder in ["", "errors", "decisions", "protocols"] {
            writeln!(cargo, "cargo::rerun-if-changed={}", docs.join(folder).display())?;
        }
    }
    for name in BESIDE {
        let path = repo.join(name);
        if let Some(path) = path.canonicalize().ok().as_deref().and_then(Path::to_str) {
            writeln!(cargo, "cargo::rerun-if-changed={path}")?;
            files.push((name.to_owned(), path.to_owned()));
        }
    }
    files.sort();
    let (mut rows, mut texts) = (String::from("&[\n"), String::new());
    for (name, path) in &files {
        let text = fs::read_to_string(path)?;
        rows.push_str(&format!("    ({name:?}, {}),\n", text.len()));
        texts.push_str(&text);
    }
    // All in one, since they have most of their words in common.
    fs::write(out.join("docs.deflate"), compress_to_vec(texts.as_bytes(), LEVEL))?;
    Ok(rows + "]\n")
}

fn list(top: &Path, folder: &Path, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(top, &path, files)?;
            continue;
        }
        let name = path.strip_prefix(top).ok().and_then(|name| name.to_str());
        if let (Some(name), Some(whole)) = (name, path.to_str()) {
            files.push((name.replace('\\', "/"), whole.to_owned()));
        }
    }
    Ok(())
}
