//! Which request is which run, who sees it, and how it ends.

use serde_json::{Value, json};
use wharf_protocol::run::server::{
    Book, Credential, Ending, Limits, OpenResult, Profile, RunReport, answer,
};
use wharf_wire::run_v1::{LogLevel, Phase, Status, UnfitRequest, close, code};

use super::{ME, at, attached, book, done, drain, request, started};

fn kinds(frames: &[Value]) -> Vec<String> {
    let name = |frame: &Value| {
        let phase = frame["data"]["phase"].as_str().unwrap_or_default();
        format!("{}{phase}", frame["kind"].as_str().expect("a kind"))
    };
    frames.iter().map(name).collect()
}

fn start() -> RunReport {
    RunReport::Event { phase: Phase::Started, progress: None }
}

#[test]
fn t010_a_success_ends_with_one_final_response_and_that_it_is_completed() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    book.say(at(0), run, start()).expect("room");
    assert_eq!(book.finish(at(1), run, done(&json!({"x": 1}))), Some(Status::Success));
    let (frames, close) = drain(&mut book, watcher);
    assert_eq!(kinds(&frames), ["Eventstarted", "Response", "Eventcompleted"]);
    assert_eq!(
        frames[1],
        json!({"kind": "Response", "control": {"run_id": "r", "status": "success",
            "cost_micro": 1, "final": true, "seq": 2}, "outputs": {"x": 1}})
    );
    assert_eq!(close, Some(close::NORMAL));
}

#[test]
fn t010_every_failure_is_a_final_response_with_an_error() {
    for code in [
        code::INPUTS,
        code::HANDLER,
        code::WORKER,
        code::TIMEOUT,
        code::LIMIT,
        code::STORAGE,
        code::OUTPUT_MISSING,
        code::PATH,
        "my_own",
    ] {
        let mut book = book(Limits::default());
        let (run, watcher) = started(&mut book, &request("r", 1));
        assert_eq!(book.finish(at(1), run, Ending::failed(code, "No.")), Some(Status::Error));
        let (frames, close) = drain(&mut book, watcher);
        assert_eq!(kinds(&frames), ["Response", "Eventcompleted"], "{code}");
        assert_eq!(frames[0]["error"], json!({"code": code, "message": "No."}));
        assert_eq!(frames[0]["control"]["status"], "error");
        assert_eq!(frames[0]["outputs"], json!({}));
        assert_eq!(close, Some(close::NORMAL));
    }
}

#[test]
fn t010_only_the_first_ending_counts() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    assert!(book.finish(at(1), run, done(&json!({"x": 1}))).is_some());
    assert!(book.finish(at(2), run, Ending::failed(code::TIMEOUT, "Late.")).is_none());
    assert_eq!(book.say(at(3), run, start()), Ok(Vec::new()));
    let (frames, _) = drain(&mut book, watcher);
    assert_eq!(kinds(&frames), ["Response", "Eventcompleted"]);
    assert_eq!(frames[0]["outputs"], json!({"x": 1}));
}

#[test]
fn t019_a_canceled_run_says_that_it_was_stopped_before_its_end() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    assert!(book.cancel(run));
    assert!(!book.cancel(run), "only once");
    book.finish(at(1), run, Ending::failed(code::CANCELED, "The run was canceled."));
    let (frames, close) = drain(&mut book, watcher);
    assert_eq!(kinds(&frames), ["Eventpreempted", "Response"]);
    assert_eq!(frames[1]["error"]["code"], code::CANCELED);
    assert_eq!(close, Some(close::NORMAL));
    assert!(!book.cancel(run), "over");
}

#[test]
fn t011_t028_warnings_go_before_the_final_response() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    let ending = Ending { cost: None, missing: vec!["img".into()], ..done(&json!({"img": null})) };
    book.finish(at(1), run, ending);
    let (frames, _) = drain(&mut book, watcher);
    assert_eq!(kinds(&frames), ["Log", "Log", "Response", "Eventcompleted"]);
    assert!(frames[0]["data"]["msg"].as_str().expect("text").contains("`img`"));
    assert_eq!(frames[0]["data"]["level"], "warn");
    assert_eq!(frames[2]["control"]["cost_micro"], 0);
}

