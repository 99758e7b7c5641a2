//! `wharf worlds du`.

use serde_json::json;
use wharf_client::{FileEntry, FileFilter};

use crate::commands::{Context, Exit, Result, Table};
use crate::progress::Spinner;
use crate::{amount, plain};

/// Shows how much a world holds, by its topmost folders.
pub(super) async fn run(world: &str, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let spinner = Spinner::new(output, &format!("adding up {}", plain::line(world)));
    let usage = client.worlds().usage(world).await?;
    let filter = FileFilter { world: world.to_owned(), ..FileFilter::default() };
    let mut listing = client.worlds().files(filter);
    let mut folders = Vec::new();
    let mut loose = (0_u64, 0_u64);
    while let Some(entry) = listing.next().await? {
        match entry {
            FileEntry::Folder(folder) => folders.push(folder),
            FileEntry::File(file) => loose = (loose.0 + 1, loose.1.saturating_add(file.bytes)),
        }
    }
    drop(spinner);
    if output.is_json() {
        output.json(&json!({"usage": usage, "folders": folders,
            "outside_folders": {"files": loose.0, "bytes": loose.1}}))?;
        return Ok(Exit::Done);
    }
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.bytes));
    let mut table = Table::new(output, &["SIZE", "FILES", "FOLDER"]).keep_whole(&[0, 1]);
    for folder in &folders {
        table.row([&amount::about(folder.bytes), &folder.files.to_string(), &folder.folder]);
    }
    for (name, files, bytes) in [
        ("(in no folder)", loose.0, loose.1),
        ("(local to runs)", usage.local_files, usage.local_bytes),
    ] {
        if files > 0 {
            table.row([&amount::about(bytes), &files.to_string(), name]);
        }
    }
    if usage.files > 0 {
        output.text(&table.text())?;
    }
    output.line(&total(usage.files, usage.bytes))?;
    Ok(Exit::Done)
}

fn total(files: u64, bytes: u64) -> String {
    match files {
        0 => "no files".to_owned(),
        1 => format!("in all: 1 file with {}", amount::about(bytes)),
        files => format!("in all: {files} files with {}", amount::about(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_a_sentence() {
        let told = [total(0, 0), total(1, 2), total(2, 1_536)];
        assert_eq!(told, ["no files", "in all: 1 file with 2 B", "in all: 2 files with 1.5 KiB"]);
    }
}
