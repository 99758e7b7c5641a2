//! Attempts on their way to the agent and back: counted, queued, sent, ended.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use wharf_domain::provider::ProviderLimits;
use wharf_domain::run::AttemptError;
use wharf_domain::{Level, Progress, json_weight};
use wharf_engine::{Attempt, AttemptEnd, AttemptOutputs, AttemptRef, Dispatch, InputCheck, Reach};
use wharf_hosting::{Assignment, CallFolder, CallFolders, Permit, canceled_unsent};
use wharf_ports::launcher::Exit;
use wharf_protocol::agent::{CallEnd, CancelCall};
use wharf_socket::Owner as _;
use wharf_vocab::{AttemptId, Code, Executed, Fault, Micro};
use wharf_wire::agent_v1::CallId;

use super::AgentConnection;
use super::deliver::{self, Delivery};
use super::prepare::{self, PreparedCall, ReadyCall};
use crate::{from_wire, to_wire};

/// How long the end of a process may take to be known after its connection broke.
const EXIT_KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// A call that was sent.
pub(super) struct SentCall {
    pub(super) attempt: Attempt,
    room: Option<CallFolder>,
    /// Held so that no more calls are open than may be.
    permit: Permit,
}

impl AgentConnection {
    /// Takes an attempt: it is sent or refused.
    pub(super) async fn arrive(&mut self, assignment: Assignment) {
        match self.admit_call(&assignment.attempt) {
            Ok(()) => self.send_call(assignment).await,
            Err(fault) => turn_back(assignment, fault).await,
        }
    }

    fn admit_call(&mut self, attempt: &AttemptRef) -> Result<(), Fault> {
        let Some(peer) = &mut self.peer else { return Err(gone()) };
        peer.bounds.refresh(&self.shared, &peer.agent, &peer.live);
        let limits = &peer.bounds.limits;
        let inputs = &attempt.dispatch().spec.inputs;
        if let Some(max) = limits.input_bytes
            && json_weight(inputs) as u64 > max
        {
            let message = format!("The inputs are larger than the {max} bytes the agent takes.");
            return Err(Fault::new(Code::ToolInputTooLarge, message));
        }
        peer.live.count(limits.rate)
    }

    async fn send_call(&mut self, assignment: Assignment) {
        let room = match self.room_for(&assignment.attempt) {
            Ok(room) => room,
            Err(fault) => return turn_back(assignment, fault).await,
        };
        let Some(peer) = &self.peer else { return turn_back(assignment, gone()).await };
        let (reach, places) = (peer.reach, Arc::clone(&peer.places));
        let coming = PreparedCall { assignment, room, reach, places };
        if !prepare::takes_time(&coming.attempt().data()) {
            return self.send_prepared(coming).await;
        }
        let (attempt, stop) =
            (coming.attempt().dispatch().attempt_id.clone(), CancellationToken::new());
        self.preparing.insert(attempt, stop.clone());
        let fetch = prepare::fetch(coming, stop, self.ready.clone());
        self.shared.host.tasks().spawn("preparing a call", fetch);
    }

    /// The files of a call are there, or will never be.
    pub(super) async fn prepared(&mut self, ready: ReadyCall) {
        let ReadyCall { coming, fetched } = ready;
        let stop = self.preparing.remove(&coming.attempt().dispatch().attempt_id);
        let canceled = stop.is_none_or(|stop| stop.is_cancelled());
        match fetched {
            Some(Ok(())) if !canceled => self.send_prepared(coming).await,
            Some(Err(fault)) if !canceled => {
                self.leave(coming.room, true);
                turn_back(coming.assignment, fault).await;
            }
            _ => {
                self.leave(coming.room, true);
                call_off(coming.assignment).await;
            }
        }
    }

