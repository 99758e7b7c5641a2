//! The API document of a whole core: every route of every edge stands in it, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wharf_server::Core;

use crate::support::{PATIENCE, Place, get};

/// The routes that the other edges make, read from their sources.
fn made(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("listed").path();
        if path.is_dir() {
            made(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = std::fs::read_to_string(&path).expect("text");
            let routes = text.split(".route(").skip(1);
            let names = routes.filter_map(|rest| rest.trim_start().strip_prefix('"'));
            let names = names.filter_map(|rest| rest.split('"').next());
            // What takes everything below a path refuses it.
            let names = names.filter(|name| !name.contains("{*"));
            found.extend(names.map(str::to_owned));
        }
    }
}

/// The methods that a path takes, as the core says when it is asked with one that nobody takes.
async fn methods(core: &Core, path: &str) -> BTreeSet<String> {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    let (path, addr) = (parts.collect::<Vec<_>>().join("/"), core.http_addr());
    let head = format!(
        "LOOK {path} HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {}\r\n\
         connection: close\r\n\r\n",
        core.owner_token(),
    );
    let mut stream = TcpStream::connect(addr).await.expect("connects");
    stream.write_all(head.as_bytes()).await.expect("sends");
    let mut answer = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    read.expect("in time").expect("an answer");
    let allowed = answer.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap_or_default();
    let allowed = allowed.split(',').map(str::trim).filter(|name| !name.is_empty());
    allowed.filter(|method| *method != "HEAD").map(str::to_owned).collect()
}

#[tokio::test]
async fn every_route_of_a_core_stands_in_its_document() {
    let place = Place::new();
    let core = place.start().await;
    let document = get(&core, "/openapi.json").await;
    let paths = document["paths"].as_object().expect("paths");
    let described = |path: &str| -> BTreeSet<String> {
        let methods = paths.get(path).and_then(Value::as_object).into_iter().flatten();
        methods.map(|(method, _)| method.to_uppercase()).collect()
    };
    let mut routes: BTreeSet<String> = paths.keys().cloned().collect();
    let edges = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../edges");
    for edge in ["graphql", "operator", "tool", "mcp"] {
        made(&edges.join(edge).join("src"), &mut routes);
    }
    for known in
        ["/v1/operators", "/v1/tasks", "/v1/worker/prompt", "/v1/operatives", "/graphql", "/mcp"]
    {
        assert!(routes.contains(known), "{known} was not found");
    }
    for route in routes {
        let taken = methods(&core, &route).await;
        assert!(!taken.is_empty(), "the core has no route {route}");
        assert_eq!(taken, described(&route), "{route}: what it takes, and what is described");
    }
    core.stop().await.expect("stops");
}
