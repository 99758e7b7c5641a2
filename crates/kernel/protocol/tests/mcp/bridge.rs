//! A client on one side, a core on the other, and a bridge that loses its connections wherever a
//! test wants.

mod core;

use serde_json::{Value, json};
use wharf_protocol::mcp::{
    McpBridge, McpBridgeBody, McpBridgeConfig, McpBridgeNews, McpBridgeOut, McpBridgeRequest,
    McpLine,
};
use wharf_wire::mcp_v1::key;

use self::core::{ScriptedCore, json_answer, refusal};

const AWAY_MS: u64 = 30_000;

/// A bridge between a client that writes lines and a core that follows a script.
struct Stage {
    bridge: McpBridge,
    core: ScriptedCore,
    now: u64,
    lines: Vec<Value>,
    closed: Vec<u64>,
    /// After how many pieces of news the connection breaks.
    cut: Option<usize>,
    passed: usize,
}

impl Stage {
    fn new() -> Self {
        Self::with(false)
    }

    fn with(detach: bool) -> Self {
        let config = McpBridgeConfig { name: "b".to_owned(), away_ms: AWAY_MS, detach };
        Self {
            bridge: McpBridge::new(config),
            core: ScriptedCore::default(),
            now: 0,
            lines: Vec::new(),
            closed: Vec::new(),
            cut: None,
            passed: 0,
        }
    }

    fn says(&mut self, message: &Value) {
        self.bridge.line(McpLine::Whole(message.to_string().into_bytes()));
    }

    /// What is to be asked of the core now, without asking it.
    fn outs(&mut self) -> Vec<(u64, McpBridgeRequest)> {
        let mut sends = Vec::new();
        while let Some(out) = self.bridge.poll_out() {
            match out {
                McpBridgeOut::Send { exchange, request } => sends.push((exchange, request)),
                McpBridgeOut::Close { exchange } => self.closed.push(exchange),
            }
        }
        self.read();
        sends
    }

    fn read(&mut self) {
        while let Some(line) = self.bridge.poll_line() {
            assert!(!line.contains('\n'), "{line}");
            self.lines.push(serde_json::from_str(&line).expect("JSON"));
        }
    }

    fn hears(&mut self, exchange: u64, news: impl IntoIterator<Item = McpBridgeNews>) {
        for news in news {
            let breaks = self.cut == Some(self.passed);
            self.passed += 1;
            if breaks {
                self.bridge.news(self.now, exchange, McpBridgeNews::Broke);
                return;
            }
            self.bridge.news(self.now, exchange, news);
        }
    }

    /// Lets everything happen that is due, for at most so long.
    fn play(&mut self, for_ms: u64) {
        let until = self.now + for_ms;
        for _ in 0..10_000 {
            let sends = self.outs();
            if sends.is_empty() {
                match self.bridge.deadline().filter(|at| *at <= until) {
                    Some(at) => {
                        self.now = self.now.max(at);
                        self.bridge.tick(self.now);
                    }
                    None => return,
                }
            }
            for (exchange, request) in sends {
                let news = self.core.answer(&request);
                self.hears(exchange, news);
            }
        }
        panic!("it goes on for ever");
    }

    fn opened() -> Self {
        let mut stage = Self::new();
        stage.says(&initialize());
        stage.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        stage.play(0);
        stage.lines.clear();
        stage
    }

    fn answers(&self, id: u64) -> Vec<&Value> {
        let of = |line: &&Value| line["id"] == id && line.get("method").is_none();
        self.lines.iter().filter(of).collect()
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "desk", "version": "1"}}})
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "slow", "arguments": {"n": 3}, "_meta": {"progressToken": id}}})
}

fn modern(id: u64, method: &str, more: &Value) -> Value {
    let mut params = json!({"_meta": {"progressToken": id, key::PROTOCOL_VERSION: "2026-07-28",
        key::CLIENT_CAPABILITIES: {}}});
    let all = params.as_object_mut().expect("an object");
    all.extend(more.as_object().expect("an object").clone());
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn modern_call(id: u64) -> Value {
    modern(id, "tools/call", &json!({"name": "slow", "arguments": {"n": 3}}))
}

fn body(request: &McpBridgeRequest) -> Value {
    match request {
        McpBridgeRequest::Post { body, .. } => serde_json::from_str(body).expect("JSON"),
        other => panic!("{other:?}"),
    }
}

fn header<'a>(request: &'a McpBridgeRequest, name: &str) -> Option<&'a str> {
    let (McpBridgeRequest::Post { headers, .. }
    | McpBridgeRequest::Get { headers }
    | McpBridgeRequest::Delete { headers }) = request
    else {
        return None;
    };
    headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
}

