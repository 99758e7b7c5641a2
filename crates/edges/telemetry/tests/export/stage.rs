//! An engine with an exporter, on a store that can outlive it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wharf_domain::trace::Sampling;
use wharf_domain::{Caller, Run, ToolDef, WorldSettings};
use wharf_engine::in_process::{InProcess, ToolOutput};
use wharf_engine::{EngineOptions, Handle, NewRun, TraceOptions};
use wharf_journal::audit::AuditKey;
use wharf_memory::{MemoryState, MemoryStore};
use wharf_ports::{Clock, Store, SystemClock};
use wharf_telemetry::{CollectorEndpoint, ExportTask, Recorder, TelemetryOptions};
use wharf_vocab::{Code, Fault, NodeId, Object, ToolId, WorldId};

pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const CANARY: &str = "c4n4ry-payload-77";
/// The caller's place in its trace.
pub(crate) const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

pub(crate) struct Stage {
    pub(crate) handle: Handle,
    pub(crate) task: ExportTask,
    store: Arc<MemoryStore>,
}

pub(crate) fn options(url: &str, ratio: f64) -> TelemetryOptions {
    TelemetryOptions {
        endpoint: CollectorEndpoint::of_collector(url).expect("an address"),
        service_name: "dock".to_owned(),
        resource: vec![("deployment.environment".to_owned(), "test".to_owned())],
        sampling: Sampling::of_ratio(ratio).expect("a ratio"),
        timeout: Duration::from_secs(5),
    }
}

impl Stage {
    pub(crate) async fn new(url: &str) -> Self {
        Self::with(options(url, 1.0)).await
    }

    pub(crate) async fn with(options: TelemetryOptions) -> Self {
        Self::on(MemoryState::new(&AuditKey::new([7; 32])), options).await
    }

    async fn on(state: MemoryState, options: TelemetryOptions) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::with_state(state, Arc::clone(&clock)));
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let sampling = options.sampling;
        let (observer, exporter) = Recorder::new(options);
        let node = NodeId::new("test").expect("valid");
        let engine = EngineOptions {
            traces: Some(TraceOptions { sampling, observer }),
            ..EngineOptions::new(node, shared, clock, 1)
        };
        let handle = Handle::start(engine).await.expect("starts");
        wharf_builtin::register(&handle).await.expect("registers");
        tools().register(&handle).await.expect("registers");
        let world = WorldId::new("default").expect("valid");
        match handle.worlds().create(&Caller::owner(), world, WorldSettings::default()).await {
            Ok(_) => {}
            Err(fault) => assert!(fault.is(Code::WorldExists), "{fault}"),
        }
        let task = exporter.start(handle.clone());
        Self { handle, task, store }
    }

    /// The engine as it would come back after a kill -9 at this moment; its exporter has told
    /// nothing more.
    pub(crate) async fn killed(self, url: &str) -> Self {
        let state = self.store.state();
        self.task.stop(Duration::ZERO).await;
        Self::on(state, options(url, 1.0)).await
    }

    pub(crate) async fn start(&self, new: NewRun) -> Arc<Run> {
        self.handle.runs().create(&Caller::owner(), new).await.expect("accepted").run
    }

    pub(crate) async fn finish(&self, new: NewRun) -> Arc<Run> {
        let run = self.start(new).await;
        let run = self.handle.runs().wait(&run.key, LONG).await.expect("known");
        assert!(run.is_over(), "{} is still {}", run.key, run.status());
        run
    }
}

pub(crate) fn new(tool: &str, inputs: Value) -> NewRun {
    let Value::Object(inputs) = inputs else { panic!("{inputs} is no object") };
    let world = WorldId::new("default").expect("valid");
    NewRun::new(ToolId::new(tool).expect("valid"), inputs, world)
}

/// Tools of which runs have something to tell.
fn tools() -> InProcess {
    let def = |name: &str| {
        ToolDef::new(ToolId::new(name).expect("valid"), "For a test.", json!({"type": "object"}))
    };
    let object = |value: Value| serde_json::from_value::<Object>(value).expect("an object");
    let tools = InProcess::new("test").expect("valid");
    let tools = tools.object_tool(def("test/outer"), move |inputs, cx| async move {
        let child = cx.call("wharf/echo", inputs).await?;
        let trace = cx.attempt().dispatch().trace.traceparent.clone();
        let outputs = object(json!({"trace": trace, "child": child.key.run}));
        Ok(ToolOutput { outputs, cost_micro: 7 })
    });
    let tools = tools.object_tool(def("test/model"), move |_, _| async move {
        let outputs = object(json!({
            "text": CANARY, "model": "small-1", "provider": "acme", "finish_reason": "stop",
            "usage": {"input_tokens": 11, "output_tokens": 5},
        }));
        Ok(ToolOutput { outputs, cost_micro: 3 })
    });
    let twice = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut flaky = def("test/flaky");
    flaky.side_effects = Some(false);
    tools.object_tool(flaky, move |_, _| {
        let second = twice.swap(true, std::sync::atomic::Ordering::SeqCst);
        async move {
            if second {
                return Ok(ToolOutput { outputs: Object::new(), cost_micro: 0 });
            }
            let message = format!("Not yet, {CANARY}.");
            Err(Fault { retryable: true, ..Fault::new(Code::ToolFailed, message) })
        }
    })
}
