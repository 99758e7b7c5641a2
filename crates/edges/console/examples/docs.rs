//! Writes the documentation into a folder, as pages that any web server can serve: `make docs`.

use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let Some(folder) = env::args_os().nth(1) else {
        return Err(io::Error::other("say which folder to write the pages into"));
    };
    let folder = Path::new(&folder);
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let written = wharf_console::written();
    // What a page was called before must not stay.
    if folder.join("search.json").is_file() {
        fs::remove_dir_all(folder)?;
    }
    for (path, text) in &written.files {
        fs::write(made(&folder.join(path))?, text)?;
    }
    for (path, picture) in &written.pictures {
        fs::copy(repo.join(picture), made(&folder.join(path))?)?;
    }
    let count = written.files.iter().filter(|(path, _)| path.ends_with(".html")).count();
    writeln!(io::stdout(), "{count} pages are in {}", folder.display())
}

/// A path whose folder is there.
fn made(path: &Path) -> io::Result<&Path> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(path)
}
