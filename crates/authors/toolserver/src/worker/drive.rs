//! One run between its server and its worker, from the first line to the end of every process.

use std::fmt::Display;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use wharf_protocol::run::judge_cost;
use wharf_socket::sleep_until;
use wharf_wire::run_v1::limits::STEPS_OPEN_MAX;
use wharf_wire::run_v1::{self as wire, LogLevel, code, read_envelope};

use super::ending::{self, CutReason, WorkerAnswer};
use super::frames;
use super::lines::{LineReader, NextLine};
use super::log_traceback;
use super::logs;
use super::memory;
use super::message::{FolderView, FromWorker, KILL, News, Payload, ProcessExit, STOP, ToWorker};
use super::requests::{self, StepAsk, line};
use super::settings::WorkerSettings;
use super::ways::ServerEnds;
use crate::transfer::Source;
use crate::{Call, Done, Failure, Reporter};

/// Requests of one worker that are served side by side; more wait unread. Of steps there are no
/// more than a run may have, so that files never wait for one.
const REQUESTS_MAX: usize = STEPS_OPEN_MAX + 16;
/// Lines that may wait for a worker: every answer, the start and a cancel.
const LINES_WAITING_MAX: usize = REQUESTS_MAX + 2;
/// How long a worker may take to leave after its answer.
const LEAVE: Duration = Duration::from_secs(2);
/// How long a keeper may take to kill everything.
const SWEEP: Duration = Duration::from_secs(12);
/// How long what was printed may take to arrive once every process is gone.
const DRAIN: Duration = Duration::from_secs(1);
/// A keeper says little.
const NEWS_BYTES_MAX: usize = 4 << 10;

/// Sees a run through. When it returns, or is dropped, nothing is left of the run, or its keeper is
/// seeing to that.
pub(super) async fn drive(
    started: Result<ServerEnds, impl Display>,
    call: Call,
    report: Reporter,
    settings: &WorkerSettings,
) -> Done {
    let ours = match started {
        Ok(ours) => ours,
        Err(error) => {
            tracing::error!(run = call.run_id, %error, "a worker could not be started");
            let failure = Failure::new(code::WORKER, "The worker could not be started.");
            return Done { result: Err(failure), cost: None };
        }
    };
    let (lines, waiting) = mpsc::channel(LINES_WAITING_MAX);
    let (channel, writing) = ours.channel.into_split();
    let _ = lines.try_send(start(&call, settings));
    let mut run = WorkerRun {
        channel: LineReader::new(channel, settings.line_bytes_max),
        channel_ended: false,
        control: KeeperLink::new(ours.control),
        lines,
        requests: FuturesUnordered::new(),
        report: report.clone(),
        settings,
        answer: None,
        cost_warned: false,
        cut: None,
        memory: None,
        deadline: None,
        call,
    };
    let mut printed = pin!(logs::pass_on(ours.out, ours.err, &report, settings));
    let mut sent = pin!(write(writing, waiting));
    let (mut all_printed, mut all_sent) = (false, false);
    {
        let mut seen = pin!(run.until_end());
        loop {
            tokio::select! {
                () = &mut printed, if !all_printed => all_printed = true,
                () = &mut sent, if !all_sent => all_sent = true,
                () = &mut seen => break,
            }
        }
    }
    if !all_printed {
        let _ = timeout(DRAIN, printed).await;
    }
    run.end()
}

/// The first line.
fn start(call: &Call, settings: &WorkerSettings) -> Vec<u8> {
    let is_reference = |(key, value): &(&String, &Value)| call.files.is_reference(key, value);
    line(&ToWorker::Start {
        payload: Payload {
            run_id: &call.run_id,
            mode: call.mode,
            inputs: &call.inputs,
            outputs: &call.outputs,
            attempt: call.attempt,
            traceparent: call.traceparent.as_deref(),
            tracestate: call.tracestate.as_deref(),
            steps: call.steps.is_some(),
        },
        refs: call.inputs.iter().filter(is_reference).map(|(key, _)| key.as_str()).collect(),
        folder: call.files.folder().ok(),
        line_bytes_max: settings.line_bytes_max,
        apart: FolderView::of(call, settings),
    })
}

