//! The files of a call that the core made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use wharf_vocab::{Code, Executed, Fault, Object};

use super::address;
use crate::calls::exposed::is_name;
use crate::host::file::{Content, File, Files, Reader, cannot_read, cannot_write};

/// Text above this size goes into a file.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// The files of a call that the core made.
pub(super) struct CallFiles {
    /// The inputs that are references.
    pub(super) inputs: Object,
    /// Where the core wants outputs: paths and addresses.
    pub(super) outputs: BTreeMap<String, String>,
    /// The folder for outputs that the core says nothing about.
    pub(super) folder: Option<PathBuf>,
}

/// Where an output goes.
enum OutputTarget<'a> {
    Path(PathBuf),
    Address(&'a str),
}

impl CallFiles {
    fn reference_of(&self, input: &str) -> Result<&str, Fault> {
        self.inputs.get(input).and_then(|place| place.as_str()).ok_or_else(|| {
            let message = format!("The input `{input}` must be a file.");
            Fault::new(Code::ToolInvalidInput, message).with("key", input)
        })
    }

    /// Where an output goes: where the core says, else a file in the folder it gave.
    fn target(&self, output: &str) -> Result<OutputTarget<'_>, Fault> {
        match self.outputs.get(output) {
            Some(place) if address::is_address(place) => return Ok(OutputTarget::Address(place)),
            Some(place) => return Ok(OutputTarget::Path(place.into())),
            None => {}
        }
        if !is_name(output, 128) || !output.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            let message = "A file's name has letters, digits, dots, dashes and underscores.";
            return Err(Fault::new(Code::ToolInternal, message));
        }
        Ok(OutputTarget::Path(self.folder()?.join(output)))
    }

    async fn write_file(&self, output: &str, path: &Path) -> Result<File, Fault> {
        let file = tokio::fs::File::open(path).await.map_err(cannot_read)?;
        let bytes = file.metadata().await.map_err(cannot_read)?.len();
        match self.target(output)? {
            // It was written where it belongs.
            OutputTarget::Path(place) if place == path => Ok(File::written(bytes, None)),
            target => write(target, Some(bytes), file).await,
        }
    }
}

async fn write(
    target: OutputTarget<'_>,
    bytes: Option<u64>,
    mut body: impl AsyncRead + Send + Unpin,
) -> Result<File, Fault> {
    let path = match target {
        OutputTarget::Path(path) => path,
        OutputTarget::Address(address) => {
            let bytes = bytes.ok_or_else(unknown_length)?;
            address::put(address, bytes, &mut body).await?;
            return Ok(File::written(bytes, None));
        }
    };
    let mut file = tokio::fs::File::create(path).await.map_err(cannot_write)?;
    let copied = tokio::io::copy(&mut body.take(bytes.unwrap_or(u64::MAX)), &mut file).await;
    file.flush().await.map_err(cannot_write)?;
    let copied = copied.map_err(cannot_write)?;
    match bytes {
        Some(bytes) if bytes != copied => Err(address::short()),
        _ => Ok(File::written(copied, None)),
    }
}

impl Files for CallFiles {
    fn reference(&self, input: &str) -> Option<String> {
        self.reference_of(input).ok().map(str::to_owned)
    }

    fn open<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<Reader, Fault>> {
        Box::pin(async move {
            let place = self.reference_of(input)?;
            if address::is_address(place) {
                return address::get(place).await;
            }
            let file = tokio::fs::File::open(place).await.map_err(cannot_read)?;
            Ok(Box::pin(file) as Reader)
        })
    }

    fn path<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<PathBuf, Fault>> {
        let path = self.reference_of(input).and_then(|place| {
            if address::is_address(place) {
                let message = "The input is at an address; read it with `open`.";
                return Err(Fault::new(Code::ToolUnavailable, message).executed(Executed::Maybe));
            }
            Ok(PathBuf::from(place))
        });
        Box::pin(std::future::ready(path))
    }

    fn is_wanted(&self, output: &str) -> bool {
        self.outputs.contains_key(output)
    }

    fn write<'a>(
        &'a self,
        output: &'a str,
        content: Content<'a>,
    ) -> BoxFuture<'a, Result<File, Fault>> {
        Box::pin(async move {
            match content {
                Content::Bytes(bytes) => {
                    write(self.target(output)?, Some(bytes.len() as u64), &*bytes).await
                }
                Content::Stream(body, bytes) => write(self.target(output)?, bytes, body).await,
                Content::File(path) => self.write_file(output, path).await,
            }
        })
    }

    fn folder(&self) -> Result<PathBuf, Fault> {
        self.folder.clone().ok_or_else(|| {
            Fault::new(Code::ToolOutputTooLarge, "The core gave no folder for files.")
        })
    }

    fn inline_bytes_max(&self) -> usize {
        INLINE_BYTES_MAX
    }
}

fn unknown_length() -> Fault {
    let message = "The output goes to an address, so its length has to be known beforehand.";
    Fault::new(Code::ToolInternal, message)
}
