//! A run's events as messages on one stream, live and replayed.
//!
//! Everything that is said follows from the run's journal, but for signs of life and for what runs
//! below it ask, so a stream that goes on elsewhere says what this one would have said.

mod asking;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;
use wharf_domain::{Entry, Level, Outcome, Progress, Run, RunEntry};
use wharf_engine::{AskFeed, RunRecord, Watch, progress_value};
use wharf_ports::HistoryItem;
use wharf_vocab::{AskId, Code, Digest, Durability, Fault, Object, RunKey, Seq, ToolId};
use wharf_wire::mcp_v1::{McpEra, McpError, McpLog, McpLogLevel, McpMeta, McpRevision, code, key};

use super::calls::{CallTerms, ClientCall, LEFT, call_off};
use super::door::{McpContext, McpReply, StreamItem, StreamSaid};
use super::progress::Rise;
use super::{patience, tasks};
use crate::blocks::result::{call_result, is_error_of_server};
use crate::faults::McpRefusal;
use crate::seal::{EventPlace, RequestRef, StreamOf, task_id};

/// How long a run may take to be answered without a stream.
const AT_ONCE: Duration = Duration::from_millis(100);
/// After what time a client that lost a stream comes back.
const RETRY_MS: u32 = 1_000;

/// Goes on with a stream behind the place where a legacy client lost it.
pub(crate) async fn resume(cx: McpContext, place: EventPlace) -> Result<McpReply, McpRefusal> {
    let EventPlace { run, number, request, stream, said } = place;
    let (runs, events) = (cx.shared.handle.runs(), cx.shared.handle.run_events());
    let watched = async {
        let known = runs.get(&run).await?;
        Ok((known, events.watch(&run, Seq(number)).await?))
    };
    let (known, watch) =
        watched.await.map_err(|fault: Fault| match fault.is(Code::RunNotFound) {
            true => McpError::params("There is no such event to go on from.").into(),
            false => McpRefusal::from(fault),
        })?;
    let open = cx.session.and_then(|session| cx.shared.calls.of(session.nonce, &request.id, &run));
    let mut resumed = RunStream::new(cx, request, &known, watch, stream).kept_as(open);
    resumed.rise = Rise::behind(said);
    resumed.number = number;
    resumed.answer_for(&known);
    resumed.look_below();
    Ok(McpReply::Stream(resumed.into_stream()))
}

/// What a run tells after a number of its journal, with the answer to this request last.
pub(crate) async fn follow(
    cx: McpContext,
    at: RequestRef,
    run: RunKey,
    after: u64,
    of: StreamOf,
) -> McpReply {
    let (runs, events) = (cx.shared.handle.runs(), cx.shared.handle.run_events());
    let watched = async { Ok((runs.get(&run).await?, events.watch(&run, Seq(after)).await?)) };
    let watched: Result<_, Fault> = watched.await;
    match watched {
        Ok((known, watch)) => {
            let mut followed = RunStream::new(cx, at, &known, watch, of);
            followed.number = after;
            followed.look_below();
            followed.reply().await
        }
        Err(fault) => McpReply::refused(fault),
    }
}

/// Answers a call with a run that is there already.
pub(super) async fn join(
    cx: McpContext,
    at: RequestRef,
    run: &RunKey,
    terms: CallTerms,
) -> McpReply {
    let (runs, events) = (cx.shared.handle.runs(), cx.shared.handle.run_events());
    let watched = async { Ok((runs.get(run).await?, events.watch(run, Seq(0)).await?)) };
    let watched: Result<_, Fault> = watched.await;
    match watched {
        Ok((known, watch)) => {
            let mut joined = RunStream::of_call(cx, at, &known, watch, terms);
            joined.look_below();
            joined.reply().await
        }
        Err(fault) => McpReply::refused(fault),
    }
}

/// Goes on with a run that a modern client has answered: what happened before was said before.
pub(super) async fn rejoin(
    cx: McpContext,
    at: RequestRef,
    run: &RunKey,
    terms: CallTerms,
) -> McpReply {
    let (runs, events) = (cx.shared.handle.runs(), cx.shared.handle.run_events());
    let watched = async {
        let mut watch = events.watch(run, Seq(0)).await?;
        let mut last = None;
        while let Some(record) = watch.next_known().await {
            let record = record?;
            if record.ended.is_some() {
                last = Some(record);
            }
        }
        Ok((runs.get(run).await?, watch, last))
    };
    let watched: Result<_, Fault> = watched.await;
    match watched {
        Ok((known, watch, last)) => {
            let mut joined = RunStream::of_call(cx, at, &known, watch, terms);
            joined.last = last;
            joined.look_below();
            joined.reply().await
        }
        Err(fault) => McpReply::refused(fault),
    }
}

