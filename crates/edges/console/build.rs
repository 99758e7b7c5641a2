//! Lists what `console/dist` and `docs` hold, so that it becomes a part of the program. It builds nothing: a
//! folder that is not there is an empty list.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

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
    fs::write(out.join("docs.rs"), docs(&own.join("../../../docs"), &mut cargo)?)
}

/// What people read about errors and about the parts that the console shows.
fn docs(folder: &Path, cargo: &mut impl io::Write) -> io::Result<String> {
    let mut names = Vec::new();
    for place in ["errors", "."] {
        let folder = folder.join(place);
        if !folder.is_dir() {
            continue;
        }
        writeln!(cargo, "cargo::rerun-if-changed={}", folder.canonicalize()?.display())?;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path().canonicalize()?;
            let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
            if let (Some(stem), Some("md")) = (stem, path.extension().and_then(|it| it.to_str())) {
                let name = if place == "." { stem } else { format!("{place}/{stem}") };
                names.push((name, path));
            }
        }
    }
    names.sort();
    let rows = names.iter().filter_map(|(name, path)| {
        Some(format!("    ({name:?}, include_str!({:?})),\n", path.to_str()?))
    });
    Ok(format!("&[\n{}]\n", rows.collect::<String>()))
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
