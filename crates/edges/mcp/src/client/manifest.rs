//! `wharf.mcp.toml`: how a server is started or reached, and what it may. Read strictly, with
//! bounds, and errors that name the field.
//!
//! A key that is not known is an error, because a limit or a flag with a slip of the pen in its
//! name would otherwise silently not hold.

mod command;
mod declare;
mod write;

use std::path::Path;

use serde_json::Value;
use wharf_domain::permission::{OWN_VARIABLES, Permission};
use wharf_domain::provider::{
    Entrypoint, Manifest, McpDetails, McpEraChoice, McpLogin, McpPackage, McpRoots, McpSampling,
    McpServing, ProviderKind, ProviderLimits, RESERVED_IDS,
};
use wharf_hosting::{
    ManifestFields, ManifestFile, ReadManifest, open_plain, rate, read_bounded, toml_table,
};
use wharf_vocab::{Code, Digest, Fault, ProviderId, Retain, SandboxLevel, SecretName};

use super::link::address::UpstreamAddress;

pub(crate) use command::hints;
pub(crate) use declare::{declare, forget};

use command::{Surroundings, settle};
use write::write;

/// The file's name in a server's folder.
pub(crate) const FILE_NAME: &str = "wharf.mcp.toml";

const NAME_BYTES_MAX: usize = 200;
const TEXT_BYTES_MAX: usize = 2_000;
const WORD_BYTES_MAX: usize = 4_096;
const ITEM_BYTES_MAX: usize = 300;
/// Most bytes of the variables of an environment together.
const ENV_BYTES_MAX: usize = 32 * 1024;
/// A day; whatever takes longer is not waited for.
const TIMEOUT_S_MAX: f64 = 86_400.0;
const COUNT: &str = "a whole number, 1 or more";

/// All there may be at the top.
const KNOWN: &[&str] = &[
    "name",
    "description",
    "command",
    "npm",
    "pypi",
    "url",
    "allow_private",
    "env",
    "env_secrets",
    "token_secret",
    "header_secrets",
    "permissions",
    "sandbox",
    "isolation",
    "idle_s",
    "accept_new",
    "trust_annotations",
    "era",
    "sampling",
    "roots",
    "retain",
    "oauth",
    "timeout_s",
    "max_concurrency",
    "rate_limit",
    "resources",
];
/// All there may be in `resources`.
const RESOURCES: &[&str] = &["memory", "disk", "cpu_time", "cpu", "processes", "open_files"];
/// All there may be in `oauth`.
const OAUTH: &[&str] = &["client_id", "client_secret", "issuer", "scopes"];
/// What is for a process of this core only.
const OF_A_PROCESS: &[&str] =
    &["npm", "pypi", "env", "env_secrets", "sandbox", "resources", "command"];
/// What is for a server elsewhere only.
const ELSEWHERE: &[&str] = &["allow_private", "token_secret", "header_secrets", "oauth"];
/// Headers that the protocol or the connection has for itself.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "last-event-id",
    "origin",
    "transfer-encoding",
];

/// Where manifests of MCP servers stand.
pub(crate) const FILE: ManifestFile = ManifestFile {
    name: FILE_NAME,
    invalid: Code::AgentManifestInvalid,
    read,
    read_again: |folder, _| read(folder),
};

/// Reads the manifest in a folder. It blocks, but only on a plain file.
pub(crate) fn read(folder: &Path) -> Result<ReadManifest, Fault> {
    let path = folder.join(FILE_NAME);
    let bytes = read_bounded(open_plain(&path), "is not a plain file").map_err(|why| {
        Fault::new(Code::AgentManifestInvalid, format!("{} {why}.", path.display()))
    })?;
    parse(&bytes)
}

/// Reads a manifest's bytes.
pub(crate) fn parse(bytes: &[u8]) -> Result<ReadManifest, Fault> {
    let table = toml_table(bytes, Code::AgentManifestInvalid)?;
    let fields = ManifestFields::new(&table, Code::AgentManifestInvalid);
    fields.only(KNOWN)?;
    let id = id(&fields)?;
    let details = details(&fields)?;
    let manifest = Manifest {
        name: id.to_string(),
        version: version(&details),
        description: fields.optional_text("description", TEXT_BYTES_MAX)?.unwrap_or_default(),
        entrypoint: entrypoint(&fields, &details)?,
        permissions: permissions(&fields, &details)?,
        limits: limits(&fields)?,
        isolation: fields.isolation()?,
        kind: ProviderKind::Mcp(Box::new(details)),
    };
    Ok(ReadManifest { id, hash: Digest::of_bytes(bytes), manifest })
}

