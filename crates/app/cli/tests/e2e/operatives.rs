//! Operatives with the real program: they connect by themselves, and `wharf run` calls them.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::support::{Api, Core, TestHome, wait_for};

/// A program that offers tools.
struct Operative(WebSocket<TcpStream>);

impl Operative {
    /// Connects as browsers do: the token stands among the subprotocols.
    fn connect(core: &Core, name: &str, token: &str, origin: Option<&str>) -> Option<Self> {
        let host = core.url().trim_start_matches("http://").to_owned();
        let address = format!("ws://{host}/v1/tool/ws?role=operative&provider={name}");
        let mut request = address.into_client_request().expect("a request");
        let offers = format!("wharf.tool.v1, wharf.bearer.{token}");
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", offers.parse().expect("a header"));
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().expect("a header"));
        }
        let stream = TcpStream::connect(host).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        client(request, stream).ok().map(|(socket, _)| Self(socket))
    }

    fn offering(core: &Core, name: &str, token: &str, tools: &Value) -> Self {
        let mut operative = Self::connect(core, name, token, None).expect("let in");
        operative.say(&json!({"type": "offer", "tools": tools}));
        let offered = operative.hear("offered");
        assert!(offered["tools"].is_array(), "{offered}");
        operative
    }

    fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).expect("sends");
    }

    fn hear(&mut self, kind: &str) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().expect("a frame") {
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                assert_eq!(frame["type"], kind, "{frame}");
                return frame;
            }
        }
    }

    /// The code with which the connection is closed.
    fn closed(&mut self) -> u16 {
        loop {
            match self.0.read() {
                Ok(Message::Close(Some(frame))) => return frame.code.into(),
                Ok(_) => {}
                Err(error) => panic!("no farewell: {error}"),
            }
        }
    }

    /// Answers the next request with what it was given.
    fn serve_one(&mut self, progress: &Value) {
        let request = self.hear("request")["payload"].clone();
        let id = &request["id"];
        self.say(&json!({"type": "progress", "id": id, "data": progress}));
        let response =
            json!({"status": "accepted", "content": {"hello": request["payload"]["name"]}});
        self.say(&json!({"type": "response", "id": id, "response": response}));
    }
}

fn greet() -> Value {
    let input = json!({"type": "object", "properties": {"name": {"type": "string"}},
                       "required": ["name"]});
    json!([{"name": "greet", "description": "Greets.", "input": input}])
}

fn token(home: &TestHome, tools: &str) -> String {
    let made = home.run(&["token", "create", "--verb", "serve", "--tool", tools]).code(0);
    made.stdout.trim().to_owned()
}

#[test]
fn k032_a_program_offers_a_tool_and_wharf_run_calls_it() {
    let home = TestHome::new();
    let core = home.up();
    let token = token(&home, "desk/*");
    assert!(Operative::connect(&core, "other", &token, None).is_none(), "not granted");
    let mut desk = Operative::offering(&core, "desk", &token, &greet());
    let running = home.spawn(&["run", "desk/greet", "name=Ada"]);
    desk.serve_one(&json!({"status": "thinking"}));
    assert_eq!(running.wait().code(0).json()["outputs"], json!({"hello": "Ada"}));
    let listed = home.run(&["operatives"]).code(0);
    assert!(listed.stdout.contains("desk") && listed.stdout.contains("connected"), "{listed:#?}");
    let tools = home.run(&["tools", "list"]).code(0);
    assert!(tools.stdout.contains("desk/greet"), "{tools:#?}");
    assert!(!home.run(&["agents"]).code(0).stdout.contains("desk"), "it is no agent");
    home.run(&["run", "desk/greet", "--input", "{\"name\": 5}"]).code(2);
    home.run(&["operatives", "forget", "desk"]).code(0);
    assert_eq!(desk.closed(), 1008);
    assert_eq!(home.run(&["operatives", "--json"]).code(0).json(), json!([]));
    core.stop().code(0);
}

#[test]
fn k032_a_run_waits_for_its_operative_also_when_the_core_is_killed() {
    let home = TestHome::new();
    let core = home.up();
    let token = token(&home, "desk/*");
    drop(Operative::offering(&core, "desk", &token, &greet()));
    let is_away = |api: &Api| api.get("/v1/operatives")["items"][0]["connected"] == false;
    let api = Api::of(&core);
    wait_for("the operative is away", || is_away(&api).then_some(()));
    let run = api.start(&json!({"tool": "desk/greet", "inputs": {"name": "Ada"}}));
    assert_eq!(run["status"], "queued", "{run}");
    core.kill();
    let core = home.up();
    let api = Api::of(&core);
    let tool = api.get("/v1/tools/desk/greet");
    let why = "nobody is connected as desk; runs wait 30s for it";
    assert_eq!(tool["state_reason"], why, "it is known before anybody is connected: {tool}");
    let shown = home.run(&["tools", "show", "desk/greet"]).code(0).stdout;
    assert!(shown.contains("unavailable") && shown.contains(why), "{shown}");
    let mut desk = Operative::offering(&core, "desk", &token, &greet());
    desk.serve_one(&json!(1));
    let ended = api.end_of("default", run["run_id"].as_str().expect("an id"));
    assert_eq!(ended["outputs"], json!({"hello": "Ada"}), "{ended}");
    // An orderly stop is told.
    let stopping = std::thread::spawn(move || core.stop().code(0));
    assert_eq!(desk.closed(), 1012);
    stopping.join().expect("stops");
}

#[test]
fn k032_pages_of_another_origin_are_let_in_by_name() {
    let home = TestHome::new();
    home.configure("[http]\norigins = [\"http://localhost:5173\"]\n");
    let core = home.up();
    let token = token(&home, "page/*");
    let connect = |origin| Operative::connect(&core, "page", &token, Some(origin));
    assert!(connect("http://localhost:5174").is_none());
    assert!(connect("http://localhost:5173").is_some());
    core.stop().code(0);
    let wrong = home.run(&["up", "--allow-origin", "localhost:5173"]).code(1);
    assert!(wrong.stderr.contains("--allow-origin"), "{wrong:#?}");
}