fn opens_stream() -> McpBridgeNews {
    let body = McpBridgeBody::Events;
    McpBridgeNews::Head { status: 200, body, session: None, retry_after_ms: None }
}

#[track_caller]
fn progress_rises(lines: &[Value]) {
    let values = lines.iter().filter(|line| line["method"] == "notifications/progress");
    let values: Vec<f64> =
        values.map(|line| line["params"]["progress"].as_f64().expect("a number")).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
}

#[test]
fn m013_a_legacy_call_is_answered_once_wherever_the_connection_breaks() {
    let mut cuts = 0;
    for cut in 0.. {
        let mut stage = Stage::new();
        stage.cut = Some(cut);
        stage.says(&initialize());
        stage.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        stage.says(&call(7));
        stage.play(20_000);
        assert_eq!(stage.answers(0).len(), 1, "cut {cut}: {:?}", stage.lines);
        assert_eq!(stage.answers(7).len(), 1, "cut {cut}: {:?}", stage.lines);
        assert_eq!(stage.answers(7)[0]["result"]["content"][0]["text"], "done", "cut {cut}");
        assert_eq!(stage.core.acts(), 1, "cut {cut}");
        progress_rises(&stage.lines);
        assert_eq!(stage.bridge.waiting(), 0);
        if stage.passed <= cut {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 10, "{cuts}");
}

#[test]
fn m013_a_modern_call_is_joined_again_wherever_the_connection_breaks() {
    let mut cuts = 0;
    for cut in 0.. {
        let mut stage = Stage::new();
        stage.cut = Some(cut);
        stage.says(&modern(1, "server/discover", &json!({})));
        stage.says(&modern_call(7));
        stage.play(20_000);
        assert_eq!(stage.answers(1).len(), 1, "cut {cut}: {:?}", stage.lines);
        assert_eq!(stage.answers(7).len(), 1, "cut {cut}: {:?}", stage.lines);
        assert_eq!(stage.core.acts(), 1, "cut {cut}");
        progress_rises(&stage.lines);
        if stage.passed <= cut {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 5, "{cuts}");
}

#[test]
fn m013_calls_have_a_key_and_keep_what_the_client_said() {
    let mut stage = Stage::opened();
    stage.says(&call(1));
    stage.says(&modern_call(2));
    let mut own = modern_call(3);
    own["params"]["_meta"][key::WHARF_RUN] = json!({"idempotency_key": "mine"});
    stage.says(&own);
    let mut kept_nowhere = modern_call(4);
    kept_nowhere["params"]["_meta"][key::WHARF_RUN] = json!({"durability": "memory"});
    stage.says(&kept_nowhere);
    let sent: Vec<Value> = stage.outs().iter().map(|(_, request)| body(request)).collect();
    let wishes = |at: usize| &sent[at]["params"]["_meta"][key::WHARF_RUN];
    assert_eq!(wishes(0), &json!({"idempotency_key": "b-1"}));
    assert_eq!(wishes(1), &json!({"idempotency_key": "b-2", "run_id": "b-2", "detach": true}));
    assert_eq!(wishes(2), &json!({"idempotency_key": "mine"}));
    assert_eq!(wishes(3), &json!({"durability": "memory"}));
    assert_eq!(sent[0]["params"]["arguments"], json!({"n": 3}));
}

#[test]
fn m013_a_call_that_cannot_be_joined_is_not_repeated() {
    let mut stage = Stage::new();
    let mut lost = modern_call(4);
    lost["params"]["_meta"][key::WHARF_RUN] = json!({"durability": "memory"});
    stage.says(&lost);
    let exchange = stage.outs()[0].0;
    stage.hears(exchange, [McpBridgeNews::Broke]);
    assert!(stage.outs().is_empty());
    assert_eq!(stage.answers(4)[0]["error"]["code"], -32603);
}

#[test]
fn m013_a_core_that_stays_away_ends_in_an_error_that_names_the_command() {
    for message in [initialize(), modern_call(0)] {
        let mut stage = Stage::new();
        stage.core.is_away = true;
        stage.says(&message);
        stage.play(AWAY_MS - 1);
        assert!(stage.lines.is_empty(), "{:?}", stage.lines);
        stage.play(AWAY_MS);
        let told = stage.answers(0);
        assert_eq!(told.len(), 1);
        let said = told[0]["error"]["message"].as_str().expect("a sentence");
        assert!(said.contains("wharf up"), "{said}");
        // It may come back later.
        stage.core.is_away = false;
        let mut again = initialize();
        again["id"] = 5.into();
        stage.says(&again);
        stage.play(0);
        assert!(stage.answers(5)[0].get("result").is_some(), "{:?}", stage.lines);
    }
}

#[test]
fn m013_a_core_that_comes_back_in_time_answers() {
    let mut stage = Stage::new();
    stage.core.is_away = true;
    stage.says(&initialize());
    stage.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    stage.says(&call(7));
    stage.play(25_000);
    assert!(stage.lines.is_empty());
    stage.core.is_away = false;
    stage.play(5_000);
    assert!(stage.answers(0)[0].get("result").is_some());
    assert_eq!(stage.answers(7).len(), 1);
    assert_eq!(stage.core.acts(), 1);
}

#[test]
fn m013_a_busy_core_is_asked_again_when_it_says() {
    let mut stage = Stage::new();
    stage.says(&modern(1, "tools/list", &json!({})));
    let exchange = stage.outs()[0].0;
    let head = McpBridgeNews::Head {
        status: 503,
        body: McpBridgeBody::Json,
        session: None,
        retry_after_ms: Some(1_000),
    };
    stage.hears(exchange, [head, McpBridgeNews::End]);
    assert_eq!(stage.bridge.deadline(), Some(1_000));
    stage.play(1_000);
    assert_eq!(stage.answers(1).len(), 1);
}

#[test]
fn m013_all_that_is_legacy_waits_for_the_handshake_and_keeps_its_order() {
    let mut stage = Stage::new();
    stage.says(&initialize());
    stage.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    stage.says(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let first = stage.outs();
    assert_eq!(first.len(), 1);
    assert_eq!(header(&first[0].1, "mcp-session-id"), None);
    let news = stage.core.answer(&first[0].1);
    stage.hears(first[0].0, news);
    let second = stage.outs();
    assert_eq!(second.len(), 1, "the list waits for the notification");
    assert_eq!(header(&second[0].1, "mcp-session-id"), Some("s1"));
    assert_eq!(header(&second[0].1, "mcp-protocol-version"), Some("2025-11-25"));
    let news = stage.core.answer(&second[0].1);
    stage.hears(second[0].0, news);
    let third = stage.outs();
    assert!(matches!(third[0].1, McpBridgeRequest::Get { .. }), "{third:?}");
    assert_eq!(body(&third[1].1)["method"], "tools/list");
}

#[test]
fn m013_a_session_that_was_forgotten_is_begun_anew() {
    let mut stage = Stage::opened();
    stage.core.forget_sessions();
    stage.says(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    stage.play(1_000);
    assert_eq!(stage.answers(1).len(), 1, "{:?}", stage.lines);
    assert!(stage.answers(1)[0].get("result").is_some());
    assert_eq!(stage.core.sessions(), 2);
    assert_eq!(stage.lines.len(), 1, "the client does not notice: {:?}", stage.lines);
}

#[test]
fn m013_what_the_session_is_told_reaches_the_client_and_is_resumed() {
    let mut stage = Stage::new();
    stage.says(&initialize());
    stage.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    stage.core.news = true;
    stage.play(0);
    let changed = |stage: &Stage| {
        let told = |line: &&Value| line["method"] == "notifications/tools/list_changed";
        stage.lines.iter().filter(told).count()
    };
    assert_eq!(changed(&stage), 1);
    stage.play(3_000);
    let last = stage.core.gets.last().expect("it was opened again");
    assert_eq!(last.as_deref(), Some("news:1"));
}

#[test]
fn m013_headers_that_a_tool_wants_are_learned() {
    let mut stage = Stage::new();
    stage.core.wants_header = true;
    stage.says(&modern(1, "tools/call", &json!({"name": "slow", "arguments": {"n": 3}})));
    stage.play(10_000);
    assert_eq!(stage.answers(1).len(), 1, "{:?}", stage.lines);
    assert!(stage.answers(1)[0].get("result").is_some(), "{:?}", stage.lines);
    assert_eq!(stage.lines.iter().filter(|line| line.get("id").is_some()).count(), 1);
    assert_eq!(stage.core.acts(), 1);
    stage.says(&modern_call(2));
    let sent = stage.outs();
    assert_eq!(header(&sent[0].1, "mcp-param-n"), Some("3"));
    assert_eq!(header(&sent[0].1, "mcp-name"), Some("slow"));
    assert_eq!(header(&sent[0].1, "mcp-method"), Some("tools/call"));
    assert_eq!(header(&sent[0].1, "mcp-protocol-version"), Some("2026-07-28"));
}

fn canceled(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "enough"}})
}

#[test]
fn m013_a_canceled_modern_call_closes_its_post_and_stops_its_run() {
    // The core must have got a call before it can be told to stop it.
    for was_heard in [true, false] {
        let mut stage = Stage::new();
        stage.says(&modern_call(7));
        let exchange = stage.outs()[0].0;
        if was_heard {
            stage.hears(exchange, [opens_stream()]);
            stage.says(&canceled(7));
        } else {
            stage.says(&canceled(7));
            assert!(stage.outs().is_empty());
            stage.hears(exchange, [opens_stream()]);
        }
        let sent = stage.outs();
        assert_eq!(stage.closed, [exchange]);
        let run_id = "b-1".to_owned();
        assert_eq!(sent[0].1, McpBridgeRequest::CancelRun { run_id });
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
        stage.hears(exchange, json_answer(&answer, None));
        assert!(stage.lines.is_empty(), "no answer follows: {:?}", stage.lines);
    }
    let mut stage = Stage::new();
    stage.core.is_away = true;
    stage.says(&modern_call(7));
    stage.play(500);
    stage.says(&canceled(7));
    stage.play(60_000);
    assert!(stage.lines.is_empty() && stage.core.cancels.is_empty());
}

#[test]
fn m013_a_canceled_listen_and_a_canceled_list_only_close_their_post() {
    for method in ["subscriptions/listen", "tools/list"] {
        let mut stage = Stage::new();
        stage.says(&modern(7, method, &json!({"notifications": {"toolsListChanged": true}})));
        let exchange = stage.outs()[0].0;
        stage.says(&canceled(7));
        assert!(stage.outs().is_empty());
        assert_eq!(stage.closed, [exchange]);
    }
}

#[test]
fn m013_a_canceled_legacy_call_is_told_to_the_core() {
    let mut stage = Stage::opened();
    stage.says(&call(7));
    let exchange = stage.outs()[0].0;
    stage.hears(exchange, [opens_stream()]);
    stage.says(&canceled(7));
    stage.says(&canceled(99));
    let sent = stage.outs();
    assert_eq!(sent.len(), 1);
    let told = body(&sent[0].1);
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"], json!({"requestId": 7, "reason": "enough"}));
    assert!(stage.lines.is_empty());
}

#[test]
fn m013_a_client_that_leaves_cancels_what_it_started() {
    let mut stage = Stage::opened();
    stage.says(&call(1));
    stage.says(&modern_call(2));
    for (exchange, _) in stage.outs() {
        stage.hears(exchange, [opens_stream()]);
    }
    stage.bridge.end(stage.now);
    stage.play(1_000);
    assert!(stage.bridge.is_over());
    assert_eq!(stage.core.cancels, ["b-2"]);
    assert_eq!(stage.core.told.last().map(String::as_str), Some("notifications/cancelled"));
    assert_eq!(stage.core.goodbyes, 1);
}

#[test]
fn m013_a_client_that_leaves_may_let_its_calls_go_on() {
    let mut stage = Stage::with(true);
    stage.says(&modern_call(2));
    let exchange = stage.outs()[0].0;
    stage.hears(exchange, [opens_stream()]);
    stage.bridge.end(stage.now);
    stage.play(1_000);
    assert!(stage.bridge.is_over() && stage.core.cancels.is_empty());
    assert_eq!(stage.closed, [exchange]);
}

#[test]
fn m013_what_was_asked_before_the_client_left_is_still_answered() {
    let mut stage = Stage::new();
    stage.says(&initialize());
    stage.says(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    stage.bridge.end(stage.now);
    stage.play(1_000);
    assert_eq!(stage.answers(1).len(), 1);
    assert!(stage.bridge.is_over());
    // A core that is away holds nobody up.
    let mut stage = Stage::new();
    stage.core.is_away = true;
    stage.says(&initialize());
    stage.bridge.end(stage.now);
    stage.play(3_000);
    assert!(stage.bridge.is_over());
}

#[test]
fn m013_a_run_that_waits_for_its_client_is_joined_and_stopped_by_its_id() {
    let suspended = || {
        let mut stage = Stage::new();
        stage.says(&modern_call(1));
        let exchange = stage.outs()[0].0;
        let result = json!({"resultType": "input_required", "inputRequests": {},
            "requestState": "sealed"});
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        stage.hears(exchange, json_answer(&answer, None));
        stage
    };
    let mut stage = suspended();
    let more = json!({"name": "slow", "arguments": {"n": 3}, "requestState": "sealed",
        "inputResponses": {}});
    stage.says(&modern(2, "tools/call", &more));
    let (exchange, request) = stage.outs().remove(0);
    let wishes = &body(&request)["params"]["_meta"][key::WHARF_RUN];
    assert_eq!(wishes, &json!({"detach": true}), "the state says which run it is");
    stage.hears(exchange, [opens_stream()]);
    stage.says(&canceled(2));
    stage.play(0);
    assert_eq!(stage.core.cancels, ["b-1"]);
    let mut stage = suspended();
    stage.bridge.end(stage.now);
    stage.play(1_000);
    assert_eq!(stage.core.cancels, ["b-1"]);
}

#[test]
fn m013_a_question_is_asked_once_and_its_answer_is_passed_on() {
    let mut stage = Stage::opened();
    stage.says(&call(7));
    let exchange = stage.outs()[0].0;
    let asked = json!({"jsonrpc": "2.0", "id": "a-1", "method": "elicitation/create",
        "params": {"message": "Which?"}});
    let event = McpBridgeNews::Bytes(format!("data: {asked}\n\n").into_bytes());
    stage.hears(exchange, [opens_stream(), event.clone(), event]);
    stage.read();
    assert_eq!(stage.lines, [asked]);
    let answer = json!({"jsonrpc": "2.0", "id": "a-1", "result": {"action": "decline"}});
    stage.says(&answer);
    stage.says(&answer);
    let sent = stage.outs();
    assert_eq!(sent.len(), 1, "answered once: {sent:?}");
    assert_eq!(body(&sent[0].1), answer);
}

#[test]
fn m013_a_listener_hears_of_what_it_may_have_missed() {
    let mut stage = Stage::new();
    stage.says(&modern(
        7,
        "subscriptions/listen",
        &json!({"notifications": {"toolsListChanged": true, "promptsListChanged": false}}),
    ));
    let acknowledged = json!({"jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {"toolsListChanged": true},
            "_meta": {key::SUBSCRIPTION_ID: 7}}});
    let event = McpBridgeNews::Bytes(format!("data: {acknowledged}\n\n").into_bytes());
    let exchange = stage.outs()[0].0;
    stage.hears(exchange, [opens_stream(), event.clone(), McpBridgeNews::Broke]);
    stage.bridge.tick(10_000);
    assert_eq!(stage.outs().len(), 1);
    stage.hears(exchange, [opens_stream(), event]);
    stage.read();
    let told: Vec<&str> = stage.lines.iter().filter_map(|line| line["method"].as_str()).collect();
    assert_eq!(
        told,
        ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"]
    );
    assert_eq!(stage.lines[1]["params"]["_meta"][key::SUBSCRIPTION_ID], 7);
}

#[test]
fn m013_refusals_reach_the_client_in_words() {
    let mut stage = Stage::new();
    stage.says(&modern(1, "tools/list", &json!({})));
    let exchange = stage.outs()[0].0;
    let denied = json!({"error": {"code": "auth.invalid", "message": "This token is not valid.",
        "retryable": false}});
    stage.hears(exchange, refusal(401, &denied));
    stage.read();
    assert_eq!(stage.answers(1)[0]["error"]["message"], "This token is not valid.");
    stage.says(&modern(2, "nonsense", &json!({})));
    let exchange = stage.outs()[0].0;
    let unknown = json!({"jsonrpc": "2.0", "id": 2, "error": {"code": -32601, "message": "No."}});
    stage.hears(exchange, refusal(404, &unknown));
    stage.read();
    assert_eq!(stage.answers(2)[0]["error"]["code"], -32601);
}

#[test]
fn m013_what_is_no_message_is_refused_and_kept_from_the_core() {
    let mut stage = Stage::new();
    stage.bridge.line(McpLine::Whole(b"nonsense".to_vec()));
    stage.bridge.line(McpLine::Whole(b"[]".to_vec()));
    stage.bridge.line(McpLine::TooLong { answers: None });
    stage.says(&json!({"jsonrpc": "2.0", "id": "nobody", "result": {}}));
    assert!(stage.outs().is_empty());
    let codes: Vec<i64> =
        stage.lines.iter().filter_map(|line| line["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [-32700, -32600, -32600]);
}

#[test]
fn m078_open_requests_are_bounded() {
    let mut stage = Stage::new();
    for id in 0..300 {
        stage.says(&modern(id, "tools/list", &json!({})));
    }
    assert_eq!(stage.outs().len(), 256);
    assert_eq!(stage.lines.len(), 44);
    assert_eq!(stage.bridge.waiting(), 256);
}
