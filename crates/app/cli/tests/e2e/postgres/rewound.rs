//! A database that has lost what it had confirmed, under a core that goes on.

use crate::support::wait_for;

const TABLES: [&str; 8] =
    ["shards", "lanes", "streams", "opens", "claims", "journal", "audit", "remarkable"];

#[test]
fn s023_a_core_whose_database_lost_commits_loads_them_anew_and_tells() {
    let Some((home, url)) = super::home() else { return };
    let server = wharf_postgres::shared().expect("it is there");
    let name = url.rsplit('/').next().expect("a name");
    let core = home.up();
    home.run(&["run", "wharf/echo", "a=1", "--run-id", "kept"]).code(0);
    let asking = home.spawn(&["run", "wharf/ask", "question=Which?", "--run-id", "asks"]);
    let ask = wait_for("the question", || {
        let inbox = home.run(&["inbox", "--json"]).code(0).json();
        Some(inbox.get(0)?["ask_id"].as_str()?.to_owned())
    });
    let keep = |table: &str| format!("CREATE TABLE before.{table} AS SELECT * FROM wharf.{table};");
    let sql: String = TABLES.into_iter().map(keep).collect();
    server.sql(name, &format!("CREATE SCHEMA before; {sql}"));
    home.run(&["run", "wharf/echo", "a=2", "--run-id", "lost"]).code(0);
    home.run(&["answer", &ask, "red"]).code(0);
    asking.wait().code(0);
    wait_for("what will be lost to be anchored", || {
        let records = home.run(&["audit", "--json", "-n", "200"]).code(0).json();
        let records = records.as_array()?.len();
        let text = std::fs::read(home.path().join("run/audit.anchors")).ok()?;
        let anchors: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let heads = anchors["heads"].as_array()?;
        let anchored: u64 = heads.iter().filter_map(|head| head["n"].as_u64()).sum();
        (usize::try_from(anchored) == Ok(records)).then_some(())
    });

    // A standby takes over that had received neither: connections break, rows are older.
    let put_back = |table: &str| {
        format!(
            "DELETE FROM wharf.{table}; INSERT INTO wharf.{table} SELECT * FROM before.{table};"
        )
    };
    let sql: String = TABLES.into_iter().map(put_back).collect();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid();";
    server.sql(name, &format!("{sql} {end}"));
    wait_for("a run to be taken", || {
        (home.run(&["run", "wharf/echo", "a=3"]).code == Some(0)).then_some(())
    });
    let told = wait_for("the audit to tell", || {
        let audit = home.run(&["audit", "--json", "-n", "200"]).code(0).stdout;
        audit.contains("store.rewound").then_some(audit)
    });
    assert!(told.contains("\"records_lost\""), "{told}");
    assert!(home.log().contains("has lost what it had confirmed"), "{}", home.log());
    // What is lost is lost; what is there goes on from where it is.
    home.run(&["runs", "show", "kept"]).code(0);
    assert_ne!(home.run(&["runs", "show", "lost"]).code, Some(0));
    home.run(&["run", "wharf/echo", "a=2", "--run-id", "lost"]).code(0);
    let asks = home.run(&["runs", "show", "asks", "--json"]).code(0).json();
    assert!(asks["ended_at"].is_null(), "its answer is lost: {asks}");
    wait_for("the question to be open again", || {
        let inbox = home.run(&["inbox", "--json"]).code(0).json();
        (inbox.get(0)?["ask_id"] == ask.as_str()).then_some(())
    });
    home.run(&["answer", &ask, "blue"]).code(0);
    let asks = wait_for("the end", || {
        let run = home.run(&["runs", "show", "asks", "--json"]).code(0).json();
        run["ended_at"].is_string().then_some(run)
    });
    assert_eq!(asks["outputs"]["answer"], "blue", "{asks}");
    core.stop().code(0);
    // The anchors of what is lost are kept, so whoever verifies is told of it.
    let verified = home.run(&["audit", "verify"]).code(1);
    assert!(verified.stdout.contains("anchor"), "{verified:#?}");
}
