//! Reading `wharf.tool.toml`: strictly, with bounds, and errors that name the field.
//!
//! A key that is not known is an error, because a limit or a flag with a slip of the pen in its
//! name would otherwise silently not hold.

mod environment;
mod file;
mod schema;
mod serving;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) use self::environment::packages;

use serde_json::Value;
use wharf_domain::provider::{
    Entrypoint, Manifest, ProviderKind, ProviderLimits, RESERVED_IDS, Serving, ToolEnvironment,
    ToolServer, ToolSource,
};
use wharf_domain::{Provider, ToolDef};
use wharf_hosting::{ManifestFields, ReadManifest, toml_table};
use wharf_vocab::{
    Code, Digest, Fault, Object, ProviderId, Retain, SandboxLevel, SecretName, ToolId, shown,
};

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
    "namespace",
    "version",
    "description",
    "handler",
    "python",
    "requirements",
    "wheels",
    "function",
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
    "durable",
    "retain",
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
const OF_A_PROCESS: &[&str] = &["secrets", "sandbox", "isolation", "resources"];
/// The only permission of a server elsewhere: to call tools.
const OF_ALL: &str = "tool:invoke:";

/// Reads the manifest in a folder, and the schemas it names, without asking its handler. It blocks,
/// but only on plain files.
pub(crate) fn read(folder: &Path) -> Result<ReadManifest, Fault> {
    ManifestSource::of_folder(folder)?.tool(None)
}

/// Reads the manifest of a tool server again. What its handler said of the tool is taken as it was
/// recorded: whether the handler is still the same is told by its bytes, which are pinned.
pub(crate) fn read_again(folder: &Path, known: &Provider) -> Result<ReadManifest, Fault> {
    let Some(server) = known.manifest.tool_server() else { return read(folder) };
    let described = DescribedTool::recorded(server);
    match (&server.how, server.source) {
        (_, ToolSource::Manifest) => read(folder),
        (Serving::Handler { file, .. }, ToolSource::File) => {
            if !file::is_there(folder, file) {
                return Err(invalid(format!("{} is gone.", folder.join(file).display())));
            }
            let namespace = known.id.as_str().split_once('/').map_or("", |(space, _)| space);
            ManifestSource::of_file(folder, file, namespace).tool(Some(&described))
        }
        _ => ManifestSource::of_folder(folder)?.tool(Some(&described)),
    }
}

/// What a handler says of one of its tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DescribedTool {
    /// The function; none for a plain `entry`.
    pub(crate) name: Option<String>,
    pub(crate) description: String,
    pub(crate) input_schema: Option<Value>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) mock: bool,
    /// Whether its code finds its steps again.
    pub(crate) durable: bool,
}

impl DescribedTool {
    /// What was said when the tool was added.
    fn recorded(server: &ToolServer) -> Self {
        let name = match &server.how {
            Serving::Handler { function, .. } => function.clone(),
            _ => None,
        };
        Self {
            name,
            description: server.tool.description.clone(),
            input_schema: Some(server.tool.input_schema.clone()),
            output_schema: server.tool.output_schema.clone(),
            mock: server.tool.mock,
            durable: server.tool.durable,
        }
    }
}

/// What stands in a manifest, or for one where there is a handler alone.
#[derive(Debug)]
pub(crate) struct ManifestSource {
    pub(crate) folder: PathBuf,
    table: Object,
    /// The manifest's bytes; none where there is a handler alone.
    bytes: Option<Vec<u8>>,
}

impl ManifestSource {
    /// Reads the manifest in a folder. It blocks, but only on plain files.
    pub(crate) fn of_folder(folder: &Path) -> Result<Self, Fault> {
        let path = folder.join(FILE_NAME);
        let bytes = file::read(folder, FILE_NAME)
            .map_err(|why| invalid(format!("{} {why}.", path.display())))?;
        let table = toml_table(&bytes, Code::ToolManifestInvalid)?;
        ManifestFields::new(&table, Code::ToolManifestInvalid).only(KNOWN)?;
        Ok(Self { folder: folder.to_owned(), table, bytes: Some(bytes) })
    }

    /// What stands for the manifest of a handler that has none.
    pub(crate) fn of_file(folder: &Path, file: &str, namespace: &str) -> Self {
        let table = [("namespace", namespace), ("handler", file)];
        let table = table.map(|(key, value)| (key.to_owned(), Value::from(value)));
        Self { folder: folder.to_owned(), table: table.into_iter().collect(), bytes: None }
    }

    /// The handler's file, if a handler serves the tool.
    pub(crate) fn handler(&self) -> Result<Option<String>, Fault> {
        match serving::read(&self.fields(), &self.folder)? {
            Serving::Handler { file, .. } => Ok(Some(file)),
            _ => Ok(None),
        }
    }

    /// What the handler runs with, if the manifest asks for more than the usual.
    pub(crate) fn environment(&self) -> Result<Option<ToolEnvironment>, Fault> {
        let how = serving::read(&self.fields(), &self.folder)?;
        environment::read(&self.fields(), &how, &self.folder, &mut Vec::new())
    }

