//! A real PostgreSQL server for tests, made in a temporary folder and gone with the test.
//!
//! It listens on a Unix socket in its own folder, and on a loopback port if it is told to. A shell
//! stands between: it ends the server and removes the folder when the test's end of a pipe is
//! closed, which also happens when the test is killed. A server does not run as root, so root
//! starts it as `postgres`.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The oldest version that Wharf supports.
const OLDEST: u32 = 15;
/// Where Debian keeps versions side by side.
const DEBIAN: &str = "/usr/lib/postgresql";
/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);
/// Whoever owns the databases.
const USER: &str = "wharf";

/// A server that runs.
#[derive(Debug)]
pub struct PostgresServer {
    binaries: PathBuf,
    folder: PathBuf,
    tls: bool,
    port: Option<u16>,
    /// Whether it waits for the disk. What tests lose with their machine is lost anyway.
    durable: bool,
    guard: Mutex<Option<Guard>>,
    databases: AtomicU64,
}

/// The shell that ends the server, and the pipe it waits at.
#[derive(Debug)]
struct Guard {
    shell: Child,
    pipe: Option<ChildStdin>,
}

/// The server that the tests of one program share, or none if there is no PostgreSQL here; then the
/// test that is running says so and goes.
pub fn shared() -> Option<&'static PostgresServer> {
    static SHARED: LazyLock<Option<PostgresServer>> = LazyLock::new(|| {
        let binaries = binaries()?;
        Some(
            PostgresServer::start(binaries, None, None, false).expect("a PostgreSQL server starts"),
        )
    });
    if SHARED.is_none() {
        wharf_skips::skip("PostgreSQL 15 or newer is not installed");
    }
    SHARED.as_ref()
}

/// A server of one's own, over its socket.
pub fn own() -> Option<PostgresServer> {
    start(None, None, false)
}

/// A server of one's own that waits for the disk, to be measured.
pub fn durable() -> Option<PostgresServer> {
    start(None, None, true)
}

/// A server of one's own that also listens on a loopback port, where it speaks TLS with this
/// certificate and key (both PEM).
pub fn own_with_tls(port: u16, certificate: &str, key: &str) -> Option<PostgresServer> {
    start(Some(port), Some((certificate, key)), false)
}

fn start(port: Option<u16>, tls: Option<(&str, &str)>, durable: bool) -> Option<PostgresServer> {
    let Some(binaries) = binaries() else {
        wharf_skips::skip("PostgreSQL 15 or newer is not installed");
        return None;
    };
    Some(PostgresServer::start(binaries, port, tls, durable).expect("a PostgreSQL server starts"))
}

/// Where the programs of the newest version are.
fn binaries() -> Option<PathBuf> {
    let versions = fs::read_dir(DEBIAN).ok().into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| *version >= OLDEST)
        .filter(|version| bin(*version).join("initdb").exists())
        .max()?;
    Some(bin(newest))
}

/// Whom root starts a server as.
fn postgres_user() -> Option<u32> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let found = Command::new("id").args(["-u", "postgres"]).output().ok()?;
    String::from_utf8_lossy(&found.stdout).trim().parse().ok()
}

fn bin(version: u32) -> PathBuf {
    Path::new(DEBIAN).join(version.to_string()).join("bin")
}

