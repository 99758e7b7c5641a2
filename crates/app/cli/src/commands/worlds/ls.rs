//! `wharf worlds ls`, which is also `wharf artifacts list`.

use wharf_client::{FileEntry, FileFilter, prefix};
use wharf_wire::rest_v1::Artifact;

use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::{amount, moment, plain};

/// Lines are written in blocks of about this size.
const BLOCK_BYTES: usize = 32 * 1024;

/// What `wharf worlds ls` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds ls lab
  wharf worlds ls lab /out/ -l
  wharf worlds ls lab -r --local
  wharf worlds ls lab -r --json

Without -r, each folder is summed up in one line. Local files of a run are below /@RUN/.")]
pub(crate) struct WorldsLsArgs {
    /// The world's id
    world: String,
    /// Only paths that begin with this; end it with / to list a folder
    prefix: Option<String>,
    /// Include local files of runs
    #[arg(long)]
    local: bool,
    /// Also show the hash and the run that wrote each file
    #[arg(short, long)]
    long: bool,
    /// List files in subfolders
    #[arg(short, long)]
    recursive: bool,
}

/// Lists a world's files.
pub(super) async fn run(args: WorldsLsArgs, context: &Context) -> Result<Exit> {
    let prefix = prefix(args.prefix.as_deref())?;
    let filter =
        FileFilter { world: args.world, prefix, local: args.local, recursive: args.recursive };
    stream(filter, args.long, context).await
}

/// Lists all of a world's files, each for itself.
pub(crate) async fn everything(
    world: String,
    typed: Option<&str>,
    local: bool,
    context: &Context,
) -> Result<Exit> {
    let prefix = prefix(typed)?;
    stream(FileFilter { world, prefix, local, recursive: true }, true, context).await
}

async fn stream(filter: FileFilter, long: bool, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let world = plain::line(&filter.world);
    let asked = filter.prefix.clone();
    let mut listing = client.worlds().files(filter);
    let mut text = String::new();
    let mut count: u64 = 0;
    while let Some(entry) = listing.next().await? {
        match output.is_json() {
            true => {
                text.push(if count == 0 { '[' } else { ',' });
                text.push_str(&plain::json(&json_of(&entry)?));
            }
            false => text.push_str(&line_of(&entry, long, output)),
        }
        count += 1;
        if text.len() >= BLOCK_BYTES {
            output.text(&text)?;
            text.clear();
        }
    }
    match (output.is_json(), count) {
        (true, 0) => text.push_str("[]\n"),
        (true, _) => text.push_str("]\n"),
        (false, 0) => match asked {
            Some(asked) => {
                output.note(&format!("nothing in {world} begins with {}", plain::line(&asked)))
            }
            None => output.note(&format!(
                "{world} holds no files; put one in with: wharf worlds put {world} /PATH FILE"
            )),
        },
        _ => {}
    }
    output.text(&text)?;
    Ok(Exit::Done)
}

fn json_of(entry: &FileEntry) -> Result<String> {
    let text = match entry {
        FileEntry::File(file) => serde_json::to_string(file),
        FileEntry::Folder(folder) => serde_json::to_string(folder),
    };
    text.map_err(|error| CliError::usage(format!("cannot write JSON: {error}")))
}

fn line_of(entry: &FileEntry, long: bool, output: Output) -> String {
    let (bytes, at, path) = match entry {
        FileEntry::File(file) => (file.bytes, file.at, plain::line(&file.path)),
        FileEntry::Folder(folder) => (folder.bytes, folder.at, plain::line(&folder.folder)),
    };
    let at = at.map(moment::clock).unwrap_or_default();
    let about = match entry {
        FileEntry::File(file) if long => about(file),
        FileEntry::Folder(folder) if long => {
            let s = if folder.files == 1 { "" } else { "s" };
            format!("{:16}  {:36}  ", "", format!("{} file{s}", folder.files))
        }
        _ => String::new(),
    };
    let path = match entry {
        FileEntry::File(_) => path,
        FileEntry::Folder(_) => output.out_paint().strong(&path),
    };
    format!("{:>9}  {at:19}  {about}{path}\n", amount::about(bytes))
}

/// The hash and who wrote the file.
fn about(file: &Artifact) -> String {
    let hash = file.b3.as_deref().map(short).unwrap_or_default();
    let run = file.run_id.as_deref().map_or_else(|| "put by hand".to_owned(), plain::line);
    format!("{hash:16}  {run:36}  ")
}

/// As much of a hash as tells files apart.
pub(crate) fn short(hash: &str) -> String {
    hash.chars().filter(char::is_ascii_hexdigit).take(16).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output;

    #[test]
    fn a_line_cannot_be_broken_by_a_path() {
        let file: Artifact = output::typed(json!({
            "world": "w", "path": "/a\u{1b}[2J\n/b", "bytes": 1_536, "b3": "0123456789abcdef0123",
            "media_type": "text/plain", "run_id": "r1", "key": "text", "direction": "out",
        }))
        .expect("a file");
        let line = line_of(&FileEntry::File(file.clone()), false, Output::new(false));
        assert_eq!(line, format!("  1.5 KiB  {:19}  /a /b\n", ""));
        let line = line_of(&FileEntry::File(file), true, Output::new(false));
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words, ["1.5", "KiB", "0123456789abcdef", "r1", "/a", "/b"]);
    }
}
