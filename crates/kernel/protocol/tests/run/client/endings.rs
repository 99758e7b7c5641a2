//! How attempts end: exactly once, whatever a server does.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wharf_protocol::run::client::{Config, Ended, RunClient, RunClientEvent};
use wharf_protocol::{Closed, Outgoing, Session as _};
use wharf_wire::run_v1::{LogLevel, ToolName, Written, close, code};

use super::{Stage, end, log, object, request, success};

#[test]
fn t010_a_final_response_ends_it_and_completed_may_follow() {
    let mut stage = Stage::open();
    let frame = success(json!({"run_id": "r1", "cost_micro": 7}), &json!({"n": 1}));
    let events = stage.say(&frame);
    let (outputs, written) = (object(json!({"n": 1})), BTreeMap::new());
    assert_eq!(end(&events), &Ended::Succeeded { outputs, written, cost_micro: 7 });
    assert!(stage.session.is_over() && !stage.session.is_done());
    assert!(stage.say(&json!({"kind": "Event", "data": {"phase": "completed"}})).is_empty());
    stage.session.end(stage.now(), Closed::With { code: close::NORMAL, reason: String::new() });
    assert!(stage.session.is_done() && stage.events().is_empty());
    assert!(!stage.session.wants_connection());
}

#[test]
fn t010_a_server_that_does_not_close_after_the_end_is_left() {
    let mut stage = Stage::open();
    let events = stage.say(&success(json!({"cost_micro": 0}), &json!({})));
    assert!(matches!(end(&events), Ended::Succeeded { .. }));
    stage.sent();
    let linger = stage.session.deadline().expect("a deadline") - stage.ms;
    stage.pass(linger);
    assert_eq!(stage.sent(), [Outgoing::Close { code: close::NORMAL, reason: String::new() }]);
    assert!(stage.session.is_done() && stage.events().is_empty());
}

#[test]
fn t039_a_second_final_response_changes_nothing() {
    let mut stage = Stage::open();
    let events = stage.say(&success(json!({"cost_micro": 1}), &json!({})));
    assert!(matches!(end(&events), Ended::Succeeded { cost_micro: 1, .. }));
    assert!(stage.say(&success(json!({"cost_micro": 2}), &json!({}))).is_empty());
    let failed = json!({"kind": "Response", "control": {"final": true, "status": "error"}});
    assert!(stage.say(&failed).is_empty());
    assert!(stage.say(&log(None, "late")).is_empty());
    assert!(stage.say_text("not even JSON").is_empty());
    assert!(stage.drop_connection().is_empty());
}

#[test]
fn t039_a_status_that_is_neither_success_nor_error_is_a_breach() {
    for status in [json!("done"), json!("SUCCESS"), json!(null), json!(1), json!("canceled")] {
        let mut stage = Stage::open();
        let control = json!({"final": true, "status": status, "cost_micro": 1});
        let events = stage.say(&json!({"kind": "Response", "control": control}));
        assert!(matches!(end(&events), Ended::Broken { code: "ERR_PROTOCOL", .. }), "{status}");
        assert_eq!(stage.session.cost_micro(), 1, "what was spent is spent");
    }
}

#[test]
fn t011_costs_before_the_end_are_told_when_they_grow_and_kept_whatever_comes() {
    let mut stage = Stage::open();
    let line = |cost: serde_json::Value| {
        let control = json!({"run_id": "r1", "cost_micro": cost});
        json!({"kind": "Event", "control": control, "data": {"phase": "checkpoint"}})
    };
    assert_eq!(stage.say(&line(json!(40))), [RunClientEvent::Cost(40)]);
    assert!(stage.say(&line(json!(40))).is_empty() && stage.say(&line(json!(7))).is_empty());
    assert_eq!(stage.say(&line(json!(41.0))), [RunClientEvent::Cost(41)]);
    let events = stage.say(&line(json!(-1)));
    assert!(
        matches!(&events[..], [RunClientEvent::Log { level: LogLevel::Warn, .. }]),
        "{events:?}"
    );
    assert!(stage.say(&line(json!("much"))).is_empty(), "it is said once");
    let control = json!({"cost_micro": 50, "final": false});
    let partial = json!({"kind": "Response", "control": control, "outputs": {"a": 1}});
    let expected = [RunClientEvent::Cost(50), RunClientEvent::Partial(object(json!({"a": 1})))];
    assert_eq!(stage.say(&partial), expected);
    for last in [
        json!({"kind": "Nonsense", "control": 7}).to_string(),
        "not even JSON".to_owned(),
        success(json!({"cost_micro": -1}), &json!({})).to_string(),
        success(json!({"cost_micro": 3}), &json!({})).to_string(),
    ] {
        let mut stage = Stage::open();
        stage.say(&line(json!(60)));
        stage.say_text(&last);
        stage.drop_connection();
        assert!(stage.session.is_over(), "{last}");
        assert_eq!(stage.session.cost_micro(), 60, "{last}");
    }
}

#[test]
fn t010_an_error_keeps_its_code_message_and_cost() {
    for (error, code, message) in [
        (json!({"code": "ERR_HANDLER", "message": "ValueError"}), "ERR_HANDLER", "ValueError"),
        (json!({"code": "acme.no_stock", "message": "None left."}), "acme.no_stock", "None left."),
        (json!({}), "UNKNOWN", ""),
        (json!("plain"), "UNKNOWN", "plain"),
        (json!(null), "UNKNOWN", ""),
    ] {
        let mut stage = Stage::open();
        let control = json!({"final": true, "status": "error", "cost_micro": 3.0});
        let frame = json!({"kind": "Response", "control": control, "error": error});
        let events = stage.say(&frame);
        let (code, message) = (code.to_owned(), message.to_owned());
        assert_eq!(end(&events), &Ended::Failed { code, message, cost_micro: 3 }, "{error}");
    }
}

