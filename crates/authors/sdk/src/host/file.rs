//! Files that a call is given and gives.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use wharf_vocab::{Code, Fault};

use super::{HostHandle, canceled, no_files};
use crate::Cx;

/// The mark of a file in a schema.
pub(crate) const MARK: &str = "x-wharf-file";
/// The mark of a file that was written, in an output.
const WRITTEN: &str = "$written";

/// A file in the input or the output of a tool.
///
/// An input of this type stays where it is until the tool asks for it, however large it is: by
/// [`Cx::open`], [`Cx::read`] or [`Cx::path`]. An output of this type is what [`Cx::write`] and
/// its like give; in the run's outputs it becomes a reference to the file.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wharf_sdk::{Cx, Fault, File, JsonSchema};
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Given { picture: File }
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Turned { picture: File }
///
/// async fn turn(given: Given, cx: Cx) -> Result<Turned, Fault> {
///     let mut bytes = cx.read(&given.picture).await?;
///     bytes.reverse();
///     Ok(Turned { picture: cx.write("picture", bytes).await? })
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File(FileContent);

#[derive(Debug, Clone, PartialEq, Eq)]
enum FileContent {
    /// The name of an input, or text that was small enough to need no file.
    Text(String),
    /// An output that was written.
    Written { bytes: u64, b3: Option<String> },
}

impl File {
    /// An output that a host has written.
    #[must_use]
    pub fn written(bytes: u64, b3: Option<String>) -> Self {
        Self(FileContent::Written { bytes, b3 })
    }

    /// How large a written output is.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match &self.0 {
            FileContent::Written { bytes, .. } => Some(*bytes),
            FileContent::Text(_) => None,
        }
    }

    /// The BLAKE3 hash of a written output in hexadecimal, where a tool server wrote it.
    #[must_use]
    pub fn b3(&self) -> Option<&str> {
        match &self.0 {
            FileContent::Written { b3, .. } => b3.as_deref(),
            FileContent::Text(_) => None,
        }
    }
}

/// The name of the input.
impl AsRef<str> for File {
    fn as_ref(&self) -> &str {
        match &self.0 {
            FileContent::Text(name) => name,
            FileContent::Written { .. } => "",
        }
    }
}

impl Serialize for File {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            FileContent::Text(text) => serializer.serialize_str(text),
            FileContent::Written { .. } => json!({ WRITTEN: true }).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(FileContent::Text(text))),
            Value::Object(mark) if mark.contains_key(WRITTEN) => Ok(Self::written(0, None)),
            _ => Err(D::Error::custom("a file is given by a text")),
        }
    }
}

impl JsonSchema for File {
    fn schema_name() -> Cow<'static, str> {
        "File".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_deserialize() {
            return json_schema!({ "type": "string", MARK: true });
        }
        // As the tool gives it and as the run shows it.
        json_schema!({ "type": ["string", "object"], "description": "A file.", MARK: true })
    }
}

/// The inputs that are files, as far as the schema of an object says so.
pub(crate) fn marked(schema: &Value) -> Vec<String> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let fields = fields.into_iter().flatten().filter(|(_, field)| is_marked(field));
    fields.map(|(key, _)| key.clone()).collect()
}

/// Whether a field is a file, or a file or nothing.
pub(crate) fn is_marked(field: &Value) -> bool {
    let has_mark = |field: &Value| field.get(MARK).is_some_and(|mark| mark == true);
    let ways = field.get("anyOf").and_then(Value::as_array);
    has_mark(field) || ways.is_some_and(|ways| ways.iter().any(has_mark))
}

/// An input as it is read.
pub type Reader = Pin<Box<dyn AsyncRead + Send>>;

/// The bytes of an output.
pub enum Content<'a> {
    /// All of them.
    Bytes(Vec<u8>),
    /// As they come, and how many there are if that is known.
    Stream(Box<dyn AsyncRead + Send + Unpin + 'a>, Option<u64>),
    /// Those of a file.
    File(&'a Path),
}

impl fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").finish_non_exhaustive()
    }
}

/// The files of a call, by the names of its inputs and outputs.
pub trait Files: Send + Sync {
    /// What an input that is a reference stands for: a path, or an address.
    fn reference(&self, input: &str) -> Option<String>;

    /// Opens an input.
    fn open<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<Reader, Fault>>;

    /// Reads all of an input.
    fn read<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move {
            let mut bytes = Vec::new();
            self.open(input).await?.read_to_end(&mut bytes).await.map_err(cannot_read)?;
            Ok(bytes)
        })
    }

    /// An input as a file of this machine.
    fn path<'a>(&'a self, input: &'a str) -> BoxFuture<'a, Result<PathBuf, Fault>>;

    /// Whether the caller wants an output as a file.
    fn is_wanted(&self, output: &str) -> bool;

    /// Writes an output.
    fn write<'a>(
        &'a self,
        output: &'a str,
        content: Content<'a>,
    ) -> BoxFuture<'a, Result<File, Fault>>;

    /// A folder that goes with the call.
    fn folder(&self) -> Result<PathBuf, Fault>;

    /// The longest text that need not become a file.
    fn inline_bytes_max(&self) -> usize {
        usize::MAX
    }
}

