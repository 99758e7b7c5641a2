//! A run that is over as the result of the call that it was.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use serde_json::{Value, json};
use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, Caller, Outcome, Run};
use wharf_engine::Handle;
use wharf_vocab::{Direction, Fault, Object};
use wharf_wire::mcp_v1::{
    McpCallResult, McpContent, McpEra, McpMeta, McpOpen, McpResource, McpRevision, key,
};

use super::{CONTENT, KEPT, META, OUTPUT, REST, STRUCTURED, WRAPPED, is_of_server};
use crate::names::escaped;

/// How much of files goes into one result; what is longer is linked.
const RESTORED_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What a call is answered with whose run is over. A run that is not has nothing to say yet.
pub(crate) async fn call_result(
    handle: &Handle,
    run: &Run,
    revision: McpRevision,
) -> McpOpen<McpCallResult> {
    let mut result = match &run.outcome {
        Some(Outcome::Succeeded { outputs }) if is_servers(handle, run, outputs) => {
            of_server(handle, run, outputs, revision).await
        }
        Some(Outcome::Succeeded { outputs }) => plain(handle, run, outputs, revision),
        Some(outcome) => failed(outcome.error()),
        None => McpOpen::default(),
    };
    result.meta.get_or_insert_default().set(key::WHARF_RUN, run_meta(run));
    result
}

/// What every result says of its run.
pub(crate) fn run_meta(run: &Run) -> Object {
    let mut meta = Object::new();
    meta.insert("run_id".to_owned(), run.key.run.as_str().into());
    meta.insert("world".to_owned(), run.key.world.as_str().into());
    meta.insert("status".to_owned(), run.status().as_str().into());
    meta.insert("cost_micro".to_owned(), run.cost_so_far().into());
    if let Some(fault) = run.outcome.as_ref().and_then(Outcome::error) {
        meta.insert("code".to_owned(), fault.code.as_str().into());
        meta.insert("retryable".to_owned(), fault.retryable.into());
        if let Some(executed) = fault.details.get("executed") {
            meta.insert("executed".to_owned(), executed.clone());
        }
    }
    meta
}

/// The error that a server answered a call with, if that is why its run failed: another thing than
/// a result that says that the tool failed.
pub(crate) fn is_error_of_server(fault: &Fault) -> Option<i64> {
    fault.details.get("mcp_code")?.as_i64()
}

/// Whether the outputs of a run are the result of a server. A tool that is not in the catalog any
/// more is told by their shape.
fn is_servers(handle: &Handle, run: &Run, outputs: &Object) -> bool {
    match handle.providers().tool(&run.spec.tool) {
        Ok(tool) => is_of_server(&tool.def),
        Err(_) => {
            let ours = |name: &String| {
                [CONTENT, STRUCTURED, META, REST].contains(&name.as_str())
                    || name.starts_with(OUTPUT)
            };
            outputs.get(CONTENT).is_some_and(Value::is_array) && outputs.keys().all(ours)
        }
    }
}

fn plain(
    handle: &Handle,
    run: &Run,
    outputs: &Object,
    revision: McpRevision,
) -> McpOpen<McpCallResult> {
    let wrapped = || {
        let tool = handle.providers().tool(&run.spec.tool).ok()?;
        let schema = tool.def.output_schema.as_ref()?;
        (schema.get(WRAPPED) == Some(&Value::Bool(true))).then(|| outputs.get("value").cloned())?
    };
    let value = match revision.era() {
        McpEra::Modern => wrapped().unwrap_or_else(|| outputs.clone().into()),
        McpEra::Legacy => outputs.clone().into(),
    };
    let mut content = vec![McpContent::text(value.to_string())];
    let files = run.artifacts.iter().filter(|file| file.direction == Direction::Out);
    content.extend(files.map(|file| McpContent::Link(file_link(file).into())));
    McpCallResult { content, structured_content: Some(value), ..McpCallResult::default() }.into()
}

fn failed(fault: Option<&Fault>) -> McpOpen<McpCallResult> {
    let content = fault.map_or_else(Vec::new, |fault| {
        let told = fault.details.get(CONTENT).and_then(Value::as_array);
        let told = told.into_iter().flatten().filter_map(block).collect::<Vec<_>>();
        if told.is_empty() { vec![McpContent::text(fault.to_string())] } else { told }
    });
    McpCallResult { content, is_error: Some(true), ..McpCallResult::default() }.into()
}

