//! Cores that are killed while a file arrives, or while an agent works on a call with files.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{AGENT, TOOL, all_files, files, names, objects_of_runs, start_agent};
use crate::agents::has_python;
use crate::support::{Api, Core, LONG, TestHome, wait_for};

const MIB: usize = 1024 * 1024;

/// Bytes that differ from place to place.
fn bytes(count: usize, seed: u8) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8 ^ (at / 251 % 256) as u8 ^ seed).collect()
}

/// Begins a request with a body and sends only a part of that.
fn send_part(core: &Core, path: &str, announced: usize, part: &[u8]) -> TcpStream {
    let url = core.url();
    let host = url.strip_prefix("http://").expect("over HTTP");
    let mut stream = TcpStream::connect(host).expect("connects");
    stream.set_read_timeout(Some(LONG)).expect("set");
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\
         content-length: {announced}\r\n\r\n",
        core.token()
    );
    stream.write_all(head.as_bytes()).expect("sends");
    stream.write_all(part).expect("sends");
    stream
}

/// How many bytes lie in files below a folder of the store.
fn lying(home: &TestHome, folder: &str) -> u64 {
    let found = all_files(&home.path().join("objects").join(folder));
    found.iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum()
}

#[test]
fn t040_kill_9_while_a_file_arrives_keeps_what_was_there() {
    let home = TestHome::new();
    let core = home.up();
    home.run_with(b"old", &["worlds", "put", "default", "/kept.txt", "-"]).code(0);
    let new = bytes(4 * MIB, 1);
    let halves = ["/kept.txt", "/new.bin"].map(|path| {
        send_part(&core, &format!("/v1/worlds/default/files{path}"), new.len(), &new[..2 * MIB])
    });
    wait_for("both halves to be on the disk", || {
        (lying(&home, "tmp") >= 2 * MIB as u64).then_some(())
    });
    core.kill();
    for mut half in halves {
        let mut answer = Vec::new();
        // A reset is as good as an end; what must not come is an answer.
        let _ = half.read_to_end(&mut answer);
        assert_eq!(answer, b"", "nothing was promised");
    }
    let core = home.up();
    let api = Api::of(&core);
    assert_eq!(lying(&home, "tmp"), 0, "what is half is swept");
    assert_eq!(files(&api, "default", "/"), ["/kept.txt"]);
    assert_eq!(api.bytes("/v1/worlds/default/files/kept.txt"), (200, b"old".to_vec()));
    assert_eq!(api.bytes("/v1/worlds/default/files/new.bin").0, 404);
    for path in ["/kept.txt", "/new.bin"] {
        home.run_with(&new, &["worlds", "put", "default", path, "-"]).code(0);
        let (status, read) = api.bytes(&format!("/v1/worlds/default/files{path}"));
        assert!(status == 200 && read == new, "{path}: {status}, {} bytes", read.len());
    }
    assert_eq!(lying(&home, "tmp"), 0);
}

#[test]
fn t040_kill_9_while_a_part_arrives_keeps_the_parts_before() {
    let home = TestHome::new();
    let core = home.up();
    let whole = bytes(8 * MIB, 2);
    let (first, second) = whole.split_at(5 * MIB);
    let (status, begun) =
        Api::of(&core).ask("POST", "/v1/worlds/default/uploads", &json!({"path": "/big.bin"}));
    assert_eq!(status, 201, "{begun}");
    let id = begun["upload_id"].as_str().expect("an id").to_owned();
    let part = |number: u8| format!("/v1/worlds/default/uploads/{id}/parts/{number}?path=/big.bin");
    let sent = |core: &Core, number, bytes: &[u8]| {
        let mut stream = send_part(core, &part(number), bytes.len(), bytes);
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200", "part {number}");
    };
    sent(&core, 1, first);
    let before = lying(&home, "tmp") + lying(&home, "uploads");
    let _half = send_part(&core, &part(2), second.len(), &second[..2 * MIB]);
    wait_for("half of the second part to be on the disk", || {
        (lying(&home, "tmp") + lying(&home, "uploads") >= before + MIB as u64).then_some(())
    });
    core.kill();
    let core = home.up();
    let api = Api::of(&core);
    assert_eq!(lying(&home, "tmp"), 0, "what is half is swept");
    assert_eq!(files(&api, "default", "/"), Vec::<String>::new());
    assert_eq!(api.bytes("/v1/worlds/default/files/big.bin").0, 404);
    let upload = api.get(&format!("/v1/worlds/default/uploads/{id}?path=/big.bin"));
    assert_eq!(upload["parts"], json!([{"part": 1, "bytes": first.len()}]));
    sent(&core, 2, second);
    let b3 = blake3::hash(&whole).to_hex().to_string();
    let complete = format!("/v1/worlds/default/uploads/{id}/complete?path=/big.bin");
    let (status, file) = api.ask("POST", &complete, &json!({"b3": b3, "bytes": whole.len()}));
    assert_eq!((status, &file["b3"]), (201, &json!(b3)), "{file}");
    assert!(api.bytes("/v1/worlds/default/files/big.bin").1 == whole);
    assert_eq!((lying(&home, "tmp"), lying(&home, "uploads")), (0, 0));
}

