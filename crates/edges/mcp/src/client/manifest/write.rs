//! Writing a manifest, so that reading it gives the same again.

use serde::Serialize;
use toml::{Table, Value};
use wharf_domain::Manifest;
use wharf_domain::provider::{McpDetails, McpPackage, McpServing, ProviderLimits, Usage};
use wharf_vocab::{Code, Fault, ProviderId};

use super::{of_secrets, own_program, parse};

/// The text of a manifest. What could not be read back is refused with what reading it says.
pub(crate) fn write(id: &ProviderId, manifest: &Manifest) -> Result<String, Fault> {
    let details = manifest.mcp().ok_or_else(|| {
        Fault::new(Code::CoreInternal, "The manifest is not that of an MCP server.")
    })?;
    let mut table = Table::new();
    put(&mut table, "name", id.as_str());
    if !manifest.description.is_empty() {
        put(&mut table, "description", manifest.description.as_str());
    }
    start(&mut table, manifest, details);
    let derived: Vec<_> = of_secrets(details).collect();
    let asked = manifest.permissions.iter().filter(|permission| !derived.contains(permission));
    put_list(&mut table, "permissions", asked.cloned());
    if let Some(isolation) = manifest.isolation {
        put(&mut table, "isolation", isolation.as_str());
    }
    rights(&mut table, details);
    trust(&mut table, details);
    limits(&mut table, &manifest.limits);
    let text = toml::to_string_pretty(&table)
        .map_err(|_| Fault::new(Code::CoreInternal, "The manifest cannot be written."))?;
    parse(text.as_bytes())?;
    Ok(text)
}

/// How it is started or reached.
fn start(table: &mut Table, manifest: &Manifest, details: &McpDetails) {
    match &details.how {
        McpServing::Url { url, allow_private } => {
            put(table, "url", url.as_str());
            if *allow_private {
                put(table, "allow_private", true);
            }
        }
        McpServing::Command => {
            let entry = &manifest.entrypoint;
            let own = details.package.as_ref().map(own_program);
            if own.as_deref() != Some(&entry.program) || !entry.args.is_empty() {
                let words = std::iter::once(&entry.program).chain(&entry.args).cloned();
                put_list(table, "command", words);
            }
        }
    }
    match &details.package {
        Some(McpPackage::Npm(package)) => put(table, "npm", package.as_str()),
        Some(McpPackage::Pypi(package)) => put(table, "pypi", package.as_str()),
        None => {}
    }
}

/// Secrets and variables.
fn rights(table: &mut Table, details: &McpDetails) {
    if let Some(name) = &details.token_secret {
        put(table, "token_secret", name.as_str());
    }
    let secrets = |(key, name): (&String, &wharf_vocab::SecretName)| {
        (key.clone(), Value::from(name.as_str()))
    };
    put_table(table, "header_secrets", details.header_secrets.iter().map(secrets).collect());
    put_table(table, "env_secrets", details.env_secrets.iter().map(secrets).collect());
    let env = details.env.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    put_table(table, "env", env.collect());
    if let Some(login) = &details.oauth {
        let mut oauth = Table::new();
        if let Some(client) = &login.client_id {
            put(&mut oauth, "client_id", client.as_str());
        }
        if let Some(secret) = &login.client_secret {
            put(&mut oauth, "client_secret", secret.as_str());
        }
        if let Some(issuer) = &login.issuer {
            put(&mut oauth, "issuer", issuer.as_str());
        }
        put_list(&mut oauth, "scopes", login.scopes.iter().cloned());
        put(table, "oauth", oauth);
    }
}

/// How far it is trusted.
fn trust(table: &mut Table, details: &McpDetails) {
    if details.accept_new {
        put(table, "accept_new", true);
    }
    if !details.trust_annotations {
        put(table, "trust_annotations", false);
    }
    if let Some(level) = details.sandbox {
        put(table, "sandbox", level.as_str());
    }
    put_number(table, "idle_s", details.idle_s);
    for (name, value, usual) in [
        ("era", word(&details.era), word(&wharf_domain::provider::McpEraChoice::default())),
        ("roots", word(&details.roots), word(&wharf_domain::provider::McpRoots::default())),
        ("retain", word(&details.retain), word(&wharf_vocab::Retain::default())),
        ("sampling", details.sampling.as_ref().and_then(word), None),
    ] {
        if let Some(value) = value.filter(|value| Some(value) != usual.as_ref()) {
            put(table, name, value);
        }
    }
}

fn limits(table: &mut Table, limits: &ProviderLimits) {
    put_number(table, "max_concurrency", limits.calls_max.map(u64::from));
    if let Some(rate) = limits.rate {
        let per = match rate.per_ms {
            1_000 => "second",
            60_000 => "minute",
            3_600_000 => "hour",
            _ => "day",
        };
        put(table, "rate_limit", format!("{}/{per}", rate.count));
    }
    if let Some(ms) = limits.call_ms {
        #[expect(clippy::cast_precision_loss, reason = "a day has few enough milliseconds")]
        put(table, "timeout_s", ms as f64 / 1_000.0);
    }
    let Usage { memory_bytes, disk_bytes, cpu_ms, cpu_millicores, processes, open_files } =
        limits.usage.clone();
    let mut usage = Table::new();
    let texts = [
        ("memory", memory_bytes.map(|bytes| bytes.to_string())),
        ("disk", disk_bytes.map(|bytes| bytes.to_string())),
        ("cpu_time", cpu_ms.map(|ms| format!("{ms}ms"))),
        ("cpu", cpu_millicores.map(|share| format!("{share}m"))),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            put(&mut usage, name, text);
        }
    }
    put_number(&mut usage, "processes", processes);
    put_number(&mut usage, "open_files", open_files);
    put_table(table, "resources", usage);
}

/// The word of an enum.
fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

fn put(table: &mut Table, name: &str, value: impl Into<Value>) {
    table.insert(name.to_owned(), value.into());
}

fn put_number(table: &mut Table, name: &str, number: Option<u64>) {
    if let Some(number) = number {
        put(table, name, i64::try_from(number).unwrap_or(i64::MAX));
    }
}

fn put_list(table: &mut Table, name: &str, items: impl Iterator<Item = String>) {
    let items: Vec<_> = items.map(Value::from).collect();
    if !items.is_empty() {
        put(table, name, items);
    }
}

fn put_table(table: &mut Table, name: &str, items: Table) {
    if !items.is_empty() {
        put(table, name, items);
    }
}
