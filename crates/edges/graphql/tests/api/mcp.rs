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
    Approve, ProviderControl, ProviderState, ProviderView, Scan, Steering, UsagePoint,
};
use wharf_vocab::{
    Code, Digest, Fault, Keeping, LaunchId, McpSampling, ProviderId, SandboxLevel, SecretName,
    SeriesRange, Timestamp, ToolId,
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
        last_heartbeat: None,
        health: None,
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
        never()
    }

    fn restart(&self, _: Caller, _: ProviderId) -> Steering<'_, ProviderView> {
        never()
    }

    fn remove(&self, _: Caller, _: ProviderId) -> Steering<'_, ()> {
        never()
    }

    fn usage(&self, _: &ProviderId, _: SeriesRange) -> Result<Vec<UsagePoint>, Fault> {
        Ok(Vec::new())
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
