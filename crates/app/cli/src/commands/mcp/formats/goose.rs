//! Goose: `extensions` in `config.yaml`.

use serde_json::{Map, Value};

use super::{ConfigPlace, ImportedConfig, ImportedEntry, json, take, yaml};

/// Reads `config.yaml`.
pub(super) fn read(text: &str, around: &ConfigPlace<'_>) -> Result<ImportedConfig, String> {
    let file = yaml::parse(text)?;
    // Older files have everything one level further down.
    let extensions =
        file.get("extensions").or_else(|| file.get("config").and_then(|it| it.get("extensions")));
    let mut config = ImportedConfig::default();
    let Some(Value::Object(extensions)) = extensions else { return Ok(config) };
    for (name, extension) in extensions {
        let Value::Object(extension) = extension else {
            config.left_out.push(format!("{name}: it is no map"));
            continue;
        };
        match entry(extension) {
            Ok(entry) => take(&mut config, name, entry, around),
            Err(why) => config.left_out.push(format!("{name}: {why}")),
        }
    }
    Ok(config)
}

fn entry(extension: &Map<String, Value>) -> Result<ImportedEntry, String> {
    let text = |key: &str| extension.get(key).and_then(Value::as_str).map(str::to_owned);
    if extension.get("enabled").and_then(Value::as_bool) == Some(false) {
        return Err("it is switched off there".to_owned());
    }
    match text("type").as_deref() {
        Some("stdio" | "sse" | "streamable_http") | None => {}
        Some(_) => return Err("it is a part of Goose, not a server".to_owned()),
    }
    let mut entry = ImportedEntry {
        command: text("cmd"),
        args: json::texts(extension.get("args"))?,
        url: text("uri"),
        env: json::pairs(extension.get("envs"))?,
        headers: json::pairs(extension.get("headers"))?,
        passed_on: json::texts(extension.get("env_keys"))?,
        ..ImportedEntry::default()
    };
    let taken = [
        "type",
        "cmd",
        "args",
        "uri",
        "envs",
        "headers",
        "env_keys",
        "enabled",
        "name",
        "description",
        "display_name",
        "bundled",
    ];
    let others = extension.keys().filter(|key| !taken.contains(&key.as_str()));
    entry.left_out.extend(others.cloned());
    Ok(entry)
}
