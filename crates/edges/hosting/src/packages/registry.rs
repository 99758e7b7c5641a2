//! The machine's own tools for packages, and the registry that they are set up with. No registry
//! is named here: its tools know it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use url::Url;
use wharf_domain::permission::HostPattern;
use wharf_ports::launcher::LaunchSpec;
use wharf_vocab::{Code, Fault, Object};

use super::is_system;
use crate::errand::Errand;

/// How long a tool may take to say how it is set up.
const SETTINGS_MAX: Duration = Duration::from_secs(60);
/// Settings of pip that lead to packages.
const PIP_SETTINGS: [&str; 8] = [
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "cert",
    "client-cert",
    "trusted-host",
    "timeout",
];
/// Says where Python is, how pip is set up and where it looks for packages otherwise.
const ASK_PYTHON: &str = "
import json, sys
from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
settings = Configuration(isolated=False)
settings.load()
found = {}
for key, value in settings.items():
    for name, said in (value.items() if isinstance(value, dict) else [(key, value)]):
        found[name.rsplit('.', 1)[-1]] = str(said)
print(json.dumps({'python': sys.executable, 'prefix': sys.base_prefix, 'settings': found,
                  'index': PyPI.simple_url, 'files': PyPI.file_storage_domain}))
";

/// Node and npm.
#[derive(Debug)]
pub struct NodeTools {
    node: PathBuf,
    npm: PathBuf,
    registry: Url,
    settings: BTreeMap<String, String>,
    read: Vec<PathBuf>,
}

impl NodeTools {
    /// Looks for them and asks how they are set up, for packages of this scope.
    pub async fn find(
        search: &[PathBuf],
        folder: &Path,
        scope: Option<&str>,
    ) -> Result<Self, Fault> {
        let node = found(search, "node")?;
        let npm = found(search, "npm")?;
        let mut ask = Command::new(&npm);
        ask.args(["config", "list", "--json"]).current_dir(folder);
        let text = said(ask, "npm").await?;
        let settings: Object = serde_json::from_str(&text).map_err(|_| unsaid("npm"))?;
        Self::of(node, npm, &settings, scope)
    }

    fn of(node: PathBuf, npm: PathBuf, all: &Object, scope: Option<&str>) -> Result<Self, Fault> {
        let text = |key: &str| all.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
        let of_scope = scope.and_then(|scope| text(&format!("@{scope}:registry")));
        let registry = of_scope.or_else(|| text("registry")).ok_or_else(|| unsaid("npm"))?;
        let registry = Url::parse(registry).map_err(|_| unsaid("npm"))?;
        let mut settings = BTreeMap::new();
        let mut read = vec![prefix_of(&node), prefix_of(&npm)];
        for (key, variable) in [
            ("cafile", "NPM_CONFIG_CAFILE"),
            ("userconfig", "NPM_CONFIG_USERCONFIG"),
            ("globalconfig", "NPM_CONFIG_GLOBALCONFIG"),
        ] {
            if let Some(path) = text(key).filter(|path| Path::new(path).is_file()) {
                settings.insert(variable.to_owned(), path.to_owned());
                read.push(PathBuf::from(path));
            }
        }
        settings.insert("NPM_CONFIG_UPDATE_NOTIFIER".to_owned(), "false".to_owned());
        read.retain(|path| !is_system(path));
        Ok(Self { node, npm, registry, settings, read })
    }

    /// A command of npm that reaches its registry and nothing else.
    #[must_use]
    pub fn errand(&self) -> Errand {
        let is_script = self.npm.extension().is_some_and(|ending| ending == "js");
        let script = is_script.then(|| self.npm.display().to_string());
        let registry = format!("--registry={}", self.registry);
        Errand {
            program: if is_script { self.node.clone() } else { self.npm.clone() },
            args: script.into_iter().chain([registry]).collect(),
            env: self.settings.clone(),
            read: self.read.clone(),
            hosts: host_of(&self.registry).into_iter().collect(),
            secrets: self.registry.password().map(str::to_owned).into_iter().collect(),
            ..Errand::default()
        }
    }
}

/// Python and pip.
#[derive(Debug, Deserialize)]
pub struct PythonTools {
    python: PathBuf,
    prefix: PathBuf,
    settings: BTreeMap<String, String>,
    index: String,
    files: String,
}

impl PythonTools {
    /// Looks for them and asks how they are set up.
    pub async fn find(search: &[PathBuf], folder: &Path) -> Result<Self, Fault> {
        let mut ask = Command::new(found(search, "python3")?);
        // A module in the server's folder must not be taken for one of pip.
        ask.args(["-I", "-c", ASK_PYTHON]).current_dir(folder);
        let text = said(ask, "pip").await?;
        let mut tools: Self = serde_json::from_str(&text).map_err(|_| unsaid("pip"))?;
        tools.settings.retain(|key, _| PIP_SETTINGS.contains(&key.as_str()));
        Ok(tools)
    }

