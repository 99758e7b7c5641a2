//! One request and all that is said until it is answered.

use std::collections::HashMap;

use futures::StreamExt as _;
use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use wharf_domain::Progress;
use wharf_vocab::Object;
use wharf_wire::mcp_v1::headers::McpMirror;
use wharf_wire::mcp_v1::{McpError, McpId, McpRequest, code};

use super::super::upstream::{CallEnd, CallEvent, CallOptions, Upstream, UpstreamCall};
use super::super::{asks, report};
use super::{AttemptWork, Broken, ServerAsk};

/// Pieces of progress that are written together.
const PIECES_MAX: usize = 64;
/// Pieces of progress that may wait to be written; of those that come meanwhile most say nothing
/// that the next does not.
const PIECES_WAITING_MAX: usize = 256;

type Answering = Abortable<BoxFuture<'static, (McpId, Result<Object, McpError>)>>;

/// Makes a request, tells what is said meanwhile, answers what the server asks, and gives the end.
/// If the attempt is to stop the request is called off.
pub(super) async fn hold(
    work: &AttemptWork,
    upstream: &Upstream,
    request: McpRequest,
    mirrors: Vec<McpMirror>,
) -> Result<CallEnd, Broken> {
    let task = match &request {
        McpRequest::TasksResult(task) => Some(task.task_id.clone()),
        _ => None,
    };
    let options = CallOptions { timeout: None, progress: true, takes_asks: true, mirrors, task };
    let call = match upstream.call(request, options).await {
        Ok(call) => call,
        Err(fault) => return Ok(CallEnd::Unsent(fault)),
    };
    let (pieces, written) = mpsc::channel(PIECES_WAITING_MAX);
    let conversation = Conversation {
        work,
        upstream,
        call,
        pieces,
        asks: FuturesUnordered::new(),
        aborts: HashMap::new(),
    };
    // Progress is written beside it, so that a core that is busy keeps no question waiting.
    let (end, ()) = tokio::join!(conversation.run(), write_all(work, written));
    end
}

async fn write_all(work: &AttemptWork, mut pieces: mpsc::Receiver<Progress>) {
    let mut together = Vec::new();
    while pieces.recv_many(&mut together, PIECES_MAX).await > 0 {
        // When the engine is gone there is nobody left to tell.
        let _ = work.attempt.progress(std::mem::take(&mut together)).await;
    }
}

struct Conversation<'a> {
    work: &'a AttemptWork,
    upstream: &'a Upstream,
    call: UpstreamCall,
    pieces: mpsc::Sender<Progress>,
    /// Questions of the server that wait for their answer.
    asks: FuturesUnordered<Answering>,
    aborts: HashMap<McpId, OpenQuestion>,
}

/// A question of the server that waits for its answer.
struct OpenQuestion {
    abort: AbortHandle,
    /// Its name within the run.
    key: String,
}

impl Conversation<'_> {
    async fn run(mut self) -> Result<CallEnd, Broken> {
        loop {
            tokio::select! {
                order = self.work.stop.wanted() => {
                    self.call.cancel(&order.reason).await;
                    return Err(Broken::Stopped(order));
                }
                Some(answered) = self.asks.next() => {
                    // One that was taken back wants no answer.
                    if let Ok((id, answer)) = answered {
                        self.aborts.remove(&id);
                        self.upstream.answer(id, answer).await;
                    }
                }
                event = self.call.next() => {
                    if let Some(end) = self.take(event).await {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Takes an event; the end if it is that.
    async fn take(&mut self, event: CallEvent) -> Option<CallEnd> {
        match event {
            CallEvent::Progress(told) => self.write(report::progress(&told)),
            CallEvent::Log(told) => self.write(report::log(&told)),
            CallEvent::Asked { id, request } => self.asked(id, *request),
            CallEvent::AskCanceled(id) => {
                if let Some(OpenQuestion { abort, key }) = self.aborts.remove(&id) {
                    abort.abort();
                    self.work.asking().take_back(&key).await;
                }
            }
            CallEvent::TaskOf11(task) => {
                if let Some(piece) = report::task(task.status, task.status_message.as_deref()) {
                    self.write(piece);
                }
            }
            CallEvent::Ended(end) => return Some(end),
        }
        None
    }

    fn write(&self, piece: Progress) {
        // What finds no room is left out.
        let _ = self.pieces.try_send(piece);
    }

    fn asked(&mut self, id: McpId, request: McpRequest) {
        let context = self.work.asking();
        let attempt = self.work.attempt.dispatch().attempt;
        let key = self.work.answers.name(attempt, &request);
        let ask = ServerAsk { key: key.clone(), named: None, request, in_task: false };
        let named = id.clone();
        let answer: BoxFuture<'static, _> = Box::pin(async move {
            let answer = asks::asked(&context, ask).await;
            (named, answer.map_err(told_to_legacy))
        });
        let (abort, registration) = AbortHandle::new_pair();
        self.asks.push(Abortable::new(answer, registration));
        self.aborts.insert(id, OpenQuestion { abort, key });
    }
}

/// An error as a legacy server knows it: one that asks what its client cannot do asks for a method
/// that is not there.
fn told_to_legacy(error: McpError) -> McpError {
    match error.code {
        code::MISSING_CAPABILITY => McpError::method_not_found(),
        _ => error,
    }
}