    async fn send_prepared(&mut self, coming: PreparedCall) {
        let PreparedCall { assignment, room, .. } = coming;
        let Assignment { attempt, permit } = assignment;
        let now = self.now();
        let unlimited = ProviderLimits::default();
        let reach = self.peer.as_ref().map_or(Reach::Folder, |peer| peer.reach);
        let data = prepare::data_of(&attempt, reach, room.as_ref()).await;
        let limits = self.peer.as_ref().map_or(&unlimited, |peer| &peer.bounds.limits);
        let request = data.and_then(|data| to_wire::call(&attempt, limits, data, room.as_ref()));
        attempt.handed_over();
        let sent = request.and_then(|request| {
            let call_id = request.call_id.clone();
            self.session.call(now, request).map(|()| call_id)
        });
        match sent {
            Ok(call_id) => {
                self.warn_of_inputs(&attempt).await;
                let peer = self.peer.as_ref();
                self.meter.begin(|| peer.and_then(|peer| peer.live.started(&peer.launch)));
                self.calls.insert(call_id, SentCall { attempt, room, permit });
            }
            Err(fault) => {
                self.leave(room, true);
                turn_back(Assignment { attempt, permit }, fault).await;
            }
        }
    }

    /// Says in the run's log that inputs were let pass that do not fit, where the owner wants so.
    async fn warn_of_inputs(&self, attempt: &AttemptRef) {
        let Some(peer) = &self.peer else { return };
        if self.shared.options.rule_of(&peer.agent).input_check != InputCheck::Warn {
            return;
        }
        if let Err(fault) = attempt.check_inputs().await {
            let text = format!("The call was made all the same. {}", fault.message);
            // When the engine is gone there is nobody left to tell.
            let _ = attempt.progress(vec![Progress::Log { level: Level::Warn, text }]).await;
        }
    }

    /// A call has cost so much by now, also after its end.
    pub(super) async fn cost(&self, call_id: &CallId, so_far_micro: Micro) {
        // When the engine is gone there is nobody left to tell, here and below.
        if let Some(call) = self.calls.get(call_id) {
            let _ = call.attempt.report_cost(so_far_micro).await;
        } else if let Some((attempt_id, run)) =
            self.given_up.iter().find(|(attempt_id, _)| attempt_id.as_str() == call_id.as_str())
        {
            let _ = self.shared.handle.runs().report_cost(run, attempt_id, so_far_micro).await;
        }
    }

    /// Remembers an attempt whose call may still be under way at the agent.
    fn remember(&mut self, attempt: &AttemptRef) {
        if self.given_up.len() >= self.shared.options.limits.tombstones_max {
            self.given_up.pop_front();
        }
        let Dispatch { attempt_id, run, .. } = attempt.dispatch();
        self.given_up.push_back((attempt_id.clone(), run.clone()));
    }

    /// A fenced agent gets folders for each call, since it sees little else.
    fn room_for(&mut self, attempt: &AttemptRef) -> Result<Option<CallFolder>, Fault> {
        let Some(peer) = &mut self.peer else { return Ok(None) };
        if !peer.bounds.fenced {
            return Ok(None);
        }
        let made = match &mut peer.rooms {
            Some(rooms) => rooms.take(&attempt.dispatch().attempt_id),
            None => CallFolders::open(&peer.places)
                .and_then(|rooms| peer.rooms.insert(rooms).take(&attempt.dispatch().attempt_id)),
        };
        made.map(Some).map_err(|error| {
            tracing::warn!(provider = %peer.agent, %error, "no folder for a call can be made");
            // The agent may have moved the folders away; the next call starts afresh.
            peer.rooms = None;
            Fault::new(Code::ToolUnavailable, "No folder for the call's files can be made.")
        })
    }

    /// Gives a room back; one that the agent may still use is not used again.
    fn leave(&mut self, room: Option<CallFolder>, over: bool) {
        let rooms = self.peer.as_mut().and_then(|peer| peer.rooms.as_mut());
        if let (Some(rooms), Some(room)) = (rooms, room) {
            if over { rooms.give_back(room) } else { rooms.throw_away(&room) }
        }
    }

