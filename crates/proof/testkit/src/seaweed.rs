//! A real S3 server for tests: SeaweedFS on loopback, without telemetry.
//!
//! A shell watches it, whose standard input is held open by the test: when that ends, however it
//! comes, the shell ends the server and removes what it has written.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rusty_s3::actions::{CreateBucket, GetObject, PutObject};
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};

/// The bucket that is there.
pub const BUCKET: &str = "wharf-tests";
/// What the server knows the tests by.
pub const KEY_ID: &str = "WHARFTEST";
/// The secret of it.
pub const SECRET: &str = "a-secret-of-tests";

/// How often another set of ports is tried when somebody else has taken one.
const TRIES: usize = 3;
/// How long the server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the server and does what it is told by lines; ends the server with its standard input.
/// What the server has left in the folder for temporary files is named after its ports.
const WATCH: &str = r#"
folder="$1"; ports="$2"; shift 2
start() { "$@" >>"$folder/log" 2>&1 </dev/null & server=$!; }
stop() { kill -9 "$server" 2>/dev/null; wait "$server" 2>/dev/null; }
start "$@"
while read -r line; do
    case "$line" in
        stop) stop; echo stopped;;
        start) start "$@"; echo started;;
    esac
done
stop
for port in $ports; do rm -f /tmp/seaweedfs-*-"$port".sock; done
rm -rf "$folder"
"#;

/// The server. It ends with this value, or with the process.
#[derive(Debug)]
pub struct Seaweed {
    /// Its address.
    pub endpoint: String,
    watch: Child,
    /// Always there until the end.
    orders: Option<ChildStdin>,
}

impl Seaweed {
    /// Starts a server with an empty bucket and waits until it answers.
    ///
    /// # Panics
    ///
    /// If the program is not there, or does not start.
    pub fn start() -> Self {
        let weed = program();
        for _ in 0..TRIES {
            if let Some(server) = Self::try_start(&weed) {
                return server;
            }
        }
        panic!("SeaweedFS ({}) does not start", weed.display());
    }

    fn try_start(weed: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let config = folder.join("s3.json");
        let identity = format!(
            r#"{{"identities":[{{"name":"core","credentials":[{{"accessKey":"{KEY_ID}",
            "secretKey":"{SECRET}"}}],"actions":["Admin","Read","Write","List"]}}]}}"#
        );
        fs::write(&config, identity).expect("written");
        let ports = free_ports();
        let [s3, s3_grpc, master, master_grpc, volume, volume_grpc, filer, filer_grpc] = ports;
        let named = ports.map(|port| port.to_string()).join(" ");
        let mut watch = Command::new("sh")
            .args(["-c", WATCH, "watch"])
            .arg(&folder)
            .arg(named)
            .arg(weed)
            .args(["server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"])
            .arg("-master.telemetry=false")
            // Started again, it takes so long until it is sure that it is alone.
            .arg("-master.electionTimeout=1s")
            .arg("-master.volumeSizeLimitMB=64")
            // Tests write little, so they need little: not a share of the whole disk.
            .args(["-volume.max=64", "-volume.minFreeSpace=64MiB"])
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0"])
            .arg(format!("-dir={}", folder.display()))
            .arg(format!("-s3.config={}", config.display()))
            .args([format!("-s3.port={s3}"), format!("-s3.port.grpc={s3_grpc}")])
            .args([format!("-master.port={master}"), format!("-master.port.grpc={master_grpc}")])
            .args([format!("-volume.port={volume}"), format!("-volume.port.grpc={volume_grpc}")])
            .args([format!("-filer.port={filer}"), format!("-filer.port.grpc={filer_grpc}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let orders = watch.stdin.take();
        let server = Self { endpoint: format!("http://127.0.0.1:{s3}"), watch, orders };
        server.answers().then_some(server)
    }

    /// Kills the server. What was written stays.
    pub fn stop(&mut self) {
        self.order("stop", "stopped");
    }

    /// Starts it again on the same address with what was written, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_again(&mut self) {
        self.order("start", "started");
        assert!(self.answers(), "SeaweedFS does not start again");
    }

    fn order(&mut self, order: &str, answer: &str) {
        let orders = self.orders.as_mut().expect("the shell waits for orders");
        writeln!(orders, "{order}").expect("the shell reads");
        let mut said = vec![0; answer.len() + 1];
        let answers = self.watch.stdout.as_mut().expect("piped");
        answers.read_exact(&mut said).expect("the shell answers");
        assert_eq!(said, format!("{answer}\n").into_bytes());
    }

    /// Waits until the server keeps and gives back an object.
    fn answers(&self) -> bool {
        let url = self.endpoint.parse().expect("an address");
        let bucket = Bucket::new(url, UrlStyle::Path, BUCKET, "us-east-1").expect("a bucket");
        let (keys, soon) = (Credentials::new(KEY_ID, SECRET), Duration::from_secs(60));
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let created = ask("PUT", CreateBucket::new(&bucket, &keys).sign(soon).as_str(), "");
            let put = PutObject::new(&bucket, Some(&keys), "here").sign(soon);
            let get = GetObject::new(&bucket, Some(&keys), "here").sign(soon);
            // The one that made the bucket may make it again.
            let there = is_good(&created) || created.contains("BucketAlready");
            if there
                && is_good(&ask("PUT", put.as_str(), "x"))
                && is_good(&ask("GET", get.as_str(), ""))
            {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    }
}

impl Drop for Seaweed {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.watch.wait();
    }
}

fn is_good(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200")
}

/// The answer with its head, or nothing.
fn ask(method: &str, url: &str, body: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let length = body.len();
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    let answer = TcpStream::connect(host).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    answer.unwrap_or_default()
}

fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners =
        [(); COUNT].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

/// Where the program is: named by `WHARF_WEED`, or where the set-up has put it.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("WHARF_WEED") {
        return named.into();
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let program = root.join("target/tools/python/bin/weed");
    assert!(
        program.exists(),
        "SeaweedFS, the S3 server that this test needs, is not there; run: scripts/setup.sh check"
    );
    program
}