impl<P> Cx<P> {
    /// Does something with the files of the call, until it is canceled.
    async fn with_files<'a, T>(
        &self,
        host: &'a HostHandle,
        work: impl FnOnce(&'a dyn Files) -> BoxFuture<'a, Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let files = host.0.files().ok_or_else(no_files)?;
        match host.0.cancel() {
            Some(cancel) => {
                let done = cancel.token().run_until_cancelled(work(files)).await;
                done.ok_or_else(canceled)?
            }
            None => work(files).await,
        }
    }

    /// What an input that is a reference stands for: the path of a file that was copied for the
    /// call, or an address, for a client of your own. An input that merely looks like one is none.
    #[must_use]
    pub fn reference(&self, input: impl AsRef<str>) -> Option<String> {
        self.hosted()?.0.files()?.reference(input.as_ref())
    }

    /// Opens an input that is a file, wherever it is. An agent process reads addresses over
    /// `http://`, which is what a core's own store speaks.
    ///
    /// ```
    /// use tokio::io::AsyncReadExt as _;
    /// use wharf_sdk::file::cannot_read;
    /// use wharf_sdk::{Cx, Fault};
    ///
    /// async fn first_byte(cx: &Cx) -> Result<u8, Fault> {
    ///     cx.open("picture").await?.read_u8().await.map_err(cannot_read)
    /// }
    /// ```
    pub async fn open(&self, input: impl AsRef<str>) -> Result<Reader, Fault> {
        let host = self.hosted().ok_or_else(no_files)?;
        self.with_files(&host, |files| files.open(input.as_ref())).await
    }

    /// All of an input that is a file. A file may be larger than memory: a tool that need not
    /// have it at once reads from [`open`](Self::open). A tool server reads up to 64 MiB so.
    pub async fn read(&self, input: impl AsRef<str>) -> Result<Vec<u8>, Fault> {
        let host = self.hosted().ok_or_else(no_files)?;
        self.with_files(&host, |files| files.read(input.as_ref())).await
    }

    /// An input as a file of this machine: where it is, or fetched for the call.
    pub async fn path(&self, input: impl AsRef<str>) -> Result<PathBuf, Fault> {
        let host = self.hosted().ok_or_else(no_files)?;
        self.with_files(&host, |files| files.path(input.as_ref())).await
    }

    /// Whether the caller wants this output as a file.
    #[must_use]
    pub fn is_wanted(&self, output: &str) -> bool {
        self.hosted().is_some_and(|host| host.0.files().is_some_and(|f| f.is_wanted(output)))
    }

    /// Writes an output as a file, wherever it goes, and gives what to put into the output under
    /// the same name.
    pub async fn write(&self, output: &str, bytes: impl Into<Vec<u8>>) -> Result<File, Fault> {
        self.write_content(output, Content::Bytes(bytes.into())).await
    }

    /// Writes an output from a reader, in bounded memory. An output that an agent process writes
    /// to an address has to say how many bytes it has.
    pub async fn write_stream(
        &self,
        output: &str,
        body: impl AsyncRead + Send + Unpin,
        bytes: impl Into<Option<u64>>,
    ) -> Result<File, Fault> {
        self.write_content(output, Content::Stream(Box::new(body), bytes.into())).await
    }

    /// Writes an output from a file, such as one in [`folder`](Self::folder).
    pub async fn write_file(&self, output: &str, path: impl AsRef<Path>) -> Result<File, Fault> {
        self.write_content(output, Content::File(path.as_ref())).await
    }

    async fn write_content(&self, output: &str, content: Content<'_>) -> Result<File, Fault> {
        let host = self.hosted().ok_or_else(no_files)?;
        self.with_files(&host, |files| files.write(output, content)).await
    }

    /// A folder that belongs to the call and goes with it.
    pub fn folder(&self) -> Result<PathBuf, Fault> {
        let host = self.hosted().ok_or_else(no_files)?;
        host.0.files().ok_or_else(no_files)?.folder()
    }

    /// Gives text as it is when it is small enough for a message, else as the file of this
    /// output.
    pub async fn large_text(&self, output: &str, text: String) -> Result<File, Fault> {
        let host = self.hosted();
        let files = host.as_ref().and_then(|host| host.0.files());
        if files.is_none_or(|files| text.len() <= files.inline_bytes_max()) {
            return Ok(File(FileContent::Text(text)));
        }
        self.write(output, text).await
    }
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
