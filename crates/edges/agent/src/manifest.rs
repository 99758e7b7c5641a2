//! Reading `opensentience.agent.json`: strictly, with bounds, and errors that name the field.
//!
//! Fields this core knows nothing of are left alone, because authors add some. Fields it only
//! shows are bounded and never believed.

use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;
use wharf_domain::permission::Permission;
use wharf_domain::provider::{
    AgentDetails, Entrypoint, Manifest, ProviderKind, ProviderLimits, Usage, quantity,
};
use wharf_hosting::{ManifestFile, ReadManifest, open_plain};
use wharf_vocab::{Code, Digest, Fault, IdError, Isolation, Object, ProviderId, shown};
use wharf_wire::strict;

/// The file's name in an agent's folder.
pub(crate) const FILE_NAME: &str = "opensentience.agent.json";

const FILE_BYTES_MAX: u64 = 256_000;
const ID_BYTES_MAX: usize = 200;
const NAME_BYTES_MAX: usize = 200;
const VERSION_BYTES_MAX: usize = 100;
const TEXT_BYTES_MAX: usize = 2_000;
const PROGRAM_BYTES_MAX: usize = 4_096;
const LIST_ITEMS_MAX: usize = 500;
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

/// Where manifests of agents stand.
pub(crate) const FILE: ManifestFile =
    ManifestFile { name: FILE_NAME, invalid: Code::AgentManifestInvalid, read };

/// Reads the manifest in a folder. It blocks, but only on a plain file.
pub(crate) fn read(folder: &Path) -> Result<ReadManifest, Fault> {
    let path = folder.join(FILE_NAME);
    let unreadable = |why: &str| invalid(format!("{} {why}.", path.display()));
    let file = open_plain(&path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => unreadable("is not a plain file"),
        _ => unreadable("is not there or cannot be read"),
    })?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|_| unreadable("cannot be read"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(&format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
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
    version_of_manifest(&fields)?;
    shown_only(&fields)?;
    let id = id(&fields)?;
    let manifest = Manifest {
        name: optional_text(&fields, "name", NAME_BYTES_MAX)?.unwrap_or_else(|| id.to_string()),
        version: text(&fields, "version", VERSION_BYTES_MAX)?,
        description: optional_text(&fields, "description", TEXT_BYTES_MAX)?.unwrap_or_default(),
        entrypoint: entrypoint(&fields)?,
        permissions: permissions(&fields)?,
        limits: limits(&fields)?,
        isolation: isolation(&fields)?,
        kind: ProviderKind::Agent(AgentDetails {
            capabilities: match fields.get("capabilities") {
                Some(_) => list(&fields, "capabilities")?,
                None => Vec::new(),
            },
            inherits_connection: inherits_connection(&fields)?,
            source: source(&fields)?,
        }),
    };
    Ok(ReadManifest { id, hash: Digest::of_bytes(bytes), manifest })
}

fn version_of_manifest(fields: &Object) -> Result<(), Fault> {
    match fields.get("manifest_version") {
        None => Ok(()),
        Some(version) if version.as_u64() == Some(1) => Ok(()),
        Some(_) => Err(wrong("manifest_version", "this core knows version 1 only")),
    }
}

fn shown_only(fields: &Object) -> Result<(), Fault> {
    for name in SHOWN_FIELDS {
        if fields.get(name).is_some_and(|value| value.to_string().len() > SHOWN_BYTES_MAX) {
            return Err(wrong(name, &format!("it is larger than {SHOWN_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

/// The id, which older manifests call `agent_id`.
fn id(fields: &Object) -> Result<ProviderId, Fault> {
    let older = !fields.contains_key("id") && fields.contains_key("agent_id");
    let name = if older { "agent_id" } else { "id" };
    let id = text(fields, name, ID_BYTES_MAX)?;
    match ProviderId::new(&id) {
        // A reference belongs to a tool server.
        Ok(_) if id.contains('/') => Err(wrong(name, "it must not contain a slash")),
        id => id.map_err(|_| wrong(name, &IdError { what: "an agent id" }.to_string())),
    }
}

fn entrypoint(fields: &Object) -> Result<Entrypoint, Fault> {
    let Some(Value::Object(entry)) = fields.get("entrypoint") else {
        return Err(wrong("entrypoint", "it must be an object"));
    };
    match entry.get("type").and_then(Value::as_str) {
        Some("command") => {}
        Some(_) => return Err(wrong("entrypoint.type", "this core starts only `command`")),
        None => return Err(wrong("entrypoint.type", "it must be text")),
    }
    let program = text(entry, "entrypoint.value", PROGRAM_BYTES_MAX)?;
    if program.chars().any(char::is_control) {
        return Err(wrong("entrypoint.value", "it must not hold control characters"));
    }
    let args = match entry.get("args") {
        None => Vec::new(),
        Some(_) => arguments(entry)?,
    };
    Ok(Entrypoint { program, args })
}

fn arguments(entry: &Object) -> Result<Vec<String>, Fault> {
    let Some(Value::Array(items)) = entry.get("args") else {
        return Err(wrong("entrypoint.args", "it must be a list of text"));
    };
    if items.len() > LIST_ITEMS_MAX {
        return Err(wrong("entrypoint.args", &format!("it may have {LIST_ITEMS_MAX} items")));
    }
    let one = |(at, item): (usize, &Value)| match item {
        Value::String(text) if text.len() <= PROGRAM_BYTES_MAX && !text.contains('\0') => {
            Ok(text.clone())
        }
        _ => Err(wrong(
            &format!("entrypoint.args[{at}]"),
            &format!("it must be text of at most {PROGRAM_BYTES_MAX} bytes"),
        )),
    };
    items.iter().enumerate().map(one).collect()
}

fn permissions(fields: &Object) -> Result<Vec<String>, Fault> {
    let permissions = list(fields, "permissions")?;
    for (at, permission) in permissions.iter().enumerate() {
        Permission::parse(permission).map_err(|error| {
            let shown = shown(permission, usize::MAX);
            wrong(&format!("permissions[{at}]"), &format!("{shown} {error}"))
        })?;
    }
    Ok(permissions)
}

fn limits(fields: &Object) -> Result<ProviderLimits, Fault> {
    let mut limits = ProviderLimits::default();
    if let Some(given) = object(fields, "execution_limits")? {
        let name = |field: &str| format!("execution_limits.{field}");
        limits.call_ms = quantity(
            given.get("max_tool_call_duration"),
            &name("max_tool_call_duration"),
            "a time such as 15s",
            quantity::duration_ms,
        )?;
        limits.calls_max = count(given.get("max_concurrent_calls"), &name("max_concurrent_calls"))?
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        limits.rate = quantity(
            given.get("rate_limit"),
            &name("rate_limit"),
            "a rate such as 60/minute",
            quantity::rate,
        )?;
    }
    if let Some(given) = object(fields, "resources")? {
        let name = |field: &str| format!("resources.{field}");
        let size = |field: &str| {
            quantity(given.get(field), &name(field), "a size such as 256Mi", quantity::bytes)
        };
        limits.usage = Usage {
            memory_bytes: size("memory")?,
            disk_bytes: size("disk")?,
            cpu_ms: quantity(
                given.get("cpu_time"),
                &name("cpu_time"),
                "a time such as 60s",
                quantity::duration_ms,
            )?,
            cpu_millicores: quantity(
                given.get("cpu"),
                &name("cpu"),
                "a share such as 200m",
                quantity::millicores,
            )?,
            processes: count(given.get("processes"), &name("processes"))?,
            open_files: count(given.get("open_files"), &name("open_files"))?,
        };
    }
    Ok(limits)
}

fn isolation(fields: &Object) -> Result<Option<Isolation>, Fault> {
    match fields.get("isolation") {
        None => Ok(None),
        Some(Value::String(word)) if Isolation::parse(word).is_some() => Ok(Isolation::parse(word)),
        Some(_) => Err(wrong("isolation", "it must be shared, world or run")),
    }
}

fn inherits_connection(fields: &Object) -> Result<bool, Fault> {
    match fields.get("connection").map(Value::as_str) {
        None | Some(Some("socket")) => Ok(false),
        Some(Some("descriptor")) => Ok(true),
        Some(_) => Err(wrong("connection", "it must be socket or descriptor")),
    }
}

fn source(fields: &Object) -> Result<Option<String>, Fault> {
    let Some(source) = object(fields, "source")? else { return Ok(None) };
    let url = text(source, "source.git_url", TEXT_BYTES_MAX)?;
    let pinned = optional_text(source, "source.ref", NAME_BYTES_MAX)?;
    Ok(Some(pinned.map_or(url.clone(), |pinned| format!("{url}#{pinned}"))))
}

fn object<'a>(fields: &'a Object, name: &str) -> Result<Option<&'a Object>, Fault> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(wrong(name, "it must be an object")),
    }
}

fn quantity<T>(
    value: Option<&Value>,
    field: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Fault> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) if text.len() <= NAME_BYTES_MAX => {
            read(text).map(Some).ok_or_else(|| wrong(field, &format!("it must be {expected}")))
        }
        Some(_) => Err(wrong(field, &format!("it must be {expected}"))),
    }
}

fn count(value: Option<&Value>, field: &str) -> Result<Option<u64>, Fault> {
    match value {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count) if count > 0 => Ok(Some(count)),
            _ => Err(wrong(field, "it must be a whole number above zero")),
        },
    }
}