/// The processes that a process has started.
fn children_of(parent: i32) -> Vec<i32> {
    let is_child = |pid: &i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name before it stands in brackets and may hold anything.
        let after = text.rsplit_once(')').map_or("", |(_, after)| after);
        after.split_whitespace().nth(1).and_then(|it| it.parse().ok()) == Some(parent)
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

impl PostgresServer {
    fn start(
        binaries: PathBuf,
        port: Option<u16>,
        tls: Option<(&str, &str)>,
        durable: bool,
    ) -> io::Result<Self> {
        // The name of a socket may not be long, so the folder is not below a test's own.
        let folder = tempfile::Builder::new().prefix("wpg").tempdir_in("/tmp")?.keep();
        if let Some(user) = postgres_user() {
            chown(&folder, Some(user), None)?;
        }
        let server = Self {
            binaries,
            folder,
            tls: tls.is_some(),
            port,
            durable,
            guard: Mutex::new(None),
            databases: AtomicU64::new(0),
        };
        let data = server.data();
        let made = server
            .as_its_user(&server.binaries.join("initdb"))
            .args(["-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .output()?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            return Err(io::Error::other(format!("initdb: {said}")));
        }
        for (name, text) in
            tls.into_iter().flat_map(|(cert, key)| [("server.crt", cert), ("server.key", key)])
        {
            let path = data.join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
            chown(&path, postgres_user(), None)?;
        }
        server.begin()?;
        Ok(server)
    }

    /// Starts the server process and waits until it answers.
    fn begin(&self) -> io::Result<()> {
        let port = self.port.unwrap_or(5432).to_string();
        let listen = if self.port.is_some() { "127.0.0.1" } else { "" };
        let mut command = self.as_its_user(Path::new("/bin/sh"));
        command.args([
            "-c",
            "folder=$1; shift; \"$@\" >> \"$folder/log\" 2>&1 & pid=$!; read stop; kill -INT $pid; \
             wait $pid; [ -n \"$stop\" ] || rm -rf \"$folder\"",
            "sh",
        ]);
        command.arg(&self.folder).arg(self.binaries.join("postgres")).arg("-D").arg(self.data());
        command.arg("-k").arg(&self.folder).args(["-p", &port]);
        let fsync = if self.durable { "fsync=on" } else { "fsync=off" };
        for option in [fsync, "max_connections=200", "log_min_messages=warning"] {
            command.args(["-c", option]);
        }
        command.arg("-c").arg(format!("listen_addresses={listen}"));
        if self.tls {
            command.args(["-c", "ssl=on"]);
        }
        let mut shell =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let pipe = shell.stdin.take();
        *self.guard.lock() = Some(Guard { shell, pipe });
        let deadline = Instant::now() + PATIENCE;
        while !self.answers() {
            if Instant::now() > deadline {
                let said = fs::read_to_string(self.log()).unwrap_or_default();
                return Err(io::Error::other(format!("PostgreSQL does not answer: {said}")));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        Ok(())
    }

    fn answers(&self) -> bool {
        let mut ready = Command::new(self.binaries.join("psql"));
        ready.args(["-X", "-q", "-U", USER, "-d", "postgres", "-c", "SELECT 1"]);
        ready.arg("-h").arg(&self.folder).args(["-p", &self.port.unwrap_or(5432).to_string()]);
        ready.stdout(Stdio::null()).stderr(Stdio::null());
        ready.status().is_ok_and(|status| status.success())
    }

    /// Makes an empty database and says its address, over the socket.
    pub fn database(&self) -> String {
        let name = format!("w{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        self.url(&name)
    }

    /// The address of a database, over the socket.
    pub fn url(&self, name: &str) -> String {
        let host = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{host}:{}/{name}", self.port.unwrap_or(5432))
    }

    /// The address of a database, over the loopback port that it was given.
    pub fn tcp_url(&self, name: &str) -> Option<String> {
        Some(format!("postgres://{USER}@127.0.0.1:{}/{name}", self.port?))
    }

    /// Runs statements in a database and returns what they print, unaligned.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let port = self.port.unwrap_or(5432).to_string();
        let done = Command::new(self.binaries.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", USER])
            .arg("-h")
            .arg(&self.folder)
            .args(["-p", &port, "-d", database, "-c", sql])
            .output()
            .expect("psql runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{sql}: {said}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Where the programs of this version are.
    pub fn binaries(&self) -> &Path {
        &self.binaries
    }

    /// The folder with the socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder with the databases and the server's own files.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// The process of the server.
    pub fn pid(&self) -> Option<i32> {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// The processes of the server and of all its connections.
    pub fn pids(&self) -> Vec<i32> {
        let server = self.pid();
        server.into_iter().chain(server.into_iter().flat_map(children_of)).collect()
    }

    /// Kills one process of the server, or the server itself, without a word.
    pub fn kill(&self, pid: i32) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            // It may be gone already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// Kills the server with all its processes at once, as if the machine had gone, and starts it
    /// again.
    ///
    /// # Panics
    ///
    /// If it does not answer within a minute.
    pub fn kill_and_start_again(&self) {
        // A server that stands still takes no connection that the list would lack.
        if let Some(pid) = self.pid().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::STOP);
        }
        let pids = self.pids();
        pids.iter().for_each(|pid| self.kill(*pid));
        self.stop();
        // A new server refuses to start while one of the old processes still holds its memory.
        let deadline = Instant::now() + PATIENCE;
        while pids.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            assert!(Instant::now() < deadline, "a killed process of PostgreSQL stays: {pids:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.start_again();
    }

    /// Stops the server, breaking off what is under way.
    pub fn stop(&self) {
        let Some(mut guard) = self.guard.lock().take() else { return };
        // A word tells it to leave the folder.
        let told = guard.pipe.take().map(|mut pipe| pipe.write_all(b"stop\n"));
        assert!(matches!(told, Some(Ok(()))), "the server's shell is gone");
        // The shell ends when the server has.
        let _ = guard.shell.wait();
    }

    /// Starts the server again after it was stopped.
    ///
    /// # Panics
    ///
    /// If it does not answer within a minute.
    pub fn start_again(&self) {
        self.begin().expect("a PostgreSQL server starts again");
    }

    fn as_its_user(&self, program: &Path) -> Command {
        if postgres_user().is_none() {
            let mut command = Command::new(program);
            command.current_dir(&self.folder);
            return command;
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
        // What is left lies in the machine's temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