    pub(super) async fn call_ended(&mut self, call_id: &CallId, end: CallEnd) {
        let Some(SentCall { attempt, room, mut permit }) = self.calls.remove(call_id) else {
            return;
        };
        if let Some(cpu_ms) = self.meter.end(end.unresponsive) {
            attempt.used_cpu_ms(cpu_ms);
        }
        self.invokes.parent_ended(call_id);
        if end.unresponsive {
            permit.unresponsive();
        }
        let AttemptEnd { result, cost_micro } = from_wire::ended(end);
        match result {
            Ok(outputs) if deliver::takes_time(&attempt, &outputs) => {
                self.deliver(SentCall { attempt, room, permit }, outputs, cost_micro);
            }
            Ok(outputs) => {
                self.leave(room, true);
                drop(permit);
                // When the engine is gone there is nobody left to tell, here and below.
                let _ = attempt.succeeded(outputs, cost_micro).await;
            }
            Err(error) => {
                self.leave(room, false);
                drop(permit);
                self.remember(&attempt);
                let exit = self.exit_behind(&error);
                let end = AttemptEnd::new(Err(error), cost_micro);
                match exit {
                    Some(exit) => {
                        let telling = end_with_exit(attempt, end, exit);
                        self.shared.host.tasks().spawn("telling why a call was lost", telling);
                    }
                    None => drop(attempt.ended(end).await),
                }
            }
        }
    }

    /// The end of the process that explains why a call was lost, if it was.
    fn exit_behind(&self, error: &AttemptError) -> Option<BoxFuture<'static, Exit>> {
        let AttemptError::Failed(fault, _) = error else { return None };
        let peer = self.peer.as_ref().filter(|_| fault.is(Code::ToolAgentLost))?;
        peer.process.as_ref().map(|process| process.exited())
    }

    /// Ends a call that has to do with files, beside the connection.
    fn deliver(&self, call: SentCall, outputs: AttemptOutputs, cost_micro: u64) {
        let Some(peer) = &self.peer else { return };
        let SentCall { attempt, room, permit } = call;
        let delivering = Delivery {
            attempt,
            room,
            outputs,
            cost_micro,
            reach: peer.reach,
            bytes_max: peer.bounds.limits.usage.disk_bytes.unwrap_or(u64::MAX),
            permit,
            places: Arc::clone(&peer.places),
        };
        let deliver = deliver::deliver(self.shared.handle.clone(), delivering);
        self.shared.host.tasks().spawn("storing the outputs of a call", deliver);
    }

    pub(super) async fn cancel(&mut self, attempt_id: &AttemptId, reason: String, grace_ms: u64) {
        if let Some(stop) = self.preparing.get(attempt_id) {
            // The attempt ends once whoever prepares it has let go of it.
            stop.cancel();
        } else if let Ok(call_id) = CallId::new(attempt_id.as_str()) {
            let cancel = CancelCall { reason: Some(reason), deadline_ms: Some(grace_ms) };
            // A call that is over needs no cancel.
            let _ = self.session.cancel(self.now(), &call_id, cancel);
        }
    }
}

/// Ends a call that was lost, with how its process ended: the connection breaks first, and why is
/// known a moment later.
async fn end_with_exit(attempt: Attempt, mut end: AttemptEnd, exit: BoxFuture<'static, Exit>) {
    if let Ok(exit) = tokio::time::timeout(EXIT_KNOWN_WITHIN, exit).await
        && let Err(AttemptError::Failed(fault, _)) = &mut end.result
    {
        // What the program said last is for its owner, not for whoever called.
        fault.message = format!("{}: {}.", fault.message.trim_end_matches('.'), exit.how);
    }
    let _ = attempt.ended(end).await;
}

pub(super) fn gone() -> Fault {
    Fault::new(Code::ToolAgentLost, "The agent went away.")
}

/// Ends an attempt that was never sent. Its room is free before others learn of its end.
pub(super) async fn turn_back(Assignment { attempt, permit }: Assignment, fault: Fault) {
    drop(permit);
    // When the engine is gone there is nobody left to tell.
    let _ = attempt.failed(fault, Executed::No).await;
}

/// Ends an attempt that was canceled before it was sent.
async fn call_off(Assignment { attempt, permit }: Assignment) {
    drop(permit);
    let result = Err(canceled_unsent("call"));
    // When the engine is gone there is nobody left to tell.
    let _ = attempt.ended(AttemptEnd::new(result, 0)).await;
}
