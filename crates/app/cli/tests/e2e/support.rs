//! A home of its own, a core in a process of its own, and the program run beside it.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::children::{self, Finish as _};
use crate::elsewhere;

/// Nothing in a test may take longer, on a machine that has much else to do.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// A home in a folder that vanishes with it.
pub(crate) struct TestHome {
    dir: tempfile::TempDir,
    /// What its configuration says of servers that keep what it holds.
    elsewhere: String,
}

impl TestHome {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let Some((elsewhere, secret)) = elsewhere::settings() else {
            return Self { dir, elsewhere: String::new() };
        };
        let home = Self { dir, elsewhere };
        home.configure("");
        std::fs::write(home.path().join("s3.secret"), secret).expect("writes");
        home
    }

    /// Whether its database is a file of its own.
    pub(crate) fn has_a_file(&self) -> bool {
        self.elsewhere.is_empty()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The program with this home and nothing else of the environment that matters.
    pub(crate) fn wharf(&self, arguments: &[&str]) -> Command {
        let mut command = children::command(env!("CARGO_BIN_EXE_wharf"));
        command.args(arguments).env("WHARF_HOME", self.path()).env("HOME", self.dir.path());
        let others = ["WHARF_URL", "WHARF_TOKEN", "WHARF_CA", "WHARF_LISTEN", "WHARF_LOG"];
        for name in others.into_iter().chain(["XDG_DATA_HOME", "XDG_CACHE_HOME"]) {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(&self.wharf(arguments).finish(), arguments)
    }

    /// Runs the program to its end with this on standard input.
    pub(crate) fn run_with(&self, input: &[u8], arguments: &[&str]) -> Ended {
        let mut command = self.wharf(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
        child.stdin.take().expect("piped").write_all(input).expect("it reads");
        let what = format!("wharf {}", arguments.join(" "));
        Ended::of(&children::ended(child, &what, children::PROGRAM), arguments)
    }

    /// Writes the home's configuration.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::create_dir_all(self.path()).expect("makes");
        let text = format!("{text}{}", self.elsewhere);
        std::fs::write(self.path().join("wharf.toml"), text).expect("writes");
    }

    /// Starts the program and leaves it running.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Running {
        let child = self.wharf(arguments).spawn().expect("the program starts");
        Running { child: Some(child), what: format!("wharf {}", arguments.join(" ")) }
    }

    /// Starts a core and waits until it is ready.
    pub(crate) fn up(&self) -> Core {
        self.up_with(&[])
    }

    /// Starts a core that has these variables in its environment, and waits until it is ready.
    pub(crate) fn up_with(&self, variables: &[(&str, &str)]) -> Core {
        self.up_on("127.0.0.1:0", variables)
    }

    /// Starts a core on an address, and waits until it is ready.
    pub(crate) fn up_on(&self, listen: &str, variables: &[(&str, &str)]) -> Core {
        let log = self.dir.path().join("core.log");
        let log = std::fs::File::options().append(true).create(true).open(log).expect("a log");
        let mut command = self.wharf(&["up", "--listen", listen]);
        command.stdout(Stdio::null()).stderr(log).envs(variables.iter().copied());
        let child = command.spawn().expect("the core starts");
        let pid = child.id();
        let running = Running { child: Some(child), what: "the core".to_owned() };
        let core = Core { running, home: self.path() };
        wait_for("the core to be ready", || {
            let info = core.info()?;
            (info["pid"] == pid).then_some(())
        });
        core
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("core.log")).unwrap_or_default()
    }
}

/// A core in a process of its own; it is killed when the test ends.
pub(crate) struct Core {
    running: Running,
    home: PathBuf,
}

impl Core {
    fn info(&self) -> Option<Value> {
        let text = std::fs::read(self.home.join("run/core.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(crate) fn url(&self) -> String {
        self.info().expect("ready")["http"].as_str().expect("an address").to_owned()
    }

    pub(crate) fn pid(&self) -> i64 {
        self.info().expect("ready")["pid"].as_i64().expect("a number")
    }

    pub(crate) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.home.join("run/owner.token")).expect("a token");
        text.trim().to_owned()
    }

    /// kill -9, and nothing else.
    pub(crate) fn kill(self) {
        self.running.signal(Signal::KILL);
        self.running.wait();
    }

    /// Asks the core to stop, as a service manager does.
    pub(crate) fn stop(self) -> Ended {
        self.running.signal(Signal::TERM);
        self.running.wait()
    }
}

/// A program that is running; it is killed when the test ends.
pub(crate) struct Running {
    child: Option<Child>,
    what: String,
}

impl Running {
    pub(crate) fn of(child: Child, what: &str) -> Self {
        Self { child: Some(child), what: what.to_owned() }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("running");
        kill_process(Pid::from_child(child), signal).expect("the process is there");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().expect("known").is_none())
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Ended {
        let child = self.child.take().expect("running");
        Ended::of(&children::ended(child, &self.what, children::PROGRAM), &[&self.what])
    }

