//! Every operation that needs a token, and what it needs.

use serde_json::{Value, json};
use wharf_vocab::Verb;

/// How a route treats a token that is for another world only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reach {
    /// It says that the token is not for the world.
    World,
    /// It says that the token must be for all worlds.
    Everywhere,
    /// It does not tell whether there is such a thing.
    Hidden,
    /// It answers with what the token may see.
    Any,
}

use Reach::{Any, Everywhere, Hidden, World};
use Verb::{Admin, Answer as AnswerAsks, Approve, Metrics, Operate, Read, Run, WriteFlow};

/// Method, route, path to call, the verb and the reach that are needed, and a body.
pub(crate) type Operation = (&'static str, &'static str, &'static str, Verb, Reach, Value);

/// Every operation that needs a token, as it is called here, and what it needs.
pub(crate) fn operations() -> Vec<Operation> {
    let hello = json!({"folder": "/agents/dev.example.hello"});
    let mut operations = vec![
        ("GET", "/metrics", "/metrics", Metrics, Everywhere, Value::Null),
        ("GET", "/v1/doctor", "/v1/doctor", Read, Any, Value::Null),
        ("GET", "/v1/system", "/v1/system", Read, Everywhere, Value::Null),
        ("GET", "/v1/system/series", "/v1/system/series", Read, Everywhere, Value::Null),
        ("GET", "/v1/system/logs", "/v1/system/logs", Admin, Everywhere, Value::Null),
        // One that is let in would not end.
        ("GET", "/v1/changes", "/v1/changes?kinds=none", Read, Any, Value::Null),
        ("GET", "/openapi.json", "/openapi.json", Read, Any, Value::Null),
        ("GET", "/v1/runs", "/v1/runs", Read, Any, Value::Null),
        ("POST", "/v1/runs", "/v1/runs", Run, World, json!({"tool": "wharf/echo"})),
        ("GET", "/v1/runs/{run_id}", "/v1/runs/r1", Read, World, Value::Null),
        ("DELETE", "/v1/runs/{run_id}", "/v1/runs/r1", Admin, World, Value::Null),
        ("GET", "/v1/runs/{run_id}/events", "/v1/runs/none/events", Read, World, Value::Null),
        ("GET", "/v1/runs/{run_id}/trace", "/v1/runs/none/trace", Read, World, Value::Null),
        ("POST", "/v1/runs/{run_id}/cancel", "/v1/runs/none/cancel", Run, World, Value::Null),
        ("GET", "/v1/runs/count", "/v1/runs/count", Read, Any, Value::Null),
        ("GET", "/v1/runs/export", "/v1/runs/export", Read, Any, Value::Null),
        ("GET", "/v1/stats/runs", "/v1/stats/runs", Read, Any, Value::Null),
        ("GET", "/v1/runs/{run_id}/tree", "/v1/runs/none/tree", Read, World, Value::Null),
        ("GET", "/v1/runs/{run_id}/lineage", "/v1/runs/none/lineage", Read, World, Value::Null),
        ("POST", "/v1/runs/{run_id}/again", "/v1/runs/none/again", Run, World, Value::Null),
        (
            "POST",
            "/v1/runs/cancel",
            "/v1/runs/cancel",
            Run,
            Any,
            json!({"until": "2001-01-01T00:00:00Z"}),
        ),
        (
            "POST",
            "/v1/runs/purge",
            "/v1/runs/purge",
            Admin,
            Any,
            json!({"until": "2001-01-01T00:00:00Z"}),
        ),
        ("POST", "/v1/purges", "/v1/purges", Admin, Any, json!({"until": "2001-01-01T00:00:00Z"})),
        ("GET", "/v1/purges", "/v1/purges", Admin, Any, Value::Null),
        ("GET", "/v1/purges/{purge_id}", "/v1/purges/p1", Admin, Any, Value::Null),
        ("POST", "/v1/purges/{purge_id}/cancel", "/v1/purges/p1/cancel", Admin, Any, Value::Null),
        ("GET", "/v1/asks", "/v1/asks", Read, Any, Value::Null),
        ("GET", "/v1/asks/{ask_id}", "/v1/asks/a1", Read, Hidden, Value::Null),
        ("GET", "/v1/providers", "/v1/providers", Read, Any, Value::Null),
        ("GET", "/v1/providers/{provider_id}", "/v1/providers/wharf", Read, Any, Value::Null),
        (
            "GET",
            "/v1/providers/{provider_id}/launches",
            "/v1/providers/none/launches",
            Read,
            Any,
            Value::Null,
        ),
        (
            "GET",
            "/v1/providers/{provider_id}/usage",
            "/v1/providers/none/usage",
            Read,
            Any,
            Value::Null,
        ),
        (
            "POST",
            "/v1/providers/{provider_id}/drain",
            "/v1/providers/none/drain",
            Operate,
            Everywhere,
            Value::Null,
        ),
        (
            "GET",
            "/v1/providers/{provider_id}/logs",
            "/v1/providers/none/logs",
            Operate,
            Everywhere,
            Value::Null,
        ),
        ("GET", "/v1/accounts", "/v1/accounts", Read, Any, Value::Null),
        ("GET", "/v1/search", "/v1/search?q=echo", Read, Any, Value::Null),
        ("POST", "/v1/audit/verify", "/v1/audit/verify", Admin, Everywhere, Value::Null),
        ("GET", "/v1/tools", "/v1/tools", Read, Any, Value::Null),
        ("GET", "/v1/tools/{provider}/{name}", "/v1/tools/wharf/echo", Read, Any, Value::Null),
        (
            "GET",
            "/v1/tools/{provider}/{name}/diff",
            "/v1/tools/wharf/echo/diff",
            Read,
            Any,
            Value::Null,
        ),
        (
            "POST",
            "/v1/tools/{provider}/{name}/approve",
            "/v1/tools/wharf/echo/approve",
            Admin,
            Everywhere,
            Value::Null,
        ),
        ("POST", "/v1/tools", "/v1/tools", Admin, Everywhere, json!({"folder": "/tools/none"})),
        tool("DELETE", "", Admin),
        tool("POST", "enable", Operate),
        tool("POST", "disable", Operate),
        tool("POST", "restart", Operate),
        tool("GET", "logs", Operate),
        ("GET", "/v1/agents", "/v1/agents", Read, Any, Value::Null),
        ("POST", "/v1/agents", "/v1/agents", Admin, Everywhere, hello.clone()),
        ("POST", "/v1/agents/scan", "/v1/agents/scan", Admin, Everywhere, hello),
        ("GET", "/v1/agents/{agent_id}", "/v1/agents/dev.none", Read, Any, Value::Null),
        ("DELETE", "/v1/agents/{agent_id}", "/v1/agents/dev.none", Admin, Everywhere, Value::Null),
        agent("approve", Admin),
        agent("revoke", Admin),
        agent("start", Operate),
        agent("stop", Operate),
        agent("restart", Operate),
        (
            "GET",
            "/v1/agents/{agent_id}/logs",
            "/v1/agents/dev.none/logs",
            Operate,
            Everywhere,
            Value::Null,
        ),
        ("GET", "/v1/costs", "/v1/costs", Read, Any, Value::Null),
        ("GET", "/v1/inbox", "/v1/inbox", Read, Any, Value::Null),
        (
            "POST",
            "/v1/questions/{ask_id}/answer",
            "/v1/questions/a1/answer",
            AnswerAsks,
            Hidden,
            json!({"value": 1}),
        ),
        (
            "POST",
            "/v1/approvals/{ask_id}/decide",
            "/v1/approvals/a1/decide",
            Approve,
            Hidden,
            json!({"decision": "allow"}),
        ),
        ("GET", "/v1/tokens", "/v1/tokens", Admin, Any, Value::Null),
        ("POST", "/v1/tokens", "/v1/tokens", Admin, Hidden, json!({"verbs": ["admin"]})),
        ("DELETE", "/v1/tokens/{token_id}", "/v1/tokens/g-none", Admin, Everywhere, Value::Null),
        ("POST", "/v1/tokens/rotate", "/v1/tokens/rotate", Admin, Everywhere, Value::Null),
        ("GET", "/v1/secrets", "/v1/secrets", Admin, Everywhere, Value::Null),
        ("PUT", "/v1/secrets/{name}", "/v1/secrets/KEY", Admin, Everywhere, json!("x")),
        ("DELETE", "/v1/secrets/{name}", "/v1/secrets/KEY", Admin, Everywhere, Value::Null),
        ("GET", "/v1/audit", "/v1/audit", Admin, Everywhere, Value::Null),
    ];
    operations.extend(worlds_and_files());
    operations.extend(by_itself());
    operations.extend(flows());
    operations.extend(mcp_servers());
    operations
}

fn mcp_servers() -> Vec<Operation> {
    let (route, path) = ("/v1/mcp/{server_id}", "/v1/mcp/none");
    vec![
        ("GET", "/v1/mcp", "/v1/mcp", Read, Any, Value::Null),
        ("POST", "/v1/mcp", "/v1/mcp", Admin, Everywhere, json!({"folder": "/mcp/none"})),
        ("GET", route, path, Read, Any, Value::Null),
        ("DELETE", route, path, Admin, Everywhere, Value::Null),
        server("POST", "approve", Admin, json!({"all": true})),
        server("POST", "revoke", Admin, Value::Null),
        server("POST", "start", Operate, Value::Null),
        server("POST", "stop", Operate, Value::Null),
        server("POST", "restart", Operate, Value::Null),
        server("POST", "refresh", Operate, Value::Null),
        server("GET", "logs", Operate, Value::Null),
        server("POST", "login", Admin, json!({"device": true})),
        server("DELETE", "login", Admin, Value::Null),
        server("POST", "finish", Admin, json!({"state": "none"})),
    ]
}

fn server(method: &'static str, what: &str, verb: Verb, body: Value) -> Operation {
    let (route, path) = match what {
        "approve" => ("/v1/mcp/{server_id}/approve", "/v1/mcp/none/approve"),
        "revoke" => ("/v1/mcp/{server_id}/revoke", "/v1/mcp/none/revoke"),
        "start" => ("/v1/mcp/{server_id}/start", "/v1/mcp/none/start"),
        "stop" => ("/v1/mcp/{server_id}/stop", "/v1/mcp/none/stop"),
        "restart" => ("/v1/mcp/{server_id}/restart", "/v1/mcp/none/restart"),
        "refresh" => ("/v1/mcp/{server_id}/refresh", "/v1/mcp/none/refresh"),
        "logs" => ("/v1/mcp/{server_id}/logs", "/v1/mcp/none/logs"),
        "login" => ("/v1/mcp/{server_id}/login", "/v1/mcp/none/login"),
        "finish" => ("/v1/mcp/{server_id}/login/finish", "/v1/mcp/none/login/finish"),
        other => panic!("there is no {other}"),
    };
    (method, route, path, verb, Everywhere, body)
}

/// What the core does by itself: runs by the clock, and what it tells outside.
fn by_itself() -> Vec<Operation> {
    let schedule = json!({"name": "s1", "every_ms": 60_000, "tool": "wharf/echo"});
    let trigger = json!({"name": "t1", "tool": "wharf/echo"});
    let triggers = "/v1/triggers/{trigger}";
    let receiver = json!({"name": "r1", "url": "https://hooks.example/x", "on": ["ask"]});
    let (schedules, receivers) = ("/v1/schedules/{schedule}", "/v1/receivers/{receiver}");
    vec![
        ("GET", "/v1/schedules", "/v1/schedules", Read, Any, Value::Null),
        ("POST", "/v1/schedules", "/v1/schedules", Run, World, schedule),
        ("GET", schedules, "/v1/schedules/none", Read, Any, Value::Null),
        ("DELETE", schedules, "/v1/schedules/none", Run, Any, Value::Null),
        act("/v1/schedules/{schedule}/pause", "/v1/schedules/none/pause", Run),
        act("/v1/schedules/{schedule}/resume", "/v1/schedules/none/resume", Run),
        act("/v1/schedules/{schedule}/trigger", "/v1/schedules/none/trigger", Run),
        look("/v1/schedules/{schedule}/history", "/v1/schedules/none/history", Read),
        ("GET", "/v1/triggers", "/v1/triggers", Read, Any, Value::Null),
        ("POST", "/v1/triggers", "/v1/triggers", Run, World, trigger),
        ("GET", triggers, "/v1/triggers/none", Read, Any, Value::Null),
        ("DELETE", triggers, "/v1/triggers/none", Run, Any, Value::Null),
        act("/v1/triggers/{trigger}/pause", "/v1/triggers/none/pause", Run),
        act("/v1/triggers/{trigger}/resume", "/v1/triggers/none/resume", Run),
        act("/v1/triggers/{trigger}/test", "/v1/triggers/none/test", Run),
        look("/v1/triggers/{trigger}/history", "/v1/triggers/none/history", Read),
        ("GET", "/v1/receivers", "/v1/receivers", Admin, Any, Value::Null),
        ("POST", "/v1/receivers", "/v1/receivers", Admin, Everywhere, receiver),
        ("GET", receivers, "/v1/receivers/none", Admin, Any, Value::Null),
        ("DELETE", receivers, "/v1/receivers/none", Admin, Any, Value::Null),
        act("/v1/receivers/{receiver}/pause", "/v1/receivers/none/pause", Admin),
        act("/v1/receivers/{receiver}/resume", "/v1/receivers/none/resume", Admin),
        act("/v1/receivers/{receiver}/test", "/v1/receivers/none/test", Admin),
        look("/v1/receivers/{receiver}/history", "/v1/receivers/none/history", Admin),
    ]
}

/// Documents of flows, and what is sent to their runs.
fn flows() -> Vec<Operation> {
    let document = json!({"document": {"name": "f1", "steps": [{"id": "a", "set": {"b": "1"}}]}});
    let (flow, signal) = ("/v1/flows/{flow}", "/v1/runs/{run_id}/signals/{signal}");
    let version = "/v1/flows/{flow}/versions/{version}";
    vec![
        ("GET", "/v1/flows", "/v1/flows", Read, Any, Value::Null),
        ("POST", "/v1/flows", "/v1/flows", WriteFlow, Any, document.clone()),
        ("POST", "/v1/flows/check", "/v1/flows/check", Read, Any, document),
        ("GET", flow, "/v1/flows/none", Read, Any, Value::Null),
        ("GET", version, "/v1/flows/none/versions/1", Read, Any, Value::Null),
        ("DELETE", version, "/v1/flows/none/versions/1", WriteFlow, Any, Value::Null),
        ("POST", signal, "/v1/runs/none/signals/go", Run, World, Value::Null),
        (
            "POST",
            "/v1/runs/{run_id}/rerun",
            "/v1/runs/none/rerun",
            Run,
            World,
            json!({"from": "a"}),
        ),
        ("GET", "/v1/runs/{run_id}/steps", "/v1/runs/none/steps", Read, World, Value::Null),
    ]
}

fn act(route: &'static str, path: &'static str, verb: Verb) -> Operation {
    ("POST", route, path, verb, Any, Value::Null)
}

fn look(route: &'static str, path: &'static str, verb: Verb) -> Operation {
    ("GET", route, path, verb, Any, Value::Null)
}

fn worlds_and_files() -> Vec<Operation> {
    vec![
        ("GET", "/v1/worlds", "/v1/worlds", Read, Any, Value::Null),
        ("POST", "/v1/worlds", "/v1/worlds", Admin, World, json!({"world": "new"})),
        ("GET", "/v1/worlds/{world}", "/v1/worlds/default", Read, World, Value::Null),
        ("PATCH", "/v1/worlds/{world}", "/v1/worlds/default", Admin, World, json!({})),
        ("DELETE", "/v1/worlds/{world}", "/v1/worlds/new", Admin, World, Value::Null),
        world("PUT", "budget", Admin, json!({})),
        world("POST", "corrections", Admin, json!({"by_micro": 1, "reason": "why"})),
        world("GET", "artifacts", Read, Value::Null),
        world("GET", "trace", Read, Value::Null),
        world("GET", "usage", Read, Value::Null),
        world("POST", "tickets", Read, json!({"path": "/none"})),
        world("POST", "collect", Admin, Value::Null),
        world("GET", "by path", Read, Value::Null),
        world("PUT", "by path", Run, json!("x")),
        world("DELETE", "by path", Operate, Value::Null),
        world("GET", "files", Read, Value::Null),
        world("PUT", "files", Run, json!("x")),
        world("DELETE", "files", Operate, Value::Null),
        world("POST", "uploads", Run, json!({"path": "/a"})),
        world("GET", "upload", Run, Value::Null),
        world("DELETE", "upload", Run, Value::Null),
        world("PUT", "part", Run, json!("x")),
        world("POST", "complete", Run, Value::Null),
    ]
}

fn world(method: &'static str, what: &str, verb: Verb, body: Value) -> Operation {
    let (route, path) = match what {
        "budget" => ("/v1/worlds/{world}/budget", "/v1/worlds/default/budget"),
        "corrections" => ("/v1/worlds/{world}/corrections", "/v1/worlds/default/corrections"),
        "artifacts" => ("/v1/worlds/{world}/artifacts", "/v1/worlds/default/artifacts"),
        "trace" => ("/v1/worlds/{world}/trace", "/v1/worlds/default/trace?path=/a"),
        "tickets" => ("/v1/worlds/{world}/tickets", "/v1/worlds/default/tickets"),
        "usage" => ("/v1/worlds/{world}/usage", "/v1/worlds/default/usage"),
        "collect" => ("/v1/worlds/{world}/collect", "/v1/worlds/default/collect?dry=true"),
        "files" => ("/v1/worlds/{world}/files/{path}", "/v1/worlds/default/files/a"),
        "by path" => ("/v1/worlds/{world}/files", "/v1/worlds/default/files?path=/b"),
        "uploads" => ("/v1/worlds/{world}/uploads", "/v1/worlds/default/uploads"),
        "upload" => {
            ("/v1/worlds/{world}/uploads/{upload_id}", "/v1/worlds/default/uploads/u1?path=/a")
        }
        "part" => (
            "/v1/worlds/{world}/uploads/{upload_id}/parts/{part}",
            "/v1/worlds/default/uploads/u1/parts/1?path=/a",
        ),
        _ => (
            "/v1/worlds/{world}/uploads/{upload_id}/complete",
            "/v1/worlds/default/uploads/u1/complete?path=/a",
        ),
    };
    (method, route, path, verb, World, body)
}

fn tool(method: &'static str, act: &str, verb: Verb) -> Operation {
    let (route, path) = match act {
        "" => ("/v1/tools/{provider}/{name}", "/v1/tools/text/none@1"),
        "enable" => ("/v1/tools/{provider}/{name}/enable", "/v1/tools/text/none@1/enable"),
        "disable" => ("/v1/tools/{provider}/{name}/disable", "/v1/tools/text/none@1/disable"),
        "restart" => ("/v1/tools/{provider}/{name}/restart", "/v1/tools/text/none@1/restart"),
        _ => ("/v1/tools/{provider}/{name}/logs", "/v1/tools/text/none@1/logs"),
    };
    (method, route, path, verb, Everywhere, Value::Null)
}

fn agent(act: &str, verb: Verb) -> Operation {
    let (route, path, body) = match act {
        "approve" => {
            ("/v1/agents/{agent_id}/approve", "/v1/agents/dev.none/approve", json!({"all": true}))
        }
        "revoke" => ("/v1/agents/{agent_id}/revoke", "/v1/agents/dev.none/revoke", Value::Null),
        "start" => ("/v1/agents/{agent_id}/start", "/v1/agents/dev.none/start", Value::Null),
        "stop" => ("/v1/agents/{agent_id}/stop", "/v1/agents/dev.none/stop", Value::Null),
        _ => ("/v1/agents/{agent_id}/restart", "/v1/agents/dev.none/restart", Value::Null),
    };
    ("POST", route, path, verb, Everywhere, body)
}
