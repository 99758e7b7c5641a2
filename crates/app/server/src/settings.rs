//! What can be set: by option, by environment, in `wharf.toml`; the first that speaks wins.

mod agents;
pub(crate) mod artifacts;
mod mcp;
mod models;
mod operators;
mod policy;
mod rules;
mod store;
mod tables;
mod telemetry;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;
use wharf_domain::Policy;
use wharf_domain::provider::ProviderLimits;
use wharf_tls::CertFiles;
use wharf_vocab::{Code, Fault, SandboxLevel, ToolId};

use crate::Home;
use crate::database::Database;
use crate::fault::sentence;
pub(crate) use store::StoreTarget;

const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7420);
const STORE_DEFAULT: &str = "wharf.db";
const LEVEL_DEFAULT: &str = "info";

/// What was set, or how it is otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    /// The certificate and its key; with them the core speaks TLS.
    pub(crate) tls: Option<CertFiles>,
    /// Further names the core may be called by.
    pub(crate) hosts: Vec<String>,
    /// Origins of pages that may call the core, besides its own.
    pub(crate) origins: Vec<String>,
    /// The database.
    pub(crate) store: Database,
    /// Where agents connect, when not by a Unix socket.
    pub(crate) agents_tcp: Option<SocketAddr>,
    /// How often agents show that they are alive, when not as usual.
    pub(crate) agents_heartbeat_ms: Option<u64>,
    /// How firmly agents are fenced in when an approval does not say.
    pub(crate) sandbox: SandboxLevel,
    /// The least an agent must be fenced in, if the owner says so.
    pub(crate) sandbox_min: Option<SandboxLevel>,
    /// The owner's limits for all agents.
    pub(crate) agent_limits: ProviderLimits,
    /// What holds for agents on the wire, and when they are started again.
    pub(crate) agent_rules: rules::Rules,
    /// What is cut out of what providers write.
    pub(crate) redaction: tables::Redaction,
    /// The owner's rules about approvals.
    pub(crate) policy: Policy,
    /// How long runs of some tools are kept.
    pub(crate) retention: Vec<wharf_engine::RetentionRule>,
    /// Where files are kept.
    pub(crate) artifacts: artifacts::Artifacts,
    /// How tool servers are run.
    pub(crate) tools: tables::ToolServerSettings,
    /// What operators are told, and how long seats wait.
    pub(crate) operators: operators::Operators,
    /// How clients of MCP are served, and how servers of MCP are kept.
    pub(crate) mcp: mcp::McpSettings,
    /// Which tool completes prompts, when not the usual one.
    pub(crate) model_tool: Option<ToolId>,
    /// Which models can be asked, and what they cost.
    pub(crate) models: wharf_models::ModelOptions,
    /// What open runs may take in memory, all together.
    pub(crate) runs_memory_bytes: u64,
    /// Where traces are exported, if they are.
    pub(crate) telemetry: Option<wharf_telemetry::TelemetryOptions>,
    /// How to log.
    pub(crate) log: LogSettings,
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSettings {
    pub(crate) format: Format,
    /// What to log, as `tracing` filters are written.
    pub(crate) filter: String,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs, one object per line.
    Json,
}

