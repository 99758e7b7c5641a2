//! All pairs of ends and revisions, each through a whole life.

use serde_json::json;
use wharf_protocol::Session as _;
use wharf_protocol::mcp::{
    McpAnswer, McpCallOptions, McpClientEvent, McpOpenError, McpServerEvent, McpStart,
};
use wharf_protocol::{Closed, mcp::McpCancel};
use wharf_wire::mcp_v1::{
    McpEra, McpId, McpLog, McpLogLevel, McpNotification, McpOpen, McpRequest, McpResultType,
    McpRevision,
};

use crate::stage::{Kind, Stage, call_tool, filter, object, request};

const OLD: [McpRevision; 4] = [
    McpRevision::V2024_11_05,
    McpRevision::V2025_03_26,
    McpRevision::V2025_06_18,
    McpRevision::V2025_11_25,
];

/// Every pair that can speak, and what it then speaks.
fn pairs() -> Vec<(McpStart, Kind, McpRevision)> {
    let modern = McpRevision::V2026_07_28;
    let mut pairs = vec![
        (McpStart::Probe, Kind::Dual, modern),
        (McpStart::Modern, Kind::Dual, modern),
        (McpStart::Legacy, Kind::Dual, McpRevision::V2025_11_25),
        (McpStart::Probe, Kind::Modern, modern),
        (McpStart::Modern, Kind::Modern, modern),
    ];
    for revision in OLD {
        for answer in [Some(-32601), Some(-32602), None] {
            pairs.push((McpStart::Probe, Kind::Legacy(revision, answer), revision));
        }
        pairs.push((McpStart::Legacy, Kind::Legacy(revision, None), revision));
    }
    pairs
}

fn opened(start: McpStart, kind: Kind) -> Stage {
    let mut stage = Stage::new(start, kind);
    if stage.client.revision().is_none() {
        stage.pass(5_000);
    }
    stage
}

#[test]
fn m002_every_pair_finds_what_both_speak() {
    for (start, kind, revision) in pairs() {
        let mut stage = opened(start, kind);
        assert_eq!(stage.client.revision(), Some(revision), "{start:?} and {kind:?}");
        let ready = stage.at_client.drain(..);
        assert!(matches!(ready.as_slice(), [McpClientEvent::Ready(_)]), "{start:?}, {kind:?}");
        drop(ready);
        let told = stage.at_server.drain(..).collect::<Vec<_>>();
        assert_eq!(told.len(), usize::from(revision.era() == McpEra::Legacy), "{told:?}");
        stage.nothing_is_open();
    }
}

#[test]
fn m002_pairs_that_share_nothing_fail_and_say_why() {
    let mut stage = Stage::new(McpStart::Legacy, Kind::Modern);
    let failed = stage.at_client.pop();
    assert!(matches!(failed, Some(McpClientEvent::Failed(McpOpenError::Refused(_)))), "{failed:?}");
    let legacy = Kind::Legacy(McpRevision::V2025_06_18, Some(-32601));
    let mut stage = Stage::new(McpStart::Modern, legacy);
    let failed = stage.at_client.pop();
    assert!(matches!(failed, Some(McpClientEvent::Failed(McpOpenError::Refused(_)))), "{failed:?}");
    let mut stage = Stage::new(McpStart::Modern, Kind::Legacy(McpRevision::V2025_06_18, None));
    stage.pass(60_000);
    let failed = stage.at_client.pop();
    assert_eq!(failed, Some(McpClientEvent::Failed(McpOpenError::Silent)));
}

const WITH_PROGRESS: McpCallOptions = McpCallOptions { timeout_ms: Some(60_000), progress: true };

