//! What a server sends.

use wharf_vocab::Object;
use wharf_wire::run_v1::limits::STEPS_OPEN_MAX;
use wharf_wire::run_v1::{
    EventData, Failure, FromServer, LogData, LogLevel, Phase, Response, Status, StepMessage, close,
    code, decode_from_server,
};

use super::{Ended, RunClient, RunClientEvent, RunClientState};
use crate::run::judge_cost;
use crate::{Moment, Outgoing};

impl RunClient {
    /// A text message arrived.
    pub(super) fn received(&mut self, now: Moment, text: &str) {
        match self.state {
            RunClientState::Apart | RunClientState::Over { .. } => return,
            RunClientState::Asked { .. } => {}
            RunClientState::Open { .. } => self.heard(now),
        }
        if text.len() > self.config.message_bytes_max {
            return self.too_large();
        }
        let frame = match decode_from_server(text) {
            Ok(frame) => frame,
            Err(why) => return self.breach(&format!("A message cannot be read: {why}.")),
        };
        let named = frame.run_id();
        if named.is_some_and(|run_id| run_id != self.request.control.run_id) {
            return self.breach("A message names another run.");
        }
        if matches!(self.state, RunClientState::Asked { .. }) {
            self.accepted(now, matches!(frame, FromServer::Ack(_)));
        }
        self.note_cost(&frame);
        match frame {
            FromServer::Unknown => {}
            FromServer::Ack(ack) => {
                self.numbered |= ack.control.seq.is_some();
                let asked = self.request.control.tool.as_ref();
                if asked.zip(ack.tool.as_ref()).is_some_and(|(asked, served)| !asked.fits(served)) {
                    self.outgoing.push_back(Outgoing::close(close::POLICY, ""));
                    let message = "The tool server says that it serves another tool.";
                    return self.broken(code::WRONG_TOOL, message);
                }
                if !std::mem::take(&mut self.may_ack) {
                    self.breach("The request was acknowledged twice.");
                }
            }
            frame => self.take(now, frame),
        }
    }

    /// The server knows the attempt: it said so, or it speaks of it already.
    fn accepted(&mut self, now: Moment, acked: bool) {
        self.acked = true;
        self.state = RunClientState::Open { heard: now.ms, pinged: false };
        self.events.push_back(RunClientEvent::Accepted { acked });
    }

    /// Keeps what the attempt has cost so far, before anything can make the message a breach.
    fn note_cost(&mut self, frame: &FromServer) {
        let is_final = matches!(frame, FromServer::Response(it) if it.control.is_final);
        match frame.cost_micro().map(judge_cost) {
            Some(Ok(cost)) if cost > self.cost_micro => {
                self.cost_micro = cost;
                // What the last message says is told with how the attempt ended.
                if !is_final {
                    self.events.push_back(RunClientEvent::Cost(cost));
                }
            }
            // A wrong cost at the end fails the attempt; before it the run goes on.
            Some(Err(why)) if !is_final && !std::mem::replace(&mut self.cost_warned, true) => {
                let text = format!("{why} It is left out.");
                self.events.push_back(RunClientEvent::Log { level: LogLevel::Warn, text });
            }
            Some(_) | None => {}
        }
    }

    /// A binary message arrived, which no server may send.
    pub(super) fn received_binary(&mut self) {
        if matches!(self.state, RunClientState::Asked { .. } | RunClientState::Open { .. }) {
            self.outgoing.push_back(Outgoing::close(close::UNSUPPORTED, ""));
            self.broken(code::PROTOCOL, "The tool server sent a message that is not text.");
        }
    }

    /// A message was larger than the connection takes.
    pub(super) fn too_large(&mut self) {
        if matches!(self.state, RunClientState::Asked { .. } | RunClientState::Open { .. }) {
            let most = self.config.message_bytes_max;
            self.outgoing.push_back(Outgoing::close(close::TOO_LARGE, ""));
            self.broken(
                code::LIMIT,
                &format!("The tool server sent a message of more than {most} bytes."),
            );
        }
    }

    fn take(&mut self, now: Moment, frame: FromServer) {
        let is_final = matches!(&frame, FromServer::Response(it) if it.control.is_final);
        if let Some(seq) = frame.seq() {
            self.numbered = true;
            // The end was not seen before, whatever its number: else nothing would be taken.
            if seq <= self.last && !is_final {
                return;
            }
            if seq.saturating_sub(1) > self.last {
                self.events.push_back(RunClientEvent::Gap { from: self.last + 1, to: seq - 1 });
            }
            self.last = self.last.max(seq);
        }
        match frame {
            FromServer::Log(log) => self.line(now, log.data),
            FromServer::Event(event) => self.phase(now, event.data),
            FromServer::Token(token) => self.text(token.content.text),
            FromServer::Step(step) => self.step(step),
            FromServer::Response(response) if is_final => self.finish(now, response),
            FromServer::Response(response) => self.partial(response.outputs),
            FromServer::Ack(_) | FromServer::Unknown => {}
        }
    }

