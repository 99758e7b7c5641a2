//! The book of runs: which request is which run, what was said, who watches, how it ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wharf_vocab::Micro;
use wharf_wire::run_v1::{
    Phase, Refusal, RequestControl, RunRequest, Status, UnfitRequest, close, code,
};

use super::ending::Ending;
use super::record::{Name, Record, RecordStage, RunWatcher, digest};
use super::speech::Speech;
use super::{Limits, Overflow, Profile, RunReport};
use crate::Moment;

/// Who asks. A run can be seen only by the one who started it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Credential(pub u64);

/// A run of the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunNo(u64);

/// A reader of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatcherNo(u64);

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum OpenResult {
    /// It is a new run, to be executed.
    Started {
        /// The run.
        run: RunNo,
        /// The connection as its reader.
        watcher: WatcherNo,
        /// Older attempts that have to be canceled.
        superseded: Vec<RunNo>,
    },
    /// The run is there already.
    Attached {
        /// The run.
        run: RunNo,
        /// The connection as one more reader.
        watcher: WatcherNo,
    },
    /// No run came of it; this is the answer.
    Unfit(UnfitRequest),
    /// The connection is closed, and nothing else changes.
    Refused(Refusal),
}

/// What a reader gets next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextFrames {
    /// Frames to send.
    Frames(Vec<String>),
    /// Nothing yet.
    Wait,
    /// Nothing any more: close the connection.
    Close(Refusal),
}

const OVER: Refusal = Refusal::new(close::NORMAL, "the run is over");
const SLOW: Refusal = Refusal::new(close::TRY_AGAIN, "the reader is too slow");

fn name(credential: Credential, control: &RequestControl, attempt: u32) -> Name {
    (credential, control.world.clone(), control.run_id.clone(), attempt)
}

/// The runs of a tool server.
#[derive(Debug)]
pub struct Book {
    limits: Limits,
    profile: Profile,
    runs: BTreeMap<RunNo, Record>,
    names: BTreeMap<Name, RunNo>,
    watchers: BTreeMap<WatcherNo, RunWatcher>,
    /// Runs that ended, the oldest first.
    ended: VecDeque<RunNo>,
    retained_bytes: usize,
    last_no: u64,
    /// Whether it was said that a run reported no cost.
    costless_told: bool,
}

impl Book {
    /// An empty book.
    #[must_use]
    pub fn new(limits: Limits, profile: Profile) -> Self {
        Self {
            limits,
            profile,
            runs: BTreeMap::new(),
            names: BTreeMap::new(),
            watchers: BTreeMap::new(),
            ended: VecDeque::new(),
            retained_bytes: 0,
            last_no: 0,
            costless_told: false,
        }
    }

    /// The dialect that is written.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// A connection asks for a run. `full` is why no further run can be taken, if so.
    pub fn open(
        &mut self,
        credential: Credential,
        request: &RunRequest,
        full: Option<&'static str>,
    ) -> OpenResult {
        let control = &request.control;
        let name = name(credential, control, control.attempt);
        let digest = digest(request);
        if let Some(run) = self.names.get(&name).copied() {
            let Some(record) = self.runs.get(&run) else { return OpenResult::Refused(OVER) };
            if record.digest != digest {
                return OpenResult::Refused(Refusal::new(close::POLICY, "run_id conflict"));
            }
            let watcher = self.watch(run, control.after);
            return OpenResult::Attached { run, watcher };
        }
        let attempts = self.attempts(credential, control);
        if attempts.iter().any(|(attempt, _)| *attempt > control.attempt) {
            return OpenResult::Refused(Refusal::new(close::POLICY, "a newer attempt took over"));
        }
        let unfit = |code, message| {
            OpenResult::Unfit(UnfitRequest { run_id: control.run_id.clone(), code, message })
        };
        // Who was told that the run began wants to hear the rest of it, not a second one. Also
        // when nothing else was heard of it, as by a core that was restarted.
        if control.after.is_some() {
            return unfit(code::WORKER, "The run is not known here any more.");
        }
        if let Some(why) = full {
            return unfit(code::BUSY, why);
        }
        let superseded = attempts.into_iter().map(|(_, run)| run);
        let superseded = superseded.filter(|run| self.cancel(*run)).collect();
        let run = RunNo(self.number());
        self.names.insert(name.clone(), run);
        let speech = Speech::new(control.run_id.clone(), self.profile);
        let stage = RecordStage::Open { alone_since_ms: None, is_canceled: false };
        let record = Record { name, digest, speech, watchers: BTreeSet::new(), stage };
        self.runs.insert(run, record);
        let watcher = self.watch(run, None);
        OpenResult::Started { run, watcher, superseded }
    }