#[test]
fn m002_a_call_goes_through_with_progress_logs_and_a_question() {
    for (start, kind, revision) in pairs() {
        let mut stage = opened(start, kind);
        stage.at_client.clear();
        let id = stage.client.call(stage.now, &call_tool("lift"), WITH_PROGRESS).expect("made");
        stage.pump();
        let (served, request, spoken) = stage.taken();
        assert_eq!((&served, spoken), (&id, revision));
        assert!(matches!(request, McpRequest::ToolsCall(_)));

        for (progress, is_told) in [(10, true), (10, false), (5, false), (50, true)] {
            let told = stage.server.progress(&served, progress.into(), Some(100.into()), None);
            assert_eq!(told, is_told, "{progress}");
        }
        let log = McpLog { level: McpLogLevel::Info, logger: None, data: json!("up"), meta: None };
        let logged = stage.server.log(&served, log);
        assert_eq!(logged, revision.era() == McpEra::Legacy, "modern calls ask for logs");
        let id = ask(&mut stage, id, &served);
        stage.pump();

        let mut expected = vec!["progress", "progress"];
        if revision.era() == McpEra::Legacy {
            expected.push("log");
        }
        expected.extend(["result"]);
        let got: Vec<&str> = stage.at_client.iter().map(|event| kind_of(event, &id)).collect();
        let got: Vec<&str> = got.into_iter().filter(|kind| *kind != "question").collect();
        assert_eq!(got, expected, "{start:?}, {kind:?}");
        stage.nothing_is_open();
    }
}

fn kind_of(event: &McpClientEvent, last: &McpId) -> &'static str {
    match event {
        McpClientEvent::Progress { .. } => "progress",
        McpClientEvent::Told { listen: None, .. } => "log",
        McpClientEvent::Asked { .. } => "question",
        McpClientEvent::Answered { answer: McpAnswer::Result { kind, .. }, id } => match kind {
            McpResultType::InputRequired => "question",
            McpResultType::Complete if id == last => "result",
            _ => panic!("{event:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Asks the client something while its call is served, answers the call, and returns the call that
/// was answered.
fn ask(stage: &mut Stage, id: McpId, served: &McpId) -> McpId {
    let done = object(&json!({"content": []}));
    let elicit = request("elicitation/create", &json!({"message": "Sure?"}));
    if stage.era() == McpEra::Legacy {
        let ask = McpId::from("ask-1");
        let options = McpCallOptions::default();
        stage.server.ask(stage.now, ask.clone(), Some(served), &elicit, options).expect("asked");
        stage.pump();
        assert!(stage.client.answer(&ask, Ok(object(&json!({"action": "accept"})))));
        assert!(!stage.client.answer(&ask, Ok(object(&json!({})))), "only once");
        stage.pump();
        let answered = stage.at_server.pop();
        assert!(
            matches!(&answered, Some(McpServerEvent::Answered { id, answer: McpAnswer::Result { .. } }) if *id == ask),
            "{answered:?}"
        );
        assert!(stage.server.answer(served, Ok(done)));
        return id;
    }
    let options = McpCallOptions::default();
    let asked = stage.server.ask(stage.now, "x".into(), Some(served), &elicit, options);
    assert!(asked.is_err(), "modern clients are asked inside of results");
    let input = json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
        "ask-1": {"method": "elicitation/create", "params": {"message": "Sure?"}}
    }});
    assert!(stage.server.answer(served, Ok(object(&input))));
    stage.pump();
    let again = json!({"name": "lift", "arguments": {}, "requestState": "s",
        "inputResponses": {"ask-1": {"action": "accept"}}});
    let again = request("tools/call", &again);
    let again = stage.client.call(stage.now, &again, WITH_PROGRESS).expect("made");
    stage.pump();
    let (served, request, _) = stage.taken();
    let McpRequest::ToolsCall(call) = request else { panic!("no call") };
    assert_eq!(call.request_state.as_deref(), Some("s"));
    assert!(stage.server.answer(&served, Ok(done)));
    again
}

