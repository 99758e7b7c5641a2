//! The way in to a program that listens, and the folder it shares with the core.
#![cfg(target_os = "linux")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{
    Bench, DEADLINE, SHORT, can, ended, eventually, output, parent_of, read_until, signal, tell,
};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;
use wharf_launcher::Primitive;
use wharf_ports::launcher::{Inbound, LaunchSpec, Launched};
use wharf_vocab::Code;
use wharf_vocab::SandboxLevel::{self, Basic, None as Unfenced, Standard, Strict};

/// Inside a network of its own any port is free.
const INNER_PORT: u16 = 8000;

/// Every kind of fence: with a network of its own, and with the machine's.
async fn benches() -> Vec<(Bench, SandboxLevel, bool)> {
    let mut all = Vec::new();
    for level in [Unfenced, Basic, Standard, Strict] {
        let bench = Bench::new();
        if level <= Basic || can(&bench, level).await {
            all.push((bench, level, level > Basic));
        }
    }
    all.push((Bench::without(&[Primitive::Namespaces]), Standard, false));
    all
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    listener.local_addr().expect("an address").port()
}

/// A launch with a way in; answers with the socket.
fn with_way_in(
    bench: &Bench,
    level: SandboxLevel,
    own_network: bool,
    args: &[&str],
) -> (LaunchSpec, PathBuf) {
    let port = if own_network { INNER_PORT } else { free_port() };
    let args: Vec<String> = args.iter().map(|arg| arg.replace("PORT", &port.to_string())).collect();
    let mut spec = bench.fenced(level, &args.iter().map(String::as_str).collect::<Vec<_>>());
    let socket = bench.dir.path().join(format!("{}.sock", spec.launch));
    spec.fence.inbound = Some(Inbound { socket: socket.clone(), port });
    (spec, socket)
}

async fn serving(bench: &Bench, level: SandboxLevel, own: bool) -> (Arc<dyn Launched>, PathBuf) {
    let (spec, socket) = with_way_in(bench, level, own, &["serve", "PORT"]);
    let launched = bench.launch(spec).await;
    read_until(&*launched, |line| line == "listening").await;
    (launched, socket)
}

async fn connect(socket: &Path) -> UnixStream {
    timeout(DEADLINE, UnixStream::connect(socket)).await.expect("in time").expect("connects")
}

/// Says something and waits for its echo; the connection stays.
async fn talk(stream: &mut UnixStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.expect("is heard");
    let mut answer = vec![0; text.len()];
    let reading = stream.read_exact(&mut answer);
    timeout(DEADLINE, reading).await.expect("in time").expect("is answered");
    String::from_utf8(answer).expect("text")
}

/// What is left to read, until the end.
async fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // An end that was abrupt is an end.
    let _ = timeout(DEADLINE, stream.read_to_end(&mut rest)).await.expect("ends");
    rest
}

#[tokio::test]
async fn a_server_inside_is_reached_by_the_socket_whatever_the_fence() {
    for (bench, level, own) in benches().await {
        let (launched, socket) = serving(&bench, level, own).await;
        let mode = fs::metadata(&socket).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{level}");
        let mut one = connect(&socket).await;
        let mut other = connect(&socket).await;
        assert_eq!(talk(&mut one, "first").await, "first", "{level}");
        assert_eq!(talk(&mut other, "second").await, "second", "{level}");
        assert_eq!(talk(&mut one, "again").await, "again", "both at once under {level}");
        one.shutdown().await.expect("says that it is done");
        assert_eq!(rest(&mut one).await, b"", "the end is passed on, too");
        ended(launched.kill()).await;
        assert_eq!(rest(&mut other).await, b"", "{level}");
        assert!(!socket.exists(), "{level}");
    }
}

#[tokio::test]
async fn what_is_said_arrives_whole() {
    for (bench, level, own) in benches().await {
        let (launched, socket) = serving(&bench, level, own).await;
        let (mut reading, mut writing) = connect(&socket).await.into_split();
        let said: Vec<u8> =
            (0..3_000_000_u32).map(|number| number.to_le_bytes()[(number % 3) as usize]).collect();
        let copy = said.clone();
        let speaking = tokio::spawn(async move {
            writing.write_all(&copy).await.expect("is heard");
            writing.shutdown().await.expect("is done");
        });
        let mut heard = Vec::new();
        let hearing = reading.read_to_end(&mut heard);
        timeout(DEADLINE, hearing).await.expect("in time").expect("reads");
        assert!(heard == said, "{level}: {} of {} bytes", heard.len(), said.len());
        speaking.await.expect("speaks");
        ended(launched.kill()).await;
    }
}

#[tokio::test]
async fn a_connection_while_nobody_listens_ends_at_once() {
    for (bench, level, own) in benches().await {
        let words = ["attempt-and-live", "see:/"];
        let (spec, socket) = with_way_in(&bench, level, own, &words);
        let launched = bench.launch(spec).await;
        let mut early = connect(&socket).await;
        assert_eq!(rest(&mut early).await, b"", "{level}");
        read_until(&*launched, |line| line.starts_with("pid")).await;
        let mut still = connect(&socket).await;
        assert_eq!(rest(&mut still).await, b"", "{level}");
        ended(launched.kill()).await;
    }
}