/// A run that is canceled if nobody reads any more before it is answered.
struct BoundRun {
    cx: McpContext,
    run: RunKey,
    is_answered: bool,
}

impl BoundRun {
    /// Whether nobody is there for the run. Whoever reads is cut off when the core stops; that says
    /// nothing about the run.
    fn is_left(&self) -> bool {
        let McpContext { shared, closing, .. } = &self.cx;
        let stops = closing.is_cancelled() || shared.stop.is_cancelled();
        !self.is_answered && !stops && !shared.handle.is_stopping()
    }
}

impl Drop for BoundRun {
    fn drop(&mut self) {
        if !self.is_left() {
            return;
        }
        let shared = Arc::clone(&self.cx.shared);
        let (caller, run) = (self.cx.caller.clone(), self.run.clone());
        let tasks = shared.tasks.clone();
        tasks.spawn(async move { call_off(&shared.handle, &caller, &run, LEFT).await });
    }
}

/// What a client is answered with before its run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Early {
    /// That it is a task now.
    Task,
    /// That it is still under way.
    Unfinished,
}

/// One stream of a run.
pub(super) struct RunStream {
    cx: McpContext,
    at: RequestRef,
    run: RunKey,
    tool: ToolId,
    of: StreamOf,
    watch: Watch,
    /// What happens to asks, of which those below the run matter.
    news: AskFeed,
    /// Questions that were answered with what does not fit.
    again: broadcast::Receiver<AskId>,
    /// Questions of runs below that the client was asked here.
    below: BTreeSet<AskId>,
    rise: Rise,
    /// The number up to which everything was said.
    number: u64,
    /// The end of the run, if it was read before.
    last: Option<RunRecord>,
    ready: VecDeque<StreamItem>,
    /// What tells a repeat of a modern call from another one.
    digest: Option<Digest>,
    early: Option<(Early, Instant)>,
    /// Whether it is still to be looked what is open below the run.
    unlooked: bool,
    open: Option<Arc<ClientCall>>,
    bound: Option<BoundRun>,
    is_over: bool,
}

impl RunStream {
    fn new(cx: McpContext, at: RequestRef, run: &Run, watch: Watch, of: StreamOf) -> Self {
        Self {
            news: cx.shared.handle.asks().news(),
            again: cx.shared.wrong_answers.news(),
            run: run.key.clone(),
            tool: run.spec.tool.clone(),
            cx,
            at,
            of,
            watch,
            below: BTreeSet::new(),
            rise: Rise::behind(None),
            number: 0,
            last: None,
            ready: VecDeque::new(),
            digest: None,
            early: None,
            unlooked: false,
            open: None,
            bound: None,
            is_over: false,
        }
    }

    /// The stream of a call, from the beginning of its run.
    pub(super) fn of_call(
        cx: McpContext,
        at: RequestRef,
        run: &Run,
        watch: Watch,
        terms: CallTerms,
    ) -> Self {
        let mut made = Self::new(cx, at, run, watch, StreamOf::Call);
        if made.is_modern() {
            let CallTerms { digest, detach } = terms;
            made.digest = Some(digest);
            let stays = detach || made.cx.door.detach;
            let (cx, run) = (made.cx.clone(), run.key.clone());
            made.bound = (!stays).then(|| BoundRun { cx, run, is_answered: false });
        }
        made.answer_for(run);
        made
    }

    /// Remembers under what the call is kept.
    pub(super) fn kept_as(mut self, open: Option<Arc<ClientCall>>) -> Self {
        self.open = open;
        self
    }

    /// Decides when the client is answered before the run is over.
    fn answer_for(&mut self, run: &Run) {
        let takes_tasks = self.is_modern() && self.cx.capabilities.has_tasks_extension();
        // A task must be there when its client comes back.
        let kept = run.spec.durability == Durability::Journal;
        let early = match patience::of(&self.cx) {
            _ if self.of == StreamOf::TaskResult => None,
            _ if takes_tasks && kept => Some((Early::Task, self.cx.shared.settings.task_after)),
            Some(patience) if !takes_tasks => Some((Early::Unfinished, patience)),
            _ => None,
        };
        self.early = early.map(|(early, after)| (early, Instant::now() + after));
    }