/// The name before the slash in the ids of its tools.
fn id(fields: &ManifestFields<'_>) -> Result<ProviderId, Fault> {
    let name = fields.text("name", NAME_BYTES_MAX)?;
    if RESERVED_IDS.contains(&name.as_str()) {
        return Err(fields.wrong("name", &format!("{name} is a name of the core itself")));
    }
    match ProviderId::new(&name) {
        Ok(id) if !name.contains('/') => Ok(id),
        _ => Err(fields.wrong("name", "it must be letters, digits, dots, - and _, such as github")),
    }
}

fn details(fields: &ManifestFields<'_>) -> Result<McpDetails, Fault> {
    let mut details = McpDetails::new(serving(fields)?);
    details.package = package(fields)?;
    details.token_secret = secret(fields, "token_secret")?;
    details.header_secrets = fields.map("header_secrets", ITEM_BYTES_MAX, header_secret)?;
    if details.token_secret.is_some()
        && details.header_secrets.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    {
        return Err(fields.wrong("token_secret", "header_secrets has authorization already"));
    }
    details.env = env(fields)?;
    details.env_secrets = fields.map("env_secrets", ITEM_BYTES_MAX, env_secret)?;
    if let Some(twice) = details.env_secrets.keys().find(|name| details.env.contains_key(*name)) {
        return Err(fields.wrong(&format!("env_secrets.{twice}"), "env has it already"));
    }
    details.accept_new = fields.flag("accept_new")?.unwrap_or(false);
    details.trust_annotations = fields.flag("trust_annotations")?.unwrap_or(true);
    details.era = fields.word("era", "auto, legacy or modern", era)?.unwrap_or_default();
    details.idle_s = fields.whole("idle_s", 1, "a number of seconds, 1 or more")?;
    details.sandbox =
        fields.word("sandbox", "none, basic, standard or strict", SandboxLevel::parse)?;
    details.sampling = fields.word("sampling", "auto, caller, model or refuse", sampling)?;
    details.retain = fields.word("retain", "full or digest", Retain::parse)?.unwrap_or_default();
    details.roots = fields.word("roots", "approved or caller", roots)?.unwrap_or_default();
    details.oauth = oauth(fields)?;
    Ok(details)
}

/// Exactly one of a command, a package and an address.
fn serving(fields: &ManifestFields<'_>) -> Result<McpServing, Fault> {
    let Some(url) = fields.optional_text("url", TEXT_BYTES_MAX)? else {
        fields.none_of(ELSEWHERE, "it is for servers elsewhere, which have a url")?;
        return Ok(McpServing::Command);
    };
    fields.none_of(OF_A_PROCESS, "it is for servers that this core starts, without a url")?;
    let allow_private = fields.flag("allow_private")?.unwrap_or(false);
    UpstreamAddress::read(&url, allow_private).map_err(|why| fields.wrong("url", why))?;
    Ok(McpServing::Url { url, allow_private })
}

fn package(fields: &ManifestFields<'_>) -> Result<Option<McpPackage>, Fault> {
    let npm = fields.optional_text("npm", ITEM_BYTES_MAX)?;
    let pypi = fields.optional_text("pypi", ITEM_BYTES_MAX)?;
    match (npm, pypi) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(fields.wrong("pypi", "npm says already where it comes from")),
        (Some(text), None) => match npm_package(&text) {
            Some(_) => Ok(Some(McpPackage::Npm(text))),
            None => {
                let why = "it must be a package with one version, such as @scope/name@1.2.3";
                Err(fields.wrong("npm", why))
            }
        },
        (None, Some(text)) => match pypi_package(&text) {
            Some(_) => Ok(Some(McpPackage::Pypi(text))),
            None => {
                let why = "it must be a package with one version, such as name==1.2.3";
                Err(fields.wrong("pypi", why))
            }
        },
    }
}

/// Name and version of `[@SCOPE/]NAME@VERSION`. A tag or a range names another package tomorrow.
pub(crate) fn npm_package(text: &str) -> Option<(&str, &str)> {
    let (name, version) = text.rsplit_once('@')?;
    let (scope, bare) = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/')?,
        None => ("s", name),
    };
    let fits = is_package_name(scope) && is_package_name(bare) && is_version(version);
    fits.then_some((name, version))
}