    /// Reads standard error until it holds `text`.
    #[track_caller]
    pub(crate) fn until_stderr(&mut self, text: &str) -> String {
        let child = self.child.as_mut().expect("running");
        let stderr = child.stderr.as_mut().expect("piped");
        let mut seen = Vec::new();
        let mut byte = [0];
        let deadline = Instant::now() + LONG;
        while !String::from_utf8_lossy(&seen).contains(text) {
            let so_far = String::from_utf8_lossy(&seen);
            let what = format!("{text:?} from {}, which said: {so_far}", self.what);
            children::until_readable(&*stderr, deadline, &what);
            match stderr.read(&mut byte).expect("readable") {
                0 => panic!("it ended after: {}", String::from_utf8_lossy(&seen)),
                _ => seen.push(byte[0]),
            }
        }
        String::from_utf8_lossy(&seen).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    arguments: Vec<String>,
}

impl Ended {
    fn of(output: &Output, arguments: &[&str]) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        }
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{:?}: {self:#?}", self.arguments);
        self
    }

    /// Standard output as the one JSON value it must be.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A client that is let in everywhere.
pub(crate) fn client(core: &Core) -> reqwest::Client {
    client_with(&core.token())
}

/// A client with this token.
fn client_with(token: &str) -> reqwest::Client {
    // A second test of this process may have installed it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut headers = reqwest::header::HeaderMap::new();
    let token = format!("Bearer {token}");
    headers.insert("authorization", token.parse().expect("a header"));
    reqwest::Client::builder().no_proxy().default_headers(headers).build().expect("a client")
}

/// The core's HTTP API for tests that wait for each answer.
pub(crate) struct Api {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    url: String,
}

impl Api {
    pub(crate) fn of(core: &Core) -> Self {
        Self::with_token(core, &core.token())
    }

    /// The API as whoever has this token meets it.
    pub(crate) fn with_token(core: &Core, token: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { runtime: runtime.expect("a runtime"), client: client_with(token), url: core.url() }
    }

    fn send(&self, request: reqwest::RequestBuilder) -> (u16, Vec<u8>) {
        let answer = async {
            let answer = request.timeout(LONG).send().await?;
            let status = answer.status().as_u16();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?.to_vec()))
        };
        self.runtime.block_on(answer).expect("the core answers")
    }

    /// Status and body of what lies there.
    pub(crate) fn bytes(&self, path: &str) -> (u16, Vec<u8>) {
        self.send(self.client.get(format!("{}{path}", self.url)))
    }

    /// The JSON that must be there.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.bytes(path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Status and answer of a request with a body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let method = method.parse().expect("a method");
        let request = self.client.request(method, format!("{}{path}", self.url)).json(body);
        let (status, body) = self.send(request);
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Status and body of what lies at an address elsewhere, asked for without a token.
    pub(crate) fn at(&self, address: &str) -> (u16, Vec<u8>) {
        self.send(reqwest::Client::new().get(address))
    }

    /// Status and answer of a request with a body elsewhere, made without a token.
    pub(crate) fn post_at(&self, address: &str, body: &Value) -> (u16, Value) {
        let (status, body) = self.send(reqwest::Client::new().post(address).json(body));
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Status, answer and session id of a message of MCP; of a stream its last event.
    pub(crate) fn rpc(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value, String) {
        let mut request = self.client.post(format!("{}{path}", self.url)).json(body).timeout(LONG);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = async {
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            let session = answer.headers().get("mcp-session-id").and_then(|it| it.to_str().ok());
            let session = session.unwrap_or_default().to_owned();
            Ok::<_, reqwest::Error>((status, session, answer.text().await?))
        };
        let (status, session, text) = self.runtime.block_on(answer).expect("the core answers");
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data:"));
        let value = serde_json::from_str(last.unwrap_or(&text)).unwrap_or_default();
        (status, value, session)
    }

    /// Puts a file into a world.
    pub(crate) fn put_file(&self, world: &str, path: &str, text: &str) -> (u16, Value) {
        let url = format!("{}/v1/worlds/{world}/files{path}", self.url);
        let (status, body) = self.send(self.client.put(url).body(text.to_owned()));
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Starts a run, which must be accepted, and gives what is told of it at once.
    #[track_caller]
    pub(crate) fn start(&self, run: &Value) -> Value {
        let (status, answer) = self.ask("POST", "/v1/runs", run);
        assert_eq!(status, 202, "{answer}");
        answer
    }

    /// Reads a stream until it holds this text.
    #[track_caller]
    pub(crate) fn read_until(&self, path: &str, text: &str) {
        let request = self.client.get(format!("{}{path}", self.url)).timeout(LONG);
        let mut seen = Vec::new();
        self.runtime.block_on(async {
            let mut answer = request.send().await.expect("the core answers");
            while !String::from_utf8_lossy(&seen).contains(text) {
                let piece = answer.chunk().await.expect("readable");
                let Some(piece) = piece else {
                    panic!("{path} ended after: {}", String::from_utf8_lossy(&seen))
                };
                seen.extend_from_slice(&piece);
            }
        });
    }

    /// A run of a world once it is over.
    #[track_caller]
    pub(crate) fn end_of(&self, world: &str, run: &str) -> Value {
        wait_for(&format!("the end of {run}"), || {
            let shown = self.get(&format!("/v1/runs/{run}?world={world}"));
            shown["ended_at"].is_string().then_some(shown)
        })
    }
}

/// Waits until there is something, and says what was awaited if there never is.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).expect("exists").permissions().mode() & 0o777
}
