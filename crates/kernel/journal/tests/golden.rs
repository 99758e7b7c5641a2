//! Journals that were written once must be read and replayed for ever.
//!
//! `testdata/NAME.json` holds the rows of a stream as they were stored, `NAME.expected.json` what
//! a replay must yield. A golden journal is never changed: when a stored shape changes, a new
//! file joins the old ones, and the old ones go through the upcasters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use wharf_domain::flow::Flow;
use wharf_domain::run::steps::{CallState, StepLog, StepMark};
use wharf_domain::trigger::OwedFiring;
use wharf_domain::{
    Ask, AskEntry, Audience, Entry, Grant, Notice, Notification, Provider, ProviderKind, Receiver,
    Run, RunEntry, Schedule, Seat, Trigger, World,
};
use wharf_journal::{Kind, decode, decode_progress, encode, encode_progress};
use wharf_vocab::{StreamId, Timestamp};

#[derive(Deserialize)]
struct Golden {
    stream: Stream,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Stream {
    kind: String,
    key: String,
}

#[derive(Deserialize)]
struct Row {
    at: Timestamp,
    entries: Option<Value>,
    progress: Option<Value>,
}

#[test]
fn every_golden_journal_replays_to_what_is_expected() {
    let mut seen = 0;
    for (path, golden) in goldens() {
        let name = path.display();
        let stream = StreamId::parse(&golden.stream.kind, &golden.stream.key)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut entries = Vec::new();
        for row in &golden.rows {
            if let Some(body) = &row.entries {
                let read = decode(&bytes(body)).unwrap_or_else(|error| panic!("{name}: {error:?}"));
                entries.extend(read.into_iter().map(|entry| (row.at, entry)));
            }
            if let Some(body) = &row.progress {
                decode_progress(&bytes(body)).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            }
        }
        let expected = std::fs::read(path.with_extension("expected.json"))
            .unwrap_or_else(|error| panic!("{name} has no expected.json: {error}"));
        let expected: Value = serde_json::from_slice(&expected).expect("JSON");
        let summary = replay(&stream, entries);
        // What later versions show besides is not the old journals' business.
        let mut told = summary.clone();
        if let (Some(told), Some(expected)) = (told.as_object_mut(), expected.as_object()) {
            told.retain(|key, _| expected.contains_key(key));
            let lists = (told.get_mut("summary"), expected.get("summary"));
            if let (Some(Value::Object(told)), Some(Value::Object(expected))) = lists {
                told.retain(|key, _| expected.contains_key(key));
            }
        }
        assert_eq!(told, expected, "{name} replays to\n{summary:#}");
        seen += 1;
    }
    assert!(seen >= 9, "the golden journals are found");
}

/// Whether an approval was needed used to be a yes or no.
#[test]
fn a_run_that_needed_an_approval_still_does() {
    let (_, golden) = goldens()
        .into_iter()
        .find(|(path, _)| path.ends_with("run-child-refused.json"))
        .expect("the old journal is there");
    let body = golden.rows[0].entries.as_ref().expect("entries");
    let entries = decode(&bytes(body)).expect("decodes");
    let [Entry::Run(RunEntry::Created(created)), ..] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    let gate = created.spec.gate.as_ref().expect("it is asked for");
    assert_eq!((&gate.audience, gate.remember), (&Audience::Person, false));
}

/// Addresses with what lets somebody in are for the provider only; no row ever has them.
#[test]
fn t035_addresses_with_their_secrets_are_never_written() {
    let secret = "https://user:pass@a.example/x?X-Amz-Signature=canary";
    let mut seen = 0;
    for (path, golden) in goldens() {
        for body in golden.rows.iter().filter_map(|row| row.entries.as_ref()) {
            let mut entries = decode(&bytes(body)).expect("decodes");
            let Some(Entry::Run(RunEntry::Created(created))) = entries.first_mut() else {
                continue;
            };
            let before = encode(&[Entry::Run(RunEntry::Created(created.clone()))]);
            let addresses = &mut Arc::make_mut(&mut created.spec).addresses;
            addresses.inputs.0.insert("style".to_owned(), secret.to_owned());
            addresses.outputs.0.insert("copy".to_owned(), secret.to_owned());
            let shown = format!("{created:?}");
            let after = encode(&[Entry::Run(RunEntry::Created(created.clone()))]);
            assert_eq!(json_of(&after), json_of(&before), "{}", path.display());
            for text in [String::from_utf8(after).expect("text"), shown] {
                assert!(!text.contains("canary") && !text.contains("pass"), "{text}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 8, "the golden runs are found");
}

/// What is read of the newest version is written again as it was, so a field that was renamed or
/// dropped by accident shows up here.
#[test]
fn golden_rows_of_the_newest_versions_are_written_as_they_were() {
    for (path, golden) in goldens() {
        for body in golden.rows.iter().filter_map(|row| row.entries.as_ref()) {
            if is_newest(body) {
                let again = encode(&decode(&bytes(body)).expect("decodes"));
                assert_eq!(json_of(&again), *body, "{}", path.display());
            }
        }
        for body in golden.rows.iter().filter_map(|row| row.progress.as_ref()) {
            if is_newest(body) {
                let again = encode_progress(&decode_progress(&bytes(body)).expect("decodes"));
                assert_eq!(json_of(&again), *body, "{}", path.display());
            }
        }
    }
}

#[test]
fn every_version_of_every_kind_has_a_golden_example() {
    let mut seen = BTreeSet::new();
    for (_, golden) in goldens() {
        for row in golden.rows {
            for body in [row.entries, row.progress].into_iter().flatten() {
                for piece in body.as_array().expect("a list") {
                    let kind = piece[0].as_str().expect("a kind").to_owned();
                    seen.insert((kind, piece[1].as_u64().expect("a version")));
                }
            }
        }
    }
    for kind in Kind::ALL {
        for version in 1..=u64::from(kind.newest()) {
            assert!(
                seen.contains(&(kind.as_str().to_owned(), version)),
                "{kind} version {version} stands in no golden journal"
            );
        }
    }
}

fn goldens() -> Vec<(PathBuf, Golden)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("testdata is there")
        .map(|file| file.expect("readable").path())
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".json") && !name.ends_with(".expected.json")
        })
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read(&path).expect("readable");
        let golden = serde_json::from_slice(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, golden)
    };
    paths.into_iter().map(read).collect()
}