/// Name and version of `NAME==VERSION`.
pub(crate) fn pypi_package(text: &str) -> Option<(&str, &str)> {
    let (name, version) = text.split_once("==")?;
    (is_package_name(name) && is_version(version)).then_some((name, version))
}

fn is_package_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn is_version(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
        && version.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'))
}

/// The program and its arguments. A package's own program may be left out.
fn entrypoint(fields: &ManifestFields<'_>, details: &McpDetails) -> Result<Entrypoint, Fault> {
    if let McpServing::Url { url, .. } = &details.how {
        return Ok(Entrypoint { program: url.clone(), args: Vec::new() });
    }
    let words = fields.texts("command", WORD_BYTES_MAX)?;
    if let Some(at) = words.iter().flatten().position(|word| word.contains('\0')) {
        return Err(fields.wrong(&format!("command[{at}]"), "it holds a character that is none"));
    }
    let mut words = words.unwrap_or_default().into_iter();
    match (words.next(), &details.package) {
        (Some(program), _) if !program.is_empty() && !program.chars().any(char::is_control) => {
            Ok(Entrypoint { program, args: words.collect() })
        }
        (Some(_), _) => Err(fields.wrong("command[0]", "it must name a program")),
        (None, Some(package)) => Ok(Entrypoint { program: own_program(package), args: Vec::new() }),
        (None, None) => {
            let why = "say how the server is started, or by url where it is";
            Err(fields.wrong("command", why))
        }
    }
}

/// The program that a package most likely has: one of its own name.
fn own_program(package: &McpPackage) -> String {
    let name = match package {
        McpPackage::Npm(text) => npm_package(text).map(|(name, _)| name),
        McpPackage::Pypi(text) => pypi_package(text).map(|(name, _)| name),
    };
    name.and_then(|name| name.rsplit('/').next()).unwrap_or_default().to_owned()
}

fn version(details: &McpDetails) -> String {
    let version = match &details.package {
        Some(McpPackage::Npm(text)) => npm_package(text).map(|(_, version)| version),
        Some(McpPackage::Pypi(text)) => pypi_package(text).map(|(_, version)| version),
        None => None,
    };
    version.unwrap_or_default().to_owned()
}

/// What it asks for, and the secrets it names as what they are: permissions to use them.
fn permissions(fields: &ManifestFields<'_>, details: &McpDetails) -> Result<Vec<String>, Fault> {
    let mut permissions = fields.permissions(ITEM_BYTES_MAX)?.unwrap_or_default();
    for (at, text) in permissions.iter().enumerate() {
        let elsewhere = !details.how.is_launched();
        let fits = match Permission::parse(text) {
            Ok(Permission::Invoke(_)) => true,
            // Secrets are named by their own fields, so that it is clear what they are for.
            Ok(Permission::SecretEnv { .. }) => false,
            _ => !elsewhere,
        };
        if !fits {
            let why = match elsewhere {
                true => "a server elsewhere can only be permitted to call tools",
                false => "name it in env_secrets",
            };
            return Err(fields.wrong(&format!("permissions[{at}]"), why));
        }
    }
    for permission in of_secrets(details) {
        if !permissions.contains(&permission) {
            permissions.push(permission);
        }
    }
    Ok(permissions)
}

/// The permissions that the secrets of a server come to.
fn of_secrets(details: &McpDetails) -> impl Iterator<Item = String> {
    let in_env = details.env_secrets.iter();
    let in_env = in_env.map(|(variable, name)| format!("secret:env:{name}={variable}"));
    let of_login = details.oauth.iter().filter_map(|login| login.client_secret.as_ref());
    let used = details.token_secret.iter().chain(details.header_secrets.values()).chain(of_login);
    in_env.chain(used.map(|name| format!("secret:use:{name}"))).collect::<Vec<_>>().into_iter()
}

fn secret(fields: &ManifestFields<'_>, name: &str) -> Result<Option<SecretName>, Fault> {
    let Some(text) = fields.optional_text(name, ITEM_BYTES_MAX)? else { return Ok(None) };
    SecretName::new(text).map(Some).map_err(|error| fields.wrong(name, &error.to_string()))
}

