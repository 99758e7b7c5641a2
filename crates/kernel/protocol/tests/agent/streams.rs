//! Streamed output: order, gaps, shapes and budgets.

use serde_json::{Value, json};
use wharf_protocol::agent::{Breach, CallOutcome, CancelCall, CoreEvent, SendError};
use wharf_protocol::{Closed, Session as _};
use wharf_wire::agent_v1::{Chunk, TextChannel};

use super::pair::Pair;
use super::stage::{
    AgentStage, CoreStage, agent_config, breaches, call_id, core_config, ends, object, request,
};

fn text(text: &str) -> Chunk {
    Chunk::Text { channel: TextChannel::Stdout, text: text.to_owned() }
}

/// The places and gaps of the chunks among the events.
fn chunks(events: &[CoreEvent]) -> Vec<(u64, Option<(u64, u64)>)> {
    let chunk = |event: &CoreEvent| match event {
        CoreEvent::Chunk { seq, gap, .. } => Some((*seq, *gap)),
        _ => None,
    };
    events.iter().filter_map(chunk).collect()
}

#[test]
fn r105_an_agent_numbers_its_chunks_from_one_without_holes() {
    let mut stage = AgentStage::working("c-1");
    stage.call("c-2");
    let now = stage.moment();
    for seq in 1..=100 {
        assert_eq!(stage.session.stream(now, &call_id("c-1"), text("x"), false), Ok(seq));
    }
    assert_eq!(stage.session.stream(now, &call_id("c-2"), text("x"), false), Ok(1));
    let seqs: Vec<u64> = stage
        .written()
        .iter()
        .filter(|message| message["payload"]["call_id"] == "c-1")
        .map(|message| message["payload"]["seq"].as_u64().expect("a number"))
        .collect();
    assert_eq!(seqs, (1..=100).collect::<Vec<u64>>());
}

#[test]
fn r106_chunks_out_of_order_are_dropped_and_gaps_are_marked() {
    let mut stage = CoreStage::calling("c-1");
    for seq in [json!(0), json!(-1), json!(1.5)] {
        let chunk = json!({"call_id": "c-1", "seq": seq, "channel": "log", "data": {"text": "x"}});
        stage.say_of_call("agent.tool.stream", &chunk);
        let events = stage.events();
        assert_eq!(chunks(&events), [], "{seq}");
        assert_eq!(breaches(&events).len(), 1, "{seq}");
    }
    for (seq, expected, breach) in [
        (1, Some(None), None),
        (2, Some(None), None),
        (2, None, Some(Breach::StreamOrder)),
        (1, None, Some(Breach::StreamOrder)),
        (5, Some(Some((3, 4))), Some(Breach::StreamGap)),
        (6, Some(None), None),
    ] {
        stage.stream("c-1", seq, "x");
        let events = stage.events();
        assert_eq!(chunks(&events), Vec::from_iter(expected.map(|gap| (seq, gap))), "{seq}");
        assert_eq!(breaches(&events), Vec::from_iter(breach), "{seq}");
    }
    stage.succeed("c-1");
    assert!(matches!(stage.end().1.outcome, CallOutcome::Succeeded(_)));
}

