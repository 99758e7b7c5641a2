//! Files of worlds as resources, `world://{world}{path}`.
//!
//! What a token may see of a world's files over REST it may see here, and nothing else. A file of a
//! world that it has no right to is missing, as one is that is not there. Local files of runs are
//! not listed; whoever was told the address of one can read it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use serde_json::{Value, json};
use wharf_domain::Artifact;
use wharf_domain::scope::WorldPath;
use wharf_engine::FileQuery;
use wharf_vocab::{Code, Fault, Object, WorldId, media};
use wharf_wire::mcp_v1::{
    McpError, McpOpen, McpReadResult, McpResource, McpResourceContents, McpTemplate, key,
};

use super::door::McpContext;
use super::resources::missing;
use crate::blocks::result::{file_link, file_meta};
use crate::faults::McpRefusal;

/// What every address of a file begins with.
const SCHEME: &str = "world://";
/// Longest text that is sent as text.
const TEXT_BYTES_MAX: u64 = 1024 * 1024;
/// Most bytes that are sent as Base64.
const BLOB_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How often a read is begun again when the file is replaced in between.
const LOOKS_MAX: usize = 3;

/// The template of all files.
pub(super) const FILE_TEMPLATE: &str = "world://{world}/{+path}";

/// The address of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileUri {
    /// The world.
    pub(super) world: WorldId,
    /// The file.
    pub(super) path: WorldPath,
}

impl FileUri {
    /// Whether an address is meant to be a file's.
    pub(super) fn is_meant(uri: &str) -> bool {
        uri.starts_with(SCHEME)
    }

    /// Reads an address. What follows the world is a path as everywhere: percent signs are decoded
    /// once, and nothing in it leads out of the world.
    pub(super) fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let (world, path) = rest.split_at(rest.find('/')?);
        if path.contains(['?', '#']) {
            return None;
        }
        let world = WorldId::new(world).ok()?;
        let path = WorldPath::parse_any(path).ok()?;
        path.fits(&world).ok()?;
        Some(Self { world, path })
    }
}

/// Whether this client may see files at all: rights for some tools give no right to what all tools
/// made.
pub(super) fn are_visible(cx: &McpContext) -> bool {
    cx.door.provider.is_none() && cx.caller.rights.tools.is_empty()
}

/// Files of the client's world behind a path, and whether there are more.
pub(super) async fn page(
    cx: &McpContext,
    after: Option<WorldPath>,
    limit: usize,
) -> Result<(Vec<McpOpen<McpResource>>, Option<WorldPath>), McpRefusal> {
    let query = FileQuery { after, ..FileQuery::new(cx.door.world.clone(), limit) };
    let page = cx.shared.handle.files().list(&cx.caller, query).await?;
    let files = page.files.iter().map(|file| file_link(&file.artifact).into());
    Ok((files.collect(), page.next))
}

/// The template of files.
pub(super) fn template() -> McpOpen<McpTemplate> {
    McpTemplate {
        uri_template: FILE_TEMPLATE.to_owned(),
        name: "world-file".to_owned(),
        title: Some("File of a world".to_owned()),
        description: Some("A file that a run or a person wrote into a world.".to_owned()),
        ..McpTemplate::default()
    }
    .into()
}

/// Reads a file.
pub(super) async fn read(cx: &McpContext, uri: &str) -> Result<Object, McpRefusal> {
    let missing = || McpRefusal::from(missing(uri, cx.revision));
    let file = FileUri::parse(uri).ok_or_else(missing)?;
    let fault = |fault: Fault| {
        let hidden = [Code::PermissionDenied, Code::ArtifactNotFound, Code::WorldNotFound];
        if hidden.iter().any(|code| fault.is(*code)) { missing() } else { fault.into() }
    };
    let files = cx.shared.handle.files();
    for _ in 0..LOOKS_MAX {
        let record = files.get(&cx.caller, &file.world, &file.path).await.map_err(fault)?;
        let known = record.artifact;
        check_size(uri, &known)?;
        let body = files.read(&cx.caller, &file.world, &file.path, None).await.map_err(fault)?;
        if body.info.bytes != known.bytes {
            // It was replaced in between, perhaps by something too large.
            continue;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(known.bytes).unwrap_or_default());
        let mut stream = body.stream;
        while let Some(piece) = stream.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| fault(error.into()))?);
        }
        let contents = contents(uri, &known, bytes);
        let result = McpReadResult { contents: vec![contents.into()], ..McpReadResult::default() };
        return Ok(McpOpen::from(result).to_object());
    }
    let message = "The file is being replaced; read it again.";
    Err(Fault::new(Code::CoreBusy, message).into())
}

