//! Files that a call is given and gives.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
use wharf_vocab::{Code, Fault};

use super::{AgentCx, address};
use crate::name::is_name;

/// Text above this size goes into a file, where that is possible.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// An output that was written as a file, to the folder or the address the core gave. In the run's
/// outputs it becomes a reference to the file.
///
/// ```
/// use serde::Serialize;
/// use wharf_sdk::process::{AgentCx, Written};
/// use wharf_sdk::{Fault, JsonSchema};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Drawn { picture: Written }
///
/// async fn draw(cx: &AgentCx) -> Result<Drawn, Fault> {
///     Ok(Drawn { picture: cx.write_output("picture", "<svg/>").await? })
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written(());

/// Text that may be too large for a message: given inline, or as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LargeText {
    /// The text itself.
    Inline(String),
    /// It was written to the file of the output's name.
    File(Written),
}

/// A file that a call is given, as it is read.
#[derive(Debug)]
pub struct InputFile(Source);

#[derive(Debug)]
enum Source {
    File(tokio::fs::File),
    Address(Box<address::Body>),
}

impl AsyncRead for InputFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Source::File(file) => Pin::new(file).poll_read(cx, buf),
            Source::Address(body) => Pin::new(body).poll_read(cx, buf),
        }
    }
}

impl AgentCx {
    /// The folder with files that the call is given, if the core made one.
    #[must_use]
    pub fn inputs_dir(&self) -> Option<&Path> {
        self.inner.call.context.as_ref()?.inputs_dir.as_deref().map(Path::new)
    }

    /// The folder for files that the call gives, if the core made one.
    #[must_use]
    pub fn outputs_dir(&self) -> Option<&Path> {
        self.inner.call.context.as_ref()?.outputs_dir.as_deref().map(Path::new)
    }

    /// What an input that is a reference stands for: the path of a file that was copied for the
    /// call, or an address. An input that merely looks like one is none.
    #[must_use]
    pub fn input_file(&self, name: &str) -> Option<&str> {
        self.inner.call.input.get(name)?.as_str()
    }

    /// Opens an input that is a file, wherever it is. In the input's own type it is a `String`.
    ///
    /// Addresses are read over `http://`, which is what a core's own store speaks, and by
    /// `HTTP_PROXY` where the agent was told of one; for others [`AgentCx::input_file`] gives the
    /// address to a client of your own.
    ///
    /// ```
    /// use tokio::io::AsyncReadExt as _;
    /// use wharf_sdk::process::{AgentCx, cannot_read};
    /// use wharf_sdk::Fault;
    ///
    /// async fn first_byte(cx: &AgentCx) -> Result<u8, Fault> {
    ///     cx.open_input("picture").await?.read_u8().await.map_err(cannot_read)
    /// }
    /// ```
    pub async fn open_input(&self, name: &str) -> Result<InputFile, Fault> {
        let Some(place) = self.input_file(name) else {
            let message = format!("The input `{name}` must be a file.");
            return Err(Fault::new(Code::ToolInvalidInput, message).with("key", name));
        };
        let opening = async {
            if address::is_address(place) {
                return address::get(place).await.map(|body| Source::Address(Box::new(body)));
            }
            tokio::fs::File::open(place).await.map(Source::File).map_err(cannot_read)
        };
        self.until_cancelled(opening).await?.map(InputFile)
    }

