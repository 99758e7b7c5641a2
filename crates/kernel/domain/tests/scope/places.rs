//! Which file a reference leads to: of the world, of this run, of an earlier run, or of nobody here.

use serde_json::json;
use wharf_domain::scope::{Bindings, InputBinding, InputSource, ReadObject, Target, WorldPath};
use wharf_vocab::Code;

use crate::{assert_refused, resolved, world};

fn source(key: &str, text: &str, continues: Option<&str>) -> InputSource {
    let plan = resolved(json!({ key: text }), json!({}), continues).expect(text);
    plan.reads.into_values().next().expect("a reference")
}

fn target(key: &str, text: &str, continues: Option<&str>) -> Target {
    let plan = resolved(json!({}), json!({ key: text }), continues).expect(text);
    plan.writes.into_values().next().expect("a reference")
}

fn any(path: &str) -> WorldPath {
    WorldPath::parse_any(path).expect("a path")
}

#[test]
fn t033_local_means_the_run_itself() {
    assert_eq!(source("x.local", "/state.json", None), InputSource::Object(any("/@r2/state.json")));
    assert_eq!(
        target("x.local", "/state.json", None),
        Target::Object { path: any("/@r2/state.json") }
    );
    assert_eq!(any("/@r2/state.json").key(&world()), "w/@r2/state.json");
}

#[test]
fn t036_a_run_that_continues_another_reads_along_the_chain_and_writes_its_own() {
    assert_eq!(source("s.local", "/s.json", Some("r1")), InputSource::Chain(any("/s.json")));
    assert_eq!(
        target("s.local", "/s.json", Some("r1")),
        Target::Object { path: any("/@r2/s.json") }
    );
    // Files of the world have nothing to do with the chain.
    assert_eq!(source("s.world", "/s.json", Some("r1")), InputSource::Object(any("/s.json")));
}

#[test]
fn t036_a_run_can_be_named() {
    for continues in [None, Some("r1")] {
        for run in ["r0", "r1", "r2"] {
            let path = format!("/@{run}/agent-state.json");
            assert_eq!(source("s.local", &path, continues), InputSource::Object(any(&path)));
        }
    }
    // Naming a run does not make its files writable.
    let refused = resolved(json!({}), json!({ "s.local": "/@r1/s.json" }), Some("r1"));
    assert_refused(refused, Code::ScopeForbidden, "s.local");
    let refused = resolved(json!({}), json!({ "s": "world://w/@r1/s.json" }), None);
    assert_refused(refused, Code::ScopeForbidden, "s");
    assert_eq!(target("s.local", "/@r2/s.json", None), Target::Object { path: any("/@r2/s.json") });
    // The core's own places cannot be named at all, whichever way.
    for (key, text) in [
        ("s.world", "/@r1/s.json"),
        ("s.world", "/@r2/@a1/0"),
        ("s.local", "/@r2/@a1/0"),
        ("s.local", "/@a1/0"),
        ("s.local", "/@a1/@r/0"),
        ("s", "world://w/@r2/@a1/0"),
        ("s", "world://w/@r1"),
    ] {
        // `/@a1/0` is a local file of a run called a1, which is there for nobody to write.
        let reads_a_run = (key, text) == ("s.local", "/@a1/0");
        if !reads_a_run {
            let refused = resolved(json!({ key: text }), json!({}), None);
            assert_refused(refused, Code::ScopePathInvalid, key);
        }
        let refused = resolved(json!({}), json!({ key: text }), None);
        let code = if reads_a_run { Code::ScopeForbidden } else { Code::ScopePathInvalid };
        assert_refused(refused, code, key);
    }
}

#[test]
fn t036_other_worlds_are_out_of_reach() {
    for uri in [
        "world://other/x",
        "WORLD://other/x",
        "world://W/x",
        "world://other/@r1/x",
        "world://w.other/x",
        "world://ww/x",
        "world://other",
        "world:///x",
        "world://other@w/x",
        "world://w:80/x",
        "world://w%2f..%2fother/x",
    ] {
        let refused = resolved(json!({ "x": uri }), json!({}), None);
        assert_refused(refused, Code::ScopeForbidden, "x");
        let refused = resolved(json!({}), json!({ "x": uri }), None);
        assert_refused(refused, Code::ScopeForbidden, "x");
    }
    for uri in [
        "world://w/../other/x",
        "world://w/%2e%2e/other/x",
        "world://w//other",
        "world://w/a%2f..",
        "world://w/x?versionId=1",
        "world://w/x#part",
        "world://w/",
        "world://w",
    ] {
        let refused = resolved(json!({ "x": uri }), json!({}), None);
        assert_refused(refused, Code::ScopePathInvalid, "x");
        let refused = resolved(json!({}), json!({ "x": uri }), None);
        assert_refused(refused, Code::ScopePathInvalid, "x");
    }
}

#[test]
fn t036_addresses_of_the_own_world_are_files() {
    for (uri, path) in [
        ("world://w/x.png", "/x.png"),
        ("World://w/x.png", "/x.png"),
        ("world://w/my%20file", "/my file"),
        ("world://w/a%3Fb%23c", "/a?b#c"),
        ("world://w/@r1/x", "/@r1/x"),
    ] {
        assert_eq!(source("x", uri, None), InputSource::Object(any(path)), "{uri}");
    }
    let path = any("/out.png");
    assert_eq!(target("x", "world://w/out.png", None), Target::Object { path });
    assert_eq!(target("x", "s3://bucket/key", None), Target::Uri);
}

#[test]
fn t035_what_records_say_leads_back_to_the_file() {
    for path in ["/a b", "/a?b#c", "/日本\u{3000}語", "/@r1/x y", "/a\u{a0}b", "/100٪"] {
        let path = any(path);
        let uri = path.uri(&world());
        assert_eq!(source("x", &uri, None), InputSource::Object(path), "{uri}");
    }
}

#[test]
fn t035_bindings_say_whether_files_are_needed() {
    let object = InputBinding::Object(ReadObject {
        path: any("/a"),
        bytes: 1,
        b3: None,
        media_type: "text/plain".to_owned(),
        version: None,
        tag: None,
    });
    let mut bindings = Bindings::default();
    assert!(bindings.is_empty() && !bindings.has_objects());
    bindings.reads.insert("u".to_owned(), InputBinding::Uri);
    bindings.writes.insert("u".to_owned(), Target::Uri);
    assert!(!bindings.is_empty() && !bindings.has_objects(), "addresses elsewhere are no files");
    let mut reads = bindings.clone();
    reads.reads.insert("x".to_owned(), object);
    bindings.writes.insert("x".to_owned(), Target::Object { path: any("/b") });
    assert!(reads.has_objects() && bindings.has_objects());
}
