//! A set of staged outputs is published whole or not at all, whenever the core is killed.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::{AGENT, TOOL, files, is_of_run, names, objects_of_runs, signed, start_agent};
use crate::agents::has_python;
use crate::support::{Api, Core, LONG, TestHome, wait_for};

const OUTPUTS: usize = 40;

/// When the core is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// As soon as the run is accepted.
    Accepted,
    /// When so many outputs lie where nobody sees them.
    Staged(usize),
    /// When so many outputs lie in their places.
    Placed(usize),
}

impl Moment {
    fn has_come(self, (staged, placed): (usize, usize)) -> bool {
        match self {
            Self::Accepted => true,
            // What has begun to be published was staged before.
            Self::Staged(count) => staged >= count || placed > 0,
            Self::Placed(count) => placed >= count,
        }
    }
}

fn request(tool: &str, id: &str) -> Value {
    let mut inputs = serde_json::Map::new();
    let mut outputs = serde_json::Map::new();
    for number in 1..=OUTPUTS {
        if tool != TOOL {
            inputs.insert(format!("k{number}"), text(id, number).into());
        }
        outputs.insert(format!("k{number}.world"), place(id, number).into());
    }
    if tool == TOOL {
        inputs.insert("text".to_owned(), id.into());
    }
    json!({"tool": tool, "world": "lab", "run_id": id, "inputs": inputs, "outputs": outputs})
}

fn place(id: &str, number: usize) -> String {
    format!("/{id}/k{number}.txt")
}

fn text(id: &str, number: usize) -> String {
    format!("k{number} of {id}")
}

/// How many objects of the world lie where nobody sees them, and how many in their places.
fn counts(home: &TestHome) -> (usize, usize) {
    let shelves = names(&home.path().join("objects/worlds/lab"));
    let (staged, placed): (Vec<_>, Vec<_>) =
        shelves.into_iter().partition(|shelf| is_of_run(shelf));
    let count = |shelves: &[PathBuf]| shelves.iter().map(|shelf| names(shelf).len()).sum();
    (count(&staged), count(&placed))
}

/// Starts a run and kills the core as soon as a moment has come.
fn kill_at(home: &TestHome, core: Core, run: &Value, moment: Moment) {
    let before = counts(home).1;
    let api = Api::of(&core);
    api.start(run);
    let deadline = Instant::now() + LONG;
    loop {
        let (staged, placed) = counts(home);
        if moment.has_come((staged, placed.saturating_sub(before))) {
            return core.kill();
        }
        assert!(Instant::now() < deadline, "{moment:?} does not come");
        std::thread::yield_now();
    }
}

/// All outputs are there once, or none is; says which.
fn check(home: &TestHome, api: &Api, id: &str) -> bool {
    let seen = || files(api, "lab", &format!("/{id}/")).len();
    let deadline = Instant::now() + LONG;
    let run = loop {
        let seen = seen();
        assert!(seen == 0 || seen == OUTPUTS, "{seen} outputs of {id} can be seen");
        let run = api.get(&format!("/v1/runs/{id}?world=lab"));
        if run["ended_at"].is_string() {
            break run;
        }
        assert!(Instant::now() < deadline, "{id} does not end: {run}");
    };
    let succeeded = run["status"] == "succeeded";
    assert!(succeeded || run["error"]["code"] == "tool.agent_lost", "{run}");
    assert_eq!(seen(), if succeeded { OUTPUTS } else { 0 }, "{run}");
    for number in 1..=OUTPUTS {
        let (path, text) = (place(id, number), text(id, number));
        let (status, body) = api.bytes(&format!("/v1/worlds/lab/files{path}"));
        let traced = format!("/v1/worlds/lab/trace?path={path}");
        if !succeeded {
            assert_eq!((status, api.bytes(&traced).0), (404, 404), "{path}");
            continue;
        }
        assert_eq!((status, String::from_utf8_lossy(&body).as_ref()), (200, text.as_str()));
        let trace = api.get(&traced);
        let written = trace["written"].as_array().expect("a list").iter();
        let written: Vec<_> = written.filter(|row| row["run_id"].is_string()).collect();
        assert_eq!(written.len(), 1, "{trace}");
        assert_eq!((&written[0]["run_id"], &written[0]["bytes"]), (&json!(id), &json!(text.len())));
        assert_eq!(run["outputs"][format!("k{number}")], format!("world://lab{path}"));
    }
    let events = api.bytes(&format!("/v1/runs/{id}/events?world=lab")).1;
    let events = String::from_utf8_lossy(&events).replace("event:finished", "event: finished");
    assert_eq!(events.matches("event: finished").count(), 1, "{events}");
    api.ask("POST", "/v1/worlds/lab/collect", &Value::Null);
    assert_eq!(objects_of_runs(home, "lab"), Vec::<PathBuf>::new(), "{id}");
    succeeded
}