/// Refuses a file that is too long to be sent in a message, and says where to get it.
fn check_size(uri: &str, file: &Artifact) -> Result<(), McpError> {
    let bytes_max = if is_text(&file.media_type) { TEXT_BYTES_MAX } else { BLOB_BYTES_MAX };
    if file.bytes <= bytes_max {
        return Ok(());
    }
    let message = format!(
        "The file has {} bytes, and {bytes_max} at most can be read so; use the address that \
         `_meta[\"{}\"]` of the link names.",
        file.bytes,
        key::WHARF_FILE,
    );
    let data = json!({"uri": uri, "_meta": {key::WHARF_FILE: file_meta(file)}});
    Err(McpError { data: Some(data), ..McpError::params(message) })
}

/// What is sent of a file: words as they are, everything else in Base64.
fn contents(uri: &str, file: &Artifact, bytes: Vec<u8>) -> McpResourceContents {
    let words = is_text(&file.media_type)
        || (file.media_type == media::UNKNOWN && file.bytes <= TEXT_BYTES_MAX);
    let text = match words {
        true => String::from_utf8(bytes).map_err(|error| error.into_bytes()),
        false => Err(bytes),
    };
    let (text, blob) = match text {
        Ok(text) if !text.contains('\0') => (Some(text), None),
        Ok(text) => (None, Some(STANDARD.encode(text))),
        Err(bytes) => (None, Some(STANDARD.encode(bytes))),
    };
    let mut meta = Object::new();
    meta.insert(key::WHARF_FILE.to_owned(), Value::Object(file_meta(file)));
    McpResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(file.media_type.clone()),
        text,
        blob,
        meta: Some(meta),
    }
}

/// Whether data of this type is words.
fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let words = ["json", "x-ndjson", "xml", "yaml", "toml", "javascript"];
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || essence.strip_prefix("application/").is_some_and(|kind| words.contains(&kind))
}

#[cfg(test)]
mod tests {
    use wharf_vocab::Direction;

    use super::*;

    fn file(path: &str, bytes: u64) -> Artifact {
        let path = WorldPath::parse(path).expect("a path");
        Artifact {
            world: WorldId::new("lab").expect("an id"),
            media_type: path.media_type().to_owned(),
            path,
            bytes,
            b3: None,
            run: None,
            key: None,
            direction: Direction::Out,
        }
    }

    #[test]
    fn m039_no_address_leads_out_of_its_world() {
        let read = FileUri::parse("world://lab/in/a%20b.txt").expect("an address");
        assert_eq!((read.world.as_str(), read.path.as_str()), ("lab", "/in/a b.txt"));
        assert!(FileUri::parse("world://lab/@r-1/out.txt").is_some(), "local files have addresses");
        for bad in [
            "world://",
            "world://lab",
            "world://lab/",
            "world:///etc/passwd",
            "world://lab/../other/a",
            "world://lab/a/../../other/a",
            "world://lab/%2e%2e/other/a",
            "world://lab/%252e%252e/other",
            "world://lab/a%2f..%2fb",
            "world://lab/a//b",
            "world://lab/a\\b",
            "world://lab/a%00",
            "world://lab/a?x=1",
            "world://lab/a#x",
            "world://lab/@r-1/@a-1/0",
            "world://other%2flab/a",
            "world://../a",
            "WORLD://lab/a",
            "file:///etc/passwd",
        ] {
            assert_eq!(FileUri::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn m039_words_are_sent_as_they_are_and_bytes_in_base64() {
        let sent = |path: &str, bytes: &[u8]| {
            let sent = contents("world://lab/a", &file(path, bytes.len() as u64), bytes.to_vec());
            (sent.text, sent.blob)
        };
        assert_eq!(sent("/a.md", b"# hi"), (Some("# hi".into()), None));
        assert_eq!(sent("/Makefile", b"all:"), (Some("all:".into()), None));
        assert_eq!(sent("/a.png", b"\x89PNG"), (None, Some("iVBORw==".into())));
        assert_eq!(sent("/a.txt", b"\xff\xfe"), (None, Some("//4=".into())));
        assert_eq!(sent("/noending", b"a\0b"), (None, Some("YQBi".into())));
    }

    #[test]
    fn m039_what_is_too_long_is_refused_with_where_to_get_it() {
        let uri = "world://lab/big.txt";
        for (path, bytes) in [("/big.txt", 1024 * 1024 + 1), ("/big.bin", 4 * 1024 * 1024 + 1)] {
            assert!(check_size(uri, &file(path, bytes - 1)).is_ok());
            let error = check_size(uri, &file(path, bytes)).expect_err("too long");
            assert_eq!(error.code, -32602);
            assert!(error.message.contains("dev.wharf/file"), "{error}");
            let data = error.data.expect("facts");
            let href = format!("/v1/worlds/lab/files{path}");
            assert_eq!(data["_meta"]["dev.wharf/file"]["href"], href);
            assert_eq!(data["_meta"]["dev.wharf/file"]["bytes"], bytes);
        }
    }
}
