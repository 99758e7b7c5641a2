//! How long a run is kept, with and without readers.

use serde_json::json;
use wharf_protocol::run::server::{Limits, OpenResult};

use super::{ME, at, attached, book, done, drain, request, started};

#[test]
fn t017_the_end_can_be_asked_for_during_an_hour() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    book.finish(at(1_000), run, done(&json!({})));
    drain(&mut book, watcher);
    book.leave(at(1_000), watcher);
    assert_eq!(book.deadline_ms(), Some(3_601_000));
    assert!(book.time(at(3_600_999)).is_empty());
    let again = attached(&mut book, &request("r", 1));
    book.time(at(3_601_000));
    assert_eq!(drain(&mut book, again).0.len(), 2, "a run that is read stays");
    book.leave(at(3_601_000), again);
    assert_eq!(book.ended_runs(), 0);
    started(&mut book, &request("r", 1));
}

#[test]
fn t017_what_is_kept_is_bounded_in_bytes_and_the_oldest_goes_first() {
    let mut book = book(Limits { retain_bytes_max: 100_000, ..Limits::default() });
    for n in 0..1_000 {
        let (run, watcher) = started(&mut book, &request(&format!("r{n}"), 1));
        book.finish(at(n), run, done(&json!({"text": "x".repeat(1_000)})));
        drain(&mut book, watcher);
        book.leave(at(n), watcher);
    }
    assert!((50..100).contains(&book.ended_runs()), "{}", book.ended_runs());
    attached(&mut book, &request("r999", 1));
    started(&mut book, &request("r0", 1));
}

#[test]
fn t019_a_run_that_nobody_comes_back_to_is_canceled_after_the_grace() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    let second = attached(&mut book, &request("r", 1));
    book.leave(at(0), watcher);
    assert_eq!(book.deadline_ms(), None, "one is still there");
    book.leave(at(10), second);
    assert_eq!(book.deadline_ms(), Some(30_010));
    assert!(book.time(at(30_009)).is_empty());
    let back = attached(&mut book, &request("r", 1));
    assert!(book.time(at(40_000)).is_empty(), "somebody came back");
    book.leave(at(50_000), back);
    assert_eq!(book.time(at(80_000)), [run]);
    assert!(book.time(at(90_000)).is_empty(), "said once");
}

#[test]
fn t019_the_grace_does_not_hurt_a_run_that_is_over() {
    let mut book = book(Limits::default());
    let (run, watcher) = started(&mut book, &request("r", 1));
    book.finish(at(0), run, done(&json!({})));
    book.leave(at(1), watcher);
    assert!(book.time(at(100_000)).is_empty());
    assert!(matches!(book.open(ME, &request("r", 1), None), OpenResult::Attached { .. }));
}
