//! Tasks by what their workers carry, and the one check that every worker route makes.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use wharf_domain::RunSummary;
use wharf_domain::grant::worker::{CREDENTIAL_BYTES_MAX, HANDLE_PREFIX};
use wharf_domain::grant::{WorkerGrant, WorkerScope};
use wharf_domain::permission::ToolPattern;
use wharf_domain::run::TaskRef;
use wharf_engine::{Handle, RunQuery};
use wharf_vocab::{AttemptId, Code, Digest, Fault, RunKey, SeatId, Timestamp};

use crate::task::{Task, TaskPhase};

/// Tasks that are over and still known, so that their workers learn why.
const PAST_MAX: usize = 16_384;
/// Runs that are looked through, newest first, for tasks of before the start.
const RECALL_RUNS_MAX: usize = 65_536;
/// Runs that are read at once.
const RECALL_PAGE: usize = 1_000;
/// Failures from one address within a minute; further ones get another answer.
const FAILURES_MAX: u32 = 60;
const FAILURE_MS: u64 = 60_000;
/// Attempts of a task that a short credential may be of.
const ATTEMPTS_TRIED: u32 = 16;
/// Addresses whose failures are counted.
const SOURCES_MAX: usize = 4_096;

/// A task that is over.
#[derive(Debug, Clone)]
pub(crate) struct PastTask {
    /// Its run; unknown if it was over before the core was started.
    pub(crate) run: Option<RunKey>,
    /// The seat that executed it.
    pub(crate) seat: Option<SeatId>,
    pub(crate) attempt: u32,
    /// The final that was given.
    pub(crate) given: FinalRecord,
    /// What its short credential is known by.
    handle: Option<Digest>,
    /// Whether somebody told what it used up after it was over.
    reported: bool,
}

impl PastTask {
    /// A task that was given out and that nobody remembers.
    fn unknown(attempt: u32) -> Self {
        let given = FinalRecord::Nothing;
        Self { run: None, seat: None, attempt, given, handle: None, reported: false }
    }

    /// The final that was given, if one was. The journal of a run that is not over may still get
    /// one, from whoever takes its attempt up again.
    pub(crate) async fn given(&self, handle: &Handle) -> Result<Option<Digest>, Fault> {
        let key = match (&self.given, &self.run) {
            (FinalRecord::Final(digest), _) => return Ok(Some(digest.clone())),
            (FinalRecord::Journaled, Some(key)) => key,
            _ => return Ok(None),
        };
        let run = handle.runs().get(key).await?;
        let finals = run.finals.iter().find(|(attempt, _)| *attempt == self.attempt);
        Ok(finals.map(|(_, digest)| digest.clone()))
    }

    /// What is known of a task when it is over.
    pub(crate) fn of(task: &Task) -> Self {
        let given = match task.stand() {
            TaskPhase::Final(digest) => FinalRecord::Final(digest),
            TaskPhase::Open | TaskPhase::Over => FinalRecord::Nothing,
        };
        let (run, seat) = (Some(task.run().clone()), Some(task.seat.clone()));
        let attempt = task.number();
        Self { run, seat, attempt, given, handle: None, reported: false }
    }
}

/// What was given as the final of a task that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FinalRecord {
    /// Nothing.
    Nothing,
    /// This.
    Final(Digest),
    /// The run's journal knows.
    Journaled,
}

/// What a credential leads to.
#[derive(Clone)]
pub(crate) enum TaskMatch {
    /// A task that somebody works on, or whose final is being kept.
    Task(Arc<Task>),
    /// A task that is over.
    Past(PastTask),
}

impl TaskMatch {
    /// The seat that executes it, or did.
    pub(crate) fn seat(&self) -> Option<&SeatId> {
        match self {
            Self::Task(task) => Some(&task.seat),
            Self::Past(past) => past.seat.as_ref(),
        }
    }
}