    fn line(&mut self, now: Moment, mut data: LogData) {
        if self.may_pass(now) {
            data.msg.truncate(data.msg.floor_char_boundary(self.config.line_bytes_max));
            self.events.push_back(RunClientEvent::Log { level: data.level, text: data.msg });
        }
    }

    fn phase(&mut self, now: Moment, data: EventData) {
        // What the tool says of it is more than the word of the protocol.
        let phase = data.text.map_or(data.phase, Phase::Other);
        // Without a number a checkpoint says only that the server is there.
        if phase == Phase::Checkpoint && data.progress.is_none() {
            return;
        }
        if self.may_pass(now) {
            let progress = data.progress.filter(|it| it.is_finite()).map(|it| it.clamp(0.0, 1.0));
            self.events.push_back(RunClientEvent::Phase { phase, progress });
        }
    }

    fn may_pass(&mut self, now: Moment) -> bool {
        match self.pace.pass(now.ms) {
            Ok(dropped) => {
                self.events.extend(dropped.map(left_out));
                true
            }
            Err(()) => false,
        }
    }

    fn partial(&mut self, outputs: Object) {
        if self.few_enough(&outputs) && !outputs.is_empty() {
            self.events.push_back(RunClientEvent::Partial(outputs));
        }
    }

    fn text(&mut self, text: String) {
        if !text.is_empty() {
            self.events.push_back(RunClientEvent::Text(text));
        }
    }

    /// The attempt's code asks for a step, perhaps once more.
    fn step(&mut self, step: Box<StepMessage>) {
        if !self.steps.insert(step.step.clone()) {
            return;
        }
        if self.steps.len() > STEPS_OPEN_MAX {
            self.outgoing.push_back(Outgoing::close(close::POLICY, ""));
            let message = format!("The tool server asked for more than {STEPS_OPEN_MAX} steps.");
            return self.broken(code::LIMIT, &message);
        }
        self.events.push_back(RunClientEvent::Step(step));
    }

    fn few_enough(&mut self, outputs: &Object) -> bool {
        let most = self.config.outputs_max;
        if outputs.len() <= most {
            return true;
        }
        self.outgoing.push_back(Outgoing::close(close::POLICY, ""));
        self.broken(code::LIMIT, &format!("The tool server gave more than {most} outputs."));
        false
    }

    fn finish(&mut self, now: Moment, response: Response) {
        if !self.few_enough(&response.outputs) {
            return;
        }
        let said = response.control.cost_micro.as_ref().filter(|cost| !cost.is_null());
        let cost = said.map(judge_cost).transpose();
        let ended = match (response.control.status, cost) {
            (None, _) => {
                return self.breach("The final response says neither success nor error.");
            }
            (Some(_), Err(why)) => Ended::Broken { code: code::COST, message: why.to_string() },
            (Some(Status::Success), Ok(cost)) => {
                if cost.is_none() && self.cost_micro == 0 {
                    let text = "The tool server reported no cost; it counts as 0.".to_owned();
                    self.events.push_back(RunClientEvent::Log { level: LogLevel::Warn, text });
                }
                let (outputs, written) = (response.outputs, response.control.written);
                Ended::Succeeded { outputs, written, cost_micro: self.cost_micro }
            }
            (Some(Status::Error), Ok(_)) => {
                let error = response.error;
                let Failure { code, message } = error.unwrap_or_else(Failure::unknown);
                Ended::Failed { code, message, cost_micro: self.cost_micro }
            }
        };
        self.conclude(ended);
        self.state =
            RunClientState::Over { until: Some(now.ms.saturating_add(self.config.linger_ms)) };
    }

    /// The server broke the protocol: the connection and the attempt are over.
    fn breach(&mut self, what: &str) {
        self.outgoing.push_back(Outgoing::close(close::PROTOCOL, ""));
        self.broken(code::PROTOCOL, &format!("The tool server broke the protocol. {what}"));
    }

    fn broken(&mut self, code: &'static str, message: &str) {
        self.conclude(Ended::Broken { code, message: message.to_owned() });
    }
}

pub(super) fn left_out(count: u64) -> RunClientEvent {
    let text = format!("{count} lines came too fast and were left out.");
    RunClientEvent::Log { level: LogLevel::Warn, text }
}