    /// Has what is open below the run looked up first.
    fn look_below(&mut self) {
        self.unlooked = true;
    }

    fn is_modern(&self) -> bool {
        self.cx.revision.era() == McpEra::Modern
    }

    /// The answer: at once if the run is, and nothing is to be said before.
    pub(super) async fn reply(self) -> McpReply {
        let prime = self.prime();
        let mut items = self.into_items();
        let first = match tokio::time::timeout(AT_ONCE, items.next()).await {
            Ok(Some(StreamItem { said: StreamSaid::Answer(answer), .. })) => {
                return McpReply::Now(answer.map_err(McpRefusal::from));
            }
            Ok(first) => first,
            Err(_) => None,
        };
        McpReply::Stream(stream::iter(prime.into_iter().chain(first)).chain(items).boxed())
    }

    fn into_stream(self) -> BoxStream<'static, StreamItem> {
        stream::iter(self.prime()).chain(self.into_items()).boxed()
    }

    /// What 2025-11-25 begins every stream with: an id to come back to, before anything is said.
    fn prime(&self) -> Option<StreamItem> {
        let primed = self.cx.revision.rules() == McpRevision::V2025_11_25;
        primed.then(|| self.item(StreamSaid::Prime { retry_ms: RETRY_MS }))
    }

    fn into_items(self) -> BoxStream<'static, StreamItem> {
        stream::unfold(self, |mut stream| async move {
            let item = stream.next().await?;
            Some((item, stream))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<StreamItem> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.is_over {
                return None;
            }
            self.step().await;
        }
    }

    /// Waits for something to happen, and takes it in.
    async fn step(&mut self) {
        if let Some(last) = self.last.take() {
            return self.take(last).await;
        }
        if std::mem::take(&mut self.unlooked) {
            return self.ask_below().await;
        }
        let (early, due) = (self.early, self.rise.due());
        let early_at = early.map_or_else(Instant::now, |(_, at)| at);
        tokio::select! {
            biased;
            () = called_off(self.open.as_deref()) => self.is_over = true,
            record = self.watch.next() => match record {
                Some(Ok(record)) => self.take(record).await,
                Some(Err(fault)) => self.answer(Err(McpRefusal::from(fault).error)),
                None => self.after_the_end().await,
            },
            news = self.news.next() => self.hear(news).await,
            again = self.again.recv() => match again {
                Ok(ask) => self.ask_again(Some(&ask)).await,
                // Some are missed, or the core ends.
                Err(_) => self.ask_again(None).await,
            },
            () = tokio::time::sleep_until(early_at), if early.is_some() => self.answer_early().await,
            () = tokio::time::sleep_until(due), if self.at.token.is_some() => {
                let said = self.rise.still();
                self.say(said);
            }
        }
    }

    async fn take(&mut self, record: RunRecord) {
        let before = std::mem::replace(&mut self.number, record.seq.0);
        if let Some(run) = record.ended {
            // Whoever comes back to the answer gets it again.
            self.number = before;
            return self.finish(&run).await;
        }
        match record.item {
            HistoryItem::Progress(piece) => self.progress(piece),
            HistoryItem::Entry(Entry::Run(RunEntry::AskRaised(raised))) => {
                self.asked(&raised.ask).await;
            }
            HistoryItem::Entry(Entry::Run(RunEntry::AskResolved(resolved))) => {
                self.decided(&resolved).await;
            }
            HistoryItem::Entry(_) => {}
        }
    }

    /// The end was said on a stream before this one.
    async fn after_the_end(&mut self) {
        match self.cx.shared.handle.runs().get(&self.run).await {
            Ok(run) if run.is_over() => self.finish(&run).await,
            _ => {
                let message = "The end of the run could not be read.";
                self.answer(Err(McpError::new(code::INTERNAL, message)));
            }
        }
    }

    fn progress(&mut self, piece: Progress) {
        if let Progress::Phase { phase, fraction } = piece {
            let said = self.rise.phase(&phase, fraction);
            if self.at.token.is_some() {
                self.say(said);
            }
            return;
        }
        let level = match &piece {
            Progress::Log { level, text } => {
                self.rise.hear(text);
                log_level(*level)
            }
            Progress::Text { text, .. } => {
                self.rise.hear(text);
                McpLogLevel::Info
            }
            _ => McpLogLevel::Info,
        };
        if !self.wants(level) {
            return;
        }
        let data = match piece {
            Progress::Log { text, .. } => Some(Value::String(text)),
            other => progress_value(other),
        };
        if let Some(data) = data {
            let logger = Some(self.tool.to_string());
            self.say(StreamSaid::Log(McpLog { level, logger, data, meta: self.related() }));
        }
    }

    fn wants(&self, level: McpLogLevel) -> bool {
        match self.cx.revision.era() {
            McpEra::Legacy => self.cx.log_level.is_none_or(|least| level >= least),
            McpEra::Modern => self.cx.log_level.is_some_and(|least| level >= least),
        }
    }

    /// The task that messages of `tasks/result` belong to.
    fn related(&self) -> Option<McpMeta> {
        (self.of == StreamOf::TaskResult).then(|| {
            let id = task_id(&self.cx.shared.handle, &self.cx.caller, &self.run);
            McpMeta::default().with(key::RELATED_TASK, json!({ "taskId": id }))
        })
    }

    async fn finish(&mut self, run: &Run) {
        let mut answer = answer_of(&self.cx, run).await;
        if let (Ok(result), Some(related)) = (&mut answer, self.related()) {
            let mut meta = McpMeta::of(Some(result)).unwrap_or_default();
            meta.0.extend(related.0);
            result.insert(key::META.to_owned(), meta.0.into());
        }
        self.answer(answer);
    }

    async fn answer_early(&mut self) {
        let Some((early, _)) = self.early.take() else { return };
        let Ok(run) = self.cx.shared.handle.runs().get(&self.run).await else { return };
        if run.is_over() {
            return;
        }
        self.answer(Ok(match early {
            Early::Task => tasks::created(&self.cx, &run),
            Early::Unfinished => patience::unfinished(&run),
        }));
    }

    fn answer(&mut self, answer: Result<Object, McpError>) {
        // From now on the run does without its client.
        if let Some(bound) = &mut self.bound {
            bound.is_answered = true;
        }
        self.is_over = true;
        self.say(StreamSaid::Answer(answer));
    }

    fn say(&mut self, said: StreamSaid) {
        let item = self.item(said);
        self.ready.push_back(item);
    }

    fn item(&self, said: StreamSaid) -> StreamItem {
        if self.is_modern() {
            return StreamItem::plain(said);
        }
        let place = EventPlace {
            run: self.run.clone(),
            number: self.number,
            request: self.at.clone(),
            stream: self.of,
            said: self.rise.said(),
        };
        StreamItem::at(place.write(&self.cx.shared.handle, &self.cx.caller), said)
    }
}

