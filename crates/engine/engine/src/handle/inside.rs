//! What triggers owe because of files and of ends of runs: read from the journal and started.
//!
//! What is owed was written in the batch that recorded what happened. A core that dies between a
//! run and the end of what owed it asks for the same run again; its id makes that harmless.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use wharf_domain::schedule::{PauseCause, SettledHow};
use wharf_domain::trace::TraceHeaders;
use wharf_domain::trigger::{Cause, FiringEnd, FiringEntry, OwedFiring};
use wharf_domain::{Entry, Run, Trigger};
use wharf_ports::History;
use wharf_vocab::limits::TRIGGER_FIRINGS_A_MINUTE_MAX;
use wharf_vocab::{
    Code, Fault, FiringId, Object, RunKey, ShardId, StreamId, StreamKind, Timestamp, TriggerId,
};

use super::TriggerCalls;
use super::firing::{evaluated, is_nobodys};
use super::letters::outputs_of;
use super::triggers::NewFiring;
use crate::shard::Input;

/// Firings that are dealt with at once.
const AT_ONCE: usize = 8;
/// How long it looks away at most.
const LOOK_AWAY: Duration = Duration::from_secs(30);
/// How long it looks away while something could not be done.
const AGAIN: Duration = Duration::from_secs(1);
/// How long it looks away at least, so that much that is owed is read together.
const BREATH: Duration = Duration::from_millis(20);
/// Within what time firings are counted.
const MINUTE_MS: u64 = 60_000;

/// What came of something that a trigger owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FiringResult {
    /// It started a run.
    Started,
    /// Its run was refused.
    Refused,
    /// The trigger's condition does not hold, or it is not there any more.
    Dropped,
    /// The trigger started too much within a minute.
    TooFast,
}

impl FiringResult {
    fn count(self) {
        let result = match self {
            Self::Started => "started",
            Self::Refused => "refused",
            Self::Dropped => "dropped",
            Self::TooFast => "too_fast",
        };
        metrics::counter!("wharf_trigger_firings_total", "result" => result).increment(1);
    }
}

/// When each trigger started runs within the last minute.
#[derive(Debug, Default)]
struct Pace(HashMap<TriggerId, VecDeque<Timestamp>>);

impl Pace {
    /// Whether a trigger may start one more run now; then it counts.
    fn take(&mut self, trigger: &TriggerId, now: Timestamp) -> bool {
        self.0.retain(|_, times| {
            while times.front().is_some_and(|at| now.ms_since(*at) >= MINUTE_MS) {
                times.pop_front();
            }
            !times.is_empty()
        });
        let times = self.0.entry(trigger.clone()).or_default();
        let may = times.len() < TRIGGER_FIRINGS_A_MINUTE_MAX;
        if may {
            times.push_back(now);
        }
        may
    }
}

