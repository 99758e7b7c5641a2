//! A tool as the core sees it, whose calls are made in the scope it belongs to.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use wharf_protocol::tool::value::{Form, kept};
use wharf_vocab::{Fault, Object};

use super::{Bridge, Host, HostHandle};
use crate::Within as _;
use crate::calls::exposed::ErasedTool;
use crate::calls::scope::Scope;
use crate::calls::tool::Terms;
use crate::error::Error;
use crate::host::file;

/// Pieces of progress that may wait for the host; beyond it the tool waits.
const WAITING_MAX: usize = 16;

/// A tool as the core sees it: its input and its output are objects. Cheap to clone.
///
/// It keeps the scope or the agent that the tool belongs to, but not the scope that an agent was
/// activated in: that is closed when it is dropped, and the agent with it.
#[derive(Debug, Clone)]
pub struct ServedTool {
    inner: Arc<ServedToolParts>,
}

#[derive(Debug)]
struct ServedToolParts {
    tool: Arc<ErasedTool>,
    scope: Scope,
    input: (Form, Value),
    output: (Form, Value),
    /// The inputs that are files.
    files: Vec<String>,
}

/// The tools of a scope or an agent that can be served: all that have an implementation there, or
/// a transport of their own.
pub fn served(agent: impl Into<Scope>) -> Vec<ServedTool> {
    let scope = agent.into();
    let tools = scope.place().0.served().into_iter();
    tools.map(|tool| ServedTool::new(tool, scope.clone())).collect()
}

/// One tool of a scope or an agent.
pub fn served_by_name(agent: impl Into<Scope>, name: &str) -> Result<ServedTool, Error> {
    let found = served(agent).into_iter().find(|tool| tool.name() == name);
    found.ok_or_else(|| Error::NotServed { name: name.to_owned() })
}

impl ServedTool {
    fn new(tool: Arc<ErasedTool>, scope: Scope) -> Self {
        let formed = |schema: &Value| {
            let schema = kept(schema);
            (Form::of(&schema), schema)
        };
        let definition = tool.definition();
        let (input, output) = (formed(&definition.input), formed(&definition.output));
        let files = file::marked(&input.1);
        Self { inner: Arc::new(ServedToolParts { tool, scope, input, output, files }) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.tool.definition().name
    }

    /// What it does.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.inner.tool.definition().description
    }

    /// What the definition says beside its types.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.inner.tool.definition().terms
    }

    /// JSON Schema of its input, which is an object.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        &self.inner.input.1
    }

    /// JSON Schema of its output, which is an object.
    #[must_use]
    pub fn output_schema(&self) -> &Value {
        &self.inner.output.1
    }

    /// Whether it gives nothing, so that there is no output to describe.
    pub(crate) fn gives_nothing(&self) -> bool {
        self.inner.tool.definition().output.get("type").is_some_and(|kind| kind == "null")
    }

    /// Checks the input, calls the tool, and checks its output. All progress has reached the host
    /// before this ends, and everything that the tool wanted done at its end is done. Dropping it
    /// calls the tool off.
    pub async fn call(&self, mut input: Object, host: Arc<dyn Host>) -> Result<Object, Fault> {
        let parts = &*self.inner;
        // A file is opened by the name of its input, wherever it is.
        for key in &parts.files {
            if let Some(value) = input.get_mut(key).filter(|value| !value.is_null()) {
                *value = Value::String(key.clone());
            }
        }
        let scope = parts.scope_of_call(&host);
        let (told, mut pieces) = mpsc::channel(WAITING_MAX);
        let work = parts.tool.call(scope.place(), parts.input.0.unpack(input), Some(told));
        let show = async {
            while let Some(piece) = pieces.recv().await {
                if host.progress(piece).await.is_err() {
                    // Nobody is told any more, and the tool goes on.
                    pieces.close();
                }
            }
        };
        let cut_off = async {
            match host.cancel() {
                Some(cancel) => cancel.cut_off().await,
                None => std::future::pending().await,
            }
        };
        let output = tokio::select! {
            biased;
            (output, ()) = async { futures::join!(work, show) } => output,
            fault = cut_off => Err(fault),
        };
        scope.close().await;
        Ok(parts.output.0.pack(output?))
    }
}

impl ServedToolParts {
    /// A scope of its own for one call: what the call begins ends with it.
    fn scope_of_call(&self, host: &Arc<dyn Host>) -> Scope {
        let above = self.scope.place().0;
        let bridge = Bridge::new(Arc::clone(host)).below(above.nearest_transport());
        Scope::serving(&above, Arc::new(HostHandle(Arc::clone(host))), Arc::new(bridge))
    }
}
