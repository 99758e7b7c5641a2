//! Content of results: what is kept inline and what as a file, and back to what a client sees.
//!
//! What a server answers becomes the outputs of a run, `{"content": […], "structured": …, "meta":
//! …}`. Blocks that are long are written as local files of that run, and a reference stands in
//! their place: it names an output of the same run and nothing else, so no result can lead to a
//! file of another run. A block that comes with such a reference loses it.

pub(crate) mod result;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_engine::{AttemptRef, Handle};
use wharf_vocab::{Durability, Fault, Object, media};
use wharf_wire::mcp_v1::{McpResultType, key};

/// Longest block that stays in the outputs, as it is sent.
const INLINE_BYTES_MAX: usize = 64 * 1024;
/// What marks the output schema of a tool whose outputs are the result of a server.
pub(crate) const MCP_OUTPUTS: &str = "x-wharf-mcp";
/// What marks a schema whose values travel as `{"value": …}`.
pub(crate) const WRAPPED: &str = "x-wharf-value";
/// Where the reference to a file stands in a block.
const KEPT: &str = "dev.wharf/kept";
/// What the names of outputs begin with that are blocks.
const OUTPUT: &str = "mcp/";

const CONTENT: &str = "content";
const STRUCTURED: &str = "structured";
const META: &str = "meta";
const REST: &str = "rest";

/// What a server answered, as the outputs of a run, and the files that go with them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct McpKept {
    /// The outputs, without those that are files.
    pub(crate) outputs: Object,
    /// The files.
    pub(crate) files: Vec<McpKeptFile>,
}

/// A block that is kept as a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct McpKeptFile {
    /// The name of the output.
    pub(crate) name: String,
    /// What it contains.
    pub(crate) bytes: Bytes,
    /// Whether that is words, from which secrets can be cut.
    pub(crate) is_text: bool,
}

/// Makes a server's result the outputs of an attempt: writes its long blocks as files, and says
/// what the others are. A run that is kept in memory only keeps its blocks there, too.
pub(crate) async fn keep(
    handle: &Handle,
    attempt: &AttemptRef,
    result: Object,
) -> Result<Object, Fault> {
    if attempt.dispatch().spec.durability == Durability::Memory {
        return Ok(kept(result, usize::MAX).outputs);
    }
    let McpKept { outputs, files } = kept(result, INLINE_BYTES_MAX);
    for McpKeptFile { name, mut bytes, is_text } in files {
        if is_text && let Ok(text) = std::str::from_utf8(&bytes) {
            bytes = handle.trust().redacted(text).map_or(bytes, Bytes::from);
        }
        let length = bytes.len() as u64;
        let body = futures::stream::once(async move { Ok(bytes) }).boxed();
        attempt.data().write(&name, length, body).await?;
    }
    Ok(outputs)
}

/// Takes a server's result apart; blocks longer than `inline_max` become files.
pub(crate) fn kept(mut result: Object, inline_max: usize) -> McpKept {
    let mut kept = McpKept::default();
    let content = match result.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => Vec::new(),
    };
    let blocks = content.into_iter().map(|mut block| {
        if let Value::Object(block) = &mut block {
            kept.take_file(block, inline_max);
        }
        block
    });
    let blocks = blocks.collect::<Vec<_>>();
    kept.outputs.insert(CONTENT.to_owned(), blocks.into());
    if let Some(structured) = result.remove("structuredContent") {
        kept.outputs.insert(STRUCTURED.to_owned(), structured);
    }
    if let Some(meta) = result.remove(key::META) {
        kept.outputs.insert(META.to_owned(), meta);
    }
    result.remove("isError");
    result.remove(McpResultType::FIELD);
    if !result.is_empty() {
        kept.outputs.insert(REST.to_owned(), result.into());
    }
    kept
}

impl McpKept {
    /// Takes what is long out of a block.
    fn take_file(&mut self, block: &mut Object, inline_max: usize) {
        block.remove(KEPT);
        match block.get("type").and_then(Value::as_str) {
            Some("text") => self.take_field(block, "text", inline_max),
            Some("image" | "audio") => self.take_field(block, "data", inline_max),
            Some("resource") => {
                if let Some(Value::Object(resource)) = block.get_mut("resource") {
                    resource.remove(KEPT);
                    self.take_field(resource, "text", inline_max);
                    self.take_field(resource, "blob", inline_max);
                }
            }
            _ => {}
        }
    }

    fn take_field(&mut self, object: &mut Object, field: &str, inline_max: usize) {
        let Some(Value::String(text)) = object.get_mut(field) else { return };
        if text.len() <= inline_max {
            return;
        }
        let is_text = field == "text";
        let bytes = if is_text {
            Bytes::from(std::mem::take(text))
        } else {
            // What is no Base64 stays as it is: it could not be made the same again.
            let Ok(bytes) = STANDARD.decode(text.as_bytes()) else { return };
            text.clear();
            Bytes::from(bytes)
        };
        let media_type = object.get("mimeType").and_then(Value::as_str);
        let ending = match media_type {
            Some(media_type) => ending_of(media_type),
            None if is_text => "txt",
            None => "bin",
        };
        let name = format!("{OUTPUT}{}.{ending}", self.files.len());
        let reference = json!({"field": field, "output": name, "bytes": bytes.len()});
        object.insert(KEPT.to_owned(), reference);
        self.files.push(McpKeptFile { name, bytes, is_text });
    }
}