    /// A name for what is made before its tools are known.
    pub(crate) fn first_id(&self) -> Result<ProviderId, Fault> {
        let reference = match reference(&self.fields())? {
            Some(reference) => reference,
            None => reference_of(&self.fields(), &self.folder, None)?,
        };
        let wrong = |_| self.fields().wrong("ref", "it is no name of a provider");
        ProviderId::new(reference.as_str()).map_err(wrong)
    }

    /// Whether the manifest says by itself which tool is served.
    pub(crate) fn has_reference(&self) -> bool {
        self.table.contains_key("ref")
    }

    /// All tools, as the handler describes them where the manifest leaves something open.
    pub(crate) fn tools(&self, described: &[DescribedTool]) -> Result<Vec<ReadManifest>, Fault> {
        if !self.has_reference() {
            return described.iter().map(|tool| self.tool(Some(tool))).collect();
        }
        let fields = self.fields();
        let wanted = fields.optional_text("function", ITEM_BYTES_MAX)?;
        let names = || {
            let names: Vec<_> = described.iter().filter_map(|tool| tool.name.as_deref()).collect();
            names.join(", ")
        };
        let one = match (&wanted, described) {
            (Some(name), all) => {
                let one = all.iter().find(|tool| tool.name.as_ref() == Some(name));
                Some(one.ok_or_else(|| {
                    let why = format!("the handler has no such function; it has {}", names());
                    fields.wrong("function", &why)
                })?)
            }
            (None, [one]) => Some(one),
            (None, []) => None,
            (None, _) => {
                let why = format!(
                    "the handler has several tools ({}); name one with function, or give all of \
                     them a namespace instead of a ref",
                    names()
                );
                return Err(fields.wrong("ref", &why));
            }
        };
        Ok(vec![self.tool(one)?])
    }

    fn fields(&self) -> ManifestFields<'_> {
        ManifestFields::new(&self.table, Code::ToolManifestInvalid)
    }

    /// One tool, with what the handler says of it.
    fn tool(&self, described: Option<&DescribedTool>) -> Result<ReadManifest, Fault> {
        let fields = self.fields();
        let mut read: Vec<Vec<u8>> = self.bytes.iter().cloned().collect();
        let reference = match reference(&fields)? {
            Some(reference) => reference,
            None => reference_of(&fields, &self.folder, described)?,
        };
        let (tool, is_asked) = tool(&fields, reference, &self.folder, described, &mut read)?;
        let mut how = serving::read(&fields, &self.folder)?;
        let environment = environment::read(&fields, &how, &self.folder, &mut read)?;
        if !how.is_launched() {
            fields.none_of(OF_A_PROCESS, "it is for servers that this core starts")?;
            let asked = fields.permissions(ITEM_BYTES_MAX)?.unwrap_or_default();
            if asked.iter().any(|permission| !permission.starts_with(OF_ALL)) {
                let why = format!("a server elsewhere may ask for {OF_ALL}… and nothing else");
                return Err(fields.wrong("permissions", &why));
            }
        }
        let source = match (&self.bytes, self.has_reference()) {
            (None, _) => ToolSource::File,
            (Some(_), false) => ToolSource::Function,
            (Some(_), true) if is_asked => ToolSource::Handler,
            (Some(_), true) => ToolSource::Manifest,
        };
        if let Serving::Handler { function, .. } = &mut how
            && source.is_shared()
        {
            *function = described.and_then(|tool| tool.name.clone());
        }
        if source != ToolSource::Manifest {
            read.push(tool.hash().as_str().as_bytes().to_vec());
        }
        let id = ProviderId::new(tool.tool.as_str())
            .map_err(|error| fields.wrong("ref", &error.to_string()))?;
        let token_secret = secret(&fields, "token_secret")?;
        let version = tool.tool.as_str().rsplit_once('@').map_or("", |(_, version)| version);
        let manifest = Manifest {
            name: id.to_string(),
            version: version.to_owned(),
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
                source,
            })),
        };
        Ok(ReadManifest { id, hash: hash(&read), manifest })
    }
}

/// The manifest's bytes alone stand for themselves.
fn hash(read: &[Vec<u8>]) -> Digest {
    match read {
        [manifest] => Digest::of_bytes(manifest),
        all => Digest::of(&all.iter().map(Vec::as_slice).collect::<Vec<_>>()),
    }
}

/// The tool's name as the manifest says it; none if it names a namespace for all functions.
fn reference(fields: &ManifestFields<'_>) -> Result<Option<ToolId>, Fault> {
    if fields.get("ref").is_none() && fields.get("namespace").is_some() {
        return Ok(None);
    }
    fields.none_of(&["namespace", "version"], "the ref says it already")?;
    let reference = fields.text("ref", REFERENCE_BYTES_MAX)?;
    let why = "it must be namespace/name@version in lower case, such as llm/chat@1";
    checked(fields, "ref", &reference, why).map(Some)
}

