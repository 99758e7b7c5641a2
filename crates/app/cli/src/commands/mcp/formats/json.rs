//! The formats in JSON: `mcpServers` of Claude, Cursor and Gemini CLI, `servers` of VS Code.

use serde_json::{Map, Value};

use super::{ClientFormat, ConfigPlace, ImportedConfig, ImportedEntry, jsonc, take};

/// Reads one of them.
pub(super) fn read(
    format: ClientFormat,
    text: &str,
    around: &ConfigPlace<'_>,
) -> Result<ImportedConfig, String> {
    let file = jsonc::parse(text)?;
    let Value::Object(file) = file else { return Err("is no object".to_owned()) };
    let inputs = file.get("inputs").map(inputs).unwrap_or_default();
    let around = ConfigPlace { inputs, bare: format == ClientFormat::Gemini, ..*around };
    let mut config = ImportedConfig::default();
    // Whoever writes a file for one client may well keep it in another one's shape.
    for key in ["mcpServers", "servers"] {
        servers(format, file.get(key), &around, &mut config);
    }
    let nested = file.get("mcp").and_then(|mcp| mcp.get("servers"));
    servers(format, nested, &around, &mut config);
    if let Some(Value::Object(projects)) = file.get("projects") {
        for (folder, project) in projects {
            let around = ConfigPlace {
                project: std::path::Path::new(folder),
                inputs: around.inputs.clone(),
                ..around
            };
            servers(format, project.get("mcpServers"), &around, &mut config);
        }
    }
    Ok(config)
}

/// What VS Code asks its user for. Only what is no password has a default that counts.
fn inputs(inputs: &Value) -> std::collections::BTreeMap<String, Option<String>> {
    let each = |input: &Value| {
        let id = input.get("id")?.as_str()?.to_owned();
        let is_secret = input.get("password").and_then(Value::as_bool).unwrap_or(false);
        let default = input.get("default").and_then(Value::as_str).map(str::to_owned);
        Some((id, default.filter(|_| !is_secret)))
    };
    inputs.as_array().into_iter().flatten().filter_map(each).collect()
}

fn servers(
    format: ClientFormat,
    servers: Option<&Value>,
    around: &ConfigPlace<'_>,
    config: &mut ImportedConfig,
) {
    let Some(Value::Object(servers)) = servers else { return };
    for (name, server) in servers {
        let Value::Object(server) = server else {
            config.left_out.push(format!("{name}: it is no object"));
            continue;
        };
        if config.servers.iter().any(|known| known.name == *name) {
            config.left_out.push(format!("{name}: it is there twice; the first counts"));
            continue;
        }
        match entry(format, server) {
            Ok(entry) => take(config, name, entry, around),
            Err(why) => config.left_out.push(format!("{name}: {why}")),
        }
    }
}

fn entry(format: ClientFormat, server: &Map<String, Value>) -> Result<ImportedEntry, String> {
    if is_true(server, "disabled") {
        return Err("it is switched off there".to_owned());
    }
    let kind = text(server, "type").or_else(|| text(server, "transport")).unwrap_or_default();
    if matches!(kind.as_str(), "ws" | "websocket") {
        return Err("it is reached over a WebSocket, which MCP does not have".to_owned());
    }
    let mut entry = ImportedEntry {
        command: text(server, "command"),
        args: texts(server.get("args"))?,
        cwd: text(server, "cwd"),
        url: text(server, "httpUrl").or_else(|| text(server, "url")),
        env: pairs(server.get("env"))?,
        headers: pairs(server.get("headers"))?,
        ..ImportedEntry::default()
    };
    if let Some(Value::Object(asked)) = server.get("requestInit") {
        entry.headers.extend(pairs(asked.get("headers"))?);
    }
    let taken = [
        "type",
        "transport",
        "command",
        "args",
        "cwd",
        "url",
        "httpUrl",
        "env",
        "headers",
        "requestInit",
        "disabled",
        "description",
        "name",
        "gallery",
        "version",
    ];
    for key in server.keys().filter(|key| !taken.contains(&key.as_str())) {
        entry.left_out.push(match (format, key.as_str()) {
            (_, "headersHelper") => "headersHelper: a program that makes headers".to_owned(),
            (_, "envFile") => "envFile: set its variables with --env and --env-secret".to_owned(),
            (ClientFormat::Gemini, "trust") => "trust: calls are approved by Wharf".to_owned(),
            (_, "includeTools" | "excludeTools" | "autoApprove" | "alwaysAllow") => {
                format!("{key}: use the rights of a token instead")
            }
            (_, other) => other.to_owned(),
        });
    }
    Ok(entry)
}

fn is_true(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A list of text.
pub(super) fn texts(list: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or("its args are no list")?;
    let each = |item: &Value| plain(item).ok_or_else(|| "one of its args is no text".to_owned());
    list.iter().map(each).collect()
}

/// The members of an object of text.
pub(super) fn pairs(object: Option<&Value>) -> Result<Vec<(String, String)>, String> {
    let Some(object) = object.filter(|object| !object.is_null()) else { return Ok(Vec::new()) };
    let object = object.as_object().ok_or("its env or headers are no object")?;
    let each = |(name, value): (&String, &Value)| {
        let value = plain(value).ok_or_else(|| format!("{name} is no text"))?;
        Ok((name.clone(), value))
    };
    object.iter().map(each).collect()
}

/// Text, or a number or flag that was meant as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
