//! What a manifest may say, and that what it may not say is named.

use serde_json::json;
use wharf_domain::provider::{Rate, Usage};
use wharf_hosting::LIST_ITEMS_MAX;
use wharf_vocab::Isolation;

use super::*;

fn valid() -> Value {
    json!({
        "manifest_version": 1, "id": "dev.example.hello", "version": "0.1.0",
        "entrypoint": {"type": "command", "value": "./hello", "args": ["--loud"]},
        "permissions": ["network:egress:example.dev"], "trust_score": 100, "mood": "good",
    })
}

fn with(field: &str, value: Value) -> Result<ReadManifest, Fault> {
    let mut manifest = valid();
    manifest[field] = value;
    parse(manifest.to_string().as_bytes())
}

#[test]
fn a_manifest_is_read_and_its_hash_is_that_of_its_bytes() {
    let bytes = valid().to_string();
    let read = parse(bytes.as_bytes()).expect("valid");
    assert_eq!(read.id.as_str(), "dev.example.hello");
    assert_eq!(read.manifest.name, "dev.example.hello");
    assert_eq!(read.manifest.entrypoint.args, ["--loud"]);
    assert_eq!(read.manifest.kind, ProviderKind::Agent(AgentDetails::default()));
    let spaced = bytes.replace('{', "{ ");
    assert_ne!(parse(spaced.as_bytes()).expect("valid").hash, read.hash);
}

#[test]
fn limits_isolation_connection_and_source_are_read() {
    let mut manifest = valid();
    manifest["execution_limits"] = json!({
        "max_tool_call_duration": "15s", "max_concurrent_calls": 3, "rate_limit": "60/minute",
    });
    manifest["resources"] = json!({
        "cpu": "200m", "cpu_time": "60s", "memory": "256Mi", "disk": "100Mi",
        "processes": 8, "open_files": 64, "connections": 50,
    });
    manifest["isolation"] = json!("run");
    manifest["connection"] = json!("descriptor");
    manifest["source"] = json!({"git_url": "https://example.dev/hello.git", "ref": "v1"});
    let read = parse(manifest.to_string().as_bytes()).expect("valid").manifest;
    assert_eq!(read.limits.call_ms, Some(15_000));
    assert_eq!(read.limits.calls_max, Some(3));
    assert_eq!(read.limits.rate, Some(Rate { count: 60, per_ms: 60_000 }));
    assert_eq!(
        read.limits.usage,
        Usage {
            memory_bytes: Some(256 << 20),
            cpu_ms: Some(60_000),
            cpu_millicores: Some(200),
            processes: Some(8),
            open_files: Some(64),
            disk_bytes: Some(100 << 20),
        }
    );
    assert_eq!(read.isolation, Some(Isolation::Run));
    let details = AgentDetails {
        inherits_connection: true,
        source: Some("https://example.dev/hello.git#v1".into()),
        ..AgentDetails::default()
    };
    assert_eq!(read.kind, ProviderKind::Agent(details));
}

#[test]
fn what_is_wrong_is_named() {
    let command = |value: Value| json!({"type": "command", "value": value});
    for (field, value, named) in [
        ("id", json!(7), "id"),
        ("id", json!("a/b"), "id"),
        ("id", json!("x".repeat(201)), "id"),
        ("version", Value::Null, "version"),
        ("version", json!("1".repeat(101)), "version"),
        ("name", json!("n".repeat(201)), "name"),
        ("description", json!("d".repeat(2_001)), "description"),
        ("entrypoint", json!("./hello"), "entrypoint"),
        ("entrypoint", json!({"type": "release", "value": "x"}), "entrypoint.type"),
        ("entrypoint", json!({"type": "command"}), "entrypoint.value"),
        ("entrypoint", command(json!("a\nb")), "entrypoint.value"),
        ("entrypoint", command(json!("a\0b")), "entrypoint.value"),
        ("entrypoint", command(json!("v".repeat(4_097))), "entrypoint.value"),
        ("entrypoint", json!({"type": "command", "value": "x", "args": "y"}), "entrypoint.args"),
        (
            "entrypoint",
            json!({"type": "command", "value": "x", "args": ["y", 1]}),
            "entrypoint.args[1]",
        ),
        ("permissions", json!(["no colon"]), "permissions[0]"),
        ("permissions", json!(["tool:invoke:a/b", "network:egress:"]), "permissions[1]"),
        ("permissions", json!(vec!["env:read:A"; 501]), "permissions"),
        ("permissions", json!([format!("env:read:{}", "A".repeat(300))]), "permissions[0]"),
        ("permissions", json!("all"), "permissions"),
        ("capabilities", json!([7]), "capabilities[0]"),
        ("manifest_version", json!(2), "manifest_version"),
        ("isolation", json!("none"), "isolation"),
        ("connection", json!("carrier pigeon"), "connection"),
        ("source", json!({}), "source.git_url"),
        ("resources", json!({"memory": "much"}), "resources.memory"),
        ("resources", json!({"processes": 0}), "resources.processes"),
        ("execution_limits", json!({"rate_limit": "60"}), "execution_limits.rate_limit"),
        ("keywords", json!("k".repeat(30_000)), "keywords"),
    ] {
        let fault = with(field, value).expect_err(named);
        assert!(fault.is(Code::AgentManifestInvalid));
        assert!(fault.message.contains(&format!("field {named}")), "{named}: {fault}");
    }
    for bad in [&b"[]"[..], b"{", b"\xff", b"{\"id\":\"a\",\"id\":\"b\"}"] {
        assert!(parse(bad).is_err());
    }
    for required in ["id", "version", "entrypoint", "permissions"] {
        let mut missing = valid();
        missing.as_object_mut().expect("an object").remove(required);
        let fault = parse(missing.to_string().as_bytes()).expect_err(required);
        assert!(fault.message.contains(required), "{fault}");
    }
}

/// Whatever the bytes, reading them answers, and what it takes stays within its bounds.
#[test]
fn no_manifest_makes_the_reader_panic() {
    bolero::check!().with_iterations(5_000).for_each(|bytes: &[u8]| {
        // Plain noise is rarely JSON, so it is also put where a manifest has text.
        let noise = String::from_utf8_lossy(bytes);
        for field in ["id", "version", "isolation", "connection", "source"] {
            let _ = with(field, json!(noise));
        }
        let _ = with("permissions", json!([noise]));
        let _ = with("resources", json!({"memory": noise, "cpu": noise}));
        let _ = with("execution_limits", json!({"rate_limit": noise}));
        if let Ok(read) = parse(bytes) {
            assert!(read.manifest.permissions.len() <= LIST_ITEMS_MAX);
        }
    });
}

#[test]
fn only_a_plain_file_is_opened_as_a_manifest() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join(FILE_NAME);
    assert!(read(dir.path()).is_err(), "nothing there");
    std::fs::create_dir(&path).expect("made");
    assert!(read(dir.path()).expect_err("a folder").message.contains("plain file"));
    std::fs::remove_dir(&path).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", &path).expect("linked");
    assert!(read(dir.path()).expect_err("a link").message.contains("plain file"));
    std::fs::remove_file(&path).expect("removed");
    std::fs::write(&path, vec![b' '; 256_001]).expect("written");
    assert!(read(dir.path()).expect_err("huge").message.contains("256000"));
}