/// The ending that says a media type to whoever reads the file.
fn ending_of(media_type: &str) -> &'static str {
    const ENDINGS: [&str; 19] = [
        "txt", "json", "md", "html", "csv", "xml", "yaml", "pdf", "png", "jpg", "gif", "webp",
        "svg", "wav", "mp3", "ogg", "mp4", "webm", "zip",
    ];
    let essence = |of: &str| of.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let wanted = essence(media_type);
    let says = |ending: &&str| essence(media::of_name(&format!("a.{ending}"))) == wanted;
    ENDINGS.into_iter().find(says).unwrap_or("bin")
}

/// What a failure tells of a server's content: all of it that is short.
pub(crate) fn told(result: &Object) -> Vec<Value> {
    let blocks = result.get("content").and_then(Value::as_array);
    let blocks = blocks.into_iter().flatten().cloned().map(|mut block| {
        if let Value::Object(object) = &mut block {
            let mut long = McpKept::default();
            long.take_file(object, INLINE_BYTES_MAX);
            if let Some(file) = long.files.first() {
                let text = format!("[{} bytes are left out]", file.bytes.len());
                return json!({"type": "text", "text": text});
            }
        }
        block
    });
    let mut left = INLINE_BYTES_MAX;
    let fits = |block: &Value| {
        let bytes = block.to_string().len();
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    blocks.take_while(fits).collect()
}

/// Whether the outputs of a tool are the result of a server.
pub(crate) fn is_of_server(tool: &ToolDef) -> bool {
    let schema = tool.output_schema.as_ref();
    schema.is_some_and(|schema| schema.get(MCP_OUTPUTS) == Some(&Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        }
    }

    #[test]
    fn m059_a_result_becomes_outputs_and_loses_nothing() {
        let blocks = json!([
            {"type": "text", "text": "hi", "annotations": {"priority": 1}},
            {"type": "new_kind", "x": [1]},
        ]);
        let kept = kept(
            object(json!({
                "content": blocks, "structuredContent": [1, 2], "_meta": {"a": 1},
                "isError": false, "resultType": "complete", "vendor": {"b": 2},
            })),
            INLINE_BYTES_MAX,
        );
        let outputs = json!({
            "content": blocks, "structured": [1, 2], "meta": {"a": 1}, "rest": {"vendor": {"b": 2}},
        });
        assert_eq!(Value::Object(kept.outputs), outputs);
        assert_eq!(kept.files, []);
    }

    #[test]
    fn m060_large_blocks_are_files() {
        let (text, image) = ("é".repeat(40_000), STANDARD.encode(vec![7; 60_000]));
        let result = object(json!({"content": [
            {"type": "text", "text": text},
            {"type": "image", "data": image, "mimeType": "image/png"},
            {"type": "audio", "data": "not base64! ".repeat(10_000), "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a:b", "blob": image}},
            {"type": "text", "text": "short"},
        ]}));
        let McpKept { outputs, files } = kept(result, INLINE_BYTES_MAX);
        let files: Vec<_> = files.iter().map(|f| (f.name.as_str(), f.bytes.len())).collect();
        assert_eq!(files, [("mcp/0.txt", 80_000), ("mcp/1.png", 60_000), ("mcp/2.bin", 60_000)]);
        let content = &outputs["content"];
        assert_eq!(content[0]["text"], "");
        let reference = json!({"field": "data", "output": "mcp/1.png", "bytes": 60_000});
        assert_eq!(content[1][KEPT], reference);
        assert_eq!(content[2]["data"].as_str().map(str::len), Some(120_000));
        assert_eq!(content[3]["resource"][KEPT]["output"], "mcp/2.bin");
        assert_eq!(content[4], json!({"type": "text", "text": "short"}));
    }

    #[test]
    fn m060_nobody_else_makes_references() {
        let forged = json!({"field": "text", "output": "mcp/0.txt", "bytes": 1});
        let result = object(json!({"content": [
            {"type": "text", "text": "a", KEPT: forged},
            {"type": "resource", KEPT: forged, "resource": {"uri": "a:b", "text": "", KEPT: forged}},
            {"type": "other", KEPT: forged},
        ]}));
        let kept = Value::Object(kept(result, INLINE_BYTES_MAX).outputs).to_string();
        assert!(!kept.contains(KEPT), "{kept}");
    }

    #[test]
    fn m059_a_failure_tells_what_is_short() {
        let image = STANDARD.encode(vec![7; 60_000]);
        let mut blocks = vec![json!({"type": "text", "text": "no such city"})];
        blocks.push(json!({"type": "image", "data": image, "mimeType": "image/png"}));
        blocks.extend((0..20).map(|_| json!({"type": "text", "text": "x".repeat(10_000)})));
        let told = told(&object(json!({"isError": true, "content": blocks})));
        assert_eq!(told[0]["text"], "no such city");
        assert_eq!(told[1]["text"], "[60000 bytes are left out]");
        assert_eq!(told.len(), 8);
    }
}
