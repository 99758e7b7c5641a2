//! A real S3 server: SeaweedFS on loopback, one for all tests of this program.
//!
//! A shell watches it, whose standard input is held open by the tests: when they end, however
//! that comes, the shell ends the server and removes what it has written.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rusty_s3::actions::CreateBucket;
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};
use wharf_artifacts::S3Options;

use crate::support::{self, Client};

/// The bucket of all tests.
const BUCKET: &str = "wharf-tests";
/// How often another set of ports is tried when somebody else has taken one.
const TRIES: usize = 3;

/// Starts the server and ends it with its standard input. What it has left in the folder for
/// temporary files is named after its ports.
const WATCH: &str = r#"
folder="$1"; ports="$2"; shift 2
"$@" >"$folder/log" 2>&1 &
server=$!
cat >/dev/null
kill -9 "$server"
wait "$server" 2>/dev/null
for port in $ports; do rm -f /tmp/seaweedfs-*-"$port".sock; done
rm -rf "$folder"
"#;

/// The server.
#[derive(Debug)]
pub(crate) struct Seaweed {
    /// Its address.
    pub(crate) endpoint: String,
    /// Lives as long as the tests.
    _watch: Child,
}

/// What the server knows the tests by.
pub(crate) const KEY_ID: &str = "WHARFTEST";
/// The secret of it.
pub(crate) const SECRET: &str = "a-secret-of-tests";

/// The server, started by whoever needs it first.
pub(crate) fn server() -> Arc<Seaweed> {
    static SERVER: OnceLock<Arc<Seaweed>> = OnceLock::new();
    Arc::clone(SERVER.get_or_init(|| {
        // A runtime of the caller's must not be blocked from within.
        let started = std::thread::spawn(|| Arc::new(start()));
        started.join().expect("SeaweedFS starts")
    }))
}

/// Options for a corner of the bucket that no other test uses.
pub(crate) fn options() -> S3Options {
    let mut options = S3Options::new(&server().endpoint, BUCKET, KEY_ID, SECRET);
    options.prefix = Some(support::world());
    options
}

fn start() -> Seaweed {
    let weed = program();
    for _ in 0..TRIES {
        if let Some(server) = try_start(&weed) {
            return server;
        }
    }
    panic!("SeaweedFS ({}) does not start", weed.display());
}

fn try_start(weed: &PathBuf) -> Option<Seaweed> {
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
        .arg("-master.volumeSizeLimitMB=64")
        .arg("-volume.max=0")
        .args(["-s3.port.iceberg=0", "-s3.port.lance=0"])
        .arg(format!("-dir={}", folder.display()))
        .arg(format!("-s3.config={}", config.display()))
        .args([format!("-s3.port={s3}"), format!("-s3.port.grpc={s3_grpc}")])
        .args([format!("-master.port={master}"), format!("-master.port.grpc={master_grpc}")])
        .args([format!("-volume.port={volume}"), format!("-volume.port.grpc={volume_grpc}")])
        .args([format!("-filer.port={filer}"), format!("-filer.port.grpc={filer_grpc}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let endpoint = format!("http://127.0.0.1:{s3}");
    if make_bucket(&endpoint) {
        return Some(Seaweed { endpoint, _watch: watch });
    }
    drop(watch.stdin.take());
    watch.wait().expect("ends");
    None
}

/// Makes the bucket as soon as the server answers.
fn make_bucket(endpoint: &str) -> bool {
    let url = endpoint.parse().expect("an address");
    let bucket = Bucket::new(url, UrlStyle::Path, BUCKET, "us-east-1").expect("a bucket");
    let keys = Credentials::new(KEY_ID, SECRET);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        let url = CreateBucket::new(&bucket, &keys).sign(Duration::from_secs(60));
        let host = url.authority().to_owned();
        let path = url.as_str().split_once(&host).expect("a path").1;
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let answer = TcpStream::connect(&host).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        if answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
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

/// A client for this server.
pub(crate) fn client() -> Arc<Client> {
    Arc::new(Client::new())
}