    fn attempts(&self, credential: Credential, control: &RequestControl) -> Vec<(u32, RunNo)> {
        let all = name(credential, control, 0)..=name(credential, control, u32::MAX);
        self.names.range(all).map(|((.., attempt), run)| (*attempt, *run)).collect()
    }

    fn number(&mut self) -> u64 {
        self.last_no += 1;
        self.last_no
    }

    fn watch(&mut self, run: RunNo, after: Option<u64>) -> WatcherNo {
        let no = WatcherNo(self.number());
        if let Some(record) = self.runs.get_mut(&run) {
            record.watchers.insert(no);
            if let RecordStage::Open { alone_since_ms, .. } = &mut record.stage {
                *alone_since_ms = None;
            }
            let live_from = record.speech.len();
            let next = usize::try_from(after.unwrap_or(0)).unwrap_or(usize::MAX).min(live_from);
            let watcher = RunWatcher { run, next, live_from, waiting_bytes: 0, is_slow: false };
            self.watchers.insert(no, watcher);
        }
        no
    }

    /// The run says something. Readers that fall behind too far are given back: their next frame
    /// is the last.
    pub fn say(
        &mut self,
        now: Moment,
        run: RunNo,
        said: RunReport,
    ) -> Result<Vec<WatcherNo>, Overflow> {
        let Some(record) = self.runs.get_mut(&run).filter(|record| !record.is_ended()) else {
            return Ok(Vec::new());
        };
        let before = record.speech.len();
        record.speech.say(now, &self.limits, said)?;
        Ok(self.spread(run, before))
    }

    /// Keeps what a run has cost so far without a word; its end will tell.
    pub fn note_cost(&mut self, run: RunNo, cost_micro: Micro) {
        if let Some(record) = self.runs.get_mut(&run) {
            record.speech.note_cost(cost_micro);
        }
    }

    /// Counts what is new for each reader of a run, and finds those who are too slow.
    fn spread(&mut self, run: RunNo, before: usize) -> Vec<WatcherNo> {
        let mut slow = Vec::new();
        let Some(record) = self.runs.get(&run) else { return slow };
        let new_bytes: usize =
            (before..record.speech.len()).map(|index| record.speech.frame_bytes(index)).sum();
        for no in &record.watchers {
            let Some(watcher) = self.watchers.get_mut(no) else { continue };
            watcher.waiting_bytes += new_bytes;
            let frames = record.speech.len() - watcher.next.max(watcher.live_from);
            // One frame alone never makes a reader slow, however large it is.
            let is_behind = watcher.waiting_bytes > self.limits.queue_bytes_max && frames > 1;
            if is_behind && !watcher.is_slow {
                watcher.is_slow = true;
                slow.push(*no);
            }
        }
        slow
    }

    /// Ends a run: warnings, the final response, and that it is over. Only the first ending
    /// counts; `None` says that there was one already.
    pub fn finish(&mut self, now: Moment, run: RunNo, ending: Ending) -> Option<Status> {
        let record = self.runs.get_mut(&run).filter(|record| !record.is_ended())?;
        let before = record.speech.len();
        let is_canceled = ending.is_canceled();
        let reported = record.speech.cost_micro();
        let (response, warnings) = ending.judged(&self.limits, reported, &mut self.costless_told);
        let status = response.control.status;
        for warning in warnings {
            record.speech.warn(now, warning);
        }
        if is_canceled {
            record.speech.mark(Phase::Preempted);
        }
        record.speech.conclude(response);
        if !is_canceled {
            record.speech.mark(Phase::Completed);
        }
        record.stage = RecordStage::Ended { at_ms: now.ms };
        self.retained_bytes += record.speech.bytes();
        self.ended.push_back(run);
        self.spread(run, before);
        self.forget(now);
        status
    }

