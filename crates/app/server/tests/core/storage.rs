//! The artifact store that a core starts with.

use serde_json::{Value, json};
use wharf_server::Core;
use wharf_vocab::Code;

use crate::support::{Place, ask, get, mode};

fn storage(place: &Place) -> String {
    let info = place.home().core().expect("readable").expect("running");
    info.storage.expect("every core has an artifact store")
}

/// Runs a tool with a file in and a file out.
async fn copy(core: &Core) -> (u16, Value) {
    let body = json!({
        "tool": "wharf/echo",
        "inputs": {"text.world": "/in.txt"},
        "outputs": {"text.world": "/out.txt"},
    });
    let (status, body) = ask(core, "POST", "/v1/runs?wait=20s", &body).await;
    (status, serde_json::from_str(&body).expect("JSON"))
}

#[tokio::test]
async fn files_and_the_port_of_their_store_stay_across_a_restart() {
    let place = Place::new();
    let core = place.start().await;
    let origin = storage(&place);
    assert!(origin.starts_with("http://127.0.0.1:"), "{origin}");
    for file in ["secrets/storage.key", "run/storage.port"] {
        assert_eq!(mode(&place.path().join(file)), 0o600, "{file}");
    }
    assert_eq!(mode(&place.path().join("objects")), 0o700);
    let (status, body) =
        ask(&core, "PUT", "/v1/worlds/default/files/in.txt", &json!("hello")).await;
    assert_eq!(status, 201, "{body}");
    core.stop().await.expect("stops");

    let core = place.start().await;
    assert_eq!(storage(&place), origin, "addresses that are out stay good");
    let (status, run) = copy(&core).await;
    assert_eq!((status, &run["status"]), (200, &json!("succeeded")), "{run}");
    assert_eq!(run["outputs"]["text"], "world://default/out.txt");
    let files = get(&core, "/v1/worlds/default/artifacts").await;
    let paths: Vec<_> = files["items"].as_array().expect("a list").iter().collect();
    assert_eq!(paths.len(), 2, "{files}");
    core.stop().await.expect("stops");
}

#[tokio::test]
async fn a_port_that_somebody_else_has_taken_is_told_clearly() {
    let place = Place::new();
    place.start().await.stop().await.expect("stops");
    let port = std::fs::read_to_string(place.path().join("run/storage.port")).expect("kept");
    let taken = std::net::TcpListener::bind(format!("127.0.0.1:{}", port.trim())).expect("free");
    let fault = place.try_start().await.err().expect("taken");
    assert!(fault.is(Code::ConfigInvalid), "{fault}");
    assert!(fault.message.contains(port.trim()), "{fault}");
    assert!(fault.message.contains("run/storage.port"), "{fault}");
    drop(taken);
    place.start().await.stop().await.expect("stops");
}

#[tokio::test]
async fn t029_a_store_that_is_away_keeps_files_out_and_nothing_else() {
    let place = Place::new();
    // A port that was free a moment ago, with nobody behind it.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", gone.local_addr().expect("an address"));
    drop(gone);
    place.write(
        "wharf.toml",
        &format!(
            "[artifacts]\nkind = \"s3\"\nendpoint = \"{endpoint}\"\nbucket = \"b\"\n\
             key_id = \"k\"\nsecret_file = \"s3.secret\"\n"
        ),
    );
    place.write("s3.secret", "canary-of-the-secret\n");
    let core = place.start().await;
    assert_eq!(storage(&place), endpoint);
    let (status, body) =
        ask(&core, "PUT", "/v1/worlds/default/files/in.txt", &json!("hello")).await;
    let error: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &error["error"]["code"]), (503, &json!("storage.unavailable")), "{error}");
    assert_eq!(error["error"]["retryable"], true);
    assert!(!error.to_string().contains("canary"), "{error}");
    assert_eq!(get(&core, "/v1/worlds/default/artifacts").await["items"], json!([]));
    let plain = json!({"tool": "wharf/echo", "inputs": {"a": 1}});
    let (status, body) = ask(&core, "POST", "/v1/runs?wait=20s", &plain).await;
    assert_eq!(status, 200, "{body}");
    core.stop().await.expect("stops");
}
