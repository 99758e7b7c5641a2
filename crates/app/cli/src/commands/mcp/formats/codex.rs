//! Codex: `[mcp_servers.NAME]` in `config.toml`.

use toml::Value;

use super::{ConfigPlace, ImportedConfig, ImportedEntry, take};

/// Reads `config.toml`.
pub(super) fn read(text: &str, around: &ConfigPlace<'_>) -> Result<ImportedConfig, String> {
    let file = text.parse::<toml::Table>().map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        format!("is not TOML (line {line})")
    })?;
    let mut config = ImportedConfig::default();
    let Some(Value::Table(servers)) = file.get("mcp_servers") else { return Ok(config) };
    for (name, server) in servers {
        let Value::Table(server) = server else {
            config.left_out.push(format!("{name}: it is no table"));
            continue;
        };
        match entry(server) {
            Ok(entry) => take(&mut config, name, entry, around),
            Err(why) => config.left_out.push(format!("{name}: {why}")),
        }
    }
    Ok(config)
}

fn entry(server: &toml::Table) -> Result<ImportedEntry, String> {
    if server.get("enabled").and_then(Value::as_bool) == Some(false) {
        return Err("it is switched off there".to_owned());
    }
    let mut entry = ImportedEntry {
        command: text(server, "command"),
        args: texts(server.get("args"))?,
        cwd: text(server, "cwd"),
        url: text(server, "url"),
        env: pairs(server.get("env"))?,
        headers: pairs(server.get("http_headers"))?,
        passed_on: texts(server.get("env_vars"))?,
        bearer_variable: text(server, "bearer_token_env_var"),
        variable_headers: pairs(server.get("env_http_headers"))?,
        left_out: Vec::new(),
    };
    let taken = [
        "command",
        "args",
        "cwd",
        "url",
        "env",
        "http_headers",
        "env_vars",
        "enabled",
        "required",
        "bearer_token_env_var",
        "env_http_headers",
    ];
    for key in server.keys().filter(|key| !taken.contains(&key.as_str())) {
        entry.left_out.push(match key.as_str() {
            "bearer_token" => "bearer_token: keep it with wharf secret set".to_owned(),
            "enabled_tools" | "disabled_tools" => {
                format!("{key}: use the rights of a token instead")
            }
            other => other.to_owned(),
        });
    }
    Ok(entry)
}

fn text(table: &toml::Table, key: &str) -> Option<String> {
    table.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(list: Option<&Value>) -> Result<Vec<String>, String> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or("its args are no list")?;
    let each = |item: &Value| {
        item.as_str().map(str::to_owned).ok_or_else(|| "one of its args is no text".to_owned())
    };
    list.iter().map(each).collect()
}

fn pairs(table: Option<&Value>) -> Result<Vec<(String, String)>, String> {
    let Some(table) = table else { return Ok(Vec::new()) };
    let table = table.as_table().ok_or("its env or headers are no table")?;
    let each = |(name, value): (&String, &Value)| {
        let value = value.as_str().ok_or_else(|| format!("{name} is no text"))?;
        Ok((name.clone(), value.to_owned()))
    };
    table.iter().map(each).collect()
}