#[tokio::test]
async fn more_connections_than_are_passed_on_at_once_wait() {
    let bench = Bench::new();
    let own = can(&bench, Standard).await;
    let (launched, socket) = serving(&bench, Standard, own).await;
    let mut held = Vec::new();
    for number in 0..256 {
        let mut stream = connect(&socket).await;
        let text = format!("number {number}");
        assert_eq!(talk(&mut stream, &text).await, text);
        held.push(stream);
    }
    let mut late = connect(&socket).await;
    late.write_all(b"late").await.expect("waits");
    let mut answer = [0; 4];
    let none = timeout(SHORT, late.read_exact(&mut answer)).await;
    assert!(none.is_err(), "there was no place");
    held.pop();
    let read = late.read_exact(&mut answer);
    timeout(DEADLINE, read).await.expect("in time").expect("is answered");
    assert_eq!(&answer, b"late");
    ended(launched.kill()).await;
}

#[tokio::test]
async fn a_fenced_program_listens_on_its_port_only_and_reaches_nothing_by_it() {
    let bench = Bench::new();
    let outside = TcpListener::bind("127.0.0.1:0").expect("listens");
    let outside = outside.local_addr().expect("an address");
    for level in [Standard, Strict] {
        if !can(&bench, level).await {
            continue;
        }
        let words = ["attempt", "listen:127.0.0.1:PORT", "listen:127.0.0.1:8001"];
        let reach = format!("tcp:{outside}");
        let words: Vec<&str> = words.into_iter().chain([reach.as_str()]).collect();
        let (spec, _) = with_way_in(&bench, level, true, &words);
        let said = bench.said(spec).await;
        assert!(said[0].ends_with(": yes"), "{level} {said:?}");
        assert!(said[1].contains(": no"), "{level} {said:?}");
        assert!(said[2].contains(": no"), "{level} {said:?}");
    }
}

#[tokio::test]
async fn nobody_else_reaches_a_server_in_a_network_of_its_own() {
    let bench = Bench::new();
    if !can(&bench, Standard).await {
        return tell("a network of its own");
    }
    let port = free_port();
    let (mut spec, socket) = with_way_in(&bench, Standard, true, &["serve", &port.to_string()]);
    spec.fence.inbound = Some(Inbound { socket: socket.clone(), port });
    let launched = bench.launch(spec).await;
    read_until(&*launched, |line| line == "listening").await;
    assert_eq!(talk(&mut connect(&socket).await, "by the socket").await, "by the socket");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(launched.fence().notes.iter().all(|note| !note.contains("port")));
    ended(launched.kill()).await;
}

#[tokio::test]
async fn a_port_of_the_machine_is_told() {
    let bench = Bench::without(&[Primitive::Namespaces]);
    for level in [Unfenced, Basic, Standard] {
        let (launched, _) = serving(&bench, level, false).await;
        let notes = launched.fence().notes.join(" ");
        assert!(notes.contains("of the machine, where others can connect"), "{level}: {notes}");
        ended(launched.kill()).await;
    }
}

#[tokio::test]
async fn beside_the_cores_port_the_server_is_reached_too() {
    let bench = Bench::new();
    if !can(&bench, Standard).await {
        return tell("a port of the core");
    }
    let core = TcpListener::bind("127.0.0.1:0").expect("listens");
    let (mut spec, socket) = with_way_in(&bench, Standard, false, &["serve", "PORT"]);
    spec.fence.tcp_port = Some(core.local_addr().expect("an address").port());
    let launched = bench.launch(spec).await;
    read_until(&*launched, |line| line == "listening").await;
    assert_eq!(talk(&mut connect(&socket).await, "hello").await, "hello");
    ended(launched.kill()).await;
}

#[tokio::test]
async fn the_socket_goes_with_a_launch_that_ended_by_itself_or_never_began() {
    for (bench, level, own) in benches().await {
        let (spec, socket) = with_way_in(&bench, level, own, &["exit", "0"]);
        let launched = bench.launch(spec).await;
        ended(launched.exited()).await;
        assert!(!socket.exists(), "{level}");
        let (mut spec, socket) = with_way_in(&bench, level, own, &[]);
        spec.program = "/no/such/program".into();
        bench.try_launch(spec).await.expect_err("not started");
        assert!(!socket.exists(), "{level}");
    }
}

#[tokio::test]
async fn the_socket_goes_even_if_the_shim_was_killed() {
    for (bench, level, own) in benches().await {
        let (launched, socket) = serving(&bench, level, own).await;
        let mut stream = connect(&socket).await;
        assert_eq!(talk(&mut stream, "hello").await, "hello");
        let mut shim = parent_of(launched.pid());
        if own {
            // Between the two stands the first process of the namespace.
            shim = parent_of(shim.unsigned_abs());
        }
        signal(shim, Signal::KILL);
        ended(launched.exited()).await;
        assert_eq!(rest(&mut stream).await, b"", "{level}");
        eventually("the socket is gone", || !socket.exists()).await;
    }
}

