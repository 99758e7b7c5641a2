//! Reading `opensentience.agent.json`: strictly, with bounds, and errors that name the field.
//!
//! Fields this core knows nothing of are left alone, because authors add some. Fields it only
//! shows are bounded and never believed.

use std::path::Path;

use serde_json::Value;
use wharf_domain::provider::{AgentDetails, Entrypoint, Manifest, ProviderKind, ProviderLimits};
use wharf_hosting::{
    ManifestFields, ManifestFile, ReadManifest, open_plain, positive_ms, rate, read_bounded,
};
use wharf_vocab::{Code, Digest, Fault, IdError, ProviderId};
use wharf_wire::strict;

/// The file's name in an agent's folder.
pub(crate) const FILE_NAME: &str = "opensentience.agent.json";

const ID_BYTES_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 200;
const VERSION_BYTES_MAX: usize = 100;
const TEXT_BYTES_MAX: usize = 2_000;
const PROGRAM_BYTES_MAX: usize = 4_096;
const ITEM_BYTES_MAX: usize = 300;
/// Fields that are shown to people, if at all.
const SHOWN_FIELDS: [&str; 9] = [
    "tool_summary",
    "keywords",
    "integration_points",
    "docs_url",
    "homepage_url",
    "repository_url",
    "publisher",
    "verification",
    "trust_score",
];
const SHOWN_BYTES_MAX: usize = 20_000;
const AN_OBJECT: &str = "an object";

/// Where manifests of agents stand.
pub(crate) const FILE: ManifestFile = ManifestFile {
    name: FILE_NAME,
    invalid: Code::AgentManifestInvalid,
    read,
    read_again: |folder, _| read(folder),
};

/// Reads the manifest in a folder. It blocks, but only on a plain file.
pub(crate) fn read(folder: &Path) -> Result<ReadManifest, Fault> {
    let path = folder.join(FILE_NAME);
    let bytes = read_bounded(open_plain(&path), "is not a plain file")
        .map_err(|why| invalid(format!("{} {why}.", path.display())))?;
    parse(&bytes)
}

/// Reads a manifest's bytes.
pub(crate) fn parse(bytes: &[u8]) -> Result<ReadManifest, Fault> {
    let value = strict::read(bytes).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        match error.is_data() {
            true => invalid(format!("A key stands twice in the manifest ({place}).")),
            false => invalid(format!("The manifest is not JSON ({place}).")),
        }
    })?;
    let Value::Object(fields) = value else {
        return Err(invalid("The manifest is not a JSON object.".to_owned()));
    };
    let fields = ManifestFields::new(&fields, Code::AgentManifestInvalid);
    version_of_manifest(&fields)?;
    shown_only(&fields)?;
    let id = id(&fields)?;
    let permissions = fields.permissions(ITEM_BYTES_MAX)?;
    let manifest = Manifest {
        name: optional_text(&fields, "name", NAME_BYTES_MAX)?.unwrap_or_else(|| id.to_string()),
        version: fields.text("version", VERSION_BYTES_MAX)?,
        description: optional_text(&fields, "description", TEXT_BYTES_MAX)?.unwrap_or_default(),
        entrypoint: entrypoint(&fields)?,
        permissions: permissions
            .ok_or_else(|| fields.wrong("permissions", "it must be a list of text"))?,
        limits: limits(&fields)?,
        isolation: fields.isolation()?,
        kind: ProviderKind::Agent(AgentDetails {
            capabilities: fields.texts("capabilities", ITEM_BYTES_MAX)?.unwrap_or_default(),
            inherits_connection: inherits_connection(&fields)?,
            source: source(&fields)?,
        }),
    };
    Ok(ReadManifest { id, hash: Digest::of_bytes(bytes), manifest })
}

fn version_of_manifest(fields: &ManifestFields<'_>) -> Result<(), Fault> {
    match fields.get("manifest_version") {
        None => Ok(()),
        Some(version) if version.as_u64() == Some(1) => Ok(()),
        Some(_) => Err(fields.wrong("manifest_version", "this core knows version 1 only")),
    }
}

