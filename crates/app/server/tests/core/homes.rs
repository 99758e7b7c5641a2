//! What a core makes of its home, and homes it does not start on.

use serde_json::json;
use wharf_server::Home;
use wharf_vocab::Code;

use crate::support::{Place, get, mode, run};

#[tokio::test]
async fn a_first_start_furnishes_the_home() {
    let place = Place::new();
    let core = place.start().await;
    let home = place.path();
    for folder in ["", "run", "secrets"] {
        assert_eq!(mode(&home.join(folder)), 0o700, "{folder:?}");
    }
    for file in ["run/owner.token", "run/core.json", "run/lock", "run/node.id", "wharf.db"] {
        assert_eq!(mode(&home.join(file)), 0o600, "{file}");
    }
    assert_eq!(mode(&home.join("secrets/audit.key")), 0o600);
    assert_eq!(std::fs::read(home.join("secrets/audit.key")).expect("a key").len(), 32);
    assert_eq!(core.owner_token().len(), 64);

    let info = place.home().core().expect("readable").expect("running");
    assert_eq!(info.http, format!("http://{}", core.http_addr()));
    assert_eq!(info.pid, std::process::id());
    assert_eq!(info.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(place.home().owner_token().as_deref(), Ok(core.owner_token()));

    assert_eq!(get(&core, "/v1/worlds").await["items"][0]["world"], "default");
    assert_eq!(run(&core, "wharf/echo", json!({"a": 1})).await["outputs"], json!({"a": 1}));
    core.stop().await.expect("stops");
    assert_eq!(place.home().core(), Ok(None));
    assert!(!home.join("run/core.json").exists());
    assert!(home.join("run/audit.anchors").exists());
}

#[tokio::test]
async fn what_a_killed_core_left_behind_is_not_taken_for_a_core() {
    let place = Place::new();
    place.start().await.stop().await.expect("stops");
    place.write("run/core.json", r#"{"http": "http://127.0.0.1:1", "pid": 1, "version": "0"}"#);
    assert_eq!(place.home().core(), Ok(None));
    let core = place.start().await;
    let info = place.home().core().expect("readable").expect("running");
    assert_eq!(info.pid, std::process::id());
    core.stop().await.expect("stops");
}

#[tokio::test]
async fn a_second_core_is_kept_out_and_told_who_is_there() {
    let place = Place::new();
    let core = place.start().await;
    let fault = place.try_start().await.err().expect("locked");
    assert!(fault.is(Code::HomeLocked), "{fault}");
    assert_eq!(fault.details["pid"], std::process::id());
    assert!(fault.message.contains(&std::process::id().to_string()), "{fault}");
    // The first one is not disturbed.
    assert_eq!(run(&core, "wharf/echo", json!({})).await["status"], "succeeded");
    assert!(place.home().core().expect("readable").is_some());
    core.stop().await.expect("stops");
    place.start().await.stop().await.expect("stops");
}

#[tokio::test]
async fn a_taken_port_says_what_to_do() {
    let (one, other) = (Place::new(), Place::new());
    let core = one.start().await;
    let mut options = other.options();
    options.listen = Some(core.http_addr());
    let fault = wharf_server::Core::start(options).await.err().expect("taken");
    assert!(fault.is(Code::ConfigInvalid));
    assert!(fault.message.contains("taken") && fault.message.contains("--listen"), "{fault}");
    // Nothing is left locked.
    other.start().await.stop().await.expect("stops");
    core.stop().await.expect("stops");
}

#[tokio::test]
async fn a_home_that_cannot_be_written_is_told_as_such() {
    let place = Place::new();
    place.write("file", "");
    let inside = Home::resolve(Some(place.path().join("file/home"))).expect("a home");
    for home in [inside, Home::resolve(Some("/proc/self/wharf".into())).expect("a home")] {
        let mut options = place.options();
        options.home = home;
        let fault = wharf_server::Core::start(options).await.err().expect("unwritable");
        assert!(fault.is(Code::HomeUnwritable), "{fault}");
        assert!(fault.message.contains("--home"), "{fault}");
    }
}

#[tokio::test]
async fn a_newer_database_is_left_alone() {
    let place = Place::new();
    place.start().await.stop().await.expect("stops");
    let path = place.path().join("wharf.db");
    set_version(&path, 999);
    let before = std::fs::read(&path).expect("there");
    let fault = place.try_start().await.err().expect("newer");
    assert!(fault.is(Code::StoreNewer), "{fault}");
    assert!(fault.message.contains("999"), "{fault}");
    assert_eq!(std::fs::read(&path).expect("there"), before);
}

/// Writes the number at which SQLite keeps `user_version` in the file's header.
fn set_version(path: &std::path::Path, version: u32) {
    let mut bytes = std::fs::read(path).expect("there");
    bytes[60..64].copy_from_slice(&version.to_be_bytes());
    std::fs::write(path, bytes).expect("written");
}

#[tokio::test]
async fn a_mistake_in_the_configuration_is_named() {
    let place = Place::new();
    place.write("wharf.toml", "[http]\nlisen = \"127.0.0.1:0\"\n");
    let fault = place.try_start().await.err().expect("wrong");
    assert!(fault.is(Code::ConfigInvalid) && fault.message.contains("`lisen`"), "{fault}");
    place.write(
        "wharf.toml",
        "[store]\npath = \"data/other.db\"\n[http]\nhosts = [\"w.example\"]\n",
    );
    let core = place.start().await;
    assert_eq!(mode(&place.path().join("data/other.db")), 0o600);
    assert!(!place.path().join("wharf.db").exists());
    core.stop().await.expect("stops");
}

#[tokio::test]
async fn other_machines_are_let_in_only_behind_a_proxy() {
    let place = Place::new();
    let mut options = place.options();
    options.listen = Some("0.0.0.0:0".parse().expect("an address"));
    let fault = wharf_server::Core::start(options.clone()).await.err().expect("refused");
    assert!(fault.is(Code::ConfigInvalid) && fault.message.contains("--behind-proxy"), "{fault}");
    assert!(!place.path().exists(), "nothing was made");
    options.behind_proxy = true;
    let core = wharf_server::Core::start(options).await.expect("starts");
    let info = place.home().core().expect("readable").expect("running");
    assert_eq!(info.http, format!("http://127.0.0.1:{}", core.http_addr().port()));
    core.stop().await.expect("stops");
}
