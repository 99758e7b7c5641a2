//! Calls that come from the program itself, outside any run.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wharf_domain::Caller;
use wharf_engine::{Handle, NewRun};
use wharf_sdk::builtin::{Notice, Question};
use wharf_sdk::host::{Bridge, CallRequest, CoreTool, Host};
use wharf_sdk::transport::{Exchange, Outgoing, Transport};
use wharf_sdk::{Answer, Chunk, Data, Tool};
use wharf_vocab::{Fault, Object, ToolId, WorldId};

use crate::follow::followed;
use crate::translate::{CoreQuestion, level_of, tool_id, whole_ms};

/// Calls that come from the program itself: each is a run of the owner's.
#[derive(Clone)]
pub(crate) struct OutsideCalls {
    handle: Handle,
    world: WorldId,
    /// Which tools are meant by the names of definitions.
    reached: HashMap<String, CoreTool>,
}

impl OutsideCalls {
    pub(crate) fn new(handle: Handle, world: WorldId) -> Self {
        Self { handle, world, reached: HashMap::new() }
    }

    /// The same, where a definition means this tool.
    pub(crate) fn reaches<I: Data, O: Data, P: Data, S>(
        mut self,
        tool: &Tool<I, O, P, S>,
        id: impl Into<String>,
    ) -> Self {
        self.reached.insert(tool.name().to_owned(), CoreTool::of(tool, id));
        self
    }

    async fn run(&self, new: NewRun, chunks: mpsc::Sender<Chunk>) -> Result<Object, Fault> {
        let (handle, caller) = (self.handle.clone(), Caller::owner());
        let begun = async move { handle.runs().create(&Caller::owner(), new).await };
        followed(self.handle.clone(), caller, begun, chunks).await
    }

    /// A run whose progress nobody hears.
    async fn unheard(&self, tool: &str, inputs: Value) -> Result<Object, Fault> {
        let Value::Object(inputs) = inputs else { return Ok(Object::new()) };
        let new = NewRun::new(tool_id(tool)?, inputs, self.world.clone());
        self.run(new, mpsc::channel(1).0).await
    }
}

impl Host for OutsideCalls {
    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Fault>> {
        let CoreQuestion { title, schema, detail } = CoreQuestion::of(question);
        let mut inputs = json!({"question": title, "schema": schema});
        if let Some(detail) = detail {
            inputs["detail"] = detail;
        }
        Box::pin(async move {
            let ended = self.unheard("wharf/ask", inputs).await?;
            let answer = ended.get("answer").cloned().unwrap_or_default();
            Ok(match ended.get("status").and_then(Value::as_str) {
                Some("answered") => Answer::Accepted(answer),
                Some("declined") => Answer::Declined,
                Some("off_script") => {
                    Answer::OffScript(answer.as_str().unwrap_or_default().to_owned())
                }
                _ => Answer::Cancelled,
            })
        })
    }

    fn notify(&self, notice: Notice) -> BoxFuture<'_, Result<(), Fault>> {
        let level = level_of(notice.level).as_str();
        let mut inputs = json!({"message": notice.message, "level": level, "meta": notice.meta});
        if let Some(fraction) = notice.progress {
            inputs["progress"] = json!(fraction.clamp(0.0, 1.0));
        }
        Box::pin(async move { self.unheard("wharf/notify", inputs).await.map(drop) })
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'_, Result<Object, Fault>> {
        Box::pin(async move {
            let tool = tool_id(&request.tool)?;
            let mut new = NewRun::new(tool, request.input, self.world.clone());
            new.timeout_ms = request.timeout.map(whole_ms);
            new.idempotency_key = request.idempotency_key;
            self.run(new, request.chunks).await
        })
    }

    fn find(&self, name: &str, at: Option<&CoreTool>) -> Option<CoreTool> {
        if let Some(said) = self.reached.get(name).or(at) {
            return Some(said.clone());
        }
        let has_name = |id: &ToolId| {
            let own = id.name();
            own == name || own.split_once('@').is_some_and(|(bare, _)| bare == name)
        };
        let mut found =
            self.handle.providers().tools().into_iter().filter(|tool| has_name(&tool.def.tool));
        let tool = found.next().filter(|_| found.next().is_none())?;
        let def = &tool.def;
        Some(CoreTool::known(def.tool.as_str(), &def.input_schema, def.output_schema.as_ref()))
    }
}

/// A transport to the tools of a core in the same program. See
/// [`Embedded::transport`](crate::Embedded::transport).
pub struct CoreTransport {
    outside: OutsideCalls,
    bridge: Bridge,
}

impl CoreTransport {
    pub(crate) fn new(outside: OutsideCalls) -> Self {
        let bridge = Bridge::new(Arc::new(outside.clone()));
        Self { outside, bridge }
    }

    /// Says which tool is meant by a definition, such as `browser/get-location`.
    #[must_use]
    pub fn reaches<I: Data, O: Data, P: Data, S>(
        self,
        tool: &Tool<I, O, P, S>,
        id: impl Into<String>,
    ) -> Self {
        Self::new(self.outside.reaches(tool, id))
    }
}

impl Transport for CoreTransport {
    fn request(&self, request: Outgoing) -> Exchange {
        self.bridge.request(request)
    }
}

impl fmt::Debug for CoreTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreTransport").finish_non_exhaustive()
    }
}
