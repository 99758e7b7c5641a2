//! A client that was written by others, with nothing but the environment a fenced process gets.

use std::process::Stdio;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::process::Command;
use tokio_util::task::AbortOnDropHandle;

use super::servers::Server;
use super::{Stage, within};

/// Asks for a page through the proxy of the environment, and for the same through a tunnel.
const SCRIPT: &str = r#"
import http.client, os, sys, urllib.error, urllib.parse, urllib.request
allowed, refused = sys.argv[1:]
print(urllib.request.urlopen(f"http://{allowed}/page").read().decode())
try:
    urllib.request.urlopen(f"http://{refused}/page")
except urllib.error.HTTPError as error:
    print(error.code, "permission.denied" in error.read().decode())
proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
tunnel = http.client.HTTPConnection(proxy.hostname, proxy.port)
host, port = allowed.split(":")
tunnel.set_tunnel(host, int(port))
tunnel.request("GET", "/page")
print(tunnel.getresponse().read().decode())
"#;

#[tokio::test]
async fn an_ordinary_client_needs_only_the_usual_variables() {
    let server = Server::http("\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage").await;
    let address = server.address.to_string();
    let stage = Stage::open(&[&address]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let proxy = format!("http://{}", listener.local_addr().expect("bound"));
    let socket = stage.socket();
    // What stands between a fenced process and its door: a loopback address of its own.
    let relay = tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = UnixStream::connect(&socket).await.expect("connects");
            tokio::spawn(async move { copy_bidirectional(&mut near, &mut far).await });
        }
    });
    let _relay = AbortOnDropHandle::new(relay);
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT, &address, "evil.example:80"]).stdin(Stdio::null());
    python.env("HTTP_PROXY", &proxy).env("http_proxy", &proxy);
    python.env_remove("no_proxy").env_remove("NO_PROXY").kill_on_drop(true);
    let Ok(done) = within(python.output()).await else {
        return wharf_skips::skip("python3 is not installed, so no client of others was tried");
    };
    let (said, complaint) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(said, "page\n403 True\npage\n", "{complaint}");
}