    fn addresses(&self) -> Vec<Url> {
        let own = ["index-url", "extra-index-url"].iter().filter_map(|key| self.settings.get(*key));
        let mut all: Vec<Url> = own
            .flat_map(|text| text.split_whitespace())
            .filter_map(|it| Url::parse(it).ok())
            .collect();
        if !self.settings.contains_key("index-url") && !self.settings.contains_key("no-index") {
            let files = format!("https://{}", self.files);
            all.extend([&self.index, &files].iter().filter_map(|it| Url::parse(it).ok()));
        }
        all
    }

    /// A command of Python that reaches its index and nothing else.
    #[must_use]
    pub fn errand(&self) -> Errand {
        let variable = |key: &str| format!("PIP_{}", key.replace('-', "_").to_ascii_uppercase());
        let env = self.settings.iter().map(|(key, value)| (variable(key), value.clone()));
        let paths = ["find-links", "cert", "client-cert"];
        let paths = paths.iter().filter_map(|key| self.settings.get(*key));
        let mut read: Vec<_> =
            paths.flat_map(|text| text.split_whitespace()).map(PathBuf::from).collect();
        read.push(self.prefix.clone());
        read.retain(|path| path.is_absolute() && path.exists() && !is_system(path));
        let addresses = self.addresses();
        Errand {
            program: self.python.clone(),
            env: env
                .chain([("PIP_DISABLE_PIP_VERSION_CHECK".to_owned(), "1".to_owned())])
                .collect(),
            read,
            hosts: addresses.iter().filter_map(host_of).collect(),
            secrets: addresses.iter().filter_map(Url::password).map(str::to_owned).collect(),
            ..Errand::default()
        }
    }

    /// The same for uv, which reads nothing of what pip is set up with. The arguments are those of
    /// its commands that look for packages.
    #[must_use]
    pub fn errand_of_uv(&self) -> Errand {
        let mut env = BTreeMap::new();
        for (key, variable) in [
            ("index-url", "UV_DEFAULT_INDEX"),
            ("extra-index-url", "UV_INDEX"),
            ("cert", "SSL_CERT_FILE"),
            ("client-cert", "SSL_CLIENT_CERT"),
            ("trusted-host", "UV_INSECURE_HOST"),
            ("timeout", "UV_HTTP_TIMEOUT"),
        ] {
            env.extend(self.settings.get(key).map(|value| (variable.to_owned(), value.clone())));
        }
        let links = self.settings.get("find-links").map(String::as_str).unwrap_or_default();
        // It fails where one of them is not there; pip passes it over.
        let is_there = |link: &&str| link.contains("://") || Path::new(link).exists();
        let links = links.split_whitespace().filter(is_there);
        let mut args: Vec<_> = links.flat_map(|link| ["--find-links", link]).collect();
        if self.settings.contains_key("no-index") {
            args.push("--no-index");
        }
        Errand { env, args: args.into_iter().map(str::to_owned).collect(), ..self.errand() }
    }
}

/// Lets a launch see the Node that its script begins with, if it is not where all are.
pub fn show_node(search: &[PathBuf], spec: &mut LaunchSpec) {
    let Some(node) = find_program(search, "node").filter(|node| !is_system(node)) else { return };
    if let Some(folder) = node.parent().map(|folder| folder.display().to_string()) {
        let path = spec.env.entry("PATH".to_owned()).or_default();
        *path = format!("{folder}:{path}");
    }
    spec.fence.read.push(prefix_of(&node));
}

/// Lets a launch see the Python that its environment was made of, if it is not where all are.
pub fn show_python(python: &Path, spec: &mut LaunchSpec) {
    if let Ok(python) = std::fs::canonicalize(python)
        && !is_system(&python)
    {
        spec.fence.read.push(prefix_of(&python));
    }
}

/// Runs a tool that says how it is set up. It is the machine's own and runs as the core does.
async fn said(mut ask: Command, tool: &str) -> Result<String, Fault> {
    ask.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(SETTINGS_MAX, ask.output()).await;
    match output {
        Ok(Ok(output)) if output.status.success() => {
            String::from_utf8(output.stdout).map_err(|_| unsaid(tool))
        }
        _ => Err(unsaid(tool)),
    }
}

fn unsaid(tool: &str) -> Fault {
    let message =
        format!("The package cannot be installed: {tool} does not say where packages are.");
    Fault::new(Code::AgentStartFailed, message)
}