#[test]
fn m002_a_call_ends_once_however_it_ends() {
    for (start, kind, _) in pairs() {
        let mut stage = opened(start, kind);
        stage.at_client.clear();
        let mut made = Vec::new();
        for _ in 0..4 {
            made.push(
                stage.client.call(stage.now, &call_tool("lift"), WITH_PROGRESS).expect("made"),
            );
        }
        stage.pump();
        let [first, second, third, fourth] = made.as_slice() else { panic!("four") };
        // Called off, and answered by a server that did not hear of it in time.
        assert!(stage.client.cancel(first, "not needed"));
        assert!(!stage.client.cancel(first, "twice"));
        let error = Err(wharf_wire::mcp_v1::McpError::params("?"));
        assert!(stage.server.answer(first, Ok(object(&json!({"content": []})))));
        assert!(stage.server.answer(second, error));
        stage.pump();
        assert_eq!(stage.client.counters().late, 1);
        // Too late.
        stage.pass(60_000);
        let canceled = stage.at_server.drain(..).filter(|event| {
            matches!(event, McpServerEvent::Canceled { cancel: McpCancel::Peer(_), .. })
        });
        assert_eq!(canceled.count(), 2, "{start:?}, {kind:?}");
        let answers: Vec<(McpId, &str)> = stage
            .at_client
            .drain(..)
            .filter_map(|event| match event {
                McpClientEvent::Answered { id, answer } => Some((id, name(&answer))),
                _ => None,
            })
            .collect();
        let expected = [
            (first.clone(), "canceled"),
            (second.clone(), "error"),
            (third.clone(), "timed out"),
            (fourth.clone(), "timed out"),
        ];
        assert_eq!(answers, expected, "{start:?}, {kind:?}");
        stage.nothing_is_open();
        // Lost.
        let fifth = stage.client.call(stage.now, &call_tool("lift"), WITH_PROGRESS).expect("made");
        stage.pump();
        stage.client.end(stage.now, Closed::ended());
        stage.server.end(stage.now, Closed::ended());
        stage.pump();
        let lost = McpClientEvent::Answered { id: fifth.clone(), answer: McpAnswer::Lost };
        assert!(stage.at_client.contains(&lost));
        let cancel = McpCancel::Disconnected;
        assert!(stage.at_server.contains(&McpServerEvent::Canceled { id: fifth, cancel }));
        stage.nothing_is_open();
    }
}

fn name(answer: &McpAnswer) -> &'static str {
    match answer {
        McpAnswer::Result { .. } => "result",
        McpAnswer::Error(_) => "error",
        McpAnswer::Violation(_) => "violation",
        McpAnswer::Refused(_) => "refused",
        McpAnswer::TimedOut => "timed out",
        McpAnswer::Canceled => "canceled",
        McpAnswer::Lost => "lost",
    }
}

#[test]
fn m041_a_subscription_is_acknowledged_first_and_every_message_names_it() {
    let mut stage = opened(McpStart::Probe, Kind::Dual);
    stage.at_client.clear();
    let listen =
        request("subscriptions/listen", &json!({"notifications": {"toolsListChanged": true}}));
    let id = stage.client.call(stage.now, &listen, McpCallOptions::default()).expect("made");
    stage.pump();
    let (served, _, _) = stage.taken();
    let changed = McpNotification::ToolsChanged(McpOpen::boxed(Default::default()));
    assert!(!stage.server.tell(&served, &changed), "not before it was acknowledged");
    assert!(stage.server.acknowledge(&served, filter()));
    assert!(!stage.server.acknowledge(&served, filter()), "only once");
    assert!(stage.server.tell(&served, &changed));
    assert!(stage.server.answer(&served, Ok(Default::default())));
    stage.pump();
    let listens: Vec<Option<McpId>> = stage
        .at_client
        .iter()
        .filter_map(|event| match event {
            McpClientEvent::Told { listen, .. } => Some(listen.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(listens, [Some(id.clone()), Some(id.clone())]);
    let Some(McpClientEvent::Answered { answer: McpAnswer::Result { result, .. }, .. }) =
        stage.at_client.last()
    else {
        panic!("a graceful end")
    };
    assert_eq!(result["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "harbour");
    assert_eq!(result["resultType"], "complete");
    stage.nothing_is_open();
}