/// The name that a function has in the manifest's namespace.
fn reference_of(
    fields: &ManifestFields<'_>,
    folder: &Path,
    described: Option<&DescribedTool>,
) -> Result<ToolId, Fault> {
    let Serving::Handler { file, .. } = serving::read(fields, folder)? else {
        return Err(fields.wrong("namespace", "only a handler has several tools; give it a ref"));
    };
    fields.none_of(&["function"], "all functions of the handler are served; give it a ref")?;
    fields.none_of(
        &["description", "input_schema", "output_schema"],
        "each function says it by itself; give one tool a ref to say it here",
    )?;
    let namespace = fields.text("namespace", REFERENCE_BYTES_MAX)?;
    let version = fields.whole("version", 1, COUNT)?.unwrap_or(1);
    let name = described.and_then(|tool| tool.name.clone());
    let name = name.unwrap_or_else(|| name_of(folder, &file));
    let reference = format!("{namespace}/{}@{version}", in_small_letters(&name));
    let why = format!("{reference} is no name of a tool; it must be like llm/chat@1");
    checked(fields, "namespace", &reference, &why)
}

/// A name as references have it: `countWords` is `count-words`.
fn in_small_letters(name: &str) -> String {
    let mut small = String::with_capacity(name.len());
    let mut after_small = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && after_small {
            small.push('-');
        }
        after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        small.extend(letter.to_lowercase());
    }
    small
}

/// What a handler without a function's name is called: like its file, or its folder.
fn name_of(folder: &Path, file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let folder = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let name = if stem == "handler" { folder } else { stem };
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    name.trim_matches('-').to_owned()
}

fn checked(
    fields: &ManifestFields<'_>,
    field: &str,
    reference: &str,
    why: &str,
) -> Result<ToolId, Fault> {
    let tool = ToolId::new(reference).ok().filter(ToolId::is_reference);
    let tool = tool.ok_or_else(|| fields.wrong(field, why))?;
    let namespace = reference.split_once('/').map_or("", |(namespace, _)| namespace);
    if RESERVED_IDS.contains(&namespace) {
        return Err(fields.wrong(field, &format!("{namespace} is a name of the core itself")));
    }
    Ok(tool)
}

/// The tool as the catalog shows it, and whether the handler was asked for a part of it. What is
/// read besides the manifest is added to `read`.
fn tool(
    fields: &ManifestFields<'_>,
    reference: ToolId,
    folder: &Path,
    described: Option<&DescribedTool>,
    read: &mut Vec<Vec<u8>>,
) -> Result<(ToolDef, bool), Fault> {
    let mut is_asked = false;
    let mut or_described = |given: Option<Value>, said: Option<&Value>| {
        let said = if given.is_none() {
            said.filter(|said| *said != &serde_json::json!({}))
        } else {
            None
        };
        is_asked |= said.is_some();
        given.or_else(|| said.cloned())
    };
    let said = described.map(|tool| tool.description.as_str()).filter(|text| !text.is_empty());
    let description = fields.optional_text("description", TEXT_BYTES_MAX)?.map(Value::from);
    let said = said.map(|text| Value::from(shown(text, TEXT_BYTES_MAX)));
    let description = match or_described(description, said.as_ref()) {
        Some(Value::String(text)) => text,
        // A function without a word about it is known by its name.
        _ if fields.get("ref").is_none() => String::new(),
        _ => fields.text("description", TEXT_BYTES_MAX)?,
    };
    let input = schema::read(fields, "input_schema", folder, read)?;
    let input = or_described(input, described.and_then(|tool| tool.input_schema.as_ref()));
    let output = schema::read(fields, "output_schema", folder, read)?;
    let output = or_described(output, described.and_then(|tool| tool.output_schema.as_ref()));
    let yes = Value::Bool(true);
    let mut flag = |name: &str, says: fn(&DescribedTool) -> bool| {
        let said = described.filter(|tool| says(tool)).map(|_| &yes);
        Ok::<_, Fault>(
            or_described(fields.flag(name)?.map(Value::Bool), said).as_ref() == Some(&yes),
        )
    };
    let mock = flag("mock", |tool| tool.mock)?;
    let durable = flag("durable", |tool| tool.durable)?;
    let input = input.unwrap_or_else(|| serde_json::json!({"type": "object"}));
    let mut def = ToolDef::new(reference, description, input);
    def.output_schema = output;
    def.side_effects = fields.flag("side_effects")?;
    def.requires_directive = fields.flag("requires_directive")?.unwrap_or(false);
    (def.mock, def.durable) = (mock, durable);
    def.retain = fields.word("retain", "full or digest", Retain::parse)?.unwrap_or_default();
    def.timeout_ms = timeout_ms(fields)?;
    def.max_cost_micro = fields.whole("max_cost_micro", 0, "a whole number, 0 or more")?;
    def.free = fields.flag("free")?.unwrap_or(false);
    if def.free && def.max_cost_micro.is_some_and(|price| price > 0) {
        return Err(fields.wrong("free", "what has a price in max_cost_micro is not free"));
    }
    Ok((def, is_asked))
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
        Serving::Handler { file, function, .. } => {
            (format!("./{file}"), function.iter().cloned().collect())
        }
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