fn found(search: &[PathBuf], name: &str) -> Result<PathBuf, Fault> {
    find_program(search, name).ok_or_else(|| {
        let message =
            format!("The package cannot be installed: there is no {name} on this machine.");
        Fault::new(Code::AgentStartFailed, message)
    })
}

/// A program of the machine, without links.
#[must_use]
pub fn find_program(search: &[PathBuf], name: &str) -> Option<PathBuf> {
    let found = search.iter().map(|folder| folder.join(name)).find(|path| path.is_file())?;
    std::fs::canonicalize(found).ok()
}

fn host_of(address: &Url) -> Option<HostPattern> {
    let port = address.port_or_known_default()?;
    HostPattern::parse(&format!("{}:{port}", address.host_str()?)).ok()
}

/// What a program was installed with: the folder above its `bin`.
#[must_use]
pub fn prefix_of(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(program);
    match folder.file_name() {
        Some(name) if name == "bin" => folder.parent().unwrap_or(folder).to_owned(),
        _ => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn m047_the_one_way_out_leads_to_the_registry_that_npm_knows() {
        let all = object(json!({
            "registry": "https://npm.example.dev/all/",
            "@acme:registry": "http://u:s3cret@127.0.0.1:4873/",
            "cafile": null,
        }));
        let tools = |scope| {
            NodeTools::of("/usr/bin/node".into(), "/usr/lib/npm/bin/npm-cli.js".into(), &all, scope)
                .expect("set up")
                .errand()
        };
        let plain = tools(None);
        assert_eq!(plain.program, Path::new("/usr/bin/node"));
        let args = ["/usr/lib/npm/bin/npm-cli.js", "--registry=https://npm.example.dev/all/"];
        assert_eq!(plain.args, args);
        assert_eq!(plain.hosts, [HostPattern::parse("npm.example.dev:443").expect("a host")]);
        assert!(plain.read.is_empty(), "{:?}", plain.read);
        let scoped = tools(Some("acme"));
        assert_eq!(scoped.hosts, [HostPattern::parse("127.0.0.1:4873").expect("a host")]);
        assert_eq!(scoped.secrets, ["s3cret"]);
        let missing = object(json!({}));
        let tools = NodeTools::of("/a".into(), "/b".into(), &missing, None);
        assert!(tools.expect_err("nowhere").message.contains("does not say where"));
    }

    #[test]
    fn m047_the_way_out_of_pip_leads_where_it_is_set_up_or_where_it_would_look() {
        let tools = |settings: Value| {
            let tools: PythonTools = serde_json::from_value(json!({
                "python": "/usr/bin/python3", "prefix": "/usr", "settings": settings,
                "index": "https://index.example.dev/simple", "files": "files.example.dev",
            }))
            .expect("tools");
            tools.errand()
        };
        let hosts =
            |errand: &Errand| errand.hosts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let usual = tools(json!({}));
        assert_eq!(hosts(&usual), ["index.example.dev:443", "files.example.dev:443"]);
        let own = tools(json!({"index-url": "http://127.0.0.1:8080/simple", "timeout": "9"}));
        assert_eq!(hosts(&own), ["127.0.0.1:8080"]);
        assert_eq!(own.env["PIP_INDEX_URL"], "http://127.0.0.1:8080/simple");
        assert_eq!(own.env["PIP_TIMEOUT"], "9");
        let offline = tools(json!({"no-index": "true", "find-links": "/nowhere/at/all"}));
        assert!(offline.hosts.is_empty() && offline.read.is_empty());
    }

    #[test]
    fn uv_is_told_where_pip_would_look() {
        let tools: PythonTools = serde_json::from_value(json!({
            "python": "/usr/bin/python3", "prefix": "/usr",
            "settings": {
                "index-url": "http://127.0.0.1:8080/simple", "cert": "/etc/ca.pem",
                "find-links": "/nowhere/at/all /usr https://x.example.dev/all",
            },
            "index": "https://index.example.dev/simple", "files": "files.example.dev",
        }))
        .expect("tools");
        let errand = tools.errand_of_uv();
        assert_eq!(errand.hosts, tools.errand().hosts);
        assert_eq!(errand.env["UV_DEFAULT_INDEX"], "http://127.0.0.1:8080/simple");
        let links = ["--find-links", "/usr", "--find-links", "https://x.example.dev/all"];
        assert_eq!(errand.args, links);
        assert_eq!(errand.env["SSL_CERT_FILE"], "/etc/ca.pem");
        assert!(errand.env.keys().all(|key| !key.starts_with("PIP_")));
    }
}
