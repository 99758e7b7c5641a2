//! MCP servers: REST and GraphQL say the same of one, field by field.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use wharf_domain::provider::{
    Approval, Entrypoint, Manifest, McpDetails, McpLogin, McpServing, ProviderInput, ProviderKind,
    ProviderLimits, Rate, Terms, Wish, WishKind,
};
use wharf_domain::{Caller, Provider, ToolDef};
use wharf_graphql::GraphqlLimits;
use wharf_ports::launcher::{FenceReport, LogLine};
use wharf_ports::providers::{
    Approve, ProviderControl, ProviderHealth, ProviderState, ProviderView, Scan, Steering,
    UsagePoint,
};
use wharf_vocab::{
    Code, Digest, Fault, Health, Keeping, LaunchId, McpSampling, ProviderId, SandboxLevel,
    SecretName, SeriesRange, Timestamp, ToolId,
};

use crate::same::{assert_same, graphql_fields};
use crate::support::{OWNER, Stage};

/// A server of which nothing is left unsaid.
fn view() -> ProviderView {
    let id = ProviderId::new("every").expect("valid");
    let secret = |name: &str| SecretName::new(name).expect("valid");
    let url = "https://mcp.example.com/mcp".to_owned();
    let mut details = McpDetails::new(McpServing::Url { url, allow_private: true });
    details.token_secret = Some(secret("token"));
    details.header_secrets = [("x-key".to_owned(), secret("key"))].into();
    details.env_secrets = [("KEY".to_owned(), secret("key"))].into();
    details.env = [("LEVEL".to_owned(), "debug".to_owned())].into();
    details.accept_new = true;
    details.idle_s = Some(9);
    details.sampling = Some(McpSampling::Model);
    details.oauth = Some(McpLogin { client_id: Some("me".to_owned()), ..McpLogin::default() });
    let rate = Some(Rate { count: 60, per_ms: 60_000 });
    let manifest = Manifest {
        name: id.to_string(),
        version: String::new(),
        description: "tries everything".to_owned(),
        entrypoint: Entrypoint { program: "node".to_owned(), args: Vec::new() },
        permissions: vec!["secret:use:token".to_owned()],
        limits: ProviderLimits { rate, call_ms: Some(5), ..ProviderLimits::default() },
        isolation: None,
        kind: ProviderKind::Mcp(Box::new(details)),
    };
    let manifest_hash = Digest::of(&[b"manifest"]);
    let input = ProviderInput::Add {
        folder: "/srv/every".to_owned(),
        manifest_hash: manifest_hash.clone(),
        manifest,
    };
    let by = Caller::owner().to_ref();
    let (entry, _) = Provider::decide(None, &id, &input, &by).expect("fits").expect("new");
    let mut provider = Provider::apply(None, &id, Timestamp(5), &entry).expect("a server");
    let tool = ToolId::new("every/echo").expect("valid");
    provider.tools = vec![ToolDef::new(tool, "says it", json!({"type": "object"}))];
    provider.approval = Some(Approval {
        manifest_hash,
        permissions: vec!["secret:use:token".to_owned()],
        permissions_hash: None,
        files: [("wharf.mcp.toml".to_owned(), Digest::of(&[b"file"]))].into(),
        terms: Terms::default(),
    });
    provider.drift = vec!["wharf.mcp.toml has changed".to_owned()];
    let what = WishKind::Sandbox { asked: SandboxLevel::None, usual: SandboxLevel::Standard };
    ProviderView {
        limits: provider.manifest.limits.clone(),
        provider,
        state: ProviderState::Running,
        reason: Some("it idles".to_owned()),
        pid: Some(4711),
        launch: Some(LaunchId::new("l1").expect("valid")),
        last_heartbeat: Some(Timestamp(9)),
        health: Some(ProviderHealth {
            status: Health::Degraded,
            uptime_ms: 5,
            inflight_calls: 1,
            details: [("depth".to_owned(), json!(3))].into_iter().collect(),
        }),
        fence: Some(FenceReport {
            level: SandboxLevel::Basic,
            notes: vec!["There is no Landlock.".to_owned()],
            limits: [("processes", Keeping::Kernel)].into(),
        }),
        instances: 2,
        wishes: vec![Wish { what, granted: false }],
        hints: vec!["It fetches code.".to_owned()],
    }
}

/// Shows one server, and can do nothing.
struct OneServer;

fn never<T: Send + 'static>() -> Steering<'static, T> {
    std::future::ready(Err(Fault::new(Code::CoreInternal, "This is for looking only."))).boxed()
}

impl ProviderControl for OneServer {
    fn list(&self) -> Vec<ProviderView> {
        vec![view()]
    }

    fn show(&self, id: &ProviderId) -> Result<ProviderView, Fault> {
        let unknown = || Fault::new(Code::AgentNotFound, "There is no such server.");
        Some(view()).filter(|view| view.provider.id == *id).ok_or_else(unknown)
    }