/// Waits until a legacy client called its request off; nobody calls off what is not kept.
async fn called_off(open: Option<&ClientCall>) {
    match open {
        Some(open) => open.canceled.cancelled().await,
        None => std::future::pending().await,
    }
}

/// What a call is answered with whose run is over.
pub(crate) async fn answer_of(cx: &McpContext, run: &Run) -> Result<Object, McpError> {
    if let Some(fault) = run.outcome.as_ref().and_then(Outcome::error)
        && let Some(error) = as_error(cx, fault)
    {
        return Err(error);
    }
    Ok(call_result(&cx.shared.handle, run, cx.revision).await.to_object())
}

/// The error that a failure is to a client, where it is none of the tool.
fn as_error(cx: &McpContext, fault: &Fault) -> Option<McpError> {
    if fault.is(Code::ToolInvalidInput) && cx.revision.bad_arguments_are_errors() {
        return Some(McpRefusal::from(fault.clone()).error);
    }
    // A server that is told exactly what the client can do says to the client what is missing.
    let number = is_error_of_server(fault).filter(|_| cx.door.inbox_off)?;
    let known = match number {
        code::MISSING_CAPABILITY => cx.revision.era() == McpEra::Modern,
        code::URL_ELICITATION => cx.revision == McpRevision::V2025_11_25,
        _ => false,
    };
    let error = McpError::new(number, fault.message.clone());
    known.then(|| McpError { data: fault.details.get("mcp_data").cloned(), ..error })
}

fn log_level(level: Level) -> McpLogLevel {
    match level {
        Level::Debug => McpLogLevel::Debug,
        Level::Info => McpLogLevel::Info,
        Level::Warn => McpLogLevel::Warning,
        Level::Error => McpLogLevel::Error,
    }
}