/// Kills a core at each moment; gives whether the run of each succeeded.
fn kill_at_all(home: &TestHome, mut core: Core, tool: &str, moments: &[Moment]) -> Vec<bool> {
    let mut succeeded = Vec::new();
    for (at, moment) in moments.iter().enumerate() {
        let id = format!("set-{at}");
        kill_at(home, core, &request(tool, &id), *moment);
        core = home.up();
        succeeded.push(check(home, &Api::of(&core), &id));
    }
    core.stop().code(0);
    succeeded
}

#[test]
fn t047_kill_9_while_a_set_is_published_never_leaves_half_of_it() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--publish", "staged"]).code(0);
    let moments = [
        Moment::Accepted,
        Moment::Staged(1),
        Moment::Staged(20),
        Moment::Placed(1),
        Moment::Placed(20),
        Moment::Placed(OUTPUTS),
    ];
    // The tool acts on nothing, so that what was lost is done again.
    let succeeded = kill_at_all(&home, core, "wharf/echo", &moments);
    assert_eq!(succeeded, [true; 6]);
    home.run(&["audit", "verify"]).code(0);
}

#[test]
fn t047_kill_9_under_a_tool_that_acts_publishes_all_or_nothing() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--publish", "staged"]).code(0);
    let _folder = start_agent(&home, "standard");
    let moments = [Moment::Accepted, Moment::Staged(1), Moment::Placed(1), Moment::Placed(OUTPUTS)];
    // Until publication has begun the attempt is lost and may have acted; then it has succeeded.
    assert_eq!(kill_at_all(&home, core, TOOL, &moments)[2..], [true, true]);
}

/// Puts something in the way of an output, so that it cannot take its place.
fn block(home: &TestHome, api: &Api, path: &str) -> PathBuf {
    let folders = || {
        let shelves = names(&home.path().join("objects/worlds/lab"));
        shelves.iter().flat_map(|shelf| names(shelf)).collect::<Vec<_>>()
    };
    assert_eq!(folders(), Vec::<PathBuf>::new(), "the world is empty");
    let file = format!("/v1/worlds/lab/files{path}");
    assert_eq!(api.ask("PUT", &file, &json!("x")).0, 201);
    let place = folders().pop().expect("the file has a folder");
    assert_eq!(api.ask("DELETE", &file, &Value::Null).0, 204);
    std::fs::create_dir_all(place.parent().expect("a shelf")).expect("made");
    std::fs::write(&place, "in the way").expect("written");
    place
}

