//! Calls that come from the program itself, outside any run.

use std::fmt;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use wharf_domain::Caller;
use wharf_engine::{Handle, NewRun};
use wharf_sdk::builtin::{Notice, Question, Reply};
use wharf_sdk::face::{Bridge, Errand, Host, Reach, Reached};
use wharf_sdk::transport::{Exchange, Outgoing, Transport};
use wharf_sdk::{Data, Tool};
use wharf_vocab::{Fault, Object, ToolId, WorldId};

use crate::core::{Embedded, tool_id};
use crate::desk::{Asked, level_of};
use crate::follow::followed;

/// Calls that come from the program itself: each is a run of the owner's.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    handle: Handle,
    world: WorldId,
}

impl Outside {
    pub(crate) fn new(core: &Embedded, world: WorldId) -> Self {
        Self { handle: core.inner.handle.clone(), world }
    }

    async fn run(
        self,
        tool: ToolId,
        inputs: Object,
        told: mpsc::Sender<Value>,
    ) -> Result<Object, Fault> {
        let new = NewRun::new(tool, inputs, self.world.clone());
        let (handle, caller) = (self.handle.clone(), Caller::owner());
        let begun = async move { handle.create_run(&Caller::owner(), new).await };
        followed(self.handle, caller, begun, told).await
    }

    /// A run whose progress nobody hears.
    async fn unheard(self, tool: &str, inputs: Value) -> Result<Object, Fault> {
        let Value::Object(inputs) = inputs else { return Ok(Object::new()) };
        self.run(tool_id(tool)?, inputs, mpsc::channel(1).0).await
    }
}

impl Host for Outside {
    async fn ask(self, question: Question) -> Result<Reply, Fault> {
        let Asked { title, schema, detail } = Asked::of(question);
        let mut inputs = json!({"question": title, "schema": schema});
        if let Some(detail) = detail {
            inputs["detail"] = detail;
        }
        let ended = self.unheard("wharf/ask", inputs).await?;
        let answer = ended.get("answer").cloned().unwrap_or_default();
        Ok(match ended.get("status").and_then(Value::as_str) {
            Some("answered") => Reply::Accepted(answer),
            Some("declined") => Reply::Declined,
            Some("off_script") => Reply::OffScript(answer.as_str().unwrap_or_default().to_owned()),
            _ => Reply::Cancelled,
        })
    }

    async fn tell(self, notice: Notice) -> Result<(), Fault> {
        let level = level_of(notice.level).as_str();
        let mut inputs = json!({"message": notice.message, "level": level, "meta": notice.meta});
        if let Some(fraction) = notice.progress {
            inputs["progress"] = json!(fraction.clamp(0.0, 1.0));
        }
        self.unheard("wharf/notify", inputs).await.map(drop)
    }

    async fn call(self, errand: Errand) -> Result<Object, Fault> {
        let Errand { tool, input, told } = errand;
        self.run(tool_id(&tool)?, input, told).await
    }

    fn find(&self, name: &str) -> Option<Reached> {
        let has_name = |id: &ToolId| {
            let own = id.name();
            own == name || own.split_once('@').is_some_and(|(bare, _)| bare == name)
        };
        let mut found = self.handle.tools().into_iter().filter(|tool| has_name(&tool.def.tool));
        let tool = found.next().filter(|_| found.next().is_none())?;
        let def = &tool.def;
        Some(Reached::known(def.tool.as_str(), &def.input_schema, def.output_schema.as_ref()))
    }
}

/// A transport to the tools of a core in the same program. See
/// [`Embedded::transport`](crate::Embedded::transport).
pub struct CoreTransport {
    outside: Outside,
    reach: Reach,
    bridge: Bridge<Outside>,
}

impl CoreTransport {
    pub(crate) fn new(outside: Outside) -> Self {
        let bridge = Bridge::new(outside.clone(), Reach::default());
        Self { outside, reach: Reach::default(), bridge }
    }

    /// Says which tool is meant by a definition, such as `browser/get-location`.
    #[must_use]
    pub fn reaches<I: Data, O: Data, P: Data, S>(
        mut self,
        tool: &Tool<I, O, P, S>,
        id: impl Into<String>,
    ) -> Self {
        self.reach.add(tool, id);
        self.bridge = Bridge::new(self.outside.clone(), self.reach.clone());
        self
    }
}

impl Transport for CoreTransport {
    fn request(&self, request: Outgoing) -> Exchange {
        self.bridge.request(request)
    }
}

impl fmt::Debug for CoreTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreTransport").field("reach", &self.reach).finish_non_exhaustive()
    }
}
