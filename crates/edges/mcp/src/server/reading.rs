//! A resource or a prompt of a server, for a client that may be asked something before it is there.
//!
//! What the server wants to know is asked like the questions of a call: a modern client is answered
//! that something is required and repeats its request, a legacy one is asked on the stream of the
//! request. The run is in memory and ends with its request, unless its client will repeat that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio_util::sync::CancellationToken;
use wharf_domain::Run;
use wharf_engine::{Follow, FollowEvent, NewRun};
use wharf_vocab::{Digest, Durability, Fault, Object, ProviderId, RunKey};
use wharf_web::params::SentTrace;
use wharf_wire::mcp_v1::{McpEra, McpError, code};

use super::calls::mcp_terms;
use super::door::{McpContext, McpReply, StreamItem, StreamSaid};
use super::questions::{self, OpenQuestions};
use super::upstream::{gone, outputs};
use crate::faults::McpRefusal;
use crate::hidden::HiddenTool;

/// How long a server may take to give a resource or a prompt, without the time that answers take.
const READ_MAX: Duration = Duration::from_secs(60);
/// How long an answer is waited for before a stream is begun.
const AT_ONCE: Duration = Duration::from_millis(100);

/// What is wanted of a server.
pub(super) struct Wanted {
    /// The server.
    pub(super) provider: ProviderId,
    /// Which of its hidden tools gives it.
    pub(super) tool: HiddenTool,
    /// What the tool takes.
    pub(super) inputs: Object,
    /// What tells a repeat of the request from another one.
    pub(super) digest: Digest,
    /// What a repeat gives along.
    pub(super) state: Option<String>,
    /// What a repeat answers.
    pub(super) answers: Option<BTreeMap<String, Object>>,
}

/// Makes the client's result of what a server gave.
pub(super) type Finish =
    Box<dyn FnOnce(&McpContext, Result<Object, Fault>) -> Result<Object, McpRefusal> + Send>;

/// Reads something of a server.
pub(super) async fn read(cx: McpContext, wanted: Wanted, finish: Finish) -> McpReply {
    let digest = wanted.digest.clone();
    let begun = async {
        let run = begin(&cx, wanted).await?;
        let questions = OpenQuestions::of(&cx, &run, None);
        let (events, stop) = (cx.shared.handle.run_events(), CancellationToken::new());
        let follow = events.follow(cx.caller.clone(), &run, stop).await?;
        Ok((run, questions, follow))
    };
    let begun: Result<_, McpRefusal> = Box::pin(begun).await;
    let (run, questions, follow) = match begun {
        Ok(begun) => begun,
        Err(refusal) => return McpReply::refused(refusal),
    };
    let finish = Some(finish);
    let follow = Some(follow);
    let reading = RunReading { cx, run, digest, questions, follow, finish };
    let mut items = reading.into_items();
    match tokio::time::timeout(AT_ONCE, items.next()).await {
        Ok(Some(StreamItem { said: StreamSaid::Answer(answer), .. })) => {
            McpReply::Now(answer.map_err(McpRefusal::from))
        }
        Ok(first) => McpReply::Stream(stream::iter(first).chain(items).boxed()),
        Err(_) => McpReply::Stream(items),
    }
}

/// The run that reads it: a new one, or the one that the request is repeated for.
async fn begin(cx: &McpContext, wanted: Wanted) -> Result<RunKey, McpRefusal> {
    if let (McpEra::Modern, Some(state)) = (cx.revision.era(), &wanted.state) {
        let answers = wanted.answers.as_ref();
        return questions::rejoin(cx, &wanted.digest, state, answers).await;
    }
    let id = wanted.tool.id(&wanted.provider).ok_or_else(gone)?;
    let SentTrace { traceparent, tracestate } = cx.trace.clone();
    let new = NewRun {
        durability: Some(Durability::Memory),
        traceparent,
        tracestate,
        timeout_ms: u64::try_from(READ_MAX.as_millis()).ok(),
        mcp: Some(mcp_terms(cx)),
        ..NewRun::new(id, wanted.inputs, cx.door.world.clone())
    };
    let accepted = cx.shared.handle.runs().create(&cx.caller, new).await?;
    Ok(accepted.run.key.clone())
}

/// A request whose run is under way.
struct RunReading {
    cx: McpContext,
    run: RunKey,
    digest: Digest,
    questions: OpenQuestions,
    /// Its reader, until the request is answered.
    follow: Option<Follow>,
    finish: Option<Finish>,
}

impl RunReading {
    fn into_items(self) -> BoxStream<'static, StreamItem> {
        let items = stream::unfold(self, |mut reading| async move {
            let said = Box::pin(reading.next()).await?;
            Some((StreamItem::plain(said), reading))
        });
        items.boxed()
    }

    async fn next(&mut self) -> Option<StreamSaid> {
        while let Some(follow) = &mut self.follow {
            tokio::select! {
                biased;
                event = follow.next() => match event {
                    Ok(FollowEvent::Ended(run)) => return Some(self.answer(Ok(run))),
                    Ok(_) => {}
                    Err(fault) => return Some(self.answer(Err(fault))),
                },
                said = self.questions.next() => match self.cx.revision.era() {
                    McpEra::Legacy => return Some(said),
                    McpEra::Modern => {
                        if let Some(said) = self.required().await {
                            return Some(said);
                        }
                    }
                },
            }
        }
        None
    }

    /// What is required of a modern client, if anything is.
    async fn required(&mut self) -> Option<StreamSaid> {
        let run = self.cx.shared.handle.runs().get(&self.run).await.ok()?;
        let required = questions::required(&self.cx, &run, &self.digest).await?;
        self.follow = None;
        Some(StreamSaid::Answer(Ok(required)))
    }

    fn answer(&mut self, run: Result<Arc<Run>, Fault>) -> StreamSaid {
        self.follow = None;
        let given = run.and_then(|run| outputs(&run));
        let internal = || McpError::new(code::INTERNAL, "The answer was given already.").into();
        let finished = match self.finish.take() {
            Some(finish) => finish(&self.cx, given),
            None => Err(internal()),
        };
        StreamSaid::Answer(finished.map_err(|refusal| refusal.error))
    }
}

impl Drop for RunReading {
    /// Nobody waits any more, so nobody needs the run.
    fn drop(&mut self) {
        let Some(mut follow) = self.follow.take() else { return };
        if !self.cx.shared.handle.is_stopping() {
            // One that is over needs no more.
            self.cx.shared.tasks.spawn(async move { drop(follow.cancel().await) });
        }
    }
}
