//! The way from a tool to whoever serves it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;
use wharf_protocol::tool::value::Form;
use wharf_vocab::{Code, Executed, Fault};

use super::wanted::Wanted;
use super::{Errand, Host, Reach, Reached};
use crate::builtin::Reply;
use crate::transport::{Answer, Exchange, Outgoing, Spent, Transport};

/// Pieces of progress that may wait for whoever called.
const WAITING_MAX: usize = 64;

/// A transport to a [`Host`]: questions, messages, completions and tools of the core go there.
///
/// What it does not know goes to the transport above it, if there is one.
pub struct Bridge<H> {
    host: H,
    reach: Reach,
    above: Option<Arc<dyn Transport>>,
}

impl<H: Host> Bridge<H> {
    /// A way to a host, through which these tools can be reached.
    #[must_use]
    pub fn new(host: H, reach: Reach) -> Self {
        Self { host, reach, above: None }
    }

    pub(super) fn below(self, above: Option<Arc<dyn Transport>>) -> Self {
        Self { above, ..self }
    }

    async fn done(host: H, wanted: Wanted, told: mpsc::Sender<Value>) -> Answer {
        match wanted {
            Wanted::Tool(tool, input) => called(host, tool, input, told).await,
            Wanted::Sample(input) => {
                let errand = Errand { tool: host.model(), input: Form::Object.pack(input), told };
                host.call(errand)
                    .await
                    .map_or_else(Answer::Failed, |output| Answer::Accepted(Value::Object(output)))
            }
            Wanted::Question(question) => match host.ask(question).await {
                Ok(reply) => replied(reply),
                Err(fault) => Answer::Failed(fault),
            },
            Wanted::Notice(notice) => match host.tell(notice).await {
                Ok(()) => Answer::Acknowledged,
                Err(fault) => Answer::Failed(fault),
            },
            Wanted::Unknown(outgoing) => Answer::Failed(unknown(&outgoing.method)),
        }
    }
}

impl<H: Host> Transport for Bridge<H> {
    fn request(&self, request: Outgoing) -> Exchange {
        let wanted = match Wanted::of(request, &self.reach, &self.host) {
            Wanted::Unknown(outgoing) => match &self.above {
                Some(above) => return above.request(outgoing),
                None => return Exchange::answered(Answer::Failed(unknown(&outgoing.method))),
            },
            wanted => wanted,
        };
        let Ok(runtime) = Handle::try_current() else {
            return Exchange::answered(Answer::Failed(no_runtime()));
        };
        let (told, progress) = mpsc::channel(WAITING_MAX);
        let (sender, answer) = oneshot::channel();
        let work = Self::done(self.host.clone(), wanted, told);
        let task = runtime.spawn(async move {
            // Whoever called may have stopped waiting.
            let _ = sender.send(work.await);
        });
        let guard: Box<dyn Any + Send> = Box::new(AbortOnDropHandle::new(task));
        // What the core is asked for is booked there, as a run of its own.
        Exchange { progress, answer, cost: Spent::default(), guard }
    }
}

/// Calls a tool of the core and passes on what it says.
async fn called<H: Host>(
    host: H,
    tool: Reached,
    input: Value,
    told: mpsc::Sender<Value>,
) -> Answer {
    let (inner, mut pieces) = mpsc::channel(WAITING_MAX);
    let errand = Errand { tool: tool.id().to_owned(), input: tool.input(input), told: inner };
    let pass_on = async {
        while let Some(piece) = pieces.recv().await {
            if told.send(tool.progress(piece)).await.is_err() {
                break;
            }
        }
    };
    let (output, ()) = futures::join!(host.call(errand), pass_on);
    match output {
        Ok(output) => Answer::Accepted(tool.output(output)),
        Err(fault) => Answer::Failed(fault),
    }
}

fn replied(reply: Reply) -> Answer {
    match reply {
        Reply::Accepted(value) => Answer::Accepted(value),
        Reply::Declined => Answer::Declined,
        Reply::Cancelled => Answer::Cancelled,
        Reply::Denied => Answer::Denied,
        Reply::OffScript(text) => Answer::OffScript(text),
    }
}

fn unknown(tool: &str) -> Fault {
    let message = format!(
        "The tool {tool:?} has no implementation here, and nobody said which tool of the core it \
         is; add `reaches` to the face."
    );
    Fault::new(Code::ToolUnavailable, message).executed(Executed::No)
}

fn no_runtime() -> Fault {
    Fault::new(Code::ToolInternal, "A call of a tool has to be awaited within a Tokio runtime.")
        .executed(Executed::No)
}

impl<H> fmt::Debug for Bridge<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("reach", &self.reach).finish_non_exhaustive()
    }
}