fn replay(stream: &StreamId, entries: Vec<(Timestamp, Entry)>) -> Value {
    match stream {
        StreamId::Run(_) => {
            let entries: Vec<(Timestamp, RunEntry)> = entries
                .into_iter()
                .map(|(at, entry)| match entry {
                    Entry::Run(entry) => (at, entry),
                    other => panic!("{other:?} in a run"),
                })
                .collect();
            let run = Run::replay(entries.iter().map(|(at, entry)| (*at, entry)));
            run_summary(&run.expect("a run"))
        }
        StreamId::Ask(_) => {
            let entries = entries.into_iter().map(|(at, entry)| match entry {
                Entry::Ask(entry) => (at, entry),
                other => panic!("{other:?} in an ask"),
            });
            ask_summary(
                &Ask::replay(entries.collect::<Vec<(Timestamp, AskEntry)>>()).expect("an ask"),
            )
        }
        StreamId::World(id) => {
            let world = entries.iter().fold(None, |world, (at, entry)| match entry {
                Entry::World(entry) => Some(World::apply(world, id, *at, entry).expect("follows")),
                other => panic!("{other:?} in a world"),
            });
            let world = world.expect("a world");
            json!({
                "id": world.id, "created_at": world.created_at, "settings": world.settings,
                "allowed": world.allowed, "removed": world.removed,
            })
        }
        StreamId::Provider(id) => {
            let agent = entries.iter().fold(None, |agent, (at, entry)| match entry {
                Entry::Provider(entry) => {
                    Some(Provider::apply(agent, id, *at, entry).expect("follows"))
                }
                other => panic!("{other:?} in an agent"),
            });
            let agent = agent.expect("an agent");
            let terms = agent.approval.as_ref().map(|approval| {
                let terms = &approval.terms;
                json!([terms.sandbox, terms.isolation, approval.files])
            });
            let kind = match &agent.manifest.kind {
                ProviderKind::Agent(_) => json!(["agent"]),
                ProviderKind::ToolServer(server) => json!(["tool_server", server]),
                ProviderKind::Mcp(details) => json!(["mcp_server", details]),
                ProviderKind::Operative => json!(["operative"]),
            };
            json!({
                "id": agent.id,
                "kind": kind,
                "folder": agent.folder,
                "manifest_hash": agent.manifest_hash,
                "approved": agent.approval.as_ref().map(|approval| &approval.permissions),
                "wanted": agent.wanted,
                "stop_reason": agent.stop_reason,
                "tools": agent.tools.len(),
                "removed": agent.removed,
                "terms": terms,
                "drift": agent.drift,
                "pinned": agent.pinned.len(),
                "quarantined": agent.quarantined().count(),
                "limits": agent.manifest.limits,
            })
        }
        StreamId::Grant(id) => {
            let grant = entries.iter().fold(None, |grant, (at, entry)| match entry {
                Entry::Grant(entry) => Some(Grant::apply(grant, id, *at, entry).expect("follows")),
                other => panic!("{other:?} in a grant"),
            });
            let grant = grant.expect("a grant");
            json!({
                "id": grant.id, "label": grant.label, "rights": grant.rights,
                "person": grant.person, "budget_micro": grant.budget_micro,
                "made_at": grant.made_at, "revoked_at": grant.revoked_at,
                "seen_at": grant.seen_at, "console": grant.console.is_some(),
            })
        }
        StreamId::Seat(id) => {
            let seat = entries.iter().fold(None, |seat, (at, entry)| match entry {
                Entry::Seat(entry) => Some(Seat::apply(seat, id, *at, entry).expect("follows")),
                other => panic!("{other:?} in a seat"),
            });
            let seat = seat.expect("a seat");
            json!({"id": seat.id, "desc": seat.desc, "token": seat.token, "open": seat.is_open()})
        }
        StreamId::Flow(id) => {
            let flow = entries.iter().fold(None, |flow, (at, entry)| match entry {
                Entry::Flow(entry) => Some(Flow::apply(flow, id, *at, entry).expect("follows")),
                other => panic!("{other:?} in a flow"),
            });
            let flow = flow.expect("a flow");
            let versions: Vec<_> = flow.versions.values().collect();
            let versions = versions.iter().map(|version| {
                json!({
                    "number": version.number, "hash": version.hash, "pins": *version.pins,
                    "added_at": version.added_at, "document": *version.document,
                })
            });
            json!({"id": flow.id, "last": flow.last, "versions": versions.collect::<Vec<_>>()})
        }
        StreamId::Schedule(id) => {
            let schedule = entries.iter().fold(None, |schedule, (at, entry)| match entry {
                Entry::Schedule(entry) => {
                    Some(Schedule::apply(schedule, id, *at, entry).expect("follows"))
                }
                other => panic!("{other:?} in a schedule"),
            });
            let schedule = schedule.expect("a schedule");
            json!({
                "id": schedule.id, "made_at": schedule.made_at, "spec": schedule.spec,
                "cursor": schedule.cursor, "fired": schedule.fired, "due": schedule.due.len(),
                "last_run": schedule.last_run, "removed": schedule.removed,
                "paused": schedule.paused.as_ref().map(|pause| pause.cause.as_str()),
                "account": schedule.account,
                "last": schedule.last.as_ref().map(|it| (it.n, it.state, it.missed)),
            })
        }
        StreamId::Receiver(id) => {
            let receiver = entries.iter().fold(None, |receiver, (at, entry)| match entry {
                Entry::Receiver(entry) => {
                    Some(Receiver::apply(receiver, id, *at, entry).expect("follows"))
                }
                other => panic!("{other:?} in a receiver"),
            });
            let receiver = receiver.expect("a receiver");
            json!({
                "id": receiver.id, "made_at": receiver.made_at, "spec": receiver.spec,
                "paused": receiver.paused, "sent": receiver.sent, "parked": receiver.parked,
                "last": receiver.last, "removed": receiver.removed,
            })
        }
        StreamId::Trigger(id) => {
            let trigger = entries.iter().fold(None, |trigger, (at, entry)| match entry {
                Entry::Trigger(entry) => {
                    Some(Trigger::apply(trigger, id, *at, entry).expect("follows"))
                }
                other => panic!("{other:?} in a trigger"),
            });
            let trigger = trigger.expect("a trigger");
            json!({
                "id": trigger.id, "made_at": trigger.made_at, "spec": trigger.spec,
                "account": trigger.account, "paused": trigger.paused.is_some(),
                "fired": trigger.fired, "removed": trigger.removed,
            })
        }
        StreamId::Firing(_) => {
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(_, entry)| match entry {
                    Entry::Firing(entry) => entry,
                    other => panic!("{other:?} in a firing"),
                })
                .collect();
            json!({"owed": OwedFiring::replay(&entries)})
        }
        StreamId::Notification(_) => {
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(_, entry)| match entry {
                    Entry::Notification(entry) => entry,
                    other => panic!("{other:?} in a notification"),
                })
                .collect();
            json!({"owed": Notification::replay(&entries)})
        }
        StreamId::Notice(_) => {
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(_, entry)| match entry {
                    Entry::Notice(entry) => entry,
                    other => panic!("{other:?} in a notice"),
                })
                .collect();
            json!({"owed": Notice::replay(&entries)})
        }
    }
}

