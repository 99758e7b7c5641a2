//! `wharf audit export`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use wharf_client::{AuditFilter, Client};

use crate::commands::{CliError, Context, Exit, Result};

/// What `wharf audit export` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf audit export > audit.jsonl
  wharf audit export --out audit.jsonl
  wharf audit export --event 'grant.*' --since 30d --out tokens.jsonl")]
pub(crate) struct AuditExportArgs {
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    filter: super::FilterArgs,
}

/// Writes all records that fit.
pub(crate) async fn run(args: AuditExportArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let client = context.client()?;
    let filter = args.filter.to_filter();
    match &args.out {
        None => {
            copy(&client, &filter, |line| output.line(line)).await?;
        }
        Some(path) => {
            let count = to_file(&client, &filter, path).await?;
            output.note(&format!("wrote {count} records to {}", path.display()));
        }
    }
    Ok(Exit::Done)
}

/// Writes beside the file and moves it into place, so that half an export is never taken for one.
async fn to_file(client: &Client, filter: &AuditFilter<'_>, path: &Path) -> Result<u64> {
    let failed = |error: &io::Error| CliError::unwritable(path.display(), error);
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let mut file = BufWriter::new(File::create(&part).map_err(|error| failed(&error))?);
    let write = |line: &str| writeln!(file, "{line}").map_err(|error| failed(&error));
    let copied = copy(client, filter, write).await;
    let finished = copied.and_then(|count| {
        file.flush()
            .and_then(|()| file.get_ref().sync_all())
            .and_then(|()| std::fs::rename(&part, path))
            .map(|()| count)
            .map_err(|error| failed(&error))
    });
    if finished.is_err() {
        // What is left of it is of no use; that it cannot be removed adds nothing to the error.
        let _ = std::fs::remove_file(&part);
    }
    finished
}

async fn copy(
    client: &Client,
    filter: &AuditFilter<'_>,
    mut write: impl FnMut(&str) -> Result<()>,
) -> Result<u64> {
    let mut count = 0;
    let take = |records: Vec<Value>| {
        for record in &records {
            write(&crate::plain::json(&record.to_string()))?;
            count += 1;
        }
        Ok::<_, CliError>(())
    };
    client.audit().each_after(0, filter, take).await?;
    Ok(count)
}