/// All tasks.
#[derive(Default)]
pub(crate) struct Tasks {
    state: Mutex<TaskTable>,
    /// Whether tasks of before the start are known, too.
    recalled: tokio::sync::OnceCell<()>,
}

#[derive(Default)]
struct TaskTable {
    open: HashMap<String, Arc<Task>>,
    /// Names of open tasks by their attempts.
    attempts: HashMap<AttemptId, String>,
    past: HashMap<String, PastTask>,
    /// Names of past tasks, oldest first.
    order: VecDeque<String>,
    /// Tasks by the digests of their short credentials.
    handles: HashMap<Digest, String>,
    failures: HashMap<IpAddr, (Timestamp, u32)>,
}

impl Tasks {
    pub(crate) fn open(&self, handle: &Handle, task: &Arc<Task>) {
        let digest = short_digest(handle, &task.id, task.number());
        let mut state = self.state.lock();
        // It may have been read from the store before it was taken up again.
        if state.forget(&task.id) {
            state.order.retain(|id| *id != task.id);
        }
        if let Some(digest) = digest {
            state.handles.insert(digest, task.id.clone());
        }
        let attempt = task.attempt.dispatch().attempt_id.clone();
        state.attempts.insert(attempt, task.id.clone());
        state.open.insert(task.id.clone(), Arc::clone(task));
    }

    /// The task of an attempt that is open.
    pub(crate) fn of_attempt(&self, attempt: &AttemptId) -> Option<Arc<Task>> {
        let state = self.state.lock();
        state.open.get(state.attempts.get(attempt)?).cloned()
    }

    /// A task is over; what is known of it is small.
    pub(crate) fn over(&self, handle: &Handle, task: &Task) {
        let short = short_digest(handle, &task.id, task.number());
        let past = PastTask { handle: short, ..PastTask::of(task) };
        let mut state = self.state.lock();
        if state.open.remove(&task.id).is_none() {
            return;
        }
        state.attempts.remove(&task.attempt.dispatch().attempt_id);
        state.past.insert(task.id.clone(), past);
        state.order.push_back(task.id.clone());
        if state.order.len() > PAST_MAX
            && let Some(oldest) = state.order.pop_front()
        {
            state.forget(&oldest);
        }
    }

    /// Reads which tasks there were before the start, once: whoever worked on one then may still
    /// have something to say, or to learn.
    pub(crate) async fn recall(&self, handle: &Handle) -> Result<(), Fault> {
        self.recalled.get_or_try_init(|| self.read_runs(handle)).await.copied()
    }

    async fn read_runs(&self, handle: &Handle) -> Result<(), Fault> {
        let mut query = RunQuery { limit: RECALL_PAGE, ..RunQuery::default() };
        let mut seen = 0;
        while seen < RECALL_RUNS_MAX {
            let page = handle.run_lists().list(query.clone()).await?;
            seen += page.runs.len();
            for run in page.runs.iter().filter(|run| handle.seats().is_seat(&run.tool.provider())) {
                for attempt in 1..=run.attempt {
                    let task = TaskRef::of(&run.key, run.created_at, attempt);
                    if !self.remember(handle, run, task) {
                        return Ok(());
                    }
                }
            }
            match page.next {
                Some(next) => query.before = Some(next),
                None => break,
            }
        }
        Ok(())
    }

    /// Remembers a task of before the start; `false` if there is no room for more.
    fn remember(&self, handle: &Handle, run: &RunSummary, task: TaskRef) -> bool {
        let TaskRef { task_id, attempt } = task;
        let short = short_digest(handle, &task_id, attempt);
        let mut state = self.state.lock();
        if state.order.len() >= PAST_MAX {
            return false;
        }
        if state.open.contains_key(&task_id) || state.past.contains_key(&task_id) {
            return true;
        }
        if let Some(short) = &short {
            state.handles.insert(short.clone(), task_id.clone());
        }
        let past = PastTask {
            run: Some(run.key.clone()),
            seat: SeatId::new(run.tool.provider().as_str()).ok(),
            attempt,
            given: FinalRecord::Journaled,
            handle: short,
            reported: false,
        };
        state.past.insert(task_id.clone(), past);
        // Whoever is older is forgotten first.
        state.order.push_front(task_id);
        true
    }