#[test]
fn r107_every_channel_arrives_as_it_was_sent() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let sent = [
        text("out"),
        Chunk::Text { channel: TextChannel::Stderr, text: "err".to_owned() },
        Chunk::Text { channel: TextChannel::Log, text: "log".to_owned() },
        Chunk::Status { text: "half".to_owned(), fraction: Some(0.5) },
        Chunk::Partial { json: object(json!({"so": "far"})) },
    ];
    for chunk in sent.clone() {
        pair.agent.stream(pair.moment(), &call_id("c-1"), chunk, false).expect("open");
    }
    pair.pump();
    let got: Vec<Chunk> = pair
        .core_events()
        .into_iter()
        .map(|event| match event {
            CoreEvent::Chunk { chunk, .. } => chunk,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(got, sent);
}

#[test]
fn r108_an_unknown_channel_or_a_wrong_shape_is_dropped() {
    let mut stage = CoreStage::calling("c-1");
    let wrong: [(&str, Value); 5] = [
        ("telepathy", json!({"text": "x"})),
        ("stdout", json!({"json": {}})),
        ("stdout", json!("x")),
        ("partial_result", json!({"text": "x"})),
        ("partial_result", json!({"json": 7})),
    ];
    for (channel, data) in wrong {
        let chunk = json!({"call_id": "c-1", "seq": 1, "channel": channel, "data": data});
        stage.say_of_call("agent.tool.stream", &chunk);
        let events = stage.events();
        assert_eq!(chunks(&events), []);
        assert_eq!(breaches(&events), [Breach::Field]);
    }
    stage.stream("c-1", 1, "right");
    assert_eq!(chunks(&stage.events()), [(1, None)]);
}

#[test]
fn r109_after_done_an_agent_streams_no_more_and_still_sends_its_result() {
    let mut stage = AgentStage::working("c-1");
    let (now, id) = (stage.moment(), call_id("c-1"));
    stage.session.stream(now, &id, text("last"), true).expect("open");
    let refused = stage.session.stream(now, &id, text("more"), false);
    assert_eq!(refused, Err(SendError::StreamDone));
    let outcome = CallOutcome::Succeeded(object(json!({})));
    stage.session.finish(now, &id, outcome.into()).expect("open");
    let written = stage.written();
    assert_eq!(written[0]["payload"]["done"], true);
    assert_eq!(written[1]["type"], "agent.tool.result");
    assert_eq!(stage.session.stream(now, &id, text("x"), false), Err(SendError::NotOpen));
}

#[test]
fn r110_streams_after_done_and_after_the_result_are_dropped() {
    let mut stage = CoreStage::calling("c-1");
    let last = json!({"call_id": "c-1", "seq": 1, "channel": "log", "data": {"text": "x"},
        "done": true});
    stage.say_of_call("agent.tool.stream", &last);
    stage.events();
    stage.stream("c-1", 2, "more");
    let events = stage.events();
    assert_eq!(chunks(&events), []);
    assert_eq!(breaches(&events), [Breach::StreamAfterDone]);
    stage.succeed("c-1");
    stage.events();
    stage.stream("c-1", 3, "even more");
    let events = stage.events();
    assert_eq!(chunks(&events), []);
    assert_eq!(breaches(&events), [Breach::StreamAfterResult]);
}

#[test]
fn r111_a_stream_of_an_unknown_call_leaves_the_others_alone() {
    let mut stage = CoreStage::calling("c-1");
    stage.stream("c-9", 1, "x");
    assert_eq!(stage.breaches(), [Breach::UnknownCall]);
    stage.stream("c-1", 1, "x");
    assert_eq!(chunks(&stage.events()), [(1, None)]);
}

#[test]
fn r112_a_call_without_streams_completes() {
    let mut stage = CoreStage::calling("c-1");
    stage.succeed("c-1");
    assert!(matches!(stage.end().1.outcome, CallOutcome::Succeeded(_)));
}

#[test]
fn r113_an_agents_stream_is_cut_visibly() {
    let mut config = agent_config();
    config.limits.stream_bytes_max = 100;
    let mut stage = AgentStage::ready_with(config);
    stage.call("c-1");
    let (now, id) = (stage.moment(), call_id("c-1"));
    stage.session.stream(now, &id, text(&"x".repeat(90)), false).expect("fits");
    for _ in 0..5 {
        let refused = stage.session.stream(now, &id, text(&"x".repeat(90)), false);
        assert_eq!(refused, Err(SendError::BudgetSpent));
    }
    let written = stage.written();
    assert_eq!(written.len(), 2, "one chunk, and the word that it was cut");
    let last = &written[1]["payload"];
    assert_eq!(last["channel"], "status");
    assert_eq!(last["done"], true);
    assert!(last["data"]["text"].as_str().expect("text").contains("cut"));
}

#[test]
fn r113_two_default_ends_agree_on_the_budget() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let piece = "x".repeat(64 * 1024);
    while pair.agent.stream(pair.moment(), &call_id("c-1"), text(&piece), false).is_ok() {
        pair.pump();
    }
    pair.pump();
    let outcome = CallOutcome::Succeeded(object(json!({})));
    pair.agent.finish(pair.moment(), &call_id("c-1"), outcome.clone().into()).expect("open");
    pair.pump();
    let events = pair.core_events();
    assert_eq!(ends(&events)[0].1.outcome, outcome, "a cut stream is no failure");
    assert_eq!(breaches(&events), []);
}

#[test]
fn r114_a_stream_above_its_budget_costs_the_call_and_no_other() {
    let mut by_bytes = core_config();
    by_bytes.limits.stream_bytes_max = 100;
    let mut by_count = core_config();
    by_count.limits.stream_chunks_max = 3;
    for (config, size) in [(by_bytes, 30), (by_count, 1)] {
        let mut stage = CoreStage::ready_with(config);
        stage.call("c-1");
        stage.call("c-2");
        stage.written();
        for seq in 1..=3 {
            stage.stream("c-1", seq, &"x".repeat(size));
        }
        assert_eq!(chunks(&stage.events()).len(), 3);
        stage.stream("c-1", 4, &"x".repeat(size));
        assert_eq!(stage.failure(), "tool.output_too_large");
        let cancel = stage.answer();
        assert_eq!(cancel["type"], "core.tool.cancel");
        assert_eq!(cancel["payload"]["reason"], "output_too_large");
        stage.stream("c-1", 5, "late");
        assert_eq!(stage.events(), [], "the agent may not know yet");
        stage.stream("c-2", 1, "x");
        stage.succeed("c-2");
        assert_eq!(stage.events().len(), 2);
    }
}

