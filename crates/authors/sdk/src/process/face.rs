//! An agent of the SDK as an agent process.

use std::sync::Arc;

use jsonschema::Validator;
use serde_json::{Value, json};
use wharf_vocab::{Code, Fault, Micro, Object};

use crate::builtin::{Level, Notice, Question, Reply};
use crate::exposed::compile;
use crate::face::{Errand, Face, Host, Served};
use crate::process::tool::{Draft, Work};
use crate::process::{AgentCx, AgentProcess, Answer, Chunk, NoticeLevel, TextChannel};

impl AgentProcess {
    /// An agent process that offers the tools of an agent or a scope. The id is the one of its
    /// manifest.
    ///
    /// Questions, messages and completions of the tools go to the core: questions wait for whoever
    /// looks after the run, messages are notices, and a completion is a call of `wharf/sample`,
    /// which needs the permission `tool:invoke:wharf/sample`. Tools that have no implementation
    /// here are called through the core where [`Face::reaches`] says which they are. Progress
    /// becomes partial results; values that are no objects have the one key `value`, as inputs
    /// and outputs have. A call that is canceled is dropped.
    ///
    /// ```
    /// use wharf_sdk::face::Face;
    /// use wharf_sdk::process::AgentProcess;
    /// use wharf_sdk::{Cx, Fault, Scope, Tool};
    ///
    /// const GREET: Tool<String, String> = Tool::new("greet", "Greets somebody.");
    /// const LOCATE: Tool<(), String> = Tool::new("locate", "Where the user is.");
    ///
    /// async fn greet(name: String, cx: Cx) -> Result<String, Fault> {
    ///     let place = LOCATE.call(&cx, ()).await?;
    ///     Ok(format!("Hello, {name} in {place}!"))
    /// }
    ///
    /// let root = Scope::root();
    /// root.provide(&GREET, greet).unwrap();
    /// let face = Face::of(&root).side_effects(&GREET, false).reaches(&LOCATE, "browser/locate");
    /// let agent = AgentProcess::of("dev.example.greeter", "1.0.0", face).calls_max(8);
    /// let service = agent.build().expect("a usable agent");
    /// assert_eq!(service.tool_ids().collect::<Vec<_>>(), ["dev.example.greeter/greet"]);
    /// ```
    #[must_use]
    pub fn of(id: impl Into<String>, version: impl Into<String>, agent: impl Into<Face>) -> Self {
        let mut process = Self::new(id, version);
        match agent.into().tools() {
            Ok(tools) => process.tools = tools.into_iter().map(draft).collect(),
            Err(problem) => process.problem = Some(problem),
        }
        process
    }
}

fn draft(tool: Served) -> Draft {
    Draft {
        side_effects: tool.side_effects(),
        requires_directive: tool.requires_directive(),
        tags: None,
        mock: false,
        free: false,
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        input_schema: tool.input_schema().clone(),
        output_schema: tool.output_schema().clone(),
        handler: Arc::new(move |_: &Validator, input: Object, cx: AgentCx| {
            let tool = tool.clone();
            // The input is checked where its types are known.
            let work: Work = Box::pin(async move { tool.call(input, Caller(cx)).await });
            Ok(work)
        }),
    }
}

/// Whoever called the tool, through the core.
#[derive(Clone)]
struct Caller(AgentCx);

impl Host for Caller {
    async fn progress(&self, piece: Value) -> Result<(), Fault> {
        match piece {
            Value::Object(piece) => self.0.partial(&piece).await,
            other => self.0.partial(&json!({"value": other})).await,
        }
    }

    fn spent(&self, micro: Micro) {
        self.0.add_cost(micro);
    }

    async fn stopped(&self) {
        self.0.cancelled().await;
    }

    async fn ask(self, question: Question) -> Result<Reply, Fault> {
        let Question { message, schema, .. } = question;
        // A schema that is none cannot be checked; any answer will do.
        let schema = if compile(&schema).is_ok() { schema } else { json!({}) };
        match self.0.ask_for(message, schema, None).await {
            Ok(Answer::Given(value)) => Ok(Reply::Accepted(value)),
            Ok(Answer::Declined) => Ok(Reply::Declined),
            // Nobody answered in time, so it was called off.
            Ok(Answer::Cancelled | Answer::Expired) => Ok(Reply::Cancelled),
            Ok(Answer::Denied) => Ok(Reply::Denied),
            Ok(Answer::OffScript(text)) => Ok(Reply::OffScript(text)),
            Err(fault) if fault.is(Code::PermissionDenied) => Ok(Reply::Denied),
            Err(fault) => Err(fault),
        }
    }

    async fn tell(self, notice: Notice) -> Result<(), Fault> {
        let level = match notice.level {
            Level::Debug => NoticeLevel::Debug,
            Level::Info => NoticeLevel::Info,
            Level::Warning => NoticeLevel::Warn,
            Level::Error => NoticeLevel::Error,
        };
        if let Some(fraction) = notice.progress {
            self.0.status(notice.message.clone(), fraction).await?;
        }
        self.0.notice(level, notice.message).await
    }

    async fn call(self, errand: Errand) -> Result<Object, Fault> {
        let Errand { tool, input, told } = errand;
        let mut call = self.0.calling(tool).start(&input).await?;
        while let Some(piece) = call.next().await {
            // Whoever called may have stopped listening.
            let _ = told.send(shown(piece)).await;
        }
        call.output().await
    }
}

/// A piece of output as a value.
fn shown(piece: Chunk) -> Value {
    match piece {
        Chunk::Partial { json } => Value::Object(json),
        Chunk::Status { text, fraction } => json!({"phase": text, "fraction": fraction}),
        Chunk::Text { channel, text } => {
            let channel = match channel {
                TextChannel::Stdout => "stdout",
                TextChannel::Stderr => "stderr",
                TextChannel::Log => "log",
            };
            json!({"channel": channel, "text": text})
        }
    }
}
