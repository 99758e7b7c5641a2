//! One run: its turn, its handler, its limits, and its end.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, debug, info, info_span, warn};
use wharf_protocol::run::server::{Ending, Overflow, Profile, RunNo, RunReport};
use wharf_socket::sleep_until;
use wharf_vocab::{Micro, Object};
use wharf_wire::run_v1::{Phase, RunRequest, code};

use super::hub::{Hub, LiveRun};
use super::options::Listen;
use crate::transfer::RunFiles;
use crate::worker::other_phase;
use crate::{Call, Done, Failure, Report, Reporter};

/// What a handler may have said before somebody listened.
const REPORTS_MAX: usize = 64;

/// Executes a run to its end.
pub(super) fn execute(
    hub: Arc<Hub>,
    run: RunNo,
    live: Arc<LiveRun>,
    request: RunRequest,
) -> impl Future<Output = ()> + Send {
    let control = &request.control;
    let span = info_span!("run", run_id = control.run_id, attempt = control.attempt);
    async move {
        let since = Instant::now();
        let attempt = RunAttempt { hub: Arc::clone(&hub), run, live };
        let ending = attempt.drive(request).await;
        let took_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        match &ending.result {
            Ok(_) => info!(took_ms, "the run succeeded"),
            Err(failure) => {
                warn!(took_ms, code = failure.code, text = failure.message, "the run failed");
            }
        }
        hub.finish(run, ending);
    }
    .instrument(span)
}

struct RunAttempt {
    hub: Arc<Hub>,
    run: RunNo,
    live: Arc<LiveRun>,
}

/// What a handler says while it works.
struct HandlerReports {
    reports: mpsc::Receiver<Report>,
    /// What it has cost so far.
    spent: watch::Receiver<Micro>,
}