/// The places of a flow's steps that are under way.
fn under_way(run: &Run) -> Vec<String> {
    let steps = match (&run.flow, &run.spec.flow) {
        (Some(flow), Some(spec)) => flow.live_steps(spec),
        _ => Vec::new(),
    };
    steps.into_iter().map(|step| step.path).collect()
}

fn run_summary(run: &Run) -> Value {
    let asks: Vec<_> = run
        .asks
        .iter()
        .map(|raised| json!({"gate": raised.gate, "ask": ask_summary(&raised.ask)}))
        .collect();
    json!({
        "summary": run.summary(),
        "flow": run.flow.as_ref().map(|flow| json!({
            "cost_micro": flow.cost_micro(),
            "vars": flow.vars(),
            "started": flow.steps_started(),
            "signals": flow.signals_waiting(),
            "ended": flow.has_ended(),
        })),
        "under_way": under_way(run),
        "inputs": run.spec.inputs,
        "outcome": run.outcome,
        "asks": asks,
        "cancel": run.cancel,
        "last_failure": run.last_failure,
        "approval": run.approval(),
        "gate": run.spec.gate,
        "context": run.spec.context,
        "caller": run.spec.caller,
        "proposals": run.proposals,
        "children_allowed": run.children_allowed,
        "outputs": run.spec.outputs,
        "bindings": run.spec.bindings,
        "publish": run.spec.publish,
        "artifacts": run.artifacts,
        "metered": run.metered,
        "finals": run.finals,
        "publishing": run.publishing,
        "phase": format!("{:?}", run.phase()),
        "mcp": run.spec.mcp,
        "notes": run.active.as_ref().map(|active| &active.notes),
        "steps": run.steps.as_deref().map(steps_summary),
    })
}