/// `wharf.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SettingsFile {
    http: Http,
    store: store::StoreTable,
    agents: agents::Agents,
    artifacts: artifacts::ArtifactsTable,
    redaction: tables::Redaction,
    approvals: policy::Approvals,
    policy: Vec<policy::PolicyRule>,
    retention: Vec<policy::RetentionTable>,
    tools: tables::ToolServerSettings,
    operators: operators::Operators,
    mcp: mcp::McpSettings,
    models: models::Models,
    runs: tables::Runs,
    telemetry: telemetry::TelemetryTable,
    log: LogFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Http {
    listen: Option<SocketAddr>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LogFile {
    format: Option<Format>,
    level: Option<String>,
}

impl Settings {
    /// Reads what is set in the environment and in the home's `wharf.toml`.
    pub(crate) fn load(home: &Home) -> Result<Self, Fault> {
        Self::read(home, |name| std::env::var(name).ok())
    }

    /// Where the file of the database lies, if it is one, and whether files of worlds are kept in
    /// the home. It needs no secret, so that a home can be copied without them.
    pub(crate) fn places(home: &Home) -> Result<(Option<PathBuf>, bool), Fault> {
        let file = SettingsFile::read(home)?;
        let var = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Ok((file.store.file(home.path(), var)?, file.artifacts.is_in_the_home()))
    }

    fn read(home: &Home, var: impl Fn(&str) -> Option<String>) -> Result<Self, Fault> {
        let file = SettingsFile::read(home)?;
        let var = |name: &str| var(name).filter(|text| !text.is_empty());
        let listen = match var("WHARF_LISTEN") {
            Some(text) => Some(text.parse().map_err(|_| wrong_listen(&text))?),
            None => file.http.listen,
        };
        let format = match var("WHARF_LOG_FORMAT").as_deref() {
            Some("text") => Some(Format::Text),
            Some("json") => Some(Format::Json),
            Some(_) => return Err(invalid("WHARF_LOG_FORMAT must be text or json.")),
            None => file.log.format,
        };
        let filter = var("WHARF_LOG").or(file.log.level);
        file.redaction.compile()?;
        let store = file.store.settle(home.path(), var)?;
        Ok(Self {
            listen: listen.unwrap_or(LISTEN_DEFAULT),
            tls: tables::pair("http", home.path(), file.http.tls_cert, file.http.tls_key)?,
            hosts: file.http.hosts,
            origins: tables::checked_origins(
                file.http.origins,
                "The key http.origins in wharf.toml",
            )?,
            store,
            agents_tcp: file.agents.tcp,
            agents_heartbeat_ms: file.agents.heartbeat_ms.map(|ms| ms.max(100)),
            sandbox: file.agents.sandbox(),
            sandbox_min: file.agents.sandbox_min(),
            agent_rules: rules::read(&file.agents.all, &file.agents.only)?,
            agent_limits: file.agents.limits.into(),
            redaction: file.redaction,
            policy: policy::to_policy(&file.approvals, file.policy),
            retention: policy::to_retention(file.retention),
            artifacts: file.artifacts.settle(home.path(), var)?,
            tools: file.tools,
            operators: file.operators.checked()?,
            mcp: file.mcp.checked()?,
            model_tool: file.models.tool()?,
            models: file.models.options()?,
            runs_memory_bytes: file.runs.memory_bytes()?,
            telemetry: file.telemetry.settle(var)?,
            log: LogSettings {
                format: format.unwrap_or_default(),
                filter: filter.unwrap_or_else(|| LEVEL_DEFAULT.to_owned()),
            },
        })
    }

    /// The same with another certificate, if one was given.
    pub(crate) fn with_tls(mut self, tls: Option<CertFiles>) -> Self {
        self.tls = tls.or(self.tls);
        self
    }

    /// The same with what was given as options, if it may be.
    pub(crate) fn with_options(
        mut self,
        listen: Option<SocketAddr>,
        behind_proxy: bool,
    ) -> Result<Self, Fault> {
        self.artifacts.check(behind_proxy)?;
        self.listen = listen.unwrap_or(self.listen);
        if !self.listen.ip().is_loopback() && !behind_proxy && self.tls.is_none() {
            let message = format!(
                "{} can be reached from other machines; set tls_cert and tls_key in [http] of \
                 wharf.toml, listen on 127.0.0.1, or add --behind-proxy if a proxy in front \
                 provides TLS.",
                self.listen
            );
            return Err(invalid(message));
        }
        Ok(self)
    }

    /// The same with more origins of pages that may call.
    pub(crate) fn with_origins(mut self, origins: Vec<String>) -> Result<Self, Fault> {
        self.origins.extend(tables::checked_origins(origins, "The option --allow-origin")?);
        Ok(self)
    }
}

impl SettingsFile {
    fn read(home: &Home) -> Result<Self, Fault> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let path = home.config_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // Whether the home can be used at all is not for here to say.
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => String::new(),
            Err(error) => {
                return Err(invalid(format!("{} cannot be read: {error}.", path.display())));
            }
        };
        toml::from_str(&text).map_err(|error| describe(&text, &error))
    }
}

fn describe(text: &str, error: &toml::de::Error) -> Fault {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let message = error.message();
    let key = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    invalid(match key {
        Some(key) => format!(
            "wharf.toml has an unknown key `{key}` in line {line}; correct it and start again."
        ),
        None => {
            let message = sentence(message.lines().next().unwrap_or_default());
            format!("wharf.toml is wrong in line {line}: {message}")
        }
    })
}

fn wrong_listen(text: &str) -> Fault {
    invalid(format!("WHARF_LISTEN is {text:?}, which is not an address such as 127.0.0.1:7420."))
}

fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(Code::ConfigInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, vars: &[(&str, &str)]) -> Result<Settings, Fault> {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("wharf.toml"), file).expect("written");
        let home = Home::resolve(Some(dir.path().to_owned())).expect("a home");
        let found = Settings::read(&home, |name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        found.map(|settings| Settings {
            store: match settings.store {
                Database::Sqlite(path) => {
                    Database::Sqlite(path.strip_prefix(dir.path()).unwrap_or(&path).to_owned())
                }
                other => other,
            },
            ..settings
        })
    }

    #[test]
    fn without_a_file_everything_has_a_default() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::resolve(Some(dir.path().to_owned())).expect("a home");
        let settings = Settings::read(&home, |_| None).expect("fits");
        assert_eq!(settings.listen.to_string(), "127.0.0.1:7420");
        assert_eq!(settings.store, Database::Sqlite(dir.path().join("wharf.db")));
        assert_eq!(settings.log, LogSettings { format: Format::Text, filter: "info".to_owned() });
        assert!(settings.hosts.is_empty());
    }

    #[test]
    fn options_win_over_the_environment_and_that_over_the_file() {
        let file = "[http]\nlisten = \"127.0.0.1:1\"\nhosts = [\"a.example\"]\n\
                    [store]\npath = \"other.db\"\n[log]\nformat = \"json\"\nlevel = \"debug\"\n";
        let settings = read(file, &[]).expect("fits");
        assert_eq!(settings.listen.port(), 1);
        assert_eq!(settings.hosts, ["a.example"]);
        assert_eq!(settings.store, Database::Sqlite("other.db".into()));
        assert_eq!(settings.log, LogSettings { format: Format::Json, filter: "debug".to_owned() });
        let vars =
            [("WHARF_LISTEN", "127.0.0.1:2"), ("WHARF_LOG", "warn"), ("WHARF_LOG_FORMAT", "text")];
        let settings = read(file, &vars).expect("fits");
        assert_eq!(settings.listen.port(), 2);
        assert_eq!(settings.log, LogSettings { format: Format::Text, filter: "warn".to_owned() });
        let option = "[::1]:3".parse().expect("an address");
        let settings = settings.with_options(Some(option), false).expect("loopback");
        assert_eq!(settings.listen, option);
    }

    #[track_caller]
    fn refused(file: &str, vars: &[(&str, &str)], message: &str) {
        let fault = read(file, vars).expect_err("refused");
        assert!(fault.is(Code::ConfigInvalid));
        assert_eq!(fault.message, message);
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        refused(
            "[http]\nlisten = \"127.0.0.1:1\"\nlisen = 1\n",
            &[],
            "wharf.toml has an unknown key `lisen` in line 3; correct it and start again.",
        );
        refused(
            "\n[htp]\n",
            &[],
            "wharf.toml has an unknown key `htp` in line 2; correct it and start again.",
        );
        refused(
            "[log]\nformat = \"xml\"\n",
            &[],
            "wharf.toml is wrong in line 2: Unknown variant `xml`, expected `text` or `json`.",
        );
        refused(
            "[http]\nhosts = 7\n",
            &[],
            "wharf.toml is wrong in line 2: Invalid type: integer `7`, expected a sequence.",
        );
        let fault = read("[http\n", &[]).expect_err("refused");
        assert!(fault.message.starts_with("wharf.toml is wrong in line 1: "), "{fault}");
        let fault = read("[http]\nlisten = \"everywhere\"\n", &[]).expect_err("refused");
        assert!(fault.message.starts_with("wharf.toml is wrong in line 2: "), "{fault}");
        let message = "WHARF_LISTEN is \"7420\", which is not an address such as 127.0.0.1:7420.";
        refused("", &[("WHARF_LISTEN", "7420")], message);
        refused("", &[("WHARF_LOG_FORMAT", "xml")], "WHARF_LOG_FORMAT must be text or json.");
    }

    #[test]
    fn a_certificate_lies_in_the_home_or_elsewhere_and_needs_its_key() {
        let dir = tempfile::tempdir().expect("a folder");
        let text = "[http]\ntls_cert = \"c.pem\"\ntls_key = \"/k.pem\"\n";
        std::fs::write(dir.path().join("wharf.toml"), text).expect("written");
        let home = Home::resolve(Some(dir.path().to_owned())).expect("a home");
        let tls = Settings::read(&home, |_| None).expect("fits").tls.expect("set");
        assert_eq!(tls, CertFiles { cert: dir.path().join("c.pem"), key: "/k.pem".into() });
        let message = "[http] needs tls_cert and tls_key together.";
        refused("[http]\ntls_cert = \"c.pem\"\n", &[], message);
        refused("[http]\ntls_key = \"k.pem\"\n", &[], message);
    }

    #[test]
    fn other_machines_are_let_in_only_over_tls() {
        for listen in ["0.0.0.0:7420", "[::]:7420", "192.0.2.1:80"] {
            let listen = Some(listen.parse().expect("an address"));
            let settings = || read("", &[]).expect("fits");
            let fault = settings().with_options(listen, false).expect_err("refused");
            assert!(fault.is(Code::ConfigInvalid));
            assert!(fault.message.contains("--behind-proxy") && fault.message.contains("TLS"));
            settings().with_options(listen, true).expect("allowed");
            let tls = "[http]\ntls_cert = \"c.pem\"\ntls_key = \"/k.pem\"\n";
            let settings = read(tls, &[]).expect("fits");
            settings.with_options(listen, false).expect("allowed with TLS");
        }
    }
}