impl TriggerCalls<'_> {
    /// Starts what triggers owe because of files and ends of runs, for as long as it is polled.
    /// One task of a core does.
    pub async fn start_owed(self) {
        let board = &self.0.inner.records.outbox.triggers;
        let pace = parking_lot::Mutex::new(Pace::default());
        let mut over: HashSet<FiringId> = HashSet::new();
        loop {
            for id in board.take_full() {
                // What cannot be paused now is found too full once more.
                let _ = self.pause_by_itself(&id, PauseCause::TooMuch).await;
            }
            let pace = &pace;
            let again = match self.owed().await {
                Ok(owed) => {
                    over.retain(|id| owed.iter().any(|(known, _)| known == id));
                    let open = owed.into_iter().filter(|(id, _)| !over.contains(id));
                    let open: Vec<_> = open.collect();
                    let done = stream::iter(open).map(|(id, it)| async move {
                        let done = self.start_one(&it, pace).await;
                        (id.clone(), done.is_ok() && self.end(id).await.is_ok())
                    });
                    let done: Vec<_> = done.buffer_unordered(AT_ONCE).collect().await;
                    let again = done.iter().any(|(_, done)| !done);
                    over.extend(done.into_iter().filter(|(_, done)| *done).map(|(id, _)| id));
                    again
                }
                Err(fault) => {
                    tracing::debug!(code = %fault.code, "what triggers owe cannot be read");
                    true
                }
            };
            let pause = if again { AGAIN } else { LOOK_AWAY };
            tokio::select! {
                () = board.rung() => tokio::time::sleep(BREATH).await,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// All that triggers owe.
    pub async fn owed(self) -> Result<Vec<(FiringId, OwedFiring)>, Fault> {
        let all = ShardId::all().collect();
        let stored = self.0.inner.store.load_open(StreamKind::Firing, all).await?;
        let read = |(stream, stored): (StreamId, History)| {
            let StreamId::Firing(id) = stream else { return None };
            let entries = stored.entries.iter().filter_map(|(_, entry)| match entry {
                Entry::Firing(entry) => Some(entry),
                _ => None,
            });
            Some((id, OwedFiring::replay(entries)?))
        };
        let owed: Vec<_> = stored.into_iter().filter_map(read).collect();
        let mut counts: HashMap<TriggerId, usize> = HashMap::new();
        for (_, it) in &owed {
            *counts.entry(it.trigger.clone()).or_default() += 1;
        }
        self.0.inner.records.outbox.triggers.count(counts);
        Ok(owed)
    }

    async fn end(self, id: FiringId) -> Result<(), Fault> {
        let entry = FiringEntry::Over(FiringEnd {});
        self.0.tell(id.shard(), Input::Firing { id, entry }).await
    }

    /// Starts what a trigger owes. An error is worth another try.
    async fn start_one(
        self,
        it: &OwedFiring,
        pace: &parking_lot::Mutex<Pace>,
    ) -> Result<(), Fault> {
        let known = self.get(&it.trigger).ok().filter(|trigger| trigger.made_at == it.made_at);
        let result = match known {
            None => FiringResult::Dropped,
            Some(trigger) => self.start_of(&trigger, it, pace).await?,
        };
        result.count();
        Ok(())
    }

    async fn start_of(
        self,
        trigger: &Trigger,
        it: &OwedFiring,
        pace: &parking_lot::Mutex<Pace>,
    ) -> Result<FiringResult, Fault> {
        match self.may_start(trigger).await {
            Ok(()) => {}
            Err(fault) if fault.is(Code::TriggerPaused) => return Ok(FiringResult::Dropped),
            Err(fault) => return Err(fault),
        }
        let ended = self.ended(trigger, &it.cause).await?;
        let (spec, cause) = (trigger.spec.clone(), it.cause.clone());
        let inputs = evaluated(move || {
            let values = ended.as_deref().map(values_of);
            spec.inputs_of_cause(&cause, values.as_ref().map(|(i, o)| (i, o)))
        });
        let inputs = inputs.await;
        if matches!(inputs, Ok(None)) {
            return Ok(FiringResult::Dropped);
        }
        let run = trigger.run_id(&it.cause.id());
        let key = RunKey { world: trigger.spec.world.clone(), run };
        if self.0.runs().get(&key).await.is_ok() {
            // It was started before the core died.
            return Ok(FiringResult::Started);
        }
        if !pace.lock().take(&trigger.id, self.0.now()) {
            self.pause_by_itself(&trigger.id, PauseCause::TooFast).await?;
            return Ok(FiringResult::TooFast);
        }
        let started = match inputs {
            Ok(inputs) => {
                let (inputs, trace) = (inputs.unwrap_or_default(), TraceHeaders::default());
                self.create(trigger, &key, NewFiring { inputs, depth: it.depth, trace }).await
            }
            Err(fault) => Err(fault),
        };
        let (how, result) = match started {
            Ok(_) => (SettledHow::Started(key.run), FiringResult::Started),
            Err(fault) if is_nobodys(&fault) => return Err(fault),
            Err(fault) => {
                let fault = Fault { details: Object::new(), ..fault };
                (SettledHow::Refused(fault), FiringResult::Refused)
            }
        };
        self.fired(trigger, &it.cause.about(), how).await;
        Ok(result)
    }

    /// The run that has ended, with its values, where they are kept.
    async fn ended(
        self,
        trigger: &Trigger,
        cause: &Cause,
    ) -> Result<Option<std::sync::Arc<Run>>, Fault> {
        let Cause::Run(ended) = cause else { return Ok(None) };
        let key = RunKey { world: trigger.spec.world.clone(), run: ended.id.clone() };
        match self.0.runs().get(&key).await {
            Ok(run) if run.spec.is_withheld() => Ok(None),
            Ok(run) => Ok(Some(self.0.runs().with_inputs(run).await?)),
            // It was removed meanwhile.
            Err(fault) if fault.is(Code::RunNotFound) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

fn values_of(run: &Run) -> (Object, Object) {
    (Object::clone(&run.spec.inputs), outputs_of(run).cloned().unwrap_or_default())
}