    /// The tasks of a seat that are open.
    pub(crate) fn of_seat(&self, seat: &SeatId) -> Vec<Arc<Task>> {
        self.state.lock().open.values().filter(|task| task.seat == *seat).cloned().collect()
    }

    /// Whether nobody has told before what a task that is over used up.
    pub(crate) fn is_first_report(&self, task_id: &str) -> bool {
        let mut state = self.state.lock();
        let past = state.past.get_mut(task_id);
        past.is_some_and(|past| !std::mem::replace(&mut past.reported, true))
    }

    /// Whether a credential leads to a task that is known. Nothing is checked.
    pub(crate) fn knows(&self, handle: &Handle, bearer: Option<&str>) -> bool {
        let Some(text) = bearer.filter(|text| text.len() <= CREDENTIAL_BYTES_MAX) else {
            return false;
        };
        if text.starts_with(HANDLE_PREFIX) {
            return self.state.lock().handles.contains_key(&digest(text));
        }
        handle.seals().verify_worker(text).is_some_and(|grant| self.find(&grant.task_id).is_some())
    }

    /// Checks what a worker carries, in this order: form and seal, time, scope, task. Whoever
    /// fails before the scope learns nothing but that it failed.
    pub(crate) fn check(
        &self,
        handle: &Handle,
        bearer: Option<&str>,
        wanted: &WorkerScope,
        task_id: Option<&str>,
    ) -> Result<(TaskMatch, WorkerGrant), Fault> {
        let text = bearer.filter(|text| text.len() <= CREDENTIAL_BYTES_MAX).ok_or_else(unknown)?;
        let (grant, found) = match text.starts_with(HANDLE_PREFIX) {
            true => self.by_handle(handle, text, task_id)?,
            false => {
                let grant = handle.seals().verify_worker(text).ok_or_else(unknown)?;
                let gone = || TaskMatch::Past(PastTask::unknown(grant.attempt));
                let found = self.find(&grant.task_id).unwrap_or_else(gone);
                (grant, found)
            }
        };
        if grant.expire_at.saturating_mul(1_000) <= handle.now().0 {
            return Err(unknown());
        }
        // A worker's right ends with the token that its seat was made with.
        if found.seat().is_some_and(|seat| handle.seats().check_current(seat).is_err()) {
            return Err(unknown());
        }
        let allowed = match wanted {
            WorkerScope::Invoke(_) => !grant.tools().is_empty(),
            wanted => grant.scopes.contains(wanted),
        };
        if !allowed {
            let message = format!("This credential does not give {wanted}.");
            return Err(Fault::new(Code::PermissionDenied, message));
        }
        if task_id.is_some_and(|task_id| task_id != grant.task_id) {
            return Err(another_task());
        }
        Ok((found, grant))
    }

    fn by_handle(
        &self,
        handle: &Handle,
        text: &str,
        named: Option<&str>,
    ) -> Result<(WorkerGrant, TaskMatch), Fault> {
        let known = self.state.lock().handles.get(&digest(text)).cloned();
        let known = known.and_then(|task_id| Some((self.find(&task_id)?, task_id)));
        let (found, task_id) = match (known, named) {
            (Some(known), _) => known,
            // Nobody remembers it, but whoever names its task can show that it was given out.
            (None, Some(named)) => {
                let wanted = Some(digest(text));
                let is_of = |attempt: &u32| short_digest(handle, named, *attempt) == wanted;
                let attempt = (1..=ATTEMPTS_TRIED).find(is_of).ok_or_else(unknown)?;
                (TaskMatch::Past(PastTask::unknown(attempt)), named.to_owned())
            }
            (None, None) => return Err(unknown()),
        };
        let grant = match &found {
            TaskMatch::Task(task) => grant(handle, task),
            // Nothing can be done with it, whatever it once gave; so all that is left is to say why.
            TaskMatch::Past(past) => WorkerGrant {
                agent_id: String::new(),
                scopes: [usual_scopes(), vec![WorkerScope::Invoke(ToolPattern::any())]].concat(),
                task_id,
                attempt: past.attempt,
                issued_at: 0,
                expire_at: u64::MAX / 1_000,
                nonce: String::new(),
            },
        };
        Ok((grant, found))
    }

