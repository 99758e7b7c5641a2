//! Reading `wharf.tool.toml`: strictly, with bounds, and errors that name the field.
//!
//! A key that is not known is an error, because a limit or a flag with a slip of the pen in its
//! name would otherwise silently not hold.

mod environment;
mod file;
mod schema;
mod serving;

use std::path::Path;

pub(crate) use self::environment::packages;

use serde_json::Value;
use wharf_domain::ToolDef;
use wharf_domain::provider::{
    Entrypoint, Manifest, ProviderKind, ProviderLimits, RESERVED_IDS, Serving, ToolServer,
};
use wharf_hosting::{ManifestFields, ReadManifest, toml_table};
use wharf_vocab::{Code, Digest, Fault, ProviderId, SandboxLevel, SecretName, ToolId};

/// The file's name in a tool server's folder.
pub(crate) const FILE_NAME: &str = "wharf.tool.toml";

const REFERENCE_BYTES_MAX: usize = 300;
const TEXT_BYTES_MAX: usize = 2_000;
const ITEM_BYTES_MAX: usize = 300;
const COUNT: &str = "a whole number, 1 or more";
/// A day; whatever takes longer is not waited for.
const TIMEOUT_S_MAX: f64 = 86_400.0;

/// All there may be at the top.
const KNOWN: &[&str] = &[
    "ref",
    "description",
    "handler",
    "python",
    "requirements",
    "wheels",
    "exec",
    "image",
    "url",
    "input_schema",
    "output_schema",
    "timeout_s",
    "max_concurrency",
    "max_cost_micro",
    "free",
    "side_effects",
    "requires_directive",
    "mock",
    "secrets",
    "token_secret",
    "permissions",
    "sandbox",
    "isolation",
    "required_outputs",
    "cold",
    "profile",
    "resources",
];
/// All there may be in `resources`.
const RESOURCES: &[&str] = &["memory", "disk", "cpu_time", "cpu", "processes", "open_files"];
/// What is for a process of this core only.
const OF_A_PROCESS: &[&str] = &["secrets", "permissions", "sandbox", "isolation", "resources"];

/// Reads the manifest in a folder, and the schemas it names. It blocks, but only on plain files.
pub(crate) fn read(folder: &Path) -> Result<ReadManifest, Fault> {
    let path = folder.join(FILE_NAME);
    let bytes = file::read(folder, FILE_NAME)
        .map_err(|why| invalid(format!("{} {why}.", path.display())))?;
    let table = toml_table(&bytes, Code::ToolManifestInvalid)?;
    let fields = ManifestFields::new(&table, Code::ToolManifestInvalid);
    fields.only(KNOWN)?;
    let mut read = vec![bytes];
    let tool = tool(&fields, folder, &mut read)?;
    let how = serving::read(&fields, folder)?;
    let environment = environment::read(&fields, &how, folder, &mut read)?;
    if !how.is_launched() {
        fields.none_of(OF_A_PROCESS, "it is for servers that this core starts")?;
    }
    let id = ProviderId::new(tool.tool.as_str())
        .map_err(|error| fields.wrong("ref", &error.to_string()))?;
    let token_secret = secret(&fields, "token_secret")?;
    let manifest = Manifest {
        name: id.to_string(),
        version: tool.tool.as_str().rsplit_once('@').map_or("", |(_, version)| version).to_owned(),
        description: tool.description.clone(),
        entrypoint: entrypoint(&how),
        permissions: permissions(&fields, token_secret.as_ref())?,
        limits: limits(&fields)?,
        isolation: fields.isolation()?,
        kind: ProviderKind::ToolServer(Box::new(ToolServer {
            how,
            tool,
            token_secret,
            calls_max: calls_max(&fields)?,
            required_outputs: required_outputs(&fields)?,
            https_only: https_only(&fields)?,
            sandbox: sandbox(&fields)?,
            environment,
        })),
    };
    Ok(ReadManifest { id, hash: hash(&read), manifest })
}

/// The manifest's bytes alone stand for themselves.
fn hash(read: &[Vec<u8>]) -> Digest {
    match read {
        [manifest] => Digest::of_bytes(manifest),
        all => Digest::of(&all.iter().map(Vec::as_slice).collect::<Vec<_>>()),
    }
}

/// The tool as the catalog shows it. What is read besides the manifest is added to `read`.
fn tool(
    fields: &ManifestFields<'_>,
    folder: &Path,
    read: &mut Vec<Vec<u8>>,
) -> Result<ToolDef, Fault> {
    let reference = fields.text("ref", REFERENCE_BYTES_MAX)?;
    let tool = ToolId::new(&reference).ok().filter(ToolId::is_reference).ok_or_else(|| {
        fields.wrong("ref", "it must be namespace/name@version in lower case, such as llm/chat@1")
    })?;
    let namespace = reference.split_once('/').map_or("", |(namespace, _)| namespace);
    if RESERVED_IDS.contains(&namespace) {
        return Err(fields.wrong("ref", &format!("{namespace} is a name of the core itself")));
    }
    let description = fields.text("description", TEXT_BYTES_MAX)?;
    let input = schema::read(fields, "input_schema", folder, read)?;
    let input = input.unwrap_or_else(|| serde_json::json!({"type": "object"}));
    let mut def = ToolDef::new(tool, description, input);
    def.output_schema = schema::read(fields, "output_schema", folder, read)?;
    def.side_effects = fields.flag("side_effects")?;
    def.requires_directive = fields.flag("requires_directive")?.unwrap_or(false);
    def.mock = fields.flag("mock")?.unwrap_or(false);
    def.timeout_ms = timeout_ms(fields)?;
    def.max_cost_micro = fields.whole("max_cost_micro", 0, "a whole number, 0 or more")?;
    def.free = fields.flag("free")?.unwrap_or(false);
    if def.free && def.max_cost_micro.is_some_and(|price| price > 0) {
        return Err(fields.wrong("free", "what has a price in max_cost_micro is not free"));
    }
    Ok(def)
}