#[test]
fn t017_the_same_request_attaches_and_gets_everything_again() {
    let mut book = book(Limits::default());
    let (run, first) = started(&mut book, &request("r", 1));
    book.say(at(0), run, start()).expect("room");
    let line = RunReport::Log { level: LogLevel::Info, text: "one".into(), at: None };
    book.say(at(1), run, line).expect("room");
    let second = attached(&mut book, &request("r", 1));
    book.finish(at(2), run, done(&json!({})));
    let third = attached(&mut book, &request("r", 1));
    let all = drain(&mut book, first);
    assert_eq!(all.0.len(), 4);
    let seqs: Vec<u64> =
        all.0.iter().map(|f| f["control"]["seq"].as_u64().expect("a number")).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert_eq!(drain(&mut book, second), all);
    assert_eq!(drain(&mut book, third), all);
    let mut behind = request("r", 1);
    behind.control.after = Some(2);
    let fourth = attached(&mut book, &behind);
    assert_eq!(drain(&mut book, fourth).0, all.0[2..]);
    behind.control.after = Some(u64::MAX);
    let fifth = attached(&mut book, &behind);
    assert_eq!(drain(&mut book, fifth), (vec![], Some(close::NORMAL)));
}

#[test]
fn t017_another_request_under_the_same_name_is_refused_and_changes_nothing() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    let mut other = request("r", 1);
    other.inputs["a"] = json!(2);
    let OpenResult::Refused(refusal) = book.open(ME, &other, None) else { panic!("not refused") };
    assert_eq!((refusal.code, refusal.reason), (close::POLICY, "run_id conflict"));
    book.finish(at(1), run, done(&json!({})));
    assert_eq!(kinds(&drain(&mut book, watcher).0), ["Response", "Eventcompleted"]);
}

#[test]
fn t017_a_signature_that_changed_is_the_same_request() {
    let mut book = book(Limits::default());
    let mut signed = request("r", 1);
    signed.outputs.insert("o".into(), json!("https://s/o?sig=1"));
    started(&mut book, &signed);
    signed.outputs.insert("o".into(), json!("https://s/o?sig=2"));
    attached(&mut book, &signed);
}

#[test]
fn t017_a_higher_attempt_takes_over_and_a_lower_one_comes_too_late() {
    let mut book = book(Limits::default());
    let (old, watcher) = started(&mut book, &request("r", 2));
    let OpenResult::Started { superseded, .. } = book.open(ME, &request("r", 3), None) else {
        panic!("not started")
    };
    assert_eq!(superseded, [old]);
    book.finish(at(1), old, Ending::failed(code::CANCELED, "A newer attempt took over."));
    assert_eq!(drain(&mut book, watcher).1, Some(close::NORMAL));
    attached(&mut book, &request("r", 2));
    let OpenResult::Refused(refusal) = book.open(ME, &request("r", 1), None) else {
        panic!("not refused")
    };
    assert_eq!(refusal.code, close::POLICY);
}

#[test]
fn t017_who_heard_of_a_run_that_is_not_known_does_not_start_a_second_one() {
    let mut book = book(Limits::default());
    let mut again = request("r", 1);
    again.control.after = Some(3);
    let OpenResult::Unfit(unfit) = book.open(ME, &again, None) else { panic!("not answered") };
    assert_eq!(unfit.code, code::WORKER);
    assert_eq!(book.open_runs(), 0);
    // Whoever knows only that the run began, as a core that was restarted, says 0.
    again.control.after = Some(0);
    let OpenResult::Unfit(unfit) = book.open(ME, &again, None) else { panic!("not answered") };
    assert_eq!((unfit.code, book.open_runs()), (code::WORKER, 0));
    again.control.after = None;
    started(&mut book, &again);
}