fn header_secret(header: &str, name: &str) -> Result<SecretName, String> {
    let fits = reqwest::header::HeaderName::from_bytes(header.as_bytes()).is_ok();
    if !fits {
        return Err("it is not the name of a header".to_owned());
    }
    let lower = header.to_ascii_lowercase();
    if OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("mcp-") {
        return Err("the connection has this header for itself".to_owned());
    }
    SecretName::new(name).map_err(|error| error.to_string())
}

fn env(fields: &ManifestFields<'_>) -> Result<std::collections::BTreeMap<String, String>, Fault> {
    let env = fields.map("env", WORD_BYTES_MAX, |name, value| {
        check_variable(name)?;
        match value.contains('\0') {
            true => Err("it holds a character that is none".to_owned()),
            false => Ok(value.to_owned()),
        }
    })?;
    let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > ENV_BYTES_MAX {
        let why = format!("its variables have more than {ENV_BYTES_MAX} bytes together");
        return Err(fields.wrong("env", &why));
    }
    Ok(env)
}

fn env_secret(variable: &str, name: &str) -> Result<SecretName, String> {
    check_variable(variable)?;
    SecretName::new(name).map_err(|error| error.to_string())
}

/// A variable that a manifest may set. What is wrong is the end of a sentence.
fn check_variable(name: &str) -> Result<(), String> {
    let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.starts_with(|c: char| !c.is_ascii_digit());
    match () {
        () if !fits => Err("it is not the name of a variable".to_owned()),
        () if OWN_VARIABLES.contains(&name) => Err("the core sets this variable itself".to_owned()),
        () if name.starts_with("WHARF_") || name.starts_with("OPENSENTIENCE_") => {
            Err("variables with this beginning are the core's".to_owned())
        }
        () => Ok(()),
    }
}

fn limits(fields: &ManifestFields<'_>) -> Result<ProviderLimits, Fault> {
    let calls_max = fields.whole("max_concurrency", 1, COUNT)?;
    let mut limits = ProviderLimits {
        calls_max: calls_max.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
        rate: fields.word("rate_limit", "a rate such as 60/minute", rate)?,
        call_ms: timeout_ms(fields)?,
        ..ProviderLimits::default()
    };
    if let Some(given) = fields.within("resources.", "a table")? {
        given.only(RESOURCES)?;
        limits.usage = given.usage(COUNT)?;
    }
    Ok(limits)
}

fn timeout_ms(fields: &ManifestFields<'_>) -> Result<Option<u64>, Fault> {
    let Some(value) = fields.get("timeout_s") else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.001..=TIMEOUT_S_MAX).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        let why = format!("it must be a number of seconds from 0.001 to {TIMEOUT_S_MAX}");
        fields.wrong("timeout_s", &why)
    })?;
    Ok(u64::try_from(std::time::Duration::from_secs_f64(seconds).as_millis()).ok())
}

fn oauth(fields: &ManifestFields<'_>) -> Result<Option<McpLogin>, Fault> {
    let Some(given) = fields.within("oauth.", "a table")? else { return Ok(None) };
    given.only(OAUTH)?;
    let client_secret = secret(&given, "client_secret")?;
    let client_id = given.optional_text("client_id", TEXT_BYTES_MAX)?;
    if client_secret.is_some() && client_id.is_none() {
        return Err(given.wrong("client_secret", "it goes with a client_id"));
    }
    let scopes = given.texts("scopes", ITEM_BYTES_MAX)?.unwrap_or_default();
    let is_scope = |scope: &String| {
        !scope.is_empty() && scope.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\".contains(&b))
    };
    if let Some(at) = scopes.iter().position(|scope| !is_scope(scope)) {
        return Err(given.wrong(&format!("scopes[{at}]"), "it must be one word"));
    }
    let issuer = given.optional_text("issuer", TEXT_BYTES_MAX)?;
    Ok(Some(McpLogin { client_id, client_secret, issuer, scopes }))
}

fn era(word: &str) -> Option<McpEraChoice> {
    serde_json::from_value(Value::from(word)).ok()
}

fn sampling(word: &str) -> Option<McpSampling> {
    serde_json::from_value(Value::from(word)).ok()
}

fn roots(word: &str) -> Option<McpRoots> {
    serde_json::from_value(Value::from(word)).ok()
}

#[cfg(test)]
mod tests;