#[tokio::test]
async fn where_something_is_already_nothing_is_started() {
    let bench = Bench::new();
    let (mut spec, socket) = with_way_in(&bench, Basic, false, &["exit", "0"]);
    fs::write(&socket, "mine").expect("writes");
    let fault = bench.try_launch(spec.clone()).await.expect_err("refused");
    assert!(fault.is(Code::AgentStartFailed), "{fault}");
    assert!(fault.message.contains("for connections to the program"), "{}", fault.message);
    assert_eq!(fs::read_to_string(&socket).expect("is there"), "mine", "it was left alone");
    let socket = bench.dir.path().join("x".repeat(200));
    spec.fence.inbound = Some(Inbound { socket, port: 1 });
    let fault = bench.try_launch(spec).await.expect_err("too long a name");
    assert!(fault.is(Code::AgentStartFailed), "{fault}");
}

#[tokio::test]
async fn artifacts_are_shared_both_ways_and_under_one_name() {
    let bench = Bench::new();
    for level in [Standard, Strict] {
        if !can(&bench, level).await {
            continue;
        }
        let hidden = bench.dir.path().join(format!("core-{level}"));
        let folder = hidden.join("artifacts");
        fs::create_dir_all(folder.join("run/early")).expect("made");
        fs::write(folder.join("run/input"), "canary").expect("written");
        let real = format!("read:{}", folder.join("run/input").display());
        let words = [
            "attempt",
            "read:/artifacts/run/input",
            "write:/artifacts/run/output",
            "mkdir:/artifacts/run/new",
            "list:/artifacts/run",
            &real,
            "write:/artifact",
        ];
        let mut spec = bench.fenced(level, &words);
        spec.fence.hidden = vec![hidden];
        spec.fence.artifacts = Some(folder.clone());
        let said = bench.said(spec).await;
        assert!(said[0].ends_with("yes canary"), "{level} {said:?}");
        assert!(said[3].ends_with("yes early input new output"), "{level} {said:?}");
        assert!(said[4].contains(": no") && said[5].contains(": no"), "{level} {said:?}");
        assert_eq!(fs::read_to_string(folder.join("run/output")).expect("is there"), "written");
    }
}

#[tokio::test]
async fn what_the_core_puts_among_the_artifacts_later_is_seen() {
    let bench = Bench::new();
    if !can(&bench, Standard).await {
        return tell("artifacts");
    }
    let folder = bench.dir.path().join("made-by-the-launch");
    let text = "echo ready; until [ -e /artifacts/r1/in ]; do sleep 0.01; done; \
                cat /artifacts/r1/in; echo";
    let mut spec = bench.fenced(Standard, &["-c", text]);
    spec.program = "/bin/sh".into();
    spec.fence.artifacts = Some(folder.clone());
    let launched = bench.launch(spec).await;
    read_until(&*launched, |line| line == "ready").await;
    fs::create_dir(folder.join("r1")).expect("made");
    fs::write(folder.join("r1/part"), "later").expect("written");
    fs::rename(folder.join("r1/part"), folder.join("r1/in")).expect("moved");
    ended(launched.exited()).await;
    assert_eq!(output(&*launched).await, ["ready", "later"]);
}

#[tokio::test]
async fn without_namespaces_no_artifacts_are_shown_and_that_is_told() {
    let bench = Bench::without(&[Primitive::Namespaces]);
    for level in [Unfenced, Basic, Standard] {
        let mut spec = bench.fenced(level, &["attempt", "list:/artifacts"]);
        let folder = bench.dir.path().join(format!("artifacts-{level}"));
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join("canary"), "x").expect("written");
        spec.fence.artifacts = Some(folder);
        let launched = bench.launch(spec).await;
        let notes = launched.fence().notes.join(" ");
        assert!(notes.contains("Nothing is shown at /artifacts"), "{level}: {notes}");
        ended(launched.exited()).await;
        let said = output(&*launched).await;
        assert!(!said[0].contains("canary"), "{level}: {said:?}");
    }
}

#[tokio::test]
async fn artifacts_behind_a_link_are_refused() {
    let bench = Bench::new();
    if !can(&bench, Standard).await {
        return tell("artifacts");
    }
    let (real, link) = (bench.dir.path().join("real"), bench.dir.path().join("link"));
    fs::create_dir_all(real.join("inner")).expect("made");
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    let mut spec = bench.fenced(Standard, &["exit", "0"]);
    spec.fence.artifacts = Some(link.join("inner"));
    let fault = bench.try_launch(spec).await.expect_err("refused");
    assert!(fault.message.contains("A link lies on the way"), "{}", fault.message);
}