fn shown_only(fields: &ManifestFields<'_>) -> Result<(), Fault> {
    for name in SHOWN_FIELDS {
        if fields.get(name).is_some_and(|value| value.to_string().len() > SHOWN_BYTES_MAX) {
            return Err(fields.wrong(name, &format!("it is larger than {SHOWN_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

/// The id, which older manifests call `agent_id`.
fn id(fields: &ManifestFields<'_>) -> Result<ProviderId, Fault> {
    let older = fields.get("id").is_none() && fields.get("agent_id").is_some();
    let name = if older { "agent_id" } else { "id" };
    let id = fields.text(name, ID_BYTES_MAX)?;
    match ProviderId::new(&id) {
        // A reference belongs to a tool server.
        Ok(_) if id.contains('/') => Err(fields.wrong(name, "it must not contain a slash")),
        id => id.map_err(|_| fields.wrong(name, &IdError { what: "an agent id" }.to_string())),
    }
}

fn entrypoint(fields: &ManifestFields<'_>) -> Result<Entrypoint, Fault> {
    let entry = fields.within("entrypoint.", AN_OBJECT)?;
    let entry =
        entry.ok_or_else(|| fields.wrong("entrypoint", &format!("it must be {AN_OBJECT}")))?;
    match entry.get("type").and_then(Value::as_str) {
        Some("command") => {}
        Some(_) => return Err(entry.wrong("type", "this core starts only `command`")),
        None => return Err(entry.wrong("type", "it must be text")),
    }
    let program = entry.text("value", PROGRAM_BYTES_MAX)?;
    if program.chars().any(char::is_control) {
        return Err(entry.wrong("value", "it must not hold control characters"));
    }
    let args = entry.texts("args", PROGRAM_BYTES_MAX)?.unwrap_or_default();
    if let Some(at) = args.iter().position(|arg| arg.contains('\0')) {
        let why = format!("it must be text of at most {PROGRAM_BYTES_MAX} bytes");
        return Err(entry.wrong(&format!("args[{at}]"), &why));
    }
    Ok(Entrypoint { program, args })
}

fn limits(fields: &ManifestFields<'_>) -> Result<ProviderLimits, Fault> {
    const COUNT: &str = "a whole number above zero";
    let mut limits = ProviderLimits::default();
    if let Some(given) = fields.within("execution_limits.", AN_OBJECT)? {
        let time = "a time such as 15s";
        limits.call_ms = given.word("max_tool_call_duration", time, positive_ms)?;
        let calls = given.whole("max_concurrent_calls", 1, COUNT)?;
        limits.calls_max = calls.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        limits.rate = given.word("rate_limit", "a rate such as 60/minute", rate)?;
    }
    if let Some(given) = fields.within("resources.", AN_OBJECT)? {
        limits.usage = given.usage(COUNT)?;
    }
    Ok(limits)
}

fn inherits_connection(fields: &ManifestFields<'_>) -> Result<bool, Fault> {
    let inherits = fields.word("connection", "socket or descriptor", |word| match word {
        "socket" => Some(false),
        "descriptor" => Some(true),
        _ => None,
    });
    Ok(inherits?.unwrap_or(false))
}

fn source(fields: &ManifestFields<'_>) -> Result<Option<String>, Fault> {
    let Some(source) = fields.within("source.", AN_OBJECT)? else { return Ok(None) };
    let url = source.text("git_url", TEXT_BYTES_MAX)?;
    let pinned = optional_text(&source, "ref", NAME_BYTES_MAX)?;
    Ok(Some(pinned.map_or(url.clone(), |pinned| format!("{url}#{pinned}"))))
}

/// Text that may be left out or left empty.
fn optional_text(
    fields: &ManifestFields<'_>,
    name: &str,
    bytes_max: usize,
) -> Result<Option<String>, Fault> {
    match fields.get(name).and_then(Value::as_str) {
        Some("") => Ok(None),
        _ => fields.optional_text(name, bytes_max),
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::AgentManifestInvalid, message)
}

#[cfg(test)]
mod tests;