fn block(value: &Value) -> Option<McpContent> {
    serde::Deserialize::deserialize(value).ok()
}

async fn of_server(
    handle: &Handle,
    run: &Run,
    outputs: &Object,
    revision: McpRevision,
) -> McpOpen<McpCallResult> {
    let mut content = Vec::new();
    let mut left = RESTORED_BYTES_MAX;
    for value in outputs.get(CONTENT).and_then(Value::as_array).into_iter().flatten() {
        let whole = match reference(value) {
            None => block(value),
            Some(reference) => {
                let file = output(run, reference);
                match restored(handle, file, &mut left).await {
                    Some(bytes) => whole(value, reference, &bytes),
                    None => file.map(|file| McpContent::Link(file_link(file).into())),
                }
            }
        };
        content.extend(whole);
    }
    let structured = outputs.get(STRUCTURED).cloned();
    let structured = structured.map(|value| match (revision.era(), value.is_object()) {
        (McpEra::Legacy, false) => json!({"value": value}),
        _ => value,
    });
    let meta = outputs.get(META).and_then(Value::as_object).cloned().map(McpMeta);
    let rest = outputs.get(REST).and_then(Value::as_object).cloned().unwrap_or_default();
    let known =
        McpCallResult { content, structured_content: structured, meta, ..McpCallResult::default() };
    McpOpen { known, rest }
}

/// The reference to a file that stands in a block, or in the resource in it.
fn reference(block: &Value) -> Option<&Value> {
    block.get(KEPT).or_else(|| block.get("resource")?.get(KEPT))
}

/// The file that a reference means: one that this very run wrote.
fn output<'a>(run: &'a Run, reference: &Value) -> Option<&'a Artifact> {
    let name = reference.get("output")?.as_str()?;
    let named = |file: &&Artifact| {
        file.direction == Direction::Out
            && file.key.as_deref() == Some(name)
            && file.path.run() == Some(run.key.run.as_str())
    };
    run.artifacts.iter().find(named)
}

/// What a file contains, if there is room for it. Whoever may see a run's outputs may see those
/// that are files, so the core reads them.
async fn restored(handle: &Handle, file: Option<&Artifact>, left: &mut u64) -> Option<Vec<u8>> {
    let file = file.filter(|file| file.bytes <= *left)?;
    let body = handle.files().read(&Caller::core(), &file.world, &file.path, None).await.ok()?;
    *left -= file.bytes;
    let mut stream = body.stream;
    let mut bytes = Vec::with_capacity(usize::try_from(file.bytes).ok()?);
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece.ok()?);
    }
    Some(bytes)
}

/// A block with what its file contains.
fn whole(value: &Value, reference: &Value, bytes: &[u8]) -> Option<McpContent> {
    let field = reference.get("field")?.as_str()?;
    let text = match field {
        "text" => String::from_utf8(bytes.to_vec()).ok()?,
        _ => STANDARD.encode(bytes),
    };
    let mut value = value.clone();
    let holder = match value.get(KEPT) {
        Some(_) => value.as_object_mut()?,
        None => value.get_mut("resource")?.as_object_mut()?,
    };
    holder.remove(KEPT);
    holder.insert(field.to_owned(), text.into());
    block(&value)
}

/// A link to a file.
pub(crate) fn file_link(file: &Artifact) -> McpResource {
    let last = file.path.as_str().rsplit('/').next().unwrap_or_default();
    let mut meta = Object::new();
    meta.insert(key::WHARF_FILE.to_owned(), file_meta(file).into());
    McpResource {
        uri: file.path.uri(&file.world),
        name: last.to_owned(),
        mime_type: Some(file.media_type.clone()),
        size: Some(file.bytes.into()),
        meta: Some(meta),
        ..McpResource::default()
    }
}

/// What is said of a file beside a link to it: its hash, its size, and where REST has it.
pub(crate) fn file_meta(file: &Artifact) -> Object {
    let mut meta = Object::new();
    if let Some(b3) = &file.b3 {
        meta.insert("b3".to_owned(), b3.to_string().into());
    }
    meta.insert("bytes".to_owned(), file.bytes.into());
    meta.insert("href".to_owned(), rest_address(file).into());
    meta
}

fn rest_address(file: &Artifact) -> String {
    let path: &WorldPath = &file.path;
    format!("/v1/worlds/{}/files{}", file.world, escaped(path.as_str(), "/@"))
}
