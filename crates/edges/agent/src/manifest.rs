//! Reading `opensentience.agent.json`: strictly, with bounds, and errors that name the field.

use std::path::Path;

use serde_json::Value;
use wharf_domain::agent::{AgentLimits, AgentManifest, Entrypoint};
use wharf_vocab::{AgentId, Code, Digest, Fault, Object};

/// The file's name in an agent's folder.
pub(crate) const FILE_NAME: &str = "opensentience.agent.json";

const FILE_BYTES_MAX: u64 = 256_000;
const TEXT_BYTES_MAX: usize = 2_000;
const PROGRAM_BYTES_MAX: usize = 4_096;
const LIST_ITEMS_MAX: usize = 500;
const ITEM_BYTES_MAX: usize = 300;

/// A manifest that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    pub(crate) id: AgentId,
    pub(crate) hash: Digest,
    pub(crate) manifest: AgentManifest,
}

/// Reads the manifest in a folder.
pub(crate) async fn read(folder: &Path) -> Result<Read, Fault> {
    let path = folder.join(FILE_NAME);
    let unreadable = |why: &str| invalid(format!("{} {why}.", path.display()));
    let length = match tokio::fs::metadata(&path).await {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Err(unreadable("is not a file")),
        Err(_) => return Err(unreadable("is not there or cannot be read")),
    };
    if length > FILE_BYTES_MAX {
        return Err(unreadable(&format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
    let bytes = tokio::fs::read(&path).await.map_err(|_| unreadable("cannot be read"))?;
    parse(&bytes)
}

/// Reads a manifest's bytes.
pub(crate) fn parse(bytes: &[u8]) -> Result<Read, Fault> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        invalid(format!("The manifest is not JSON ({place})."))
    })?;
    let Value::Object(fields) = value else {
        return Err(invalid("The manifest is not a JSON object.".to_owned()));
    };
    let id = text(&fields, "id", TEXT_BYTES_MAX)?;
    let id = AgentId::new(&id).map_err(|error| wrong("id", &error.to_string()))?;
    let manifest = AgentManifest {
        name: optional_text(&fields, "name")?.unwrap_or_else(|| id.to_string()),
        version: text(&fields, "version", TEXT_BYTES_MAX)?,
        description: optional_text(&fields, "description")?.unwrap_or_default(),
        entrypoint: entrypoint(&fields)?,
        permissions: permissions(&fields)?,
        capabilities: match fields.get("capabilities") {
            Some(_) => list(&fields, "capabilities")?,
            None => Vec::new(),
        },
        limits: AgentLimits::default(),
        isolation: None,
        inherits_connection: false,
        source: None,
    };
    Ok(Read { id, hash: Digest::of_bytes(bytes), manifest })
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
    let program = text(entry, "value", PROGRAM_BYTES_MAX)
        .map_err(|_| wrong("entrypoint.value", "it must be the path of a program"))?;
    if program.chars().any(char::is_control) {
        return Err(wrong("entrypoint.value", "it must not hold control characters"));
    }
    let args = match entry.get("args") {
        Some(_) => list(entry, "args")
            .map_err(|_| wrong("entrypoint.args", "it must be a list of text"))?,
        None => Vec::new(),
    };
    Ok(Entrypoint { program, args })
}

fn permissions(fields: &Object) -> Result<Vec<String>, Fault> {
    let permissions = list(fields, "permissions")?;
    for permission in &permissions {
        let well_formed = permission.split(':').count() >= 2
            && !permission.chars().any(|c| c.is_whitespace() || c.is_control());
        if !well_formed {
            return Err(wrong("permissions", "each must look like domain:action:pattern"));
        }
    }
    Ok(permissions)
}

fn text(fields: &Object, name: &str, bytes_max: usize) -> Result<String, Fault> {
    match fields.get(name) {
        Some(Value::String(text)) if (1..=bytes_max).contains(&text.len()) => Ok(text.clone()),
        Some(Value::String(_)) => Err(wrong(name, &format!("it must have 1 to {bytes_max} bytes"))),
        Some(_) => Err(wrong(name, "it must be text")),
        None => Err(invalid(format!("The manifest's field {name} is missing."))),
    }
}

fn optional_text(fields: &Object, name: &str) -> Result<Option<String>, Fault> {
    match fields.get(name) {
        Some(_) => text(fields, name, TEXT_BYTES_MAX).map(Some),
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
    let item = |item: &Value| match item {
        Value::String(text) if text.len() <= ITEM_BYTES_MAX => Ok(text.clone()),
        _ => Err(wrong(name, &format!("each item must be text of at most {ITEM_BYTES_MAX} bytes"))),
    };
    items.iter().map(item).collect()
}

fn wrong(field: &str, why: &str) -> Fault {
    invalid(format!("The manifest's field {field} cannot be used: {why}.")).with("field", field)
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::AgentManifestInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn valid() -> Value {
        json!({
            "manifest_version": 1, "id": "dev.example.hello", "version": "0.1.0",
            "entrypoint": {"type": "command", "value": "./hello", "args": ["--loud"]},
            "permissions": ["network:egress:example.dev"], "trust_score": 100,
        })
    }

    #[test]
    fn a_manifest_is_read_and_its_hash_is_that_of_its_bytes() {
        let bytes = valid().to_string();
        let read = parse(bytes.as_bytes()).expect("valid");
        assert_eq!(read.id.as_str(), "dev.example.hello");
        assert_eq!(read.manifest.name, "dev.example.hello");
        assert_eq!(read.manifest.entrypoint.args, ["--loud"]);
        let spaced = bytes.replace('{', "{ ");
        assert_ne!(parse(spaced.as_bytes()).expect("valid").hash, read.hash);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (field, value, named) in [
            ("id", json!(7), "id"),
            ("id", json!("a/b"), "id"),
            ("version", Value::Null, "version"),
            ("entrypoint", json!("./hello"), "entrypoint"),
            ("entrypoint", json!({"type": "release", "value": "x"}), "entrypoint.type"),
            ("entrypoint", json!({"type": "command"}), "entrypoint.value"),
            (
                "entrypoint",
                json!({"type": "command", "value": "x", "args": "y"}),
                "entrypoint.args",
            ),
            ("permissions", json!(["no colon"]), "permissions"),
            ("permissions", json!("all"), "permissions"),
            ("capabilities", json!([7]), "capabilities"),
        ] {
            let mut manifest = valid();
            manifest[field] = value;
            let fault = parse(manifest.to_string().as_bytes()).expect_err(named);
            assert!(fault.is(Code::AgentManifestInvalid));
            assert!(fault.message.contains(named), "{named}: {fault}");
        }
        for bad in [&b"[]"[..], b"{", b"\xff"] {
            assert!(parse(bad).is_err());
        }
        let mut missing = valid();
        missing.as_object_mut().expect("an object").remove("permissions");
        assert!(parse(missing.to_string().as_bytes()).is_err());
    }
}