    pub(crate) fn find(&self, task_id: &str) -> Option<TaskMatch> {
        let state = self.state.lock();
        let open = state.open.get(task_id).cloned().map(TaskMatch::Task);
        open.or_else(|| state.past.get(task_id).cloned().map(TaskMatch::Past))
    }

    /// Counts a failure; `false` if the address has failed too often within a minute.
    pub(crate) fn may_fail(&self, source: IpAddr, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        let recent = |since: Timestamp| now.ms_since(since) < FAILURE_MS;
        if state.failures.len() >= SOURCES_MAX && !state.failures.contains_key(&source) {
            state.failures.retain(|_, (since, _)| recent(*since));
            if state.failures.len() >= SOURCES_MAX {
                return false;
            }
        }
        let (since, count) = state.failures.entry(source).or_insert((now, 0));
        if !recent(*since) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= FAILURES_MAX
    }
}

impl TaskTable {
    /// Forgets a task that is over; `false` if there is none of this name.
    fn forget(&mut self, task_id: &str) -> bool {
        let Some(past) = self.past.remove(task_id) else { return false };
        if let Some(short) = past.handle {
            self.handles.remove(&short);
        }
        true
    }
}

/// What a worker of a task may do unless more was approved.
fn usual_scopes() -> Vec<WorkerScope> {
    vec![
        WorkerScope::PromptRead,
        WorkerScope::ResultWrite,
        WorkerScope::ArtifactWrite,
        WorkerScope::Ask,
    ]
}

/// The right of a task's worker.
pub(crate) fn grant(handle: &Handle, task: &Task) -> WorkerGrant {
    let dispatch = task.attempt.dispatch();
    let now_s = handle.now().0 / 1_000;
    // An attempt that waits for an ask goes on after its deadline, so the right lasts longer; it
    // ends with the attempt all the same.
    let latest = dispatch.deadline.map_or(0, |deadline| deadline.0 / 1_000) + LONGER_S;
    let mut scopes = usual_scopes();
    scopes.extend(task.tools().into_iter().map(WorkerScope::Invoke));
    WorkerGrant {
        agent_id: task.agent().to_owned(),
        scopes,
        task_id: task.id.clone(),
        attempt: task.number(),
        issued_at: now_s,
        expire_at: latest.max(now_s + LONGER_S),
        nonce: dispatch.attempt_id.to_string(),
    }
}

/// How much longer than its attempt a right lasts: as long as a question may wait.
const LONGER_S: u64 = wharf_vocab::limits::QUESTION_DEADLINE_MS / 1_000;

/// What the short credential of an attempt's worker is known by.
fn short_digest(handle: &Handle, task_id: &str, attempt: u32) -> Option<Digest> {
    handle.seals().worker_handle(task_id, attempt).map(|text| digest(&text))
}

fn digest(text: &str) -> Digest {
    Digest::of(&[text.as_bytes()])
}

/// A good credential at the wrong door.
pub(crate) fn another_task() -> Fault {
    Fault::new(Code::PermissionDenied, "This credential is for another task.")
}

/// The one answer to everything that is not a credential.
pub(crate) fn unknown() -> Fault {
    Fault::new(Code::AuthInvalid, "This credential is not valid here.")
}