#[test]
fn t020_beyond_the_queue_the_answer_is_busy_and_nothing_is_kept() {
    let mut book = book(Limits::default());
    let (run, _) = started(&mut book, &request("known", 1));
    let full = Some("Too many runs wait.");
    let OpenResult::Unfit(unfit) = book.open(ME, &request("r", 1), full) else {
        panic!("not busy")
    };
    assert_eq!((unfit.run_id.as_str(), unfit.code), ("r", code::BUSY));
    let text = answer(Profile::Default, &unfit);
    let frame: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(frame["control"]["final"], true);
    assert_eq!(frame["error"]["code"], code::BUSY);
    started(&mut book, &request("r", 1));
    let known = book.open(ME, &request("known", 1), full);
    assert!(matches!(known, OpenResult::Attached { run: one, .. } if one == run));
}

#[test]
fn t017_t022_runs_of_two_worlds_with_one_id_are_two_runs() {
    let mut book = book(Limits::default());
    let of = |world: Option<&str>, attempt| {
        let mut request = request("r", attempt);
        request.control.world = world.map(str::to_owned);
        request
    };
    let (nowhere, _) = started(&mut book, &of(None, 1));
    let (red, heard) = started(&mut book, &of(Some("red"), 1));
    let mut blue = of(Some("blue"), 1);
    blue.inputs["a"] = json!("another request");
    let (blue, _) = started(&mut book, &blue);
    assert!(nowhere != red && red != blue);
    let OpenResult::Started { superseded, .. } = book.open(ME, &of(Some("blue"), 2), None) else {
        panic!("not started")
    };
    assert_eq!(superseded, [blue], "an attempt takes over in its own world only");
    attached(&mut book, &of(Some("red"), 1));
    book.finish(at(1), blue, done(&json!({"secret": 1})));
    assert_eq!(drain(&mut book, heard), (vec![], None));
}

#[test]
fn t022_a_run_is_seen_only_by_who_started_it() {
    let mut book = book(Limits::default());
    let (mine, watcher) = started(&mut book, &request("r", 1));
    let mut spy = request("r", 1);
    let other = book.open(Credential(2), &spy, None);
    let OpenResult::Started { run, superseded, .. } = other else {
        panic!("attached to another's")
    };
    assert_ne!(run, mine);
    assert!(superseded.is_empty());
    spy.control.attempt = 9;
    let OpenResult::Started { superseded, .. } = book.open(Credential(2), &spy, None) else {
        panic!("not started")
    };
    assert_eq!(superseded, [run], "an attempt takes over its own kind only");
    book.finish(at(1), run, done(&json!({"secret": 1})));
    assert_eq!(drain(&mut book, watcher), (vec![], None));
}

#[test]
fn peers_of_the_half_migrated_wire_get_what_is_new_in_a_text() {
    let mut book = Book::new(Limits::default(), Profile::Upstream);
    let (run, watcher) = started(&mut book, &request("r", 1));
    book.say(at(0), run, start()).expect("room");
    for text in ["Hello", "Hello world", "Bye"] {
        let partial = super::object(&json!({"text": text, "n": 1}));
        book.say(at(1), run, RunReport::Partial(partial)).expect("room");
    }
    let (frames, _) = drain(&mut book, watcher);
    assert_eq!(frames[0]["content"]["phase"], "started");
    let tokens = frames.iter().filter(|f| f["kind"] == "Token");
    let tokens: Vec<&str> = tokens.map(|f| f["content"]["text"].as_str().expect("")).collect();
    assert_eq!(tokens, ["Hello", " world", "Bye"]);
    let unfit = UnfitRequest { run_id: "r".into(), code: code::BUSY, message: "No." };
    assert!(!answer(Profile::Upstream, &unfit).contains("content"));
}
