//! Spoilt bodies on routes that take one: nothing panics, each is answered with words of the API's
//! own, and the API goes on.

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use wharf_fuzz::{Fuzz, Met, Stock, Tally};

use crate::support::client::{Answer, Call};
use crate::support::{Edge, bearer};

/// A request takes that much longer than a message to a session.
const FEWER: u64 = 40;

/// Routes that take a body, with one that they take.
fn routes() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (
            "POST",
            "/v1/runs",
            json!({"tool": "wharf/echo", "inputs": {"a": [1, {"b": null}]},
            "world": "default", "mode": "real", "durability": "memory", "timeout_ms": 5000,
            "context": {"project_root": "/srv", "resource_paths": ["/srv/a.txt"]}}),
        ),
        (
            "POST",
            "/v1/runs",
            json!({"tool": "wharf/sleep", "inputs": {"ms": 1},
            "run_id": "fuzzed", "operator": {"deadline_ms": 1}, "budget_micro": 5}),
        ),
        (
            "POST",
            "/v1/tokens",
            json!({"label": "ci", "verbs": ["run", "read"],
            "worlds": ["default"], "tools": ["wharf/*"], "ttl_ms": 1000, "budget_micro": 5}),
        ),
        (
            "PATCH",
            "/v1/worlds/default",
            json!({"limit_micro": null, "default_hold_micro": 5,
            "publish": "direct", "retention_days": null, "policy": []}),
        ),
        ("POST", "/v1/worlds", json!({"world": "lab", "limit_micro": 100})),
        ("POST", "/v1/approvals/a-1/decide", json!({"decision": "allow", "scope": "parent"})),
        (
            "POST",
            "/v1/tickets",
            json!({"origin": "http://localhost:5173", "verbs": ["read"],
            "worlds": ["default"], "tools": ["wharf/*"]}),
        ),
    ]
}

/// A connection that is used again as long as the core keeps it.
struct Kept<'a> {
    edge: &'a Edge,
    stream: Option<BufReader<TcpStream>>,
}

impl Kept<'_> {
    async fn send(&mut self, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let addr = self.edge.server.addr();
        let call = Call::new(addr, method, path)
            .header("authorization", &bearer())
            .bytes(body.clone())
            .header("content-type", "application/json");
        let mut whole = call.head().into_bytes();
        whole.extend_from_slice(&body);
        loop {
            let fresh = self.stream.is_none();
            let mut stream = match self.stream.take() {
                Some(stream) => stream,
                None => BufReader::new(TcpStream::connect(addr).await.expect("connects")),
            };
            let sent = stream.get_mut().write_all(&whole).await;
            let answer = if sent.is_ok() { Answer::read(&mut stream).await } else { None };
            match answer {
                Some(answer) => {
                    let closes = answer.header("connection").is_some_and(|it| it == "close");
                    self.stream = (!closes).then_some(stream);
                    return answer;
                }
                None => assert!(!fresh, "no answer on a new connection"),
            }
        }
    }
}

#[tokio::test]
async fn fuzz_rest() {
    let edge = Edge::start().await;
    let (fuzz, routes) = (Fuzz::slow("rest", FEWER), routes());
    let words = ["wharf/echo", "wharf/sleep", "default", "lab", "run", "read", "memory", "real"];
    let own = |(.., body): &(_, _, Value)| Stock::new(vec![body.clone()], &words);
    let stocks: Vec<Stock> = routes.iter().map(own).collect();
    let (mut dice, mut tally) = (fuzz.dice(), Tally::new(&fuzz));
    let mut kept = Kept { edge: &edge, stream: None };
    for _ in 0..fuzz.frames() {
        let at = dice.below(routes.len());
        let (method, path, _) = routes[at];
        // Now and then a route gets what is meant for another.
        let body = if dice.one_in(8) { dice.pick(&stocks) } else { &stocks[at] }.spoil(&mut dice);
        let answer = kept.send(method, path, body.clone()).await;
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert!(answer.status < 500 || answer.status == 503, "{answer:?} to {shown}");
        if answer.status >= 400 {
            let code = answer.json()["error"]["code"].is_string();
            assert!(code, "{answer:?} to {shown}");
        }
        tally.count(if answer.status < 400 { Met::Taken } else { Met::Refused });
    }
    tally.tell();
    assert_eq!(edge.run("wharf/echo", json!({"n": 1})).await.status, 200, "it goes on");
}
