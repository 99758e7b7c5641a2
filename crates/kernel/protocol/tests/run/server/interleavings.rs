//! Whatever order things happen in: one final response, numbers without gaps, and readers who
//! came late read what readers who were there heard.

use proptest::prelude::*;
use serde_json::{Value, json};
use wharf_protocol::run::server::{
    Ending, Limits, NextFrames, OpenResult, RunNo, RunReport, WatcherNo,
};
use wharf_wire::run_v1::{LogLevel, Phase, close, code};

use super::{ME, at, book, done, object, request};

#[derive(Debug, Clone)]
enum Step {
    Open { after: Option<u64> },
    Say(u8),
    Finish(bool),
    Read(usize),
    Leave(usize),
    Cancel,
    Pass(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => proptest::option::of(0..6_u64).prop_map(|after| Step::Open { after }),
        8 => any::<u8>().prop_map(Step::Say),
        1 => any::<bool>().prop_map(Step::Finish),
        8 => any::<usize>().prop_map(Step::Read),
        2 => any::<usize>().prop_map(Step::Leave),
        1 => Just(Step::Cancel),
        1 => (0..20_000_u32).prop_map(Step::Pass),
    ]
}

fn said(n: u8) -> RunReport {
    match n % 4 {
        0 => RunReport::Log { level: LogLevel::Info, text: format!("line {n}"), at: None },
        1 => RunReport::Event { phase: Phase::Checkpoint, progress: Some(f64::from(n) / 128.0) },
        2 => RunReport::Partial(object(&json!({"text": "x".repeat(usize::from(n))}))),
        _ => RunReport::Partial(object(&json!({"text": format!("{n}"), "n": n}))),
    }
}

struct Reader {
    watcher: WatcherNo,
    after: u64,
    heard: Vec<Value>,
    closed: Option<u16>,
}

fn read(book: &mut wharf_protocol::run::server::Book, reader: &mut Reader) {
    if reader.closed.is_some() {
        return;
    }
    match book.next(reader.watcher) {
        NextFrames::Frames(texts) => {
            reader.heard.extend(texts.iter().map(|text| serde_json::from_str(text).expect("JSON")));
        }
        NextFrames::Wait => {}
        NextFrames::Close(refusal) => reader.closed = Some(refusal.code),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn t010_t017_final_once_no_gaps_and_replay_is_live(
        steps in proptest::collection::vec(step(), 1..120),
        queue in 3_usize..40,
    ) {
        let limits = Limits { queue_bytes_max: queue * 170, grace_ms: 30_000, ..Limits::default() };
        let mut book = book(limits);
        let mut now = 0;
        let mut readers: Vec<Reader> = Vec::new();
        let mut run: Option<RunNo> = None;
        let mut endings = 0;
        for step in steps {
            match step {
                Step::Open { after } => {
                    let mut request = request("r", 1);
                    request.control.after = after;
                    match book.open(ME, &request, None) {
                        OpenResult::Started { run: new, watcher, .. } => {
                            prop_assert!(run.is_none(), "a run starts once");
                            run = Some(new);
                            readers.push(Reader { watcher, after: 0, heard: vec![], closed: None });
                        }
                        OpenResult::Attached { run: same, watcher } => {
                            prop_assert_eq!(run, Some(same));
                            let after = after.unwrap_or(0);
                            readers.push(Reader { watcher, after, heard: vec![], closed: None });
                        }
                        OpenResult::Unfit(unfit) => {
                            prop_assert!(run.is_none() && after.is_some());
                            prop_assert_eq!(unfit.code, code::WORKER);
                        }
                        OpenResult::Refused(refusal) => prop_assert!(false, "{}", refusal),
                    }
                }
                Step::Say(n) => if let Some(run) = run {
                    book.say(at(now), run, said(n)).expect("room");
                },
                Step::Finish(is_good) => if let Some(run) = run {
                    let failed = Ending::failed(code::CANCELED, "Stopped.");
                    let ending = if is_good { done(&json!({"x": 1})) } else { failed };
                    endings += usize::from(book.finish(at(now), run, ending).is_some());
                },
                Step::Read(n) => if !readers.is_empty() {
                    let n = n % readers.len();
                    read(&mut book, &mut readers[n]);
                },
                Step::Leave(n) => if !readers.is_empty() {
                    let n = n % readers.len();
                    book.leave(at(now), readers[n].watcher);
                    readers[n].closed.get_or_insert(0);
                },
                Step::Cancel => if let Some(run) = run { book.cancel(run); },
                Step::Pass(ms) => {
                    now += u64::from(ms);
                    book.time(at(now));
                }
            }
        }
        prop_assert!(endings <= 1);
        let Some(run) = run else { return Ok(()) };
        book.finish(at(now), run, Ending::failed(code::WORKER, "Gone."));
        let OpenResult::Attached { watcher, .. } = book.open(ME, &request("r", 1), None) else {
            return Err(TestCaseError::fail("the run is still known"));
        };
        let mut late = Reader { watcher, after: 0, heard: vec![], closed: None };
        while late.closed.is_none() {
            read(&mut book, &mut late);
        }
        prop_assert_eq!(late.closed, Some(close::NORMAL));
        let finals = late.heard.iter().filter(|frame| frame["control"]["final"] == true).count();
        prop_assert_eq!(finals, 1);
        for (index, frame) in late.heard.iter().enumerate() {
            prop_assert_eq!(&frame["control"]["seq"], &json!(index + 1));
        }
        for reader in &mut readers {
            while reader.closed.is_none() {
                read(&mut book, reader);
            }
            let heard = &reader.heard;
            let from = usize::try_from(reader.after).expect("small").min(late.heard.len());
            // A reader came before the end may have asked for what was not said yet.
            let from = heard.first().map_or(from, |frame| {
                usize::try_from(frame["control"]["seq"].as_u64().expect("a number")).expect("small") - 1
            });
            prop_assert!(from <= usize::try_from(reader.after).expect("small"));
            prop_assert_eq!(heard.as_slice(), &late.heard[from..from + heard.len()]);
            if reader.closed == Some(close::NORMAL) {
                prop_assert_eq!(from + heard.len(), late.heard.len());
            }
        }
    }
}