/// The key of a field that is named by its whole path.
fn key(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, key)| key)
}

fn text(fields: &Object, name: &str, bytes_max: usize) -> Result<String, Fault> {
    match fields.get(key(name)) {
        Some(Value::String(text)) if (1..=bytes_max).contains(&text.len()) => Ok(text.clone()),
        Some(Value::String(_)) => Err(wrong(name, &format!("it must have 1 to {bytes_max} bytes"))),
        Some(_) => Err(wrong(name, "it must be text")),
        None => Err(invalid(format!("The manifest's field {name} is missing."))),
    }
}

fn optional_text(fields: &Object, name: &str, bytes_max: usize) -> Result<Option<String>, Fault> {
    match fields.get(key(name)) {
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(_) => text(fields, name, bytes_max).map(Some),
        None => Ok(None),
    }
}

fn list(fields: &Object, name: &str) -> Result<Vec<String>, Fault> {
    let Some(Value::Array(items)) = fields.get(name) else {
        return Err(wrong(name, "it must be a list of text"));
    };
    if items.len() > LIST_ITEMS_MAX {
        return Err(wrong(name, &format!("it may have {LIST_ITEMS_MAX} items")));
    }
    let one = |(at, item): (usize, &Value)| match item {
        Value::String(text) if text.len() <= ITEM_BYTES_MAX => Ok(text.clone()),
        _ => Err(wrong(
            &format!("{name}[{at}]"),
            &format!("it must be text of at most {ITEM_BYTES_MAX} bytes"),
        )),
    };
    items.iter().enumerate().map(one).collect()
}

fn wrong(field: &str, why: &str) -> Fault {
    invalid(format!("The manifest's field {field} cannot be used: {why}.")).with("field", field)
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::AgentManifestInvalid, message)
}

#[cfg(test)]
mod tests;
