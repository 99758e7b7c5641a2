//! The logs of agents: whole, live, and to slow readers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::timeout;
use wharf_ports::launcher::LogSource::{Launcher, Stderr, Stdout};

use crate::agents::edge_with;
use crate::support::agents::ScriptedAgents;
use crate::support::client::EventReader;
use crate::support::{Edge, PATIENCE, eventually};

const HELLO: &str = "dev.example.hello";
const LOGS: &str = "/v1/agents/dev.example.hello/logs";

impl Edge {
    async fn follow(&self, query: &str) -> EventReader {
        self.call("GET", &format!("{LOGS}?follow=true{query}")).open_events().await
    }
}

async fn talking() -> (Arc<ScriptedAgents>, Edge) {
    let agents = ScriptedAgents::new();
    let edge = edge_with(&agents).await;
    edge.add_agent(HELLO).await;
    agents.say(HELLO, Launcher, "[started]");
    agents.say(HELLO, Stdout, "hello\u{1b}[31m \"you\"");
    agents.say(HELLO, Stderr, "no such key");
    (agents, edge)
}

fn line(source: &str, text: &str) -> Value {
    json!({"at": "2025-11-15T00:00:00.007Z", "source": source, "text": text})
}

#[tokio::test]
async fn the_last_lines_are_shown() {
    let (_agents, edge) = talking().await;
    let all = [
        line("launcher", "[started]"),
        line("stdout", "hello\u{1b}[31m \"you\""),
        line("stderr", "no such key"),
    ];
    let shown = edge.get(LOGS).await;
    assert_eq!((shown.status, shown.json()), (200, json!({"items": all, "next_cursor": null})));
    for (lines, expect) in [(0, &all[3..]), (2, &all[1..]), (10_000, &all[..])] {
        let shown = edge.get(&format!("{LOGS}?lines={lines}&follow=false")).await.json();
        assert_eq!(shown["items"], json!(expect), "{lines}");
    }
    for bad in ["lines=-1", "lines=10001", "lines=all", "follow=maybe"] {
        edge.get(&format!("{LOGS}?{bad}")).await.refused(400, "request.invalid");
    }
}

#[tokio::test]
async fn a_log_is_followed_until_the_launch_ends() {
    let (agents, edge) = talking().await;
    let mut reader = edge.follow("&lines=1").await;
    let first = reader.next().await.expect("a line");
    assert_eq!((first.event.as_str(), first.id), ("log", None));
    assert_eq!(first.data, line("stderr", "no such key"));
    for n in 0..50 {
        agents.say(HELLO, Stdout, &format!("line {n}"));
        let next = reader.next().await.expect("a line");
        assert_eq!(next.data["text"], format!("line {n}"));
    }
    agents.say(HELLO, Stderr, "the end");
    agents.end_launch(HELLO);
    let rest = reader.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data, line("stderr", "the end"));
}

#[tokio::test]
async fn a_quiet_log_shows_that_it_is_alive() {
    let agents = ScriptedAgents::new();
    let scripted = Arc::clone(&agents);
    let edge = Edge::start_with(|options| {
        options.agents = Some(scripted);
        options.limits.keep_alive = Duration::from_millis(20);
    })
    .await;
    edge.add_agent(HELLO).await;
    let mut reader = edge.follow("").await;
    for _ in 0..3 {
        assert!(reader.next().await.expect("the stream goes on").comment.is_some());
    }
    agents.end_launch(HELLO);
    assert_eq!(reader.rest().await, []);
}

#[tokio::test]
async fn following_ends_when_the_core_stops() {
    let (_agents, edge) = talking().await;
    let mut reader = edge.follow("&lines=0").await;
    let stop = tokio::spawn(edge.server.stop(PATIENCE));
    let last = reader.next().await.expect("a farewell");
    assert_eq!(last.comment.as_deref(), Some("the core is stopping"));
    assert!(reader.next().await.is_none());
    timeout(PATIENCE, stop).await.expect("in time").expect("stopped");
}

#[tokio::test]
async fn a_reader_that_hangs_up_is_forgotten() {
    let (agents, edge) = talking().await;
    let reader = edge.follow("").await;
    eventually(async || (agents.followers(HELLO) == 1).then_some(())).await;
    drop(reader);
    eventually(async || (agents.followers(HELLO) == 0).then_some(())).await;
}

#[tokio::test]
async fn a_stalled_reader_is_let_go_and_slows_nobody() {
    let agents = ScriptedAgents::new();
    let scripted = Arc::clone(&agents);
    let edge = Edge::start_with(|options| {
        options.agents = Some(scripted);
        options.limits.write = Duration::from_millis(200);
        options.limits.send_buffer_bytes = Some(16 * 1024);
        options.limits.keep_alive = PATIENCE;
    })
    .await;
    edge.add_agent(HELLO).await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4 * 1024).expect("set");
    let mut stalled = socket.connect(edge.server.addr()).await.expect("connects");
    let head = edge.call("GET", &format!("{LOGS}?follow=true")).head();
    stalled.write_all(head.as_bytes()).await.expect("sends");
    eventually(async || (agents.followers(HELLO) == 1).then_some(())).await;

    let text = "x".repeat(1024);
    for n in 0..2_000 {
        agents.say(HELLO, Stdout, &format!("{n} {text}"));
    }
    // Another one reads everything meanwhile.
    let mut reader = edge.follow("&lines=10000").await;
    for n in 0..2_000 {
        let next = reader.next().await.expect("a line");
        let told = next.data["text"].as_str().expect("text").to_owned();
        assert!(told.starts_with(&format!("{n} ")), "{told}");
    }
    eventually(async || (agents.followers(HELLO) == 1).then_some(())).await;
    let mut sent = Vec::new();
    // A reset is a close too.
    let _ = timeout(PATIENCE, stalled.read_to_end(&mut sent)).await.expect("closed in time");
    assert!(sent.len() < 1024 * 1024, "{} bytes were buffered for it", sent.len());
}
