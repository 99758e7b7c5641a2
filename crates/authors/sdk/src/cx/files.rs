//! Files that a call is given and gives.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use wharf_vocab::{Code, Fault};

use super::Cx;
use crate::tool::is_name;

/// Text above this size goes into a file, where that is possible.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// An output that is a file of the output's own name in the folder the core gave. In the run's
/// outputs it becomes a reference with the file's size and hash.
///
/// ```
/// use serde::Serialize;
/// use wharf_sdk::{Cx, Fault, JsonSchema, Written};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Drawn { picture: Written }
///
/// async fn draw(cx: &Cx) -> Result<Drawn, Fault> {
///     let (path, picture) = cx.output_file("picture")?;
///     tokio::fs::write(path, "<svg/>").await.map_err(wharf_sdk::cannot_write)?;
///     Ok(Drawn { picture })
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

impl Cx {
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

    /// Where to write the file of an output, and what to put into the output under the same name.
    pub fn output_file(&self, name: &str) -> Result<(PathBuf, Written), Fault> {
        if !is_name(name, 128) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            let message = "A file's name has letters, digits, dots, dashes and underscores.";
            return Err(Fault::new(Code::ToolInternal, message));
        }
        let folder = self.outputs_dir().ok_or_else(|| {
            Fault::new(Code::ToolOutputTooLarge, "The core gave no folder for files.")
        })?;
        Ok((folder.join(name), Written(())))
    }

    /// Gives text inline when it is small, and as the file of this output when it is large and
    /// the core gave a folder for files.
    pub async fn large_text(&self, name: &str, text: String) -> Result<LargeText, Fault> {
        if text.len() <= INLINE_BYTES_MAX {
            return Ok(LargeText::Inline(text));
        }
        let (path, written) = self.output_file(name)?;
        tokio::fs::write(path, text).await.map_err(cannot_write)?;
        Ok(LargeText::File(written))
    }
}

/// The fault of a tool whose file could not be written. The system's words can name paths, so
/// only the kind of error is told.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub fn cannot_write(error: std::io::Error) -> Fault {
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
        json_schema!({"type": "object", "description": "A file."})
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