    /// All of an input that is a file. A file may be larger than memory: a tool that need not
    /// have it at once reads from [`AgentCx::open_input`].
    pub async fn read_input(&self, name: &str) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        let mut file = self.open_input(name).await?;
        self.until_cancelled(file.read_to_end(&mut bytes)).await?.map_err(cannot_read)?;
        Ok(bytes)
    }

    /// Where to write the file of an output, and what to put into the output under the same name.
    /// An output that goes to an address has no path; [`AgentCx::write_output`] serves both.
    pub fn output_file(&self, name: &str) -> Result<(PathBuf, Written), Fault> {
        match self.output_place(name)? {
            Place::Path(path) => Ok((path, Written(()))),
            Place::Address(_) => {
                let message = "The output goes to an address, not to a file.";
                Err(Fault::new(Code::ToolInternal, message))
            }
        }
    }

    /// Writes an output as a file, wherever it goes, and gives what to put into the output under
    /// the same name.
    pub async fn write_output(
        &self,
        name: &str,
        bytes: impl AsRef<[u8]>,
    ) -> Result<Written, Fault> {
        let bytes = bytes.as_ref();
        self.write_output_from(name, bytes.len() as u64, bytes).await
    }

    /// The same from a reader that has exactly so many bytes, in bounded memory.
    pub async fn write_output_from(
        &self,
        name: &str,
        bytes: u64,
        mut body: impl AsyncRead + Unpin,
    ) -> Result<Written, Fault> {
        let place = self.output_place(name)?;
        let writing = async {
            match &place {
                Place::Address(address) => address::put(address, bytes, &mut body).await,
                Place::Path(path) => {
                    let mut file = tokio::fs::File::create(path).await.map_err(cannot_write)?;
                    let copied = tokio::io::copy(&mut body.take(bytes), &mut file).await;
                    file.flush().await.map_err(cannot_write)?;
                    let whole = copied.map_err(cannot_write)? == bytes;
                    whole.then_some(()).ok_or_else(address::short)
                }
            }
        };
        self.until_cancelled(writing).await??;
        Ok(Written(()))
    }

    /// Where an output goes: where the core says, else a file in the folder it gave.
    fn output_place(&self, name: &str) -> Result<Place<'_>, Fault> {
        let context = self.inner.call.context.as_ref();
        let told = context.and_then(|context| context.outputs.as_ref()?.get(name));
        match told {
            Some(place) if address::is_address(place) => return Ok(Place::Address(place)),
            Some(place) => return Ok(Place::Path(place.into())),
            None => {}
        }
        if !is_name(name, 128) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            let message = "A file's name has letters, digits, dots, dashes and underscores.";
            return Err(Fault::new(Code::ToolInternal, message));
        }
        let folder = self.outputs_dir().ok_or_else(|| {
            Fault::new(Code::ToolOutputTooLarge, "The core gave no folder for files.")
        })?;
        Ok(Place::Path(folder.join(name)))
    }

    /// Gives text inline when it is small, and as the file of this output when it is large and
    /// the core gave a place for it.
    pub async fn large_text(&self, name: &str, text: String) -> Result<LargeText, Fault> {
        if text.len() <= INLINE_BYTES_MAX {
            return Ok(LargeText::Inline(text));
        }
        Ok(LargeText::File(self.write_output(name, text).await?))
    }
}

/// Where an output goes.
enum Place<'a> {
    Path(PathBuf),
    Address(&'a str),
}

/// The fault of a tool whose input could not be read. The system's words can name paths, so only
/// the kind of error is told.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub fn cannot_read(error: io::Error) -> Fault {
    let message = format!("A file could not be read: {}.", error.kind());
    Fault::new(Code::ToolFailed, message)
}

/// The fault of a tool whose file could not be written. The system's words can name paths, so
/// only the kind of error is told.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub fn cannot_write(error: io::Error) -> Fault {
    let message = format!("A file could not be written: {}.", error.kind());
    Fault::new(Code::ToolFailed, message)
}

#[derive(Serialize)]
struct Marker {
    #[serde(rename = "$written")]
    written: bool,
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Marker { written: true }.serialize(serializer)
    }
}

impl Serialize for LargeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(text) => serializer.serialize_str(text),
            Self::File(written) => written.serialize(serializer),
        }
    }
}

/// Both as the agent gives it and as the run shows it.
impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "Written".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["object", "string"], "description": "A file."})
    }
}

impl JsonSchema for LargeText {
    fn schema_name() -> Cow<'static, str> {
        "LargeText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "object"], "description": "Text, or a file with it."})
    }
}