#[test]
fn r115_chunks_are_given_on_as_they_come() {
    let mut stage = CoreStage::calling("c-1");
    for seq in 1..=20 {
        stage.stream("c-1", seq, "x");
        assert_eq!(chunks(&stage.events()), [(seq, None)], "not held back");
    }
}

/// A stream message that tells a cost, with text or without.
fn costs(seq: u64, text: &str, cost_micro: u64) -> Value {
    json!({"call_id": "c-1", "seq": seq, "channel": "status", "data": {"text": text},
        "cost_micro": cost_micro})
}

fn told(events: &[CoreEvent]) -> Vec<u64> {
    let cost = |event: &CoreEvent| match event {
        CoreEvent::Cost { so_far_micro, .. } => Some(*so_far_micro),
        _ => None,
    };
    events.iter().filter_map(cost).collect()
}

#[test]
fn r165_a_cost_is_told_while_the_call_goes_on_and_never_falls() {
    let mut stage = CoreStage::calling("c-1");
    stage.say_of_call("agent.tool.stream", &costs(1, "", 100));
    let events = stage.events();
    assert_eq!((told(&events), chunks(&events)), (vec![100], vec![]), "nothing is shown of it");
    stage.say_of_call("agent.tool.stream", &costs(2, "half way", 250));
    let events = stage.events();
    assert_eq!((told(&events), chunks(&events)), (vec![250], vec![(2, None)]));
    stage.say_of_call("agent.tool.stream", &costs(3, "", 200));
    assert_eq!(stage.events(), [], "less than before is no news");
    let result = json!({"call_id": "c-1", "status": "failed", "metrics": {"cost_micro": 40}});
    stage.say_of_call("agent.tool.result", &result);
    assert_eq!(stage.end().1.cost_micro, 250, "what was spent is spent");
}

#[test]
fn r165_what_was_told_counts_however_the_call_ends() {
    let told_before = || {
        let mut stage = CoreStage::calling("c-1");
        stage.say_of_call("agent.tool.stream", &costs(1, "", 100));
        stage.events();
        stage
    };
    let mut lost = told_before();
    lost.session.end(lost.moment(), Closed::ended());
    assert_eq!(ends(&lost.events())[0].1.cost_micro, 100);

    let mut unreadable = told_before();
    let odd = json!({"call_id": "c-1", "status": "done", "metrics": {"cost_micro": 300}});
    unreadable.say_of_call("agent.tool.result", &odd);
    let events = unreadable.events();
    assert_eq!(told(&events), [300], "a result that breaks the protocol tells its cost too");
    assert_eq!(ends(&events)[0].1.cost_micro, 300);

    let mut late = told_before();
    let cancel = CancelCall { reason: None, deadline_ms: Some(0) };
    late.session.cancel(late.moment(), &call_id("c-1"), cancel).expect("open");
    late.pass(1);
    assert_eq!(ends(&late.events())[0].1.cost_micro, 100);
    late.say_of_call("agent.tool.stream", &costs(2, "", 700));
    assert_eq!(told(&late.events()), [700], "also after the call was given up");
}

#[test]
fn r165_costs_are_no_output_and_use_up_none_of_its_budget() {
    let mut config = core_config();
    config.limits.stream_chunks_max = 2;
    let mut stage = CoreStage::ready_with(config);
    stage.call("c-1");
    for seq in 1..=50 {
        stage.say_of_call("agent.tool.stream", &costs(seq, "", seq));
    }
    assert_eq!(told(&stage.events()).len(), 50);
}

#[test]
fn r165_an_agent_tells_its_cost_at_once_and_keeps_to_the_numbers_of_its_stream() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    pair.agent_events();
    let id = call_id("c-1");
    let text = |text: &str| Chunk::Status { text: text.to_owned(), fraction: None };
    pair.agent.stream(pair.moment(), &id, text("a"), false).expect("open");
    pair.agent.report_cost(pair.moment(), &id, 50).expect("open");
    pair.agent.stream(pair.moment(), &id, text("b"), true).expect("open");
    pair.agent.report_cost(pair.moment(), &id, 80).expect("open");
    let outcome = CallOutcome::Succeeded(object(json!({})));
    pair.agent.finish(pair.moment(), &id, outcome.into()).expect("open");
    pair.pump();
    let events = pair.core_events();
    assert_eq!(breaches(&events), []);
    assert_eq!(told(&events), [50], "after the last piece the result has to tell it");
    assert_eq!(ends(&events)[0].1.cost_micro, 80);
}