#[test]
fn t040_a_command_that_sends_parts_outlives_a_kill_of_the_core() {
    let home = TestHome::new();
    let core = home.up();
    let listen = core.url().strip_prefix("http://").expect("over HTTP").to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("large.bin");
    let whole = bytes(70 * MIB, 3);
    std::fs::write(&file, &whole).expect("written");
    let put = ["worlds", "put", "default", "/large.bin", file.to_str().expect("text")];
    let running = home.spawn(&put);
    wait_for("some of a part to arrive", || {
        (lying(&home, "tmp") + lying(&home, "uploads") > MIB as u64).then_some(())
    });
    core.kill();
    let core = home.up_on(&listen, &[]);
    let api = Api::of(&core);
    running.wait().code(0);
    let rows = api.get("/v1/worlds/default/artifacts");
    assert_eq!(rows["items"][0]["b3"], blake3::hash(&whole).to_hex().as_str(), "{rows}");
    assert_eq!((files(&api, "default", "/").len(), lying(&home, "tmp")), (1, 0));
    let back = folder.path().join("back.bin");
    home.run(&["worlds", "get", "default", "/large.bin", back.to_str().expect("text")]).code(0);
    assert!(std::fs::read(back).expect("there") == whole);
}

/// Files in the folders through which an agent takes in and gives out files.
fn rooms(home: &TestHome) -> Vec<PathBuf> {
    let agents = names(&home.path().join("agents"));
    let of_agent = |agent: &PathBuf| {
        let given = names(&agent.join("launches")).into_iter().map(|launch| launch.join("given"));
        let folders = given.chain([agent.join("data/runs"), agent.join("gone")]);
        folders.flat_map(|folder| all_files(&folder)).collect::<Vec<_>>()
    };
    agents.iter().flat_map(of_agent).collect()
}

#[test]
fn r163_t041_kill_9_under_a_call_with_files_leaves_no_file_and_holds_no_money() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    let world = ["worlds", "create", "lab", "--publish", "staged", "--limit-micro", "60"];
    home.run(&[&world[..], &["--default-hold-micro", "60"]].concat()).code(0);
    home.run_with(b"from a file", &["worlds", "put", "lab", "/in.txt", "-"]).code(0);
    let _folder = start_agent(&home, "standard");
    let api = Api::of(&core);
    let request = |id: &str, then: &str| {
        json!({
            "tool": TOOL, "world": "lab", "run_id": id,
            "inputs": {"then": then, "cost": 7, "file.world": "/in.txt"},
            "outputs": {"a.world": "/out/a.txt", "b.local": "/b.txt"},
        })
    };
    api.start(&request("lost", "wait"));
    api.read_until("/v1/runs/lost/events?world=lab", "waiting");
    assert_eq!(rooms(&home).len(), 3, "one file in, two out");
    let held = |api: &Api| api.get("/v1/worlds/lab")["held_micro"].clone();
    assert_eq!(held(&api), 60);
    let (status, refused) = api.ask("POST", "/v1/runs", &request("late", "write"));
    assert_eq!((status, &refused["error"]["details"]["missing_micro"]), (402, &json!(60)));
    core.kill();

    let core = home.up();
    let api = Api::of(&core);
    let lost = api.end_of("lab", "lost");
    // The tool acts, so nobody may do it again unasked.
    assert_eq!((&lost["status"], &lost["attempt"]), (&json!("failed"), &json!(1)), "{lost}");
    assert_eq!(lost["error"]["code"], "tool.agent_lost", "{lost}");
    assert_eq!(lost["error"]["details"]["executed"], "maybe", "{lost}");
    assert_eq!((&lost["cost_micro"], held(&api)), (&json!(0), json!(0)), "{lost}");
    assert_eq!(files(&api, "lab", "/"), ["/in.txt"]);
    wait_for("the rooms to be empty", || rooms(&home).is_empty().then_some(()));
    assert_eq!(objects_of_runs(&home, "lab"), Vec::<PathBuf>::new());
    wait_for("the agent to be back", || {
        (api.get(&format!("/v1/agents/{AGENT}"))["state"] == "running").then_some(())
    });
    // The money is there for the next, which reads and writes as ever.
    api.start(&request("next", "write"));
    let next = api.end_of("lab", "next");
    assert_eq!((&next["status"], &next["cost_micro"]), (&json!("succeeded"), &json!(7)), "{next}");
    assert_eq!(files(&api, "lab", "/"), ["/@next/b.txt", "/in.txt", "/out/a.txt"]);
    assert_eq!(api.bytes("/v1/worlds/lab/files/out/a.txt").1, b"from a file");
    let world: Value = api.get("/v1/worlds/lab");
    assert_eq!((&world["held_micro"], &world["spent_micro"]), (&json!(0), &json!(7)));
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
}
