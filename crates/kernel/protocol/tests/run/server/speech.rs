//! What a run says: bounded, cumulative, and the same for every reader.

use serde_json::{Value, json};
use wharf_protocol::run::server::{Book, Limits, Overflow, Profile, RunReport};
use wharf_wire::run_v1::{LogLevel, Phase, close};

use super::{at, attached, book, done, drain, object, request, started};

fn partial(value: &Value) -> RunReport {
    RunReport::Partial(object(value))
}

fn line(text: &str) -> RunReport {
    RunReport::Log { level: LogLevel::Debug, text: text.to_owned(), at: Some(5.5) }
}

#[test]
fn t008_progress_is_clamped_and_said() {
    for (given, expect) in [(-1.0, 0.0), (1.5, 1.0), (f64::NAN, 0.0), (f64::INFINITY, 1.0)] {
        let mut book = book(Limits::default());
        let (run, watcher) = started(&mut book, &request("r", 1));
        let event = RunReport::Event { phase: Phase::Checkpoint, progress: Some(given) };
        book.say(at(0), run, event).expect("room");
        let (frames, _) = drain(&mut book, watcher);
        assert_eq!(frames[0]["data"]["level"], "warn");
        assert_eq!(frames[1]["data"]["progress"], json!(expect), "{given}");
    }
}

#[test]
fn what_a_run_is_doing_is_the_text_of_a_checkpoint() {
    let long = format!("line\n8 {}", "é".repeat(200));
    for (given, expect) in [("line 8", "line 8"), (&long, long[..199].replace('\n', " ").as_str())]
    {
        let mut book = book(Limits::default());
        let (run, watcher) = started(&mut book, &request("r", 1));
        let event = RunReport::Event { phase: Phase::Other(given.to_owned()), progress: Some(0.5) };
        book.say(at(0), run, event).expect("room");
        let (frames, _) = drain(&mut book, watcher);
        let expect = json!({"phase": "checkpoint", "progress": 0.5, "text": expect});
        assert_eq!(frames[0]["data"], expect);
    }
}

#[test]
fn t008_lines_have_level_time_and_run() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    book.say(at(0), run, line("x")).expect("room");
    let now = RunReport::Log { level: LogLevel::Error, text: "y".into(), at: Some(f64::NAN) };
    book.say(at(500), run, now).expect("room");
    let (frames, _) = drain(&mut book, watcher);
    assert_eq!(frames[0]["data"], json!({"msg": "x", "level": "debug", "timestamp": 5.5}));
    assert_eq!(frames[0]["control"], json!({"run_id": "r", "seq": 1}));
    assert_eq!(frames[1]["data"]["timestamp"], json!(1_700_000_000.5));
}

#[test]
fn t009_streamed_text_is_cumulative_and_kept_once() {
    let limits = Limits { output_bytes_max: 600_000, ..Limits::default() };
    let mut book = book(limits);
    let (run, watcher) = started(&mut book, &request("r", 1));
    let mut text = String::new();
    for n in 0..1000 {
        text.push_str(&format!("piece {n} with ünïcode "));
        book.say(at(0), run, partial(&json!({"text": text, "n": n}))).expect("it grows by a piece");
        let (frames, _) = drain(&mut book, watcher);
        assert_eq!(frames[0]["outputs"], json!({"text": text, "n": n}));
        assert_eq!(frames[0]["control"]["final"], false);
    }
    book.say(at(0), run, partial(&json!({"text": "anew"}))).expect("room");
    let again = attached(&mut book, &request("r", 1));
    let (frames, _) = drain(&mut book, again);
    assert_eq!(frames.len(), 1001);
    assert_eq!(frames[999]["outputs"]["text"], json!(text));
    assert_eq!(frames[1000]["outputs"], json!({"text": "anew"}));
}

