//! `wharf worlds put`.

use std::path::{Path, PathBuf};

use wharf_client::{Kept, LocalFile, RemoteFile};

use crate::commands::{CliError, Context, Exit, Result};
use crate::progress::TransferBar;
use crate::{amount, plain};

/// What `wharf worlds put` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf worlds put lab /in/photo.jpg photo.jpg
  wharf worlds put lab /in/ photo.jpg               keeps the file's name
  tar c src | wharf worlds put lab /in/src.tar -

The file is verified after the upload. A file above 64 MiB is sent in parts: if the upload is
interrupted, the same command resumes it.")]
pub(crate) struct WorldsPutArgs {
    /// The world's id
    world: String,
    /// Where the file goes; end it with / to keep the file's name
    path: String,
    /// The local file, or - for standard input
    file: PathBuf,
    /// The media type, such as image/png [default: from the name]
    #[arg(long, value_name = "TYPE")]
    media_type: Option<String>,
    /// Send the whole file instead of resuming
    #[arg(long)]
    no_resume: bool,
}

/// Sends a file and says what arrived.
pub(super) async fn run(args: WorldsPutArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let is_stdin = args.file.as_os_str() == "-";
    let to = RemoteFile::new(&args.world, &target(&args.path, &args.file, is_stdin)?)?;
    let opened = if is_stdin { None } else { Some(LocalFile::new(&args.file)?) };
    let client = context.client()?;
    let total = opened.as_ref().map(|file| file.bytes);
    let meter = TransferBar::new(output, &plain::line(&to.path), total);
    let upload = client
        .worlds()
        .upload(&to)
        .media_type(args.media_type.as_deref())
        .progress(meter.watch(&to.path, "have arrived already"));
    let sent = async {
        match &opened {
            Some(file) => upload.send_file(file, !args.no_resume).await,
            None => upload.send_reader(std::io::stdin(), "standard input").await,
        }
    };
    let ended = tokio::select! {
        sent = sent => Some(sent),
        _ = tokio::signal::ctrl_c() => None,
    };
    meter.finish();
    let kept = match upload.kept() {
        Kept::Resumable { bytes } => Some(bytes),
        Kept::Nothing | Kept::Stray { .. } => None,
    };
    match ended {
        Some(Ok(artifact)) => {
            let (world, path) = (plain::line(&artifact.world), plain::line(&artifact.path));
            let about = amount::about(artifact.bytes);
            output.done(&artifact, &format!("put world://{world}{path} ({about})"))
        }
        Some(Err(failure)) => {
            if let Some(bytes) = kept {
                output.note(&how_to_go_on(bytes));
            }
            Err(failure.into())
        }
        None => {
            upload.abandon().await;
            output.note(&kept.map_or_else(|| "stopped; nothing is kept".to_owned(), how_to_go_on));
            Ok(Exit::Canceled)
        }
    }
}

fn how_to_go_on(bytes: u64) -> String {
    let arrived = amount::about(bytes);
    format!("{arrived} have arrived and are kept for a week; the same command resumes the upload")
}

/// The path in the world, with the file's own name if it is kept.
fn target(path: &str, file: &Path, is_stdin: bool) -> Result<String> {
    if !path.ends_with('/') {
        return Ok(path.to_owned());
    }
    if is_stdin {
        return Err(CliError::usage("standard input has no name; give the whole path"));
    }
    let name = file.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        let message = format!("{} has no name that could be kept", file.display());
        CliError::usage(message)
    })?;
    Ok(format!("{path}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_the_files_name() {
        let target = |path: &str, file: &str| target(path, Path::new(file), file == "-");
        assert_eq!(target("/in/", "some/photo.jpg"), Ok("/in/photo.jpg".to_owned()));
        assert_eq!(target("/", "photo.jpg"), Ok("/photo.jpg".to_owned()));
        assert_eq!(target("/in/x", "photo.jpg"), Ok("/in/x".to_owned()));
        assert!(target("/in/", "-").is_err());
        assert!(target("/in/", "..").is_err());
    }
}
