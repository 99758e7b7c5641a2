//! It sends control frames and never reads.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use serde_json::json;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::hostile::peers::Stage;
use crate::security_page::{Peer, tried};

/// What a server sends at most before it gives up.
const FLOOD_BYTES: usize = 128 * 1024 * 1024;

/// A server that says it is well, and answers a request with pings and nothing else. Says how much
/// of that was taken.
fn serve(listener: TcpListener) -> mpsc::Receiver<usize> {
    let (told, taken) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let told = told.clone();
            std::thread::spawn(move || answer(stream, &told));
        }
    });
    taken
}

fn answer(mut stream: TcpStream, told: &mpsc::Sender<usize>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.trim().to_owned())
    });
    let Some(key) = key else {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"ok\":true}");
        return;
    };
    let accepted = derive_accept_key(key.as_bytes());
    let opening = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-accept: {accepted}\r\nsec-websocket-protocol: theory.run.v1\r\n\r\n"
    );
    if stream.write_all(opening.as_bytes()).is_err() {
        return;
    }
    let mut ping = vec![0x89, 125];
    ping.extend([b'x'; 125]);
    let pings = ping.repeat(512);
    let mut taken = 0;
    while taken < FLOOD_BYTES && stream.write_all(&pings).is_ok() {
        taken += pings.len();
    }
    let _ = told.send(taken);
}

#[test]
fn a_tool_server_pings_the_core_and_never_reads() {
    let stage = Stage::up();
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let url = format!("url = \"ws://{}/run\"", listener.local_addr().expect("bound"));
    let taken = serve(listener);
    let folder = crate::tool_servers::manifest("sec/pings@1", &url);
    crate::tool_servers::add(&stage.home, folder.path());
    let run = stage.api.start(&json!({"tool": "sec/pings@1", "inputs": {}}));
    let run = stage.api.end_of("default", run["run_id"].as_str().expect("an id"));
    let code = run["error"]["code"].as_str().unwrap_or_else(|| panic!("{run}"));
    let taken = taken.recv_timeout(crate::support::LONG).expect("it is cut off");
    assert!(taken < FLOOD_BYTES, "{taken} bytes of pings were taken");
    let peak = stage.peak_mib();
    assert!(peak < 200, "the core took {peak} MiB");
    tried(Peer::ToolServer, "pings the core and never reads", "pings are counted", code);
}
