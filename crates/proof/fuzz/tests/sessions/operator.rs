//! A seat's connection.

use std::collections::BTreeSet;

use wharf_fuzz::{Dice, Fuzz, Met, Stock};
use wharf_protocol::operator::{SeatEvent, SeatLimits, SeatSession};
use wharf_protocol::{Incoming, Moment, Outgoing, Session as _};
use wharf_vocab::{Code, Fault, Timestamp};
use wharf_wire::operator_v1::{CoreMessage, Pending};

const ASKS: [&str; 2] = ["q-1", "q-2"];
const HOOKS: [&str; 2] = ["h-1", "h-2"];
const SPAWNS: [&str; 2] = ["s-1", "s-2"];
const WORDS: [&str; 6] = ["q-1", "q-2", "h-1", "h-2", "s-1", "s-2"];
/// Long enough that a session has some time before it had too many violations in a minute.
const PACE_MS: u64 = 2_000;

fn moment(ms: u64) -> Moment {
    Moment::new(ms, Timestamp(0))
}

struct Seat {
    session: SeatSession,
    taken: BTreeSet<String>,
    now: u64,
}

impl Seat {
    fn sit_down() -> Self {
        let mut session = SeatSession::new(SeatLimits::default(), moment(0));
        for req_id in ASKS {
            session.send(&CoreMessage::Ask {
                req_id: req_id.to_owned(),
                parent_req_id: None,
                task_id: "ST-1".to_owned(),
                question: "Which?".into(),
                pending: Pending::default(),
            });
        }
        for req_id in HOOKS {
            session.send(&CoreMessage::HookBefore {
                req_id: req_id.to_owned(),
                parent_req_id: None,
                task_id: "ST-1".to_owned(),
                agent: "coder".to_owned(),
                attempt: 1,
                pending: Pending::default(),
            });
        }
        while session.poll_send().is_some() {}
        Self { session, taken: BTreeSet::new(), now: 0 }
    }

    fn meet(&mut self, dice: &mut Dice, frame: &[u8]) -> Met {
        self.now += PACE_MS;
        let now = moment(self.now);
        match std::str::from_utf8(frame) {
            Ok(text) => self.session.receive(now, Incoming::Text(text)),
            Err(_) => self.session.receive(now, Incoming::Bytes(frame)),
        }
        let mut met = Met::Taken;
        while let Some(event) = self.session.poll_event() {
            let SeatEvent::Reply(reply) = event else { panic!("no notice was sent") };
            let id = reply.req_id().to_owned();
            let is_spawn = !ASKS.contains(&id.as_str()) && !HOOKS.contains(&id.as_str());
            assert!(is_spawn || !self.taken.contains(&id), "{id} was answered twice");
            if is_spawn && !SPAWNS.contains(&id.as_str()) {
                self.session.unknown(now, &id);
                met = Met::Refused;
            } else if dice.one_in(3) {
                let fault = Fault::new(Code::AskAnswerInvalid, "It does not fit.");
                self.session.refused(&id, &fault);
                met = Met::Refused;
            } else {
                self.session.taken(&id);
                self.taken.insert(id);
            }
        }
        let mut bytes = 0;
        while let Some(out) = self.session.poll_send() {
            match out {
                Outgoing::Text(text) => {
                    bytes += text.len();
                    met = if met == Met::Taken { Met::Refused } else { met };
                }
                Outgoing::Bytes(_) | Outgoing::Ping | Outgoing::Close { .. } => {}
            }
        }
        assert!(bytes <= 4_096, "one frame makes the core say {bytes} bytes");
        if self.session.closed().is_some() {
            met = Met::Cut;
        }
        if met == Met::Cut || self.taken.len() >= ASKS.len() + HOOKS.len() {
            *self = Self::sit_down();
        }
        met
    }
}

#[test]
fn o008_fuzz_operator() {
    let stock = Stock::of_wire("operator_v1/operator", &[""], &WORDS)
        .with_name("q-5eask-1", "q-1")
        .with_name("h-5eask-1", "h-1")
        .with_name("sp-5f1c2b0a9d8e7f60718293a4b5c6d7e8", "s-1");
    let mut seat = Seat::sit_down();
    Fuzz::new("operator").run(&stock, |dice, frame| seat.meet(dice, frame));
}
