use serde_json::json;

use super::*;
use crate::Caller;
use crate::grant::Rights;

fn spec(on: &[NotifyOn]) -> ReceiverSpec {
    ReceiverSpec {
        on: on.iter().copied().collect(),
        world: None,
        statuses: BTreeSet::new(),
        when: None,
        include: BTreeSet::new(),
        format: NotifyFormat::Json,
        allow_private: false,
        url: SecretName::new("notify.desk.url").expect("valid"),
        key: SecretName::new("notify.desk.key").expect("valid"),
    }
}

fn id() -> ReceiverId {
    ReceiverId::new("desk").expect("valid")
}

fn made(spec: ReceiverSpec, by: &Caller) -> Receiver {
    let add = ReceiverInput::Add(Box::new(spec));
    let decided = Receiver::decide(None, &id(), &add, &by.to_ref()).expect("may");
    let (entry, _) = decided.expect("changes");
    Receiver::apply(None, &id(), Timestamp(1), &entry).expect("follows")
}

#[test]
fn f036_a_receiver_is_told_what_it_asked_for_and_its_maker_may_know() {
    let (lab, other) = (WorldId::new("lab").expect("valid"), WorldId::new("b").expect("valid"));
    let tool: ToolId = "acme/mail".parse().expect("valid");
    let ended = |world, status| Happening {
        on: NotifyOn::Run,
        event: "run.ended",
        world: Some(world),
        run: None,
        ask: None,
        tool: Some(&tool),
        status: Some(status),
        code: None,
        title: None,
    };
    let all = made(spec(&[NotifyOn::Run]), &Caller::owner());
    assert!(all.wants(&ended(&lab, RunStatus::Failed)));
    let mut asks = ended(&lab, RunStatus::Failed);
    asks.on = NotifyOn::Ask;
    assert!(!all.wants(&asks));
    let failed = ReceiverSpec {
        statuses: [RunStatus::Failed].into(),
        world: Some(lab.clone()),
        ..spec(&[NotifyOn::Run])
    };
    let failed = made(failed, &Caller::owner());
    assert!(failed.wants(&ended(&lab, RunStatus::Failed)));
    assert!(!failed.wants(&ended(&lab, RunStatus::Succeeded)));
    assert!(!failed.wants(&ended(&other, RunStatus::Failed)));
    let mut rights = Rights::all();
    rights.worlds = Some([lab.clone()].into());
    let limited = made(spec(&[NotifyOn::Run]), &Caller::token("g-1", rights));
    assert!(limited.wants(&ended(&lab, RunStatus::Failed)));
    assert!(!limited.wants(&ended(&other, RunStatus::Failed)));
    let paused = Receiver { paused: Some(Timestamp(1)), ..all };
    assert!(!paused.wants(&ended(&lab, RunStatus::Failed)));
}

#[test]
fn f036_what_became_of_a_notification_is_counted_once() {
    let by = Caller::core().to_ref();
    let receiver = made(spec(&[NotifyOn::Ask]), &Caller::owner());
    let told = NotificationResult {
        id: NotificationId::new("0c-1").expect("valid"),
        event: "ask.raised".to_owned(),
        about: "a".to_owned(),
        happened_at: Timestamp(1),
        state: NotificationState::Sent,
        tries: 1,
        status: Some(200),
        why: None,
    };
    let input = ReceiverInput::Told(told);
    let decided = Receiver::decide(Some(&receiver), &id(), &input, &by).expect("may");
    let (entry, audit) = decided.expect("changes");
    assert!(audit.is_none());
    let after = Receiver::apply(Some(receiver), &id(), Timestamp(2), &entry).expect("follows");
    assert_eq!((after.sent, after.parked), (1, 0));
    assert_eq!(Receiver::decide(Some(&after), &id(), &input, &by).expect("may"), None);
}

#[test]
fn f036_a_receiver_is_told_of_something_or_not_made() {
    let add = ReceiverInput::Add(Box::new(spec(&[])));
    let refused = Receiver::decide(None, &id(), &add, &Caller::owner().to_ref());
    assert_eq!(refused.expect_err("refused").details["field"], "on");
}

#[test]
fn f036_a_condition_sees_what_is_told_and_nothing_else() {
    let told = json!({"id": "0c1", "receiver": "desk", "event": "run.ended", "world": "lab",
        "run": "r1", "tool": "acme/mail", "status": "failed", "code": "tool.failed"});
    let told: Notification = serde_json::from_value(told).expect("a notification");
    let none = IncludedValues::default();
    let fits = |when: &str| told.fits(when, &none);
    assert_eq!(fits("status == 'failed' && tool.startsWith('acme/')"), Ok(true));
    assert_eq!(fits("code != 'tool.failed' || world == 'other'"), Ok(false));
    assert_eq!(fits("ask_id == null && outputs == null"), Ok(true));
    assert!(fits("outputs.n > 1").expect_err("not told").is(Code::FlowExpression));
    let values = IncludedValues { outputs: json!({"n": 2}).as_object().cloned(), ..none.clone() };
    assert_eq!(told.fits("outputs.n > 1", &values), Ok(true));
    let with = |when: &str| ReceiverSpec { when: Some(when.to_owned()), ..spec(&[NotifyOn::Run]) };
    with("status == 'failed'").check_expressions().expect("fits");
    assert_eq!(with("now > 1").check_expressions().expect_err("no clock").details["field"], "when");
    let slack = ReceiverSpec {
        format: NotifyFormat::Slack,
        include: [NotifyInclude::Outputs].into(),
        ..spec(&[NotifyOn::Run])
    };
    assert_eq!(slack.check_expressions().expect_err("no values").details["field"], "include");
}
