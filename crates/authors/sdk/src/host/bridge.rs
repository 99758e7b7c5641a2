//! The way from a tool to whoever serves it.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;
use wharf_protocol::tool::ToolAnswer;
use wharf_protocol::tool::value::Form;
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::tool_v1::{Kind, method};

use super::{CallRequest, CoreTool, Host};
use crate::builtin::{Answer, Notice, Question};
use crate::transport::{Exchange, Outgoing, Spent, Transport};

/// Pieces of progress that may wait for whoever called.
const WAITING_MAX: usize = 64;

/// A transport to a [`Host`]: questions, messages, completions and tools of the core go there.
///
/// What it does not know goes to the transport above it, if there is one.
pub struct Bridge {
    host: Arc<dyn Host>,
    above: Option<Arc<dyn Transport>>,
}

impl Bridge {
    /// A way to a host.
    #[must_use]
    pub fn new(host: Arc<dyn Host>) -> Self {
        Self { host, above: None }
    }

    pub(super) fn below(self, above: Option<Arc<dyn Transport>>) -> Self {
        Self { above, ..self }
    }
}

impl Transport for Bridge {
    fn request(&self, request: Outgoing) -> Exchange {
        let wanted = match HostRequest::of(request, &*self.host) {
            Ok(wanted) => wanted,
            Err(outgoing) => match &self.above {
                Some(above) => return above.request(outgoing),
                None => return Exchange::answered(ToolAnswer::Failed(unknown(&outgoing.method))),
            },
        };
        let Ok(runtime) = Handle::try_current() else {
            return Exchange::answered(ToolAnswer::Failed(no_runtime()));
        };
        let (told, progress) = mpsc::channel(WAITING_MAX);
        let (sender, answer) = oneshot::channel();
        let work = wanted.done(Arc::clone(&self.host), told);
        let task = runtime.spawn(async move {
            // Whoever called may have stopped waiting.
            let _ = sender.send(work.await);
        });
        let guard: Box<dyn Any + Send> = Box::new(AbortOnDropHandle::new(task));
        // What the core is asked for is booked there, as a run of its own.
        Exchange { progress, answer, cost: Spent::default(), guard }
    }
}

/// What a tool wants of whoever serves it.
enum HostRequest {
    /// A tool of the core.
    Tool(CoreTool, Value),
    /// A completion by a model.
    Sample(Value),
    Question(Question),
    Notice(Notice),
    /// Something that nobody should be shown, because it is not what its sender says.
    Unfit(&'static str),
}

impl HostRequest {
    /// What a request asks for, or the request itself if nobody here knows it.
    fn of(outgoing: Outgoing, host: &dyn Host) -> Result<Self, Outgoing> {
        let Outgoing { kind, method, payload, heard, at } = outgoing;
        if kind == Kind::Notify {
            return Ok(Self::notice(payload));
        }
        match method.as_ref() {
            method::SAMPLE => Ok(Self::Sample(payload)),
            method::FORM | method::CONFIRMATION => Ok(Self::question(&method, payload)),
            _ => match host.find(&method, at.as_deref()) {
                Some(tool) => Ok(Self::Tool(tool, payload)),
                // Questions may have any word for a name; they are known by what they hold.
                None if is_question(&payload) => Ok(Self::question(&method, payload)),
                None => Err(Outgoing { kind, method, payload, heard, at }),
            },
        }
    }

    fn notice(payload: Value) -> Self {
        serde_json::from_value(payload)
            .map_or(Self::Unfit("The notice cannot be read."), Self::Notice)
    }

    fn question(word: &str, mut payload: Value) -> Self {
        if let Value::Object(question) = &mut payload {
            question.insert("type".to_owned(), word.into());
        }
        let question = serde_json::from_value(payload);
        question.map_or(Self::Unfit("The question cannot be read."), Self::Question)
    }

    async fn done(self, host: Arc<dyn Host>, told: mpsc::Sender<Value>) -> ToolAnswer {
        let done = match self {
            Self::Tool(tool, input) => call(&*host, tool, input, told).await,
            Self::Sample(input) => {
                let (chunks, _unread) = mpsc::channel(1);
                let tool = host.model();
                let input = Form::Object.pack(input);
                let (timeout, idempotency_key, step) = (None, None, None);
                let request = CallRequest { tool, input, timeout, idempotency_key, step, chunks };
                host.call(request).await.map(Value::Object).map(ToolAnswer::Accepted)
            }
            Self::Question(question) => host.ask(question).await.and_then(answered),
            Self::Notice(notice) => host.notify(notice).await.map(|()| ToolAnswer::Acknowledged),
            Self::Unfit(why) => Err(Fault::new(Code::ToolInvalidInput, why).executed(Executed::No)),
        };
        done.unwrap_or_else(ToolAnswer::Failed)
    }
}

/// Calls a tool of the core and passes on what it says.
async fn call(
    host: &dyn Host,
    tool: CoreTool,
    input: Value,
    told: mpsc::Sender<Value>,
) -> Result<ToolAnswer, Fault> {
    let (chunks, mut pieces) = mpsc::channel(WAITING_MAX);
    let request = CallRequest {
        tool: tool.id().to_owned(),
        input: tool.input(input),
        timeout: None,
        idempotency_key: None,
        step: None,
        chunks,
    };
    let pass_on = async {
        while let Some(piece) = pieces.recv().await {
            if told.send(tool.progress(piece)).await.is_err() {
                break;
            }
        }
    };
    let (output, ()) = futures::join!(host.call(request), pass_on);
    output.map(|output| ToolAnswer::Accepted(tool.output(output)))
}

fn answered(answer: Answer) -> Result<ToolAnswer, Fault> {
    Ok(match answer {
        Answer::Accepted(value) => ToolAnswer::Accepted(value),
        Answer::Declined => ToolAnswer::Declined,
        Answer::Cancelled => ToolAnswer::Cancelled,
        Answer::Denied => ToolAnswer::Denied,
        Answer::OffScript(text) => ToolAnswer::OffScript(text),
        // The wire has no word for it.
        Answer::Expired => {
            return Err(Fault::new(Code::AskExpired, "Nobody answered the question in time."));
        }
    })
}

fn is_question(payload: &Value) -> bool {
    payload.get("message").is_some_and(Value::is_string) && payload.get("schema").is_some()
}

fn unknown(tool: &str) -> Fault {
    let message = format!(
        "The tool {tool:?} has no implementation here, and its definition does not say which tool \
         of the core it is; add `.at(\"provider/name\")` to it."
    );
    Fault::new(Code::ToolUnavailable, message).executed(Executed::No)
}

fn no_runtime() -> Fault {
    Fault::new(Code::ToolInternal, "A call of a tool has to be awaited within a Tokio runtime.")
        .executed(Executed::No)
}

debug_only!(Bridge:);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_read_is_refused_and_shown_to_nobody() {
        let asked = HostRequest::question("colour", json!({ "message": "Which?", "schema": {} }));
        assert!(matches!(asked, HostRequest::Question(it) if it.word == "colour"));
        let told = HostRequest::notice(json!({ "message": "Done." }));
        assert!(matches!(told, HostRequest::Notice(it) if it.message == "Done."));
        for bad in
            [json!({}), json!(7), json!({ "message": 5 }), json!({ "message": "x", "meta": 1 })]
        {
            assert!(matches!(HostRequest::question("form", bad.clone()), HostRequest::Unfit(_)));
            assert!(matches!(HostRequest::notice(bad), HostRequest::Unfit(_)));
        }
    }
}
