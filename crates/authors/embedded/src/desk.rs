//! Tools of a program as a provider of the core, and what they can reach: their own run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Caller, Progress, Resolution, ToolDef};
use wharf_engine::in_process::{InProcess, LocalCx, ToolOutput};
use wharf_engine::{Handle, NewRun};
use wharf_sdk::builtin::{Answer, Notice, Question};
use wharf_sdk::host::{CallRequest, Cancel, Host, ServedTool};
use wharf_sdk::{Chunk, TextChannel};
use wharf_vocab::{Digest, Fault, Micro, Object, RunKey};

use crate::follow::followed;
use crate::translate::{CoreQuestion, invalid, level_of, tool_id, whole_ms};

/// Registers tools under the name of a provider. Those at work are told to stop by `closing`.
pub(crate) async fn offer(
    handle: &Handle,
    closing: &CancellationToken,
    provider: &str,
    served: Vec<ServedTool>,
) -> Result<(), Fault> {
    let mut offered = InProcess::new(provider).map_err(|error| invalid(&error))?;
    for tool in served {
        let id = tool_id(&format!("{provider}/{}", tool.name()))?;
        let mut def = ToolDef::new(id, tool.description(), tool.input_schema().clone());
        def.output_schema = Some(tool.output_schema().clone());
        def.side_effects = tool.terms().side_effects;
        def.requires_directive = tool.terms().requires_directive.unwrap_or(false);
        let closing = closing.clone();
        offered = offered.object_tool(def, move |input: Object, cx: LocalCx| {
            let (tool, desk) = (tool.clone(), Arc::new(EmbeddedHost::new(cx, closing.clone())));
            async move {
                let outputs = tool.call(input, Arc::clone(&desk) as Arc<dyn Host>).await?;
                Ok(ToolOutput { outputs, cost_micro: desk.cost() })
            }
        });
    }
    offered.register(handle).await
}

/// What a tool that the core runs can reach. Cheap to clone.
#[derive(Clone)]
struct EmbeddedHost {
    cx: LocalCx,
    /// Set when the core is closed.
    cancel: Cancel,
    cost_micro: Arc<AtomicU64>,
    /// Whether somebody is about to tell the core what it has cost.
    telling: Arc<AtomicBool>,
    /// How often each question was asked.
    asked: Arc<Mutex<HashMap<Digest, u32>>>,
}

impl EmbeddedHost {
    fn new(cx: LocalCx, closing: CancellationToken) -> Self {
        let (cost_micro, telling, asked) = (Arc::default(), Arc::default(), Arc::default());
        let cancel = Cancel::new(closing, 0);
        Self { cx, cancel, cost_micro, telling, asked }
    }

    /// What the run has cost so far.
    fn cost(&self) -> Micro {
        self.cost_micro.load(Ordering::Relaxed)
    }

    /// Tells the core what the run has cost, as long as that grows meanwhile.
    async fn tell_cost(self) {
        let mut told = 0;
        loop {
            let cost = self.cost();
            if cost > told {
                told = cost;
                // A run that is gone has nobody to be told.
                let _ = self.cx.attempt().report_cost(told).await;
                continue;
            }
            self.telling.store(false, Ordering::SeqCst);
            // What came in between is told by whoever sees it first.
            if self.cost() == told || self.telling.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    /// The name of a question within the run. An attempt that is made again and asks the same
    /// gets the answer that was given before.
    fn key_of(&self, asked: &CoreQuestion) -> String {
        let parts =
            [asked.title.clone(), asked.schema.to_string(), json!(asked.detail).to_string()];
        let digest = Digest::of(&parts.each_ref().map(|part| part.as_bytes()));
        let mut asked = self.asked.lock();
        let times = asked.entry(digest.clone()).or_default();
        *times += 1;
        format!("elicit:{}:{times}", &digest.as_str()[..16])
    }
}

impl Host for EmbeddedHost {
    fn progress(&self, piece: Value) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(self.cx.progress(vec![Progress::Partial { key: None, value: piece }]))
    }

    fn stream(&self, chunk: Chunk) -> BoxFuture<'_, Result<(), Fault>> {
        let piece = match chunk {
            Chunk::Partial { json } => Progress::Partial { key: None, value: Value::Object(json) },
            Chunk::Status { text, fraction } => Progress::Phase { phase: text, fraction },
            Chunk::Text { channel, text } => {
                let channel = match channel {
                    TextChannel::Stdout => "stdout",
                    TextChannel::Stderr => "stderr",
                    TextChannel::Log => "log",
                };
                Progress::Text { channel: channel.to_owned(), text }
            }
        };
        Box::pin(self.cx.progress(vec![piece]))
    }