impl RunAttempt {
    async fn drive(self, request: RunRequest) -> Ending {
        let wish = request.control.deadline_ms;
        let deadline = wish.map(|ms| Instant::now() + Duration::from_millis(ms.min(MONTH_MS)));
        let slots = Arc::clone(&self.hub.slots);
        let turn = tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => return self.canceled(),
            () = sleep_until(deadline) => return timed_out(),
            turn = slots.acquire_owned() => turn,
        };
        let Ok(_turn) = turn else { return self.canceled() };
        let (reports_in, reports) = mpsc::channel(REPORTS_MAX);
        let reporter = Reporter::new(reports_in);
        let spent = reporter.follow_spent();
        let files = Arc::new(self.hub.transfer.for_run(&request, reporter.clone()));
        let checked = tokio::select! {
            biased;
            () = self.live.cancel.cancelled() => return self.canceled(),
            () = sleep_until(deadline) => return timed_out(),
            checked = files.check_targets() => checked,
        };
        if let Err(failure) = checked {
            return failed(failure);
        }
        let started = RunReport::Event { phase: Phase::Started, progress: None };
        if self.hub.say(self.run, started).is_err() {
            return overflowed();
        }
        let wall = Instant::now() + self.hub.options.timeout;
        let wall = deadline.map_or(wall, |deadline| deadline.min(wall));
        let required = request.control.required.clone();
        let stop = CancellationToken::new();
        let call = Call {
            run_id: request.control.run_id,
            attempt: request.control.attempt,
            mode: request.control.mode,
            traceparent: request.control.traceparent,
            tracestate: request.control.tracestate,
            inputs: request.inputs,
            outputs: request.outputs,
            files: Arc::clone(&files),
            steps: request.control.steps.then(|| self.live.steps.clone()),
            cancel: stop.clone(),
        };
        let work = settled(self.hub.handler.run(call, reporter), Arc::clone(&files), required);
        // A handler at work ends with its supervisor.
        let work = AbortOnDropHandle::new(tokio::spawn(work.in_current_span()));
        let heard = HandlerReports { reports, spent };
        let mut ending = self.supervise(work, heard, wall, &stop).await;
        ending.written = files.written();
        // The owner was told when the tool was added, and need not be told with each run.
        if matches!(self.hub.options.listen, Listen::Inherited(_)) && ending.result.is_ok() {
            ending.cost.get_or_insert(Value::from(0));
        }
        ending
    }

    /// Follows the handler until it is done, or has been stopped.
    async fn supervise(
        &self,
        mut work: AbortOnDropHandle<Ending>,
        HandlerReports { mut reports, mut spent }: HandlerReports,
        wall: Instant,
        stop: &CancellationToken,
    ) -> Ending {
        let live = Arc::clone(&self.live);
        let mut stopped: Option<(Ending, Instant)> = None;
        let outcome = loop {
            let ended_at = stopped.as_ref().map(|(_, ended_at)| *ended_at);
            let ending = tokio::select! {
                biased;
                () = live.cancel.cancelled(), if ended_at.is_none() => self.canceled(),
                () = sleep_until(Some(wall)), if ended_at.is_none() => timed_out(),
                () = sleep_until(ended_at) => break None,
                Ok(()) = spent.changed() => {
                    let so_far = *spent.borrow_and_update();
                    // There is always room for it.
                    let _ = self.hub.say(self.run, RunReport::Cost(so_far));
                    continue;
                }
                Some(report) = reports.recv() => match self.report(report) {
                    Ok(()) => continue,
                    Err(Overflow) if ended_at.is_none() => overflowed(),
                    Err(Overflow) => continue,
                },
                outcome = &mut work => break Some(outcome),
            };
            stop.cancel();
            stopped = Some((ending, Instant::now() + self.hub.options.cancel_grace));
        };
        while let Ok(report) = reports.try_recv() {
            if let (Err(Overflow), None) = (self.report(report), &stopped) {
                stopped = Some((overflowed(), wall));
            }
        }
        self.hub.note_cost(self.run, *spent.borrow());
        let outcome = outcome.map(|outcome| {
            outcome.unwrap_or_else(|error| {
                warn!(%error, "the handler panicked");
                Ending::failed(code::HANDLER, "The handler panicked.")
            })
        });
        match (stopped, outcome) {
            // What a run that was stopped has spent is spent.
            (Some((ending, _)), outcome) => {
                Ending { cost: outcome.and_then(|outcome| outcome.cost), ..ending }
            }
            (None, Some(outcome)) => outcome,
            (None, None) => self.canceled(),
        }
    }

    /// Passes on what the handler says. It never waits: readers that fall behind are cut.
    fn report(&self, report: Report) -> Result<(), Overflow> {
        let said = match report {
            Report::Log { level, text, at } => RunReport::Log { level, text, at },
            Report::Event { phase: phase @ (Phase::Checkpoint | Phase::Other(_)), progress } => {
                RunReport::Event { phase, progress }
            }
            // When it begins and ends is the server's to say; how far it is may still be news.
            Report::Event { progress: None, .. } => return Ok(()),
            Report::Event { progress, .. } => {
                RunReport::Event { phase: Phase::Checkpoint, progress }
            }
            Report::Partial(outputs) => RunReport::Partial(outputs),
            Report::Text(text) => RunReport::Text(text),
            Report::Other(frame) => return self.other(frame),
        };
        self.hub.say(self.run, said)
    }

    /// Passes on a frame that the protocol does not have: as it came to peers that know such
    /// frames; to others what it says of how far the run is.
    fn other(&self, frame: Object) -> Result<(), Overflow> {
        if self.hub.profile() == Profile::Upstream {
            return self.hub.say(self.run, RunReport::Other(frame));
        }
        let Some((phase, progress)) = other_phase(&frame) else {
            debug!("a frame of a kind that the protocol does not have is left out");
            return Ok(());
        };
        self.hub.say(self.run, RunReport::Event { phase: Phase::Other(phase), progress })
    }

    fn canceled(&self) -> Ending {
        Ending::failed(code::CANCELED, self.live.why())
    }
}

/// No deadline lies further away than this.
const MONTH_MS: u64 = 30 * 24 * 3600 * 1000;

/// Lets the handler work, and brings its outputs to where they belong.
async fn settled(
    work: impl Future<Output = Done>,
    files: Arc<RunFiles>,
    required: Vec<String>,
) -> Ending {
    let Done { result, cost } = work.await;
    let result = match result {
        Ok(outputs) => files.settle(outputs).await,
        Err(failure) => Err(failure),
    };
    let result = result.and_then(|(outputs, missing)| {
        let lacks = |key: &&String| outputs.get(*key).is_none_or(Value::is_null);
        match required.iter().find(lacks) {
            None => Ok((outputs, missing)),
            Some(key) => {
                let message = format!("The required output `{key}` was not produced.");
                Err(Failure::new(code::OUTPUT_MISSING, message))
            }
        }
    });
    match result {
        Ok((outputs, missing)) => {
            Ending { result: Ok(outputs), cost, written: BTreeMap::new(), missing }
        }
        Err(failure) => Ending { cost, ..failed(failure) },
    }
}

fn failed(Failure { code, message }: Failure) -> Ending {
    Ending::failed(code, message)
}

fn timed_out() -> Ending {
    Ending::failed(code::TIMEOUT, "The run took too long.")
}

fn overflowed() -> Ending {
    Ending::failed(code::LIMIT, "The outputs are larger than a run may give.")
}