fn timeout_ms(fields: &ManifestFields<'_>) -> Result<Option<u64>, Fault> {
    let wrong = |why: &str| Err(fields.wrong("timeout_s", why));
    let seconds = match fields.get("timeout_s") {
        None => return Ok(None),
        Some(Value::Number(number))
            if number.as_i64().is_some_and(|n| i32::try_from(n).is_err()) =>
        {
            return wrong("it is too large");
        }
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::Null) => None,
        Some(_) => return wrong("it must be a number"),
    };
    let Some(seconds) = seconds.filter(|seconds| (0.001..=TIMEOUT_S_MAX).contains(seconds)) else {
        return wrong(&format!("it must be a number of seconds from 0.001 to {TIMEOUT_S_MAX}"));
    };
    let time = std::time::Duration::from_secs_f64(seconds);
    Ok(u64::try_from(time.as_millis()).ok())
}

/// What is pinned and shown; how it is really started is the launch's business.
fn entrypoint(how: &Serving) -> Entrypoint {
    let (program, args) = match how {
        Serving::Handler { file, .. } => (format!("./{file}"), Vec::new()),
        Serving::Program { argv } => {
            (argv.first().cloned().unwrap_or_default(), argv.iter().skip(1).cloned().collect())
        }
        Serving::Image { image } => (image.clone(), Vec::new()),
        Serving::Remote { url } => (url.clone(), Vec::new()),
    };
    Entrypoint { program, args }
}

/// What it asks for, and the secrets it names as what they are: permissions to use them.
fn permissions(
    fields: &ManifestFields<'_>,
    token: Option<&SecretName>,
) -> Result<Vec<String>, Fault> {
    let mut permissions = fields.permissions(ITEM_BYTES_MAX)?.unwrap_or_default();
    let mut secrets = Vec::new();
    for (at, text) in
        fields.texts("secrets", ITEM_BYTES_MAX)?.unwrap_or_default().iter().enumerate()
    {
        let name = SecretName::new(text)
            .map_err(|error| fields.wrong(&format!("secrets[{at}]"), &error.to_string()))?;
        secrets.push(name);
    }
    for name in secrets.iter().chain(token) {
        let permission = format!("secret:use:{name}");
        if !permissions.contains(&permission) {
            permissions.push(permission);
        }
    }
    Ok(permissions)
}

fn secret(fields: &ManifestFields<'_>, name: &str) -> Result<Option<SecretName>, Fault> {
    let Some(text) = fields.optional_text(name, ITEM_BYTES_MAX)? else { return Ok(None) };
    SecretName::new(text).map(Some).map_err(|error| fields.wrong(name, &error.to_string()))
}

fn calls_max(fields: &ManifestFields<'_>) -> Result<Option<u32>, Fault> {
    let calls = fields.whole("max_concurrency", 1, COUNT)?;
    Ok(calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)))
}

fn limits(fields: &ManifestFields<'_>) -> Result<ProviderLimits, Fault> {
    let mut limits = ProviderLimits { calls_max: calls_max(fields)?, ..ProviderLimits::default() };
    if let Some(given) = fields.within("resources.", "a table")? {
        given.only(RESOURCES)?;
        limits.usage = given.usage(COUNT)?;
    }
    Ok(limits)
}

fn sandbox(fields: &ManifestFields<'_>) -> Result<Option<SandboxLevel>, Fault> {
    fields.word("sandbox", "none, basic, standard or strict", SandboxLevel::parse)
}

/// A server of the seeds' authors fetches only what is encrypted.
fn https_only(fields: &ManifestFields<'_>) -> Result<bool, Fault> {
    let parse = |word: &str| match word {
        "default" => Some(false),
        "seed" => Some(true),
        _ => None,
    };
    Ok(fields.word("profile", "default or seed", parse)?.unwrap_or(false))
}

fn required_outputs(fields: &ManifestFields<'_>) -> Result<Vec<String>, Fault> {
    let mut outputs = fields.texts("required_outputs", ITEM_BYTES_MAX)?.unwrap_or_default();
    if let Some(at) = outputs.iter().position(String::is_empty) {
        return Err(fields.wrong(&format!("required_outputs[{at}]"), "it must not be empty"));
    }
    outputs.sort_unstable();
    outputs.dedup();
    Ok(outputs)
}

fn invalid(message: String) -> Fault {
    Fault::new(Code::ToolManifestInvalid, message)
}

#[cfg(test)]
mod tests;