#[test]
fn t020_outputs_over_the_limit_are_refused_whole() {
    let limits = Limits { output_bytes_max: 2_000, frame_bytes_max: 1_000, ..Limits::default() };
    let mut book = book(limits);
    let (run, watcher) = started(&mut book, &request("r", 1));
    let large = "x".repeat(900);
    let refused = book.say(at(0), run, partial(&json!({"a": 1, "b": large})));
    assert_eq!(refused, Err(Overflow), "one frame is too large");
    for n in 0..2 {
        let value = format!("{n}{}", "x".repeat(700));
        book.say(at(0), run, partial(&json!({"a": value}))).expect("room");
    }
    let refused = book.say(at(0), run, partial(&json!({"b": "x".repeat(700)})));
    assert_eq!(refused, Err(Overflow), "all together are too large");
    assert_eq!(drain(&mut book, watcher).0.len(), 2);
}

#[test]
fn lines_over_the_limit_are_left_out_and_that_is_said_once() {
    let mut book = book(Limits { log_bytes_max: 10_000, ..Limits::default() });
    let (run, watcher) = started(&mut book, &request("r", 1));
    for _ in 0..1000 {
        book.say(at(0), run, line(&"x".repeat(100))).expect("never refused");
    }
    book.say(at(0), run, line(&"y".repeat(1_000_000))).expect("never refused");
    let (frames, _) = drain(&mut book, watcher);
    assert!((10..100).contains(&frames.len()), "{}", frames.len());
    let last = frames.last().expect("a frame")["data"]["msg"].as_str().expect("text").to_owned();
    assert!(last.contains("left out"), "{last}");
    book.finish(at(1), run, done(&json!({})));
    assert_eq!(drain(&mut book, watcher).0.len(), 2, "the end comes all the same");
}

#[test]
fn t018_a_slow_reader_is_given_up_and_nobody_else_notices() {
    let limits = Limits { queue_bytes_max: 2_000, ..Limits::default() };
    let mut book = book(limits);
    let (run, fast) = started(&mut book, &request("r", 1));
    let slow = attached(&mut book, &request("r", 1));
    let mut seen = 0;
    let mut given_up = Vec::new();
    for n in 0..100 {
        given_up.extend(book.say(at(n), run, line("x")).expect("room"));
        seen += drain(&mut book, fast).0.len();
    }
    assert_eq!(seen, 100);
    assert_eq!(given_up, [slow], "said once");
    assert_eq!(drain(&mut book, slow), (vec![], Some(close::TRY_AGAIN)));
    book.leave(at(100), slow);
    let again = attached(&mut book, &request("r", 1));
    assert_eq!(drain(&mut book, again).0.len(), 100, "who comes back misses nothing");
}

#[test]
fn t018_a_reader_is_slow_by_bytes_too_but_never_for_what_was_there_before() {
    let limits = Limits { queue_bytes_max: 10_000, ..Limits::default() };
    let mut book = book(limits);
    let (run, first) = started(&mut book, &request("r", 1));
    for n in 0..100 {
        let value = format!("{n}{}", "x".repeat(1_000));
        let slow = book.say(at(0), run, partial(&json!({"a": value}))).expect("room");
        assert!(slow.is_empty());
        drain(&mut book, first);
    }
    let late = attached(&mut book, &request("r", 1));
    let large = |n: u32| partial(&json!({"a": format!("{n}{}", "x".repeat(6_000))}));
    assert_eq!(book.say(at(1), run, large(1)), Ok(vec![]));
    assert_eq!(book.say(at(1), run, large(2)), Ok(vec![first, late]));
}

#[test]
fn t018_a_text_that_grows_counts_by_what_is_new() {
    let mut book = book(Limits { queue_bytes_max: 100_000, ..Limits::default() });
    let (run, reader) = started(&mut book, &request("r", 1));
    let mut text = String::new();
    for n in 0..500 {
        text.push_str("twenty bytes of text");
        let slow = book.say(at(n), run, partial(&json!({"text": text}))).expect("room");
        assert_eq!(slow, [], "{n}");
    }
    let (frames, _) = drain(&mut book, reader);
    assert_eq!(frames.last().expect("the last")["outputs"]["text"], json!(text));
}

