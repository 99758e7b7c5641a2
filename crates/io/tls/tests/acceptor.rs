//! Certificates of all kinds, on real sockets.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use wharf_tls::{Acceptor, CertFiles, TlsStream};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);
const USUAL: Duration = Duration::from_secs(30);

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> CertFiles {
        CertFiles { cert: self.path("cert.pem"), key: self.path("key.pem") }
    }

    /// Replaces both files as a whole, the certificate first.
    fn write(&self, made: &Made) {
        for (name, text) in [("cert.pem", &made.cert), ("key.pem", &made.key)] {
            let new = self.path("new");
            fs::write(&new, text).expect("written");
            fs::rename(&new, self.path(name)).expect("moved");
        }
    }

    fn refused(&self) -> String {
        Acceptor::open(self.names()).expect_err("refused").to_string()
    }
}

struct Made {
    cert: String,
    key: String,
    der: CertificateDer<'static>,
}

fn made(adjust: impl FnOnce(&mut CertificateParams)) -> Made {
    let names = ["localhost", "127.0.0.1", "wharf.example", "*.wharf.example"];
    let mut params = CertificateParams::new(names.map(str::to_owned)).expect("names");
    adjust(&mut params);
    let key = KeyPair::generate().expect("a key");
    let cert = params.self_signed(&key).expect("signed");
    Made { cert: cert.pem(), key: key.serialize_pem(), der: cert.der().clone() }
}

fn usual() -> Made {
    made(|_| {})
}

#[test]
fn what_cannot_be_used_is_named_with_its_file_and_the_reason() {
    let files = Files::new();
    let said = files.refused();
    assert!(said.contains("cert.pem cannot be read: No such file"), "{said}");
    files.write(&usual());
    fs::remove_file(files.path("key.pem")).expect("removed");
    let said = files.refused();
    assert!(said.contains("key.pem cannot be read: No such file"), "{said}");

    files.write(&Made { cert: "hello".to_owned(), ..usual() });
    let said = files.refused();
    assert!(said.contains("cert.pem holds no certificate"), "{said}");
    files.write(&Made { key: "hello".to_owned(), ..usual() });
    let said = files.refused();
    assert!(said.contains("key.pem holds no private key"), "{said}");

    files.write(&Made { key: usual().key, ..usual() });
    let said = files.refused();
    assert!(said.contains("does not belong to the certificate"), "{said}");
    assert!(said.contains("key.pem") && said.contains("cert.pem"), "{said}");

    files.write(&made(|params| params.not_after = date_time_ymd(2001, 2, 3)));
    let said = files.refused();
    assert!(said.contains("cert.pem ended on 2001-02-03T00:00:00Z; renew it"), "{said}");
    files.write(&made(|params| params.not_before = date_time_ymd(2099, 2, 3)));
    let said = files.refused();
    assert!(said.contains("cert.pem is not good before 2099-02-03"), "{said}");
}

#[test]
fn a_key_that_is_spoilt_is_not_quoted() {
    let files = Files::new();
    let pair = usual();
    let secret = pair.key.lines().nth(1).expect("a line").to_owned();
    for key in [
        pair.key.replace("-----END", "----END"),
        pair.key.replace(&secret, &format!("{secret}*")),
        format!("-----BEGIN {secret}\n{}", pair.key),
    ] {
        files.write(&Made { cert: pair.cert.clone(), key, der: pair.der.clone() });
        let said = files.refused();
        assert!(said.contains("key.pem") && !said.contains(&secret[..16]), "{said}");
        let bytes = format!("{:?}", &secret.as_bytes()[..4]);
        assert!(!said.contains(bytes.trim_matches(['[', ']'])), "{said}");
    }
}

#[test]
fn a_file_that_others_forbid_says_who_must_be_let_in() {
    use std::os::unix::fs::PermissionsExt as _;
    let files = Files::new();
    files.write(&usual());
    fs::set_permissions(files.path("key.pem"), fs::Permissions::from_mode(0o000)).expect("set");
    if fs::read(files.path("key.pem")).is_ok() {
        // Nothing is forbidden to root; what the system would say is said here.
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let said = wharf_tls::Error::Unreadable { path: files.path("key.pem"), source }.to_string();
        assert!(said.contains("let the account that this program runs as read"), "{said}");
        return;
    }
    let said = files.refused();
    assert!(said.contains("let the account that this program runs as read"), "{said}");
}

