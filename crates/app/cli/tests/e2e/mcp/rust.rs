//! The official library for Rust meets Wharf, unmodified: as a client of both eras at the fixture's
//! own door, and as a server that becomes a provider.

use std::sync::Arc;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, JsonObject, ProtocolVersion,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ServerHandler, tool, tool_handler,
    tool_router,
};
use serde_json::{Value, json};

use super::stage::{Era, Stage};

/// A client that accepts every form with the same content.
#[derive(Debug, Clone, Default)]
struct Accepting;

impl ClientHandler for Accepting {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rust-client", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        _asked: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({"username": "ada", "email": "ada@example.org"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).expect("an object")
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|it| it.as_text()).map(|it| it.text.clone()).collect()
}

async fn connect(
    stage: &Stage,
    lifecycle: ClientLifecycleMode,
) -> RunningService<RoleClient, Accepting> {
    let config = StreamableHttpClientTransportConfig::with_uri(stage.door("/mcp/fixture"))
        .auth_header(stage.core().token());
    let transport = StreamableHttpClientTransport::from_config(config);
    Accepting.serve_with_lifecycle(transport, lifecycle).await.expect("the client starts")
}

/// Lists, calls, answers a question and meets errors, in each era.
async fn walks(stage: &Stage) {
    let modern = || vec![ProtocolVersion::V_2026_07_28];
    let legacy_version = Some(ProtocolVersion::V_2025_11_25);
    for lifecycle in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: modern() },
        ClientLifecycleMode::Auto { preferred_versions: modern(), legacy_version },
    ] {
        let who = format!("{lifecycle:?}");
        let client = connect(stage, lifecycle).await;
        let tools = client.list_all_tools().await.expect("tools");
        assert!(tools.iter().any(|tool| tool.name == "greet"), "{who}: {tools:?}");
        let greet =
            CallToolRequestParams::new("greet").with_arguments(object(json!({"name": "Ada"})));
        let greeted = client.call_tool(greet).await.expect("greets");
        assert_eq!(text(&greeted), "Hello, Ada!", "{who}");
        let asks = CallToolRequestParams::new("test_elicitation")
            .with_arguments(object(json!({"message": "Who are you?"})));
        let asked = client.call_tool(asks).await.expect("asks");
        assert!(text(&asked).contains("ada@example.org"), "{who}: {asked:?}");
        let wrong = client.call_tool(CallToolRequestParams::new("test_error_handling")).await;
        assert_eq!(wrong.expect("a result").is_error, Some(true), "{who}");
        let missing = client.call_tool(CallToolRequestParams::new("no_such_tool")).await;
        assert!(missing.expect_err("refused").to_string().contains("-32602"), "{who}");
        client.cancel().await.expect("it ends");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    // The library's HTTP client wants to know who does cryptography, even where there is none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Runtime::new().expect("a runtime")
}

#[test]
fn m081_the_rust_library_is_a_client_in_both_eras() {
    for fixture in [Era::Legacy, Era::Modern] {
        let Some(stage) = Stage::with_fixture(fixture) else { return };
        runtime().block_on(walks(&stage));
    }
}

#[derive(Debug, serde::Deserialize, rmcp::schemars::JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Debug, Clone)]
struct Adder;

#[tool_router]
impl Adder {
    #[tool(description = "Adds two numbers.")]
    fn sum(&self, Parameters(Sum { a, b }): Parameters<Sum>) -> String {
        (a + b).to_string()
    }
}

#[tool_handler]
impl ServerHandler for Adder {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[test]
fn m081_a_server_of_the_rust_library_becomes_a_provider() {
    let Some(stage) = Stage::new() else { return };
    let runtime = runtime();
    let address = runtime.block_on(async {
        let service = StreamableHttpService::new(
            || Ok(Adder),
            Arc::<LocalSessionManager>::default(),
            StreamableHttpServerConfig::default(),
        );
        let router = axum::Router::new().nest_service("/mcp", service);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    });
    stage.add_url("rust", &format!("http://{address}/mcp"), &["--accept-new"]);
    let ended = stage.run("rust/sum", &["a=2", "b=3"]).code(0).json();
    assert!(ended.to_string().contains("\"5\""), "{ended}");
    let wrong = stage.run("rust/sum", &["a=two", "b=3"]).code(2);
    assert!(wrong.stderr.contains("tool.invalid_input"), "{wrong:?}");
}
