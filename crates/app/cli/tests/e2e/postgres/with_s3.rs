//! A core that keeps nothing but its keys at home: database in PostgreSQL, files in an S3.

use serde_json::json;
use wharf_testkit::seaweed::Seaweed;

use crate::agents::has_python;
use crate::data_faults::{AGENT, real_s3, start_agent};
use crate::support::{Api, wait_for};

#[test]
fn s049_runs_agents_files_asks_and_removal_on_postgresql_and_s3_over_kills() {
    let Some(url) = wharf_postgres::shared().map(|server| server.database()) else { return };
    if !has_python() {
        return;
    }
    let server = Seaweed::start();
    let home = real_s3::home_on(&server, &format!("[store]\nurl = \"{url}\"\n"));
    let core = home.up();
    home.run(&["worlds", "create", "staged", "--publish", "staged"]).code(0);
    for world in ["default", "staged"] {
        home.run_with(b"from a file", &["worlds", "put", world, "/in.txt", "-"]).code(0);
    }
    let _folder = start_agent(&home, "standard");
    let api = Api::of(&core);
    real_s3::run_and_check(&api, "direct", "default");
    real_s3::run_and_check(&api, "published", "staged");
    let asking = home.spawn(&["run", "wharf/ask", "question=Which one?"]);
    let ask = wait_for("the question", || {
        let inbox = home.run(&["inbox", "--json"]).code(0).json();
        Some(inbox.get(0)?["ask_id"].as_str()?.to_owned())
    });
    core.kill();

    let core = home.up();
    let api = Api::of(&core);
    home.run(&["answer", &ask, "red"]).code(0);
    assert_eq!(asking.wait().code(0).json()["outputs"]["answer"], "red");
    wait_for("the agent to run again", || {
        let agent = home.run(&["agents", "show", AGENT, "--json"]).code(0).json();
        (agent["state"] == "running").then_some(())
    });
    real_s3::run_and_check(&api, "again", "staged");
    let (status, body) = api.bytes("/v1/worlds/default/files/direct.txt");
    assert_eq!((status, String::from_utf8_lossy(&body).as_ref()), (200, "direct: from a file"));
    let purged = ["runs", "purge", "--older-than", "1ms", "--world", "staged", "--yes", "--json"];
    let purged = home.run(&purged).code(0).json();
    assert_eq!((&purged["purged"], &purged["kept"]), (&json!(2), &json!(0)), "{purged}");
    core.kill();

    let core = home.up();
    let listed = home.run(&["runs", "list", "--world", "staged", "--json"]).code(0).json();
    assert_eq!(listed, json!([]), "what was removed stays so");
    assert!(!home.path().join("wharf.db").exists(), "no other database is made");
    assert!(!home.path().join("objects/worlds").exists(), "and no files");
    core.stop().code(0);
    home.run(&["audit", "verify"]).code(0);
    let doctor = home.run(&["doctor", "--json"]);
    for check in ["database", "migrations", "audit", "files"] {
        let (verdict, text) = super::finding(&doctor, check);
        assert_eq!(verdict, "ok", "{check}: {text}");
    }
}