    /// What a reader gets next.
    pub fn next(&mut self, watcher: WatcherNo) -> NextFrames {
        let Some(reader) = self.watchers.get_mut(&watcher) else { return NextFrames::Close(OVER) };
        let Some(record) = self.runs.get(&reader.run) else { return NextFrames::Close(OVER) };
        if reader.is_slow {
            return NextFrames::Close(SLOW);
        }
        if reader.next < record.speech.len() {
            let index = reader.next;
            reader.next += 1;
            if index >= reader.live_from {
                let bytes = record.speech.frame_bytes(index);
                reader.waiting_bytes = reader.waiting_bytes.saturating_sub(bytes);
            }
            return NextFrames::Frames(record.speech.written(index));
        }
        if record.is_ended() { NextFrames::Close(OVER) } else { NextFrames::Wait }
    }

    /// A reader is gone.
    pub fn leave(&mut self, now: Moment, watcher: WatcherNo) {
        let Some(reader) = self.watchers.remove(&watcher) else { return };
        let Some(record) = self.runs.get_mut(&reader.run) else { return };
        record.watchers.remove(&watcher);
        if let (true, RecordStage::Open { alone_since_ms, .. }) =
            (record.watchers.is_empty(), &mut record.stage)
        {
            *alone_since_ms = Some(now.ms);
        }
        self.forget(now);
    }

    /// Somebody wants the run to stop. True for the first one, while the run is not over.
    pub fn cancel(&mut self, run: RunNo) -> bool {
        match self.runs.get_mut(&run).map(|record| &mut record.stage) {
            Some(RecordStage::Open { is_canceled, .. }) => !std::mem::replace(is_canceled, true),
            Some(RecordStage::Ended { .. }) | None => false,
        }
    }

    /// Time has passed: forgets what was kept for long enough, and gives the runs that nobody
    /// came back to, which have to be canceled.
    pub fn time(&mut self, now: Moment) -> Vec<RunNo> {
        self.forget(now);
        let grace_ms = self.limits.grace_ms;
        let is_due = |record: &Record| match record.stage {
            RecordStage::Open { alone_since_ms: Some(since_ms), is_canceled: false } => {
                now.ms.saturating_sub(since_ms) >= grace_ms
            }
            RecordStage::Open { .. } | RecordStage::Ended { .. } => false,
        };
        let due = self.runs.iter().filter(|(_, record)| is_due(record)).map(|(run, _)| *run);
        let due: Vec<RunNo> = due.collect();
        due.into_iter().filter(|run| self.cancel(*run)).collect()
    }

    /// When [`Self::time`] has something to do, on the clock that never goes back.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        let alone = self.runs.values().filter_map(|record| match record.stage {
            RecordStage::Open { alone_since_ms: Some(since_ms), is_canceled: false } => {
                Some(since_ms.saturating_add(self.limits.grace_ms))
            }
            RecordStage::Open { .. } | RecordStage::Ended { .. } => None,
        });
        let kept = self.ended.front().and_then(|run| match self.runs.get(run)?.stage {
            RecordStage::Ended { at_ms } => Some(at_ms.saturating_add(self.limits.retain_ms)),
            RecordStage::Open { .. } => None,
        });
        alone.chain(kept).min()
    }

    /// How many runs are not over.
    #[must_use]
    pub fn open_runs(&self) -> usize {
        self.runs.len() - self.ended.len()
    }

    /// The runs that are not over.
    #[must_use]
    pub fn open_run_nos(&self) -> Vec<RunNo> {
        let open = self.runs.iter().filter(|(_, record)| !record.is_ended());
        open.map(|(run, _)| *run).collect()
    }

    /// How many runs are kept although they are over.
    #[must_use]
    pub fn ended_runs(&self) -> usize {
        self.ended.len()
    }

    /// Forgets ended runs: those kept for long enough, and the oldest when all of them together
    /// are too large. A run that is still being read stays.
    fn forget(&mut self, now: Moment) {
        let mut at = 0;
        while let Some(run) = self.ended.get(at).copied() {
            let Some(record) = self.runs.get(&run) else {
                self.ended.remove(at);
                continue;
            };
            let is_old = match record.stage {
                RecordStage::Ended { at_ms } => {
                    now.ms.saturating_sub(at_ms) >= self.limits.retain_ms
                }
                RecordStage::Open { .. } => false,
            };
            if !is_old && self.retained_bytes <= self.limits.retain_bytes_max {
                break;
            }
            if !record.watchers.is_empty() {
                at += 1;
                continue;
            }
            self.retained_bytes = self.retained_bytes.saturating_sub(record.speech.bytes());
            self.names.remove(&record.name);
            self.runs.remove(&run);
            self.ended.remove(at);
        }
    }
}