    fn drift(&self, _: ProviderId) -> Steering<'_, Vec<String>> {
        std::future::ready(Ok(view().provider.drift)).boxed()
    }

    fn add(&self, _: Caller, _: PathBuf) -> Steering<'_, ProviderView> {
        never()
    }

    fn scan(&self, _: PathBuf) -> Steering<'_, Scan> {
        never()
    }

    fn approve(&self, _: Caller, _: ProviderId, _: Approve) -> Steering<'_, ProviderView> {
        never()
    }

    fn revoke(&self, _: Caller, _: ProviderId) -> Steering<'_, ProviderView> {
        never()
    }

    fn approve_tools(
        &self,
        _: Caller,
        _: ProviderId,
        _: Vec<ToolId>,
    ) -> Steering<'_, ProviderView> {
        never()
    }

    fn start(&self, _: Caller, _: ProviderId) -> Steering<'_, ProviderView> {
        never()
    }

    fn stop(&self, _: Caller, _: ProviderId) -> Steering<'_, ProviderView> {
        never()
    }

    fn drain(&self, _: Caller, _: ProviderId) -> Steering<'_, ProviderView> {
        let draining = ProviderView { state: ProviderState::Draining, ..view() };
        std::future::ready(Ok(draining)).boxed()
    }

    fn restart(&self, _: Caller, _: ProviderId) -> Steering<'_, ProviderView> {
        never()
    }

    fn remove(&self, _: Caller, _: ProviderId) -> Steering<'_, ()> {
        never()
    }

    fn usage(&self, id: &ProviderId, _: SeriesRange) -> Result<Vec<UsagePoint>, Fault> {
        self.show(id)?;
        let at = Timestamp(60_000);
        Ok(vec![UsagePoint { at, memory_bytes: 1 << 40, cpu_ms: 7, processes: 2 }])
    }

    fn logs(&self, _: ProviderId, _: usize) -> Steering<'_, Vec<LogLine>> {
        never()
    }

    fn follow_logs(&self, _: ProviderId, _: usize) -> Steering<'_, BoxStream<'static, LogLine>> {
        never()
    }
}

async fn stage() -> Stage {
    Stage::start_having(GraphqlLimits::default(), Some(Arc::new(OneServer))).await
}

/// What of a type is asked for, with all that lies below it.
async fn whole(stage: &Stage, name: &str) -> String {
    let mut parts = Vec::new();
    for field in graphql_fields(stage, name).await.into_keys() {
        let below = match field.as_str() {
            "oauth" => "{ clientId clientSecret issuer scopes }",
            "health" => "{ status uptimeMs inflightCalls details }",
            "permissions" => "{ permission meaning approved narrowedTo }",
            "wishes" => "{ what asked usual meaning granted }",
            "limits" => {
                "{ callsMax rate { count perMs } callMs inputBytes outputBytes \
                         streamBytes memoryBytes cpuMs cpuMillicores processes openFiles diskBytes }"
            }
            _ => "",
        };
        parts.push(format!("{field} {below}"));
    }
    format!("{{ {} }}", parts.join(" "))
}

#[tokio::test]
async fn m079_rest_and_graphql_say_the_same_of_a_server() {
    let stage = stage().await;
    let fields = whole(&stage, "McpServer").await;
    let rest = stage.call(OWNER, "GET", "/v1/mcp/every", None).await.body;
    let query = format!("{{ mcpServer(id: \"every\") {fields} }}");
    let graphql = stage.ask(&query).await.data()["mcpServer"].clone();
    assert!(rest["launch_id"] == "l1" && graphql["launchId"] == "l1", "{rest} {graphql}");
    assert_same(&rest, &graphql);

    let rest = stage.call(OWNER, "GET", "/v1/mcp", None).await.body["items"][0].clone();
    let query = format!("{{ mcpServers {{ edges {{ node {fields} }} }} }}");
    let graphql = stage.ask(&query).await.data()["mcpServers"]["edges"][0]["node"].clone();
    assert_same(&rest, &graphql);
    let nobody = stage.ask("{ mcpServer(id: \"nobody\") { serverId } }").await;
    assert_eq!(nobody.code(), Some("agent.not_found"));
}

#[tokio::test]
async fn m079_only_administrators_see_variables_by_graphql() {
    let stage = stage().await;
    let body = json!({"verbs": ["read"]});
    let token = stage.call(OWNER, "POST", "/v1/tokens", Some(&body)).await.body;
    let token = token["token"].as_str().expect("a token");
    let query = "{ mcpServer(id: \"every\") { env launchId envSecrets } }";
    let shown = stage.ask_as(token, query, json!({})).await.data()["mcpServer"].clone();
    assert_eq!((&shown["env"], &shown["launchId"]), (&json!({}), &Value::Null));
    assert_eq!(shown["envSecrets"]["KEY"], "key");
}