    fn spend(&self, micro: Micro) {
        let add = |cost: u64| Some(cost.saturating_add(micro));
        // It always gives something to store.
        let _ = self.cost_micro.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        // One at a time tells the core, until all of it is told.
        if !self.telling.swap(true, Ordering::SeqCst) {
            tokio::spawn(self.clone().tell_cost());
        }
    }

    fn cancel(&self) -> Option<&Cancel> {
        Some(&self.cancel)
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Answer, Fault>> {
        let asked = CoreQuestion::of(question);
        let key = self.key_of(&asked);
        Box::pin(async move {
            let attempt = self.cx.attempt();
            let mut open = QuestionGuard {
                handle: self.cx.handle().clone(),
                question: Some((attempt.dispatch().run.clone(), key.clone())),
            };
            let CoreQuestion { title, schema, detail } = asked;
            let ended =
                self.cx.ask_about(&key, &title, Some(schema), Audience::Any, detail).await?;
            open.question = None;
            Ok(reply(ended))
        })
    }

    fn notify(&self, notice: Notice) -> BoxFuture<'_, Result<(), Fault>> {
        let text = notice.message.clone();
        let mut pieces = vec![Progress::Log { level: level_of(notice.level), text }];
        if let Some(fraction) = notice.progress.filter(|part| (0.0..=1.0).contains(part)) {
            pieces.push(Progress::Phase { phase: notice.message, fraction: Some(fraction) });
        }
        Box::pin(self.cx.progress(pieces))
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'_, Result<Object, Fault>> {
        Box::pin(async move {
            let attempt = self.cx.attempt().clone();
            // What a tool starts has the rights of whoever started the tool, and no person
            // behind it.
            let caller = attempt.caller(vec![ToolPattern::any()]);
            let dispatch = attempt.dispatch();
            let (tool, world) = (tool_id(&request.tool)?, dispatch.run.world.clone());
            let mut new = NewRun::new(tool, request.input, world);
            new.mode = dispatch.spec.mode;
            new.correlation_id.clone_from(&dispatch.spec.correlation_id);
            new.timeout_ms = request.timeout.map(whole_ms);
            new.idempotency_key = request.idempotency_key;
            let begun = {
                let caller = caller.clone();
                async move { attempt.invoke(&caller, new).await }
            };
            followed(self.cx.handle().clone(), caller, begun, request.chunks).await
        })
    }
}

/// How a question ended, as the tool that asked is told.
fn reply(ended: Resolution) -> Answer {
    match ended {
        Resolution::Answered { value } => Answer::Accepted(value),
        Resolution::Declined => Answer::Declined,
        Resolution::OffScript { text } => Answer::OffScript(text),
        Resolution::Deny { .. } => Answer::Denied,
        Resolution::Expired => Answer::Expired,
        Resolution::Cancelled | Resolution::Withdrawn | Resolution::Allow { .. } => {
            Answer::Cancelled
        }
    }
}

/// Ends a question that nobody waits for any more, so that its run goes on.
struct QuestionGuard {
    handle: Handle,
    question: Option<(RunKey, String)>,
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        let Some((run, key)) = self.question.take() else { return };
        let handle = self.handle.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let Some(run) = handle.runs().live(&run) else { return };
            let mut open = run.open_asks().map(|raised| &raised.ask.spec);
            let Some(spec) = open.find(|spec| spec.key == key) else { return };
            let ended = Resolution::Cancelled;
            // One that was decided meanwhile needs nothing.
            let _ = handle.asks().resolve(&Caller::core(), &spec.ask_id, ended).await;
        });
    }
}
