//! Who must answer: the core that uses the home, if one does, and whoever takes its traces.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use wharf_client::Holder;
use wharf_http::CoreInfo;

use super::Check;
use crate::Home;
use crate::settings::Settings;

/// How long a core on this machine may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a collector of traces may take to answer.
const COLLECTOR_PATIENCE: Duration = Duration::from_secs(3);

/// Whether a core uses the home, answers, and is of this version.
pub(super) fn checks(home: &Home) -> Vec<Check> {
    let name = "core";
    match (home.holder(), home.core()) {
        (_, Err(fault)) => vec![Check::fail(name, fault.message)],
        (Holder::Somebody, Ok(None)) => {
            vec![Check::warn(name, "a core uses the home and is not ready, or is stopping")]
        }
        (_, Ok(None)) => vec![Check::ok(name, "none is running; start one with: wharf up")],
        (_, Ok(Some(info))) => vec![liveness(home, &info), version(&info), token(home)],
    }
}

fn liveness(home: &Home, info: &CoreInfo) -> Check {
    let (name, url, pid) = ("core", &info.http, info.pid);
    match healthy(home, url) {
        Some(true) => Check::ok(name, format!("answers at {url} (process {pid})")),
        Some(false) => Check::fail(name, format!("what answers at {url} is not the core")),
        None => Check::fail(
            name,
            format!("process {pid} does not answer at {url}; stop it and start it again"),
        ),
    }
}

fn version(info: &CoreInfo) -> Check {
    let (name, own) = ("version", env!("CARGO_PKG_VERSION"));
    if info.version == own {
        return Check::ok(name, own);
    }
    let theirs = &info.version;
    Check::warn(name, format!("the core is {theirs} and this program is {own}; restart the core"))
}

fn token(home: &Home) -> Check {
    match home.owner_token() {
        Ok(_) => Check::ok("token", "the owner's token is in its place"),
        Err(fault) => Check::fail("token", fault.message),
    }
}

/// Whether a core answers there; `None` if nobody does.
fn healthy(home: &Home, url: &str) -> Option<bool> {
    let (scheme, host) = url.split_once("://")?;
    let addr = host.to_socket_addrs().ok()?.next()?;
    let stream = TcpStream::connect_timeout(&addr, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let answer = match scheme {
        "https" => {
            // Whoever does not have the key of the home's certificate is not its core.
            let config = Arc::new(home.tls_config().ok()?);
            let connection = rustls::ClientConnection::new(config, addr.ip().into()).ok()?;
            ask(rustls::StreamOwned::new(connection, stream), host)
        }
        _ => ask(stream, host),
    };
    Some(answer.ok()?.starts_with(b"HTTP/1.1 200 "))
}

fn ask(mut stream: impl Read + Write, host: &str) -> io::Result<Vec<u8>> {
    write!(stream, "GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.take(64 * 1024).read_to_end(&mut answer) {
        // The answer says itself how long it is; how the connection ends does not matter.
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}

/// Whether somebody takes the traces where they are exported, if they are.
pub(super) fn collector(settings: &Settings) -> Option<Check> {
    let mut options = settings.telemetry.clone()?;
    options.timeout = options.timeout.min(COLLECTOR_PATIENCE);
    let (name, shown) = ("telemetry", options.endpoint.shown());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asked = match runtime {
        Ok(runtime) => runtime.block_on(wharf_telemetry::probe(options)),
        Err(error) => Err(error.to_string()),
    };
    Some(match asked {
        Ok(()) => Check::ok(name, format!("traces are taken at {shown}")),
        // Runs go on without it, so it is no failure.
        Err(why) => Check::warn(
            name,
            format!("traces are not taken at {shown}: {why}; they are lost until they are"),
        ),
    })
}
