//! The embedded storage of the core, as tools meet it: by presigned addresses.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;
use wharf_artifacts::{
    Credentials, EmbeddedObjects, Endpoint, EndpointOptions, FileObjects, RunningEndpoint,
};
use wharf_ports::{Method, ObjectStore as _};
use wharf_toolserver::transfer::Source;

use crate::support::Bench;

async fn storage(folder: &std::path::Path) -> (Arc<EmbeddedObjects>, RunningEndpoint) {
    let files = FileObjects::open(folder).expect("opens");
    let credentials = Credentials { key_id: "KEY".to_owned(), secret: "a secret".to_owned() };
    let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), credentials);
    let endpoint = Endpoint::bind(files, options).await.expect("bound");
    (endpoint.objects(), endpoint.serve())
}

#[tokio::test]
async fn t023_t027_t030_what_is_written_can_be_fetched() {
    let folder = tempfile::tempdir().expect("a folder");
    let (objects, _serving) = storage(folder.path()).await;
    let bench = Bench::new(&[objects.origin()]);
    let body: Vec<u8> = (0..3_000_000).map(|at| (at % 249) as u8).collect();
    let files = bench.output(&objects.presign(Method::Put, "w1/out.bin", 3_600));
    let path = files.folder().expect("a folder").join("out.bin");
    std::fs::write(&path, &body).expect("written");
    let written = files.put("x", Source::File(path)).await.expect("put");
    let info = objects.head("w1/out.bin".to_owned()).await.expect("asked").expect("there");
    assert_eq!((info.bytes, info.b3.map(|b3| b3.to_string())), (written.bytes, Some(written.b3)));
    let files = bench.input(&objects.presign(Method::Get, "w1/out.bin", 3_600));
    assert!(files.read("x", 4_000_000).await.expect("read") == body);
}

#[tokio::test]
async fn t029_refusals_of_the_embedded_storage_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let (objects, _serving) = storage(folder.path()).await;
    let bench = Bench::new(&[objects.origin()]);
    let missing = bench.input(&objects.presign(Method::Get, "w1/none", 3_600));
    assert_eq!(missing.fetch("x").await.expect_err("missing").code, "ERR_NOT_FOUND");
    let wrong = objects.presign(Method::Get, "w1/none", 3_600).replace("/w1/", "/w2/");
    let failure = bench.input(&wrong).fetch("x").await.expect_err("not signed");
    assert_eq!(failure.code, "ERR_STORAGE_DENIED");
    let other_method = bench.output(&objects.presign(Method::Get, "w1/none", 3_600));
    let failure = other_method.put("x", Source::Value(json!(1))).await.expect_err("for reading");
    assert_eq!(failure.code, "ERR_STORAGE_DENIED");
    let short = bench.input(&objects.presign(Method::Get, "w1/none", 1));
    loop {
        let failure = short.fetch("x").await.expect_err("missing or over");
        if failure.code == "ERR_STORAGE_EXPIRED" {
            break;
        }
        assert_eq!(failure.code, "ERR_NOT_FOUND");
    }
}