#[tokio::test]
async fn c044_a_provider_of_any_kind_is_the_same_in_rest_and_graphql() {
    let stage = stage().await;
    let fields = whole(&stage, "Provider").await;
    for id in ["every", "wharf"] {
        let rest = stage.call(OWNER, "GET", &format!("/v1/providers/{id}"), None).await.body;
        let query = format!("{{ provider(id: \"{id}\") {fields} }}");
        let graphql = stage.ask(&query).await.data()["provider"].clone();
        assert_eq!(graphql["providerId"], id, "{graphql}");
        assert_same(&rest, &graphql);
    }
    let health = stage.ask("{ provider(id: \"every\") { health { details } launchId } }").await;
    assert_eq!(health.data()["provider"]["health"]["details"], json!({"depth": 3}));
    assert_eq!(health.data()["provider"]["launchId"], "l1");
    for (arguments, path) in [
        ("", ""),
        ("(kind: \"mcp_server\")", "?kind=mcp_server"),
        ("(state: \"running\", q: \"EVER\")", "?state=running&q=EVER"),
        ("(kind: \"operator\")", "?kind=operator"),
    ] {
        let rest = stage.call(OWNER, "GET", &format!("/v1/providers{path}"), None).await.body;
        let query = format!("{{ providers{arguments} {{ edges {{ node {fields} }} }} }}");
        let found = stage.ask(&query).await.data()["providers"]["edges"].clone();
        let nodes = found.as_array().expect("edges").iter().map(|it| it["node"].clone()).collect();
        assert_same(&rest["items"], &nodes);
    }
    for wrong in ["kind: \"thing\"", "state: \"asleep\""] {
        let query = format!("{{ providers({wrong}) {{ edges {{ cursor }} }} }}");
        assert_eq!(stage.ask(&query).await.code(), Some("request.invalid"), "{wrong}");
    }
    let all = "{ providers(first: 1) { pageInfo { hasNextPage endCursor } } }";
    let page = stage.ask(all).await.data()["providers"]["pageInfo"].clone();
    assert_eq!(page["hasNextPage"], true);
    let next = format!(
        "{{ providers(after: {}) {{ edges {{ node {{ providerId }} }} }} }}",
        page["endCursor"]
    );
    let next = stage.ask(&next).await.data()["providers"]["edges"].clone();
    assert_eq!(next[0]["node"]["providerId"], "wharf", "{next}");
}

#[tokio::test]
async fn c044_launches_usage_and_draining_are_the_same_in_rest_and_graphql() {
    let stage = stage().await;
    for id in ["every", "wharf", "nobody"] {
        let path = format!("/v1/providers/{id}/usage?range=24h");
        let rest = stage.call(OWNER, "GET", &path, None).await;
        let query = format!(
            "{{ providerUsage(id: \"{id}\", range: \"24h\") {{ range stepMs \
             points {{ at memoryBytes cpuMs processes }} }} }}"
        );
        let graphql = stage.ask(&query).await;
        assert_eq!(rest.code(), graphql.code(), "{id}");
        if rest.status == 200 {
            assert_same(&rest.body, &graphql.data()["providerUsage"]);
        }
        let rest = stage.call(OWNER, "GET", &format!("/v1/providers/{id}/launches"), None).await;
        let query = format!(
            "{{ providerLaunches(id: \"{id}\") {{ startedAt endedAt crashed reason pid }} }}"
        );
        let graphql = stage.ask(&query).await;
        assert_eq!(rest.code(), graphql.code(), "{id}");
        if rest.status == 200 {
            assert_same(&rest.body["items"], &graphql.data()["providerLaunches"]);
        }
        let rest = stage.call(OWNER, "POST", &format!("/v1/providers/{id}/drain"), None).await;
        let query = format!("mutation {{ drainProvider(id: \"{id}\") {{ providerId state }} }}");
        let graphql = stage.ask(&query).await;
        assert_eq!(rest.code(), graphql.code(), "{id}");
        if rest.status == 202 {
            assert_same(&rest.body, &graphql.data()["drainProvider"]);
            assert_eq!(graphql.data()["drainProvider"]["state"], "draining");
        }
    }
    let usage = stage.ask("{ providerUsage(id: \"every\") { points { memoryBytes } } }").await;
    let points = &usage.data()["providerUsage"]["points"];
    assert_eq!(points[0]["memoryBytes"], (1_u64 << 40).to_string());
}

#[tokio::test]
async fn c044_only_administrators_see_a_providers_launch_by_graphql() {
    let stage = stage().await;
    let (_, token) = stage.token(json!({"verbs": ["read"]})).await;
    let query = "{ provider(id: \"every\") { launchId name } \
                 providers(q: \"every\") { edges { node { launchId } } } }";
    let shown = stage.ask_as(&token, query, json!({})).await.data().clone();
    assert_eq!(shown["provider"]["launchId"], Value::Null);
    assert_eq!(shown["providers"]["edges"][0]["node"]["launchId"], Value::Null);
    let drain = "mutation { drainProvider(id: \"every\") { state } }";
    let refused = stage.ask_as(&token, drain, json!({})).await;
    assert_eq!(refused.code(), Some("permission.denied"));
}