#[test]
fn t011_a_missing_cost_is_0_and_said() {
    let mut stage = Stage::open();
    let events = stage.say(&success(json!({}), &json!({})));
    assert!(
        matches!(&events[0], RunClientEvent::Log { level: LogLevel::Warn, text } if text.contains("cost"))
    );
    assert!(matches!(end(&events), Ended::Succeeded { cost_micro: 0, .. }));
}

#[test]
fn t011_a_cost_that_is_none_fails_the_attempt() {
    for cost in [json!(-1), json!(0.5), json!("NaN"), json!(1e300), json!(u64::MAX), json!({})] {
        for status in ["success", "error"] {
            let mut stage = Stage::open();
            let control = json!({"final": true, "status": status, "cost_micro": cost});
            let events = stage.say(&json!({"kind": "Response", "control": control}));
            assert!(matches!(end(&events), Ended::Broken { code: "ERR_COST", .. }), "{cost}");
        }
    }
}

#[test]
fn t030_what_was_written_comes_with_its_size_and_hash() {
    let mut stage = Stage::open();
    let control = json!({"cost_micro": 0, "written": {"out": {"bytes": 5, "b3": "ab"}}});
    let events = stage.say(&success(control, &json!({"out": "/x"})));
    let Ended::Succeeded { written, .. } = end(&events) else { panic!("{events:?}") };
    assert_eq!(written["out"], Written { bytes: 5, b3: "ab".to_owned() });
}

#[test]
fn t019_a_cancel_is_said_once_and_the_server_says_how_it_ended() {
    let mut stage = Stage::open();
    stage.session.cancel();
    stage.session.cancel();
    let expected = json!({"kind": "Cancel", "control": {"run_id": "r1"}});
    assert_eq!(stage.messages(), [expected]);
    assert!(stage.session.is_canceled() && !stage.session.is_over());
    let control = json!({"final": true, "status": "error", "cost_micro": 1});
    let error = json!({"code": "ERR_CANCELED", "message": "Stopped."});
    let events = stage.say(&json!({"kind": "Response", "control": control, "error": error}));
    assert!(matches!(end(&events), Ended::Failed { code, .. } if code == "ERR_CANCELED"));
    stage.session.cancel();
    assert!(stage.sent().is_empty());
}

#[test]
fn t005_a_server_that_will_not_have_the_request_is_not_asked_again() {
    for code in [1002, 1003, 1007, 1008, 1009] {
        let mut stage = Stage::with(|config| config.numbered = true);
        stage.session.connected(stage.now());
        let reason = "run_id conflict".to_owned();
        stage.session.end(stage.now(), Closed::With { code, reason: reason.clone() });
        let events = stage.events();
        assert_eq!(end(&events), &Ended::Refused { close: code, reason, begun: false });
    }
}

#[test]
fn t042_other_ends_of_a_connection_are_no_end_of_the_attempt() {
    let with = |code, reason: &str| Closed::With { code, reason: reason.to_owned() };
    for closed in [
        with(1000, ""),
        with(1001, "restart"),
        with(1011, ""),
        with(1012, ""),
        with(1013, "too slow"),
        Closed::Broken("reset".to_owned()),
    ] {
        let mut stage = Stage::with(|config| config.numbered = true).opened();
        stage.session.end(stage.now(), closed.clone());
        assert!(stage.events().is_empty(), "{closed}");
        assert!(stage.session.wants_connection(), "{closed}");
        stage.session.give_up(closed.to_string());
        let events = stage.events();
        let Ended::Lost { cause, asked: true } = end(&events) else { panic!("{events:?}") };
        assert_eq!(*cause, closed.to_string());
    }
}

#[test]
fn an_attempt_that_never_left_is_known_not_to_have_begun() {
    let mut stage = Stage::new();
    stage.session.give_up("refused");
    let events = stage.events();
    assert!(matches!(end(&events), Ended::Lost { asked: false, .. }));
}

#[test]
fn a_server_that_says_it_serves_another_tool_ends_the_attempt() {
    let name = |reference: &str, digest: &str| ToolName {
        reference: reference.to_owned(),
        digest: Some(digest.to_owned()),
    };
    let ack = |tool: &Value| json!({"kind": "Ack", "control": {"run_id": "r1"}, "tool": tool});
    let hears = |tool: &Value| {
        let mut asked = request();
        asked.control.tool = Some(name("text/shout@1", "aa"));
        let mut stage = Stage { session: RunClient::new(Config::default(), asked), ms: 1_000 };
        stage.session.connected(stage.now());
        stage.say(&ack(tool))
    };
    for other in [
        json!({"ref": "bank/transfer@1"}),
        json!({"ref": "text/shout@1", "digest": "bb"}),
        json!(7),
    ] {
        let events = hears(&other);
        let Ended::Broken { code, .. } = end(&events) else { panic!("{events:?}") };
        assert_eq!(*code, code::WRONG_TOOL, "{other}");
    }
    for fits in [json!({"ref": "text/shout@1", "digest": "aa"}), Value::Null] {
        let events = hears(&fits);
        assert!(!events.iter().any(|event| matches!(event, RunClientEvent::Ended(_))), "{fits}");
    }
}