#[test]
fn t047_a_set_that_is_stuck_half_way_is_not_seen_and_goes_on_after_a_kill() {
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--publish", "staged"]).code(0);
    let api = Api::of(&core);
    let in_the_way = block(&home, &api, &place("stuck", 30));
    api.start(&request("wharf/echo", "stuck"));
    // Outputs take their places in the order of their names, of which k3 is the 23rd and k30 the
    // 24th; what is in the way counts, too.
    wait_for("the outputs before it to be in their places", || {
        (counts(&home).1 == 24).then_some(())
    });
    let (staged, _) = counts(&home);
    assert_eq!(staged, OUTPUTS, "nothing is given up before all are in their places");
    assert_eq!(files(&api, "lab", "/"), Vec::<String>::new());
    let (status, _) = api.bytes(&format!("/v1/worlds/lab/files{}", place("stuck", 1)));
    assert_eq!(status, 404, "what is in its place already is not read either");
    let cancel = api.ask("POST", "/v1/runs/stuck/cancel?world=lab", &json!({}));
    assert_eq!(api.get("/v1/runs/stuck?world=lab")["status"], "running", "too late: {cancel:?}");
    core.kill();

    let core = home.up();
    let api = Api::of(&core);
    assert_eq!(files(&api, "lab", "/"), Vec::<String>::new());
    assert_eq!(api.get("/v1/runs/stuck?world=lab")["status"], "running");
    api.ask("POST", "/v1/worlds/lab/collect", &Value::Null);
    assert_eq!(counts(&home).0, OUTPUTS, "what is to be published is not cleared away");
    std::fs::remove_file(in_the_way).expect("removed");
    assert!(check(&home, &api, "stuck"), "the run has succeeded before the kill");
}

#[test]
fn t047_staged_runs_that_fail_or_are_canceled_leave_nothing() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--publish", "staged"]).code(0);
    // One that writes through files of its own, and one that writes to addresses.
    for sandbox in ["standard", "basic"] {
        let _folder = start_agent(&home, sandbox);
        let api = Api::of(&core);
        for then in ["fail", "wait"] {
            let id = format!("{sandbox}-{then}");
            let mut run = request(TOOL, &id);
            run["inputs"] = json!({"text": "half", "then": then});
            api.start(&run);
            if then == "wait" {
                api.read_until(&format!("/v1/runs/{id}/events?world=lab"), "waiting");
                api.ask("POST", &format!("/v1/runs/{id}/cancel?world=lab"), &json!({}));
            }
            let ended = api.end_of("lab", &id);
            let expected = if then == "fail" { "failed" } else { "canceled" };
            assert_eq!(ended["status"], expected, "{ended}");
            assert_eq!(files(&api, "lab", "/"), Vec::<String>::new());
        }
        home.run(&["worlds", "gc", "lab"]).code(0);
        assert_eq!(counts(&home), (0, 0), "{sandbox}");
        home.run(&["agents", "stop", AGENT]).code(0);
        home.run(&["agents", "remove", AGENT]).code(0);
    }
    assert_eq!(signed(&home), [""; 0], "addresses are written nowhere");
}

/// Tools are known to write a file and to forget to say so. What lies where it could be written is
/// the output, whether that is an address or a folder.
#[test]
fn t028_what_an_agent_wrote_and_did_not_name_is_found_and_taken_on() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "lab", "--publish", "staged"]).code(0);
    let _folder = start_agent(&home, "standard");
    let api = Api::of(&core);
    api.start(&json!({
        "tool": TOOL, "world": "lab", "run_id": "r", "inputs": {"text": "x", "then": "forget"},
        "outputs": {"a.world": "/a", "b.local": "/b"},
    }));
    let run = api.end_of("lab", "r");
    assert_eq!(run["outputs"], json!({"a": "world://lab/a", "b": "world://lab/@r/b"}), "{run}");
    assert_eq!(files(&api, "lab", "/"), ["/@r/b", "/a"]);
    assert_eq!(api.bytes("/v1/worlds/lab/files/a").1, b"x");
    let events = api.bytes("/v1/runs/r/events?world=lab").1;
    let events = String::from_utf8_lossy(&events).into_owned();
    assert_eq!(events.matches("was written and not named in the result").count(), 2, "{events}");
    let trace = api.get("/v1/worlds/lab/trace?path=/a");
    assert_eq!(trace["written"][0]["run_id"], "r", "{trace}");
}