fn steps_summary(log: &StepLog) -> Value {
    let marks = || log.all().map(|(step, mark)| (step.to_string(), mark));
    let refused = marks().filter(|(_, mark)| match mark {
        StepMark::Call(call) => matches!(call.state, CallState::Refused(_)),
        StepMark::Local(_) => false,
    });
    let values = marks().filter_map(|(step, mark)| match mark {
        StepMark::Local(value) => Some((step, value.clone())),
        StepMark::Call(_) => None,
    });
    json!({
        "known": marks().map(|(step, _)| step).collect::<Vec<_>>(),
        "open": log.open_runs().collect::<Vec<_>>(),
        "refused": refused.map(|(step, _)| step).collect::<Vec<_>>(),
        "values": values.collect::<serde_json::Map<_, _>>(),
    })
}

fn ask_summary(ask: &Ask) -> Value {
    json!({
        "ask_id": ask.spec.ask_id,
        "kind": ask.spec.kind,
        "audience": ask.spec.audience,
        "schema": ask.spec.schema,
        "created_at": ask.created_at,
        "resolved": ask.resolved,
    })
}

fn is_newest(body: &Value) -> bool {
    body.as_array().expect("a list").iter().all(|piece| {
        let kind = Kind::parse(piece[0].as_str().expect("a kind")).expect("known");
        piece[1] == kind.newest()
    })
}

fn bytes(body: &Value) -> Vec<u8> {
    serde_json::to_vec(body).expect("serialises")
}

fn json_of(row: &[u8]) -> Value {
    serde_json::from_slice(row).expect("JSON")
}
