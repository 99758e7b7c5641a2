//! It says of itself what only the owner may say.

use serde_json::json;

use crate::agents::has_python;
use crate::hostile::peers::{READS, Stage};
use crate::security_page::{Peer, tried};
use crate::tool_servers::handler;

#[test]
fn a_manifest_takes_off_its_own_fence() {
    if !has_python() {
        return;
    }
    let stage = Stage::up();
    let home = &stage.home;
    let more = "sandbox = \"none\"\n[resources]\nmemory = \"64Gi\"\n";
    let folder = handler("sec/loose@1", READS, more);
    let path = folder.path().to_str().expect("text");
    // The owner sees it before anything is approved.
    let told = home.run(&["tools", "add", path]).code(0).stdout;
    assert!(told.contains("run without a fence") && told.contains("--sandbox none"), "{told}");
    assert!(told.contains("--memory 64Gi"), "{told}");
    let shown = stage.api.get("/v1/tools/sec/loose@1");
    let wishes = &shown["server"]["wishes"];
    assert_eq!(wishes[0]["what"], "sandbox", "{shown}");
    assert_eq!((&wishes[0]["asked"], &wishes[0]["granted"]), (&json!("none"), &json!(false)));
    home.run(&["tools", "approve", "sec/loose@1"]).code(0);
    let shown = stage.api.get("/v1/tools/sec/loose@1");
    assert_eq!(shown["server"]["sandbox_wanted"], "standard", "{shown}");
    assert_eq!(shown["server"]["limits"]["memory_bytes"], json!(1 << 30), "{shown}");
    let token = home.path().join("run/owner.token").display().to_string();
    let input = json!({"path": token}).to_string();
    let run = || home.run(&["run", "sec/loose@1", "--input", &input]).code(0).json();
    let refused = run()["outputs"]["refused"].clone();
    assert!(refused.is_string(), "{refused}");
    // Only what the owner types counts.
    home.run(&["tools", "approve", "sec/loose@1", "--sandbox", "none"]).code(0);
    let shown = stage.api.get("/v1/tools/sec/loose@1");
    assert_eq!(shown["server"]["wishes"][0]["granted"], true, "{shown}");
    assert!(run()["outputs"]["read"].is_string());
    tried(
        Peer::ToolServer,
        "takes off its own fence by its manifest",
        "a manifest can only tighten; the owner types the rest",
        refused.as_str().expect("text"),
    );
}

#[test]
fn a_launch_is_looked_up_by_a_mere_reader() {
    if !has_python() {
        return;
    }
    let stage = Stage::up();
    let _folder = crate::hostile::peers::tool_server(&stage.home, "sec/reads@1", READS, "");
    stage.home.run(&["run", "sec/reads@1", "--input", "{\"path\": \"/x\"}"]).code(0);
    let reader = stage.caller(&["--verb", "read"]);
    let operator = stage.caller(&["--verb", "read", "--verb", "operate"]);
    for (api, sees) in [(&stage.api, true), (&reader, false), (&operator, false)] {
        let shown = api.get("/v1/tools/sec/reads@1");
        assert_eq!(shown["server"]["launch_id"].is_string(), sees, "{shown}");
    }
    tried(
        Peer::ToolServer,
        "learns the launch of another server as a reader",
        "launch ids are shown to those who administer",
        "no launch_id",
    );
}
