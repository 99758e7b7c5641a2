//! A whole edge on a real socket, and a client that can also misbehave.

pub(crate) mod agents;
pub(crate) mod client;
pub(crate) mod objects;
pub(crate) mod vault;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::{Caller, WorldSettings};
use wharf_engine::Handle;
use wharf_http::{HttpLimits, HttpListener, HttpOptions, HttpServer, OwnerToken};
use wharf_journal::audit::AuditKey;
use wharf_memory::MemoryStore;
use wharf_ports::SystemClock;
use wharf_vocab::{NodeId, WorldId};

use client::{Answer, Call, EventReader};
use objects::Objects;
use vault::MemoryVault;

pub(crate) const TOKEN: &str = "owners-own-token";

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Edge {
    pub(crate) server: HttpServer,
    pub(crate) handle: Handle,
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) objects: Arc<Objects>,
}

impl Edge {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(adjust: impl FnOnce(&mut HttpOptions)) -> Self {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let vault = MemoryVault::new();
        let mut options = wharf_engine::EngineOptions::new(node, store, clock, 1);
        options.keyring = vault.ring();
        let objects = Objects::new();
        options.objects = Some(objects.clone());
        let handle = Handle::start(options).await.expect("starts");
        wharf_builtin::register(&handle).await.expect("registers");
        let world = WorldId::new("default").expect("valid");
        let made = handle.worlds().create(&Caller::owner(), world, WorldSettings::default()).await;
        made.expect("a world");
        let mut options = HttpOptions::new(OwnerToken::new(TOKEN));
        options.vault = Some(vault.clone());
        adjust(&mut options);
        let addr = "127.0.0.1:0".parse().expect("an address");
        let listener = HttpListener::bind(addr, &options.limits).expect("binds");
        let server = listener.serve(handle.clone(), options);
        Self { server, handle, vault, objects }
    }

    pub(crate) async fn start_limited(limits: HttpLimits) -> Self {
        Self::start_with(|options| options.limits = limits).await
    }

    pub(crate) fn call(&self, method: &str, path: &str) -> Call {
        Call::new(self.server.addr(), method, path).header("authorization", &bearer())
    }

    /// A call with another token than the owner's.
    pub(crate) fn call_as(&self, token: &str, method: &str, path: &str) -> Call {
        let token = format!("Bearer {token}");
        Call::new(self.server.addr(), method, path).header("authorization", &token)
    }

    /// Makes a token.
    pub(crate) async fn token(&self, request: Value) -> Value {
        let answer = self.post("/v1/tokens", request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path).json(&body).send().await
    }

    pub(crate) async fn run(&self, tool: &str, inputs: Value) -> Answer {
        self.post("/v1/runs?wait=20s", json!({"tool": tool, "inputs": inputs})).await
    }

    /// Starts a run and gives its id.
    pub(crate) async fn begin(&self, tool: &str, inputs: Value) -> String {
        let answer = self.post("/v1/runs", json!({"tool": tool, "inputs": inputs})).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["run_id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn events(&self, run: &str, query: &str) -> EventReader {
        let path = format!("/v1/runs/{run}/events{query}");
        self.call("GET", &path).open_events().await
    }

    /// Waits until a run stands in this status, and shows it.
    pub(crate) async fn until(&self, run: &str, status: &str) -> Value {
        eventually(async || {
            let shown = self.get(&format!("/v1/runs/{run}")).await.json();
            (shown["status"] == status).then_some(shown)
        })
        .await
    }
}

pub(crate) fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

/// Looks again and again until there is something to see.
pub(crate) async fn eventually<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(tokio::time::Instant::now() < until, "nothing happened in {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