async fn write(mut channel: OwnedWriteHalf, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        // A worker that is gone is noticed where it is read from.
        if channel.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// What the keeper says and is told.
struct KeeperLink {
    news: LineReader<OwnedReadHalf>,
    orders: OwnedWriteHalf,
    pid: Option<i32>,
    keeper: Option<i32>,
    exit: Option<ProcessExit>,
    ended: bool,
}

impl KeeperLink {
    fn new(socket: UnixStream) -> Self {
        let (news, orders) = socket.into_split();
        let news = LineReader::new(news, NEWS_BYTES_MAX);
        Self { news, orders, pid: None, keeper: None, exit: None, ended: false }
    }

    fn order(&self, order: u8) {
        // It has room for a byte, or the keeper is gone.
        let _ = self.orders.try_write(&[order]);
    }

    async fn next(&mut self) {
        match self.news.next().await {
            NextLine::Whole(line) => match serde_json::from_slice(&line) {
                Ok(News::Started { pid, keeper }) => {
                    (self.pid, self.keeper) = (Some(pid), Some(keeper));
                }
                Ok(News::Exited(exit)) => self.exit = Some(exit),
                Ok(News::Lost(why)) => tracing::warn!(why, "a worker could not be started"),
                Err(error) => tracing::warn!(%error, "a keeper said something else than news"),
            },
            NextLine::Cut(_) | NextLine::End => self.end(),
        }
    }

    /// A keeper that is gone without a word was killed itself; its group is all that is known.
    fn end(&mut self) {
        self.ended = true;
        if self.exit.is_none()
            && let Some(pid) = self.pid.and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

/// What happens next when a run has to end.
#[derive(Debug, Clone, Copy)]
enum StopStep {
    Terminate { kill_after: Duration },
    Kill,
    GiveUp,
}

struct WorkerRun<'a> {
    call: Call,
    report: Reporter,
    settings: &'a WorkerSettings,
    channel: LineReader<OwnedReadHalf>,
    channel_ended: bool,
    control: KeeperLink,
    lines: mpsc::Sender<Vec<u8>>,
    requests: FuturesUnordered<BoxFuture<'static, Vec<u8>>>,
    answer: Option<WorkerAnswer>,
    /// Whether it was said that a reported cost is none.
    cost_warned: bool,
    cut: Option<CutReason>,
    /// Ends when the run uses too much memory.
    memory: Option<BoxFuture<'static, ()>>,
    deadline: Option<(Instant, StopStep)>,
}

impl WorkerRun<'_> {
    async fn until_end(&mut self) {
        while self.step().await {}
    }

    /// Waits for one thing to happen and acts on it. False when nothing more can.
    async fn step(&mut self) -> bool {
        if self.control.ended && self.channel_ended {
            return false;
        }
        // Answers that the worker has not taken count too, so that there is room for every one.
        let room = LINES_WAITING_MAX - REQUESTS_MAX + 1 + self.requests.len();
        let may_ask = self.lines.capacity() >= room;
        let waits_for_room = !may_ask && room <= LINES_WAITING_MAX;
        let cancel_counts = self.cut.is_none() && self.answer.is_none();
        tokio::select! {
            line = self.channel.next(), if may_ask && !self.channel_ended => self.take(line).await,
            () = self.control.next(), if !self.control.ended => self.heard_keeper(),
            Some(answer) = self.requests.next(), if !self.requests.is_empty() => {
                let _ = self.lines.try_send(answer);
            }
            () = has_room(&self.lines, room), if waits_for_room => {}
            () = self.call.cancel.cancelled(), if cancel_counts => self.cancel(),
            () = finished(self.memory.as_mut()), if self.cut.is_none() => self.over(),
            () = sleep_until(self.deadline.map(|(at, _)| at)) => return self.press(),
        }
        true
    }

    async fn take(&mut self, line: NextLine) {
        let line = match line {
            NextLine::Whole(line) => line,
            NextLine::Cut(_) => return self.cut(CutReason::Line(self.settings.line_bytes_max)),
            NextLine::End => {
                self.channel_ended = true;
                self.requests.clear();
                return;
            }
        };
        if self.answer.is_some() {
            return;
        }
        match serde_json::from_slice(&line) {
            Ok(message) => self.hear(message).await,
            Err(error) => {
                tracing::warn!(run = self.call.run_id, %error, "a worker sent what is no message");
                self.cut(CutReason::Nonsense);
            }
        }
    }

    async fn hear(&mut self, message: FromWorker) {
        match message {
            FromWorker::Emit { frame } => {
                if let Some(cost) = frames::cost(&frame) {
                    self.spent(cost).await;
                }
                match frames::report(&frame) {
                    Some(report) => self.report.say(report).await,
                    None => tracing::debug!(run = self.call.run_id, "a frame without meaning"),
                }
            }
            FromWorker::Cost { cost } => self.spent(&cost).await,
            FromWorker::Fetch { id, key } => {
                self.requests.push(requests::fetch(&self.call, id, key))
            }
            FromWorker::Put { id, key, path, value } => {
                let source = path.map(Source::File).or(value.map(Source::Value));
                self.requests.push(requests::put(&self.call, id, key, source));
            }
            FromWorker::Step { id, step, tool, inputs, value } => {
                let ask = StepAsk { step, tool, inputs, value };
                self.requests.push(requests::step(&self.call, id, ask));
            }
            FromWorker::Done { result, cost } => match read_envelope(&result) {
                Some(said) => {
                    let failed =
                        |failure: wire::Failure| ending::given(&failure.code, &failure.message);
                    self.answered(said.result.map_err(failed), cost.or(said.cost_micro));
                }
                None => self.answered(Ok(result), cost),
            },
            FromWorker::Failed { code, message, detail, cost } => {
                log_traceback(&detail);
                self.answered(Err(ending::given(&code, &message)), cost);
            }
            FromWorker::Trouble { detail } => log_traceback(&detail),
            FromWorker::Unknown => {}
        }
    }

    /// Passes on what the run has cost so far. A wrong number is said once and left out; only at
    /// the end does it fail the run.
    async fn spent(&mut self, cost: &Value) {
        match judge_cost(cost) {
            Ok(cost) => self.report.spent(cost),
            Err(why) if !std::mem::replace(&mut self.cost_warned, true) => {
                self.report.log(LogLevel::Warn, format!("{why} It is left out.")).await;
            }
            Err(_) => {}
        }
    }

    fn answered(&mut self, result: Result<wharf_vocab::Object, Failure>, cost: Option<Value>) {
        let late = self.cut == Some(CutReason::Canceled);
        self.answer = Some(WorkerAnswer { result, cost, late });
        self.after(LEAVE, StopStep::Kill);
    }

    fn cancel(&mut self) {
        self.cut = Some(CutReason::Canceled);
        let _ = self.lines.try_send(line(&ToWorker::Cancel));
        let half = self.settings.cancel_grace / 2;
        self.after(half, StopStep::Terminate { kill_after: half });
    }

    fn over(&mut self) {
        self.memory = None;
        self.cut(CutReason::Memory(self.settings.memory_bytes_max.unwrap_or_default()));
    }

    /// Ends the run at once.
    fn cut(&mut self, why: CutReason) {
        self.cut.get_or_insert(why);
        self.control.order(KILL);
        self.after(SWEEP, StopStep::GiveUp);
    }

    /// When the keeper is gone, so is every process, and little can still arrive.
    fn heard_keeper(&mut self) {
        if self.memory.is_none()
            && let Some((keeper, bytes_max)) =
                self.control.keeper.zip(self.settings.memory_bytes_max)
        {
            self.memory = Some(Box::pin(memory::until_over(keeper, bytes_max)));
        }
        if self.control.ended || self.control.exit.is_some() {
            self.after(DRAIN, StopStep::GiveUp);
        }
    }

    fn after(&mut self, time: Duration, step: StopStep) {
        self.deadline = Some((Instant::now() + time, step));
    }

    /// Does what is due. False when the run is given up: its keeper sees the end of its socket.
    fn press(&mut self) -> bool {
        match self.deadline.take() {
            Some((_, StopStep::Terminate { kill_after })) => {
                self.control.order(STOP);
                self.after(kill_after, StopStep::Kill);
                true
            }
            Some((_, StopStep::Kill)) => {
                self.control.order(KILL);
                self.after(SWEEP, StopStep::GiveUp);
                true
            }
            Some((_, StopStep::GiveUp)) | None => false,
        }
    }

    fn end(self) -> Done {
        ending::done(self.answer, self.cut, self.control.exit)
    }
}

async fn finished(future: Option<&mut BoxFuture<'static, ()>>) {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

/// Waits until so many lines have room. With nobody left to take lines that is never.
async fn has_room(lines: &mpsc::Sender<Vec<u8>>, room: usize) {
    if lines.reserve_many(room).await.is_err() {
        pending().await
    }
}