#[test]
fn t011_costs_are_told_when_they_grow_and_the_end_has_the_largest() {
    let mut book = book(Limits { log_bytes_max: 10_000, ..Limits::default() });
    let (run, watcher) = started(&mut book, &request("r", 1));
    for cost in [5, 5, 3, 7] {
        book.say(at(0), run, RunReport::Cost(cost)).expect("room");
    }
    let (frames, _) = drain(&mut book, watcher);
    let costs: Vec<&Value> = frames.iter().map(|frame| &frame["control"]["cost_micro"]).collect();
    assert_eq!(costs, [5, 7]);
    assert_eq!(frames[0]["kind"], "Event");
    assert_eq!(frames[0]["data"], json!({"phase": "checkpoint"}));
    // Who says too much is heard when it is much more; what is kept stays bounded.
    for cost in 8..100_000 {
        book.say(at(0), run, RunReport::Cost(cost)).expect("room");
    }
    let (frames, _) = drain(&mut book, watcher);
    assert!(frames.len() < 300, "{}", frames.len());
    book.note_cost(run, 200_000);
    book.finish(at(0), run, done(&json!({})));
    let (frames, _) = drain(&mut book, watcher);
    assert_eq!(frames[0]["control"]["cost_micro"], 200_000);
}

#[test]
fn t009_pieces_of_text_become_an_output_that_grows() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    for piece in ["Mock ", "response: ", "ü"] {
        book.say(at(0), run, RunReport::Text(piece.to_owned())).expect("room");
    }
    let (frames, _) = drain(&mut book, watcher);
    let texts: Vec<&Value> = frames.iter().map(|frame| &frame["outputs"]["text"]).collect();
    assert_eq!(texts, ["Mock ", "Mock response: ", "Mock response: ü"]);
    for _ in 0..20_000 {
        book.say(at(0), run, RunReport::Text("word ".to_owned())).expect("room");
    }
    book.finish(at(0), run, done(&json!({})));
    let (frames, _) = drain(&mut book, watcher);
    assert!(frames.len() < 2_000, "long text comes in steps, not {} times", frames.len());
    let last = frames.iter().rfind(|frame| frame["control"]["final"] == false).expect("partial");
    let text = last["outputs"]["text"].as_str().expect("text");
    assert_eq!(text.len(), "Mock response: ü".len() + 100_000, "nothing is left out at the end");
    let small = Limits { output_bytes_max: 1_000, ..Limits::default() };
    let mut book = super::book(small);
    let (run, _) = started(&mut book, &request("r", 1));
    assert_eq!(book.say(at(0), run, RunReport::Text("x".repeat(2_000))), Err(Overflow));
}

#[test]
fn t008_the_older_wire_gets_tokens_and_other_frames_as_they_came() {
    let frame = json!({"kind": "Event", "content": {"phase": "paused", "by": "c", "ts": 1}});
    let said = [RunReport::Text("Mock ".to_owned()), RunReport::Other(object(&frame))];
    let mut book = Book::new(Limits::default(), Profile::Upstream);
    let (run, watcher) = started(&mut book, &request("r", 1));
    for one in said.clone() {
        book.say(at(0), run, one).expect("room");
    }
    let (frames, _) = drain(&mut book, watcher);
    assert_eq!(frames[0]["kind"], "Token");
    assert_eq!(frames[0]["content"], json!({"text": "Mock "}));
    assert_eq!(frames[1]["content"], frame["content"]);
    assert_eq!(frames[1]["control"], json!({"run_id": "r", "seq": 2}));
    let mut book = super::book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    for one in said {
        book.say(at(0), run, one).expect("room");
    }
    let (frames, _) = drain(&mut book, watcher);
    assert_eq!(frames.len(), 1, "the protocol has no such frames: {frames:?}");
}
