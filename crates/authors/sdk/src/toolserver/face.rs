//! A tool of an agent of the SDK as a tool server.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::Value;
use wharf_vocab::{Code, Executed, Fault, Micro, Object};

use super::handler::{Draft, Work};
use super::{Error, LogLevel, ToolCx, ToolServer};
use crate::builtin::{Level, Notice, Question, Reply};
use crate::face::{Errand, Face, Host, Served};
use crate::{Tool, schema};

/// The name under which progress is shown.
const PROGRESS: &str = "progress";

impl ToolServer {
    /// A server of one tool of an agent or a scope, under a reference such as `demo/search@1`.
    ///
    /// Progress is shown as the partial output `progress`, what the tool says it cost is the
    /// run's cost, and messages are lines of the run's log. The run protocol has no way back to
    /// the core: a tool that asks a question, wants a completion or calls a tool without an
    /// implementation fails with `tool.unavailable`.
    ///
    /// ```
    /// use wharf_sdk::toolserver::ToolServer;
    /// use wharf_sdk::{Cx, Fault, Scope, Tool};
    ///
    /// const COUNT: Tool<String, usize> = Tool::new("count", "Counts words.");
    ///
    /// let root = Scope::root();
    /// root.provide(&COUNT, |text: String, cx: Cx| async move {
    ///     cx.add_cost(25);
    ///     Ok::<_, Fault>(text.split_whitespace().count())
    /// }).unwrap();
    /// let server = ToolServer::of("demo/count@1", &root, &COUNT);
    /// # let _ = server;
    /// ```
    pub fn of<I, O, P, S>(
        reference: impl Into<String>,
        agent: impl Into<Face>,
        tool: &Tool<I, O, P, S>,
    ) -> Self {
        let mut server = Self::new(reference);
        server.draft = agent.into().tool(tool.name()).map(draft).map_err(Error::Tool);
        server
    }
}

fn draft(tool: Served) -> Draft {
    Draft {
        input_schema: tool.input_schema().clone(),
        output_schema: tool.output_schema().clone(),
        erased: Arc::new(move |fits: &Validator, inputs: Object, cx: ToolCx| {
            let inputs = Value::Object(inputs);
            schema::check(fits, &inputs)?;
            let Value::Object(inputs) = inputs else { return Err(no_object()) };
            let tool = tool.clone();
            let work: Work = Box::pin(async move { tool.call(inputs, Caller(cx)).await });
            Ok(work)
        }),
    }
}

/// Whoever started the run.
#[derive(Clone)]
struct Caller(ToolCx);

impl Host for Caller {
    async fn progress(&self, piece: Value) -> Result<(), Fault> {
        self.0.partial(PROGRESS, piece).await
    }

    fn spent(&self, micro: Micro) {
        self.0.cost(micro);
    }

    async fn stopped(&self) {
        self.0.canceled().await;
    }

    async fn ask(self, _question: Question) -> Result<Reply, Fault> {
        Err(no_way("ask a question"))
    }

    async fn tell(self, notice: Notice) -> Result<(), Fault> {
        let level = match notice.level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warning => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        self.0.log_at(level, notice.message).await;
        if let Some(fraction) = notice.progress {
            self.0.progress(fraction).await;
        }
        Ok(())
    }

    async fn call(self, errand: Errand) -> Result<Object, Fault> {
        Err(no_way(&format!("call {}", errand.tool)))
    }
}

fn no_way(what: &str) -> Fault {
    let message = format!(
        "A tool server cannot {what}, because the run protocol has no way back to the core; serve \
         the agent as a process, as an operative or embedded."
    );
    Fault::new(Code::ToolUnavailable, message).executed(Executed::Maybe)
}

fn no_object() -> Fault {
    Fault::new(Code::ToolInternal, "The inputs of a run are an object.")
}