#[test]
fn a_certificate_says_for_whom_it_is() {
    let files = Files::new();
    files.write(&usual());
    let certificate = files.names().read().expect("good");
    assert_eq!(certificate.names().collect::<Vec<_>>(), ["localhost", "wharf.example"]);
    for host in ["localhost", "127.0.0.1", "wharf.example", "a.wharf.example"] {
        assert!(certificate.is_for(host), "{host}");
    }
    for host in ["", "[::1]", "::1", "10.0.0.1", "example", "a.b.wharf.example", "x y"] {
        assert!(!certificate.is_for(host), "{host}");
    }
}

struct Pair {
    acceptor: Acceptor,
    listener: TcpListener,
}

impl Pair {
    async fn of(files: &Files) -> Self {
        let acceptor = Acceptor::open(files.names()).expect("opens");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        Self { acceptor, listener }
    }

    /// Connects as a client that trusts this certificate and no other.
    async fn connect(
        &self,
        trusted: &CertificateDer<'static>,
    ) -> Option<(tokio_rustls::client::TlsStream<TcpStream>, TlsStream<TcpStream>)> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(trusted.clone()).expect("added");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let address = self.listener.local_addr().expect("bound");
        let name = ServerName::try_from("localhost").expect("a name");
        let client = async {
            let stream = TcpStream::connect(address).await.expect("connects");
            connector.connect(name, stream).await
        };
        let server = async {
            let (stream, _) = self.listener.accept().await.expect("accepted");
            self.acceptor.accept(stream, USUAL).await
        };
        let both = timeout(PATIENCE, async { tokio::join!(client, server) }).await;
        let (client, server) = both.expect("a handshake, or its failure");
        Some((client.ok()?, server.ok()?))
    }
}

#[tokio::test]
async fn new_files_are_taken_on_while_connections_go_on_and_worse_ones_are_not() {
    let files = Files::new();
    let (old, new) = (usual(), usual());
    files.write(&old);
    let pair = Pair::of(&files).await;
    let (mut client, mut server) = pair.connect(&old.der).await.expect("connected");
    assert!(pair.connect(&new.der).await.is_none(), "it is not in use yet");

    let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let following = {
        let (acceptor, told) = (pair.acceptor.clone(), Arc::clone(&told));
        tokio::spawn(async move {
            let before = |new: &wharf_tls::Certificate| told.lock().push(new.chain()[0].clone());
            acceptor.follow_every(Duration::from_millis(20), before).await;
        })
    };
    // Each of these is seen, and none of them is used.
    files.write(&made(|params| params.not_after = date_time_ymd(2001, 2, 3)));
    tokio::time::sleep(Duration::from_millis(100)).await;
    files.write(&Made { key: usual().key, ..usual() });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(pair.connect(&old.der).await.is_some(), "the old one stays");
    assert!(told.lock().is_empty());

    files.write(&new);
    let taken = async {
        while pair.connect(&new.der).await.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, taken).await.expect("the new certificate is taken on");
    assert_eq!(told.lock().as_slice(), std::slice::from_ref(&new.der));
    assert!(pair.connect(&old.der).await.is_none(), "the old one is gone");

    server.write_all(b"still here").await.expect("sent");
    server.flush().await.expect("sent");
    let mut heard = [0; 10];
    timeout(PATIENCE, client.read_exact(&mut heard)).await.expect("in time").expect("heard");
    assert_eq!(&heard, b"still here");
    following.abort();
}

#[tokio::test]
async fn files_that_changed_before_somebody_followed_them_are_taken_on() {
    let files = Files::new();
    files.write(&usual());
    let pair = Pair::of(&files).await;
    let new = usual();
    files.write(&new);
    let acceptor = pair.acceptor.clone();
    let period = Duration::from_millis(20);
    let following = tokio::spawn(async move { acceptor.follow_every(period, |_| ()).await });
    let taken = async {
        while pair.connect(&new.der).await.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, taken).await.expect("the new certificate is taken on");
    following.abort();
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_ended() {
    let files = Files::new();
    files.write(&usual());
    let pair = Pair::of(&files).await;
    let address = pair.listener.local_addr().expect("bound");
    let _silent = TcpStream::connect(address).await.expect("connects");
    let (stream, _) = pair.listener.accept().await.expect("accepted");
    let accepting = pair.acceptor.accept(stream, Duration::from_millis(50));
    let error = timeout(PATIENCE, accepting).await.expect("it ends").expect_err("too slow");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}
