//! Files of worlds: putting, reading, listing, tracing, removing.

use serde_json::json;

use crate::support::client::{Answer, Call};
use crate::support::{Edge, TOKEN};

pub(crate) fn b3(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn file(path: &str) -> String {
    format!("/v1/worlds/default/files{path}")
}

impl Edge {
    pub(crate) async fn put(&self, path: &str, bytes: &[u8]) -> Answer {
        self.call("PUT", &file(path)).bytes(bytes.to_vec()).send().await
    }

    pub(crate) async fn read(&self, path: &str) -> Answer {
        self.get(&file(path)).await
    }

    async fn part(&self, path: &str, range: &str) -> Answer {
        self.call("GET", &file(path)).header("range", range).send().await
    }
}

#[tokio::test]
async fn t040_a_file_is_put_listed_read_traced_and_removed() {
    let edge = Edge::start().await;
    let answer = edge.put("/notes/a%20b.txt", b"hello").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let shown = answer.json();
    let expect = json!({"world": "default", "path": "/notes/a b.txt", "bytes": 5,
        "b3": b3(b"hello"), "media_type": "text/plain; charset=utf-8", "run_id": null, "key": null,
        "direction": "out", "at": shown["at"]});
    assert_eq!(shown, expect);

    let answer = edge.read("/notes/a%20b.txt").await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
    let listed = edge.get("/v1/worlds/default/artifacts").await.json();
    assert_eq!(listed, json!({"items": [shown], "next_cursor": null}));
    let trace = edge.get("/v1/worlds/default/trace?path=/notes/a%20b.txt").await.json();
    assert_eq!(trace["written"], json!([shown]));
    assert_eq!((&trace["read"], &trace["cut"]), (&json!([]), &json!(false)));
    let usage = edge.get("/v1/worlds/default/usage").await.json();
    let expect = json!({"world": "default", "files": 1, "bytes": 5, "local_files": 0,
        "local_bytes": 0});
    assert_eq!(usage, expect);

    let path = file("/notes/a%20b.txt");
    assert_eq!(edge.call("DELETE", &path).send().await.status, 204);
    edge.call("DELETE", &path).send().await.refused(404, "artifact.not_found");
    edge.read("/notes/a%20b.txt").await.refused(404, "artifact.not_found");
    assert_eq!(edge.objects.keys(), [""; 0]);
    let trace = edge.get("/v1/worlds/default/trace?path=/notes/a%20b.txt").await.json();
    assert!(trace["written"][0]["gone_at"].is_string(), "{trace}");
}

#[tokio::test]
async fn t040_files_are_listed_by_path_on_pages_of_any_size() {
    let edge = Edge::start().await;
    for path in ["/b/2", "/a", "/b/1", "/c", "/b"] {
        assert_eq!(edge.put(path, b"x").await.status, 201);
    }
    for (query, expect) in [
        ("", vec!["/a", "/b", "/b/1", "/b/2", "/c"]),
        ("&prefix=/b", vec!["/b", "/b/1", "/b/2"]),
        ("&prefix=/b/", vec!["/b/1", "/b/2"]),
        ("&prefix=/z", vec![]),
    ] {
        for limit in [1, 2, 200] {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let path =
                    format!("/v1/worlds/default/artifacts?limit={limit}{query}&cursor={cursor}");
                let page = edge.get(&path).await.json();
                let items = page["items"].as_array().expect("items");
                assert!(items.len() <= limit);
                seen.extend(
                    items.iter().map(|item| item["path"].as_str().expect("text").to_owned()),
                );
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = next.to_owned(),
                    None => break,
                }
            }
            assert_eq!(seen, expect, "{query} by {limit}");
        }
    }
    let foreign = edge.get("/v1/worlds/default/artifacts?cursor=AQ").await;
    foreign.refused(400, "request.cursor_invalid");
    let answer = edge.get("/v1/worlds/default/artifacts?prefix=b").await;
    assert_eq!(answer.refused(400, "request.invalid")["details"]["field"], "prefix");
}

#[tokio::test]
async fn a_part_of_a_file_can_be_read() {
    let edge = Edge::start().await;
    edge.put("/ten", b"0123456789").await;
    for (range, bytes, shown) in [
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=0-99", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = edge.part("/ten", range).await;
        assert_eq!((answer.status, answer.text().as_str()), (206, bytes), "{range}");
        assert_eq!(answer.header("content-range"), Some(shown));
    }
    for whole in ["bytes=0-1,4-5", "bytes=5-2", "lines=1-2", "bytes=x"] {
        let answer = edge.part("/ten", whole).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"), "{whole}");
        assert_eq!(answer.header("content-range"), None);
        assert_eq!(answer.header("accept-ranges"), Some("bytes"));
    }
    for beyond in ["bytes=10-", "bytes=99-100", "bytes=-0"] {
        let answer = edge.part("/ten", beyond).await;
        answer.refused(416, "request.range_invalid");
        assert_eq!(answer.header("content-range"), Some("bytes */10"));
    }
    edge.put("/empty", b"").await;
    assert_eq!(edge.read("/empty").await.body, b"");
    edge.part("/empty", "bytes=0-").await.refused(416, "request.range_invalid");
}

#[tokio::test]
async fn a_file_that_is_known_is_not_sent_again() {
    let edge = Edge::start().await;
    edge.put("/a", b"first").await;
    let tag = format!("\"{}\"", b3(b"first"));
    let answer = edge.read("/a").await;
    assert_eq!(answer.header("etag"), Some(tag.as_str()));
    assert_eq!(answer.header("wharf-b3"), Some(b3(b"first").as_str()));
    let known = |tag: &str| edge.call("GET", &file("/a")).header("if-none-match", tag).send();
    for same in [&tag, &format!("W/{tag}"), &format!("\"x\", {tag}"), "*"] {
        let answer = known(same).await;
        assert_eq!((answer.status, answer.body.len()), (304, 0), "{same}");
        assert_eq!(answer.header("etag"), Some(tag.as_str()));
    }
    assert_eq!(known("\"x\"").await.status, 200);

    edge.put("/a", b"second").await;
    assert_eq!(known(&tag).await.text(), "second");
    // Whoever goes on with a part of the old file gets all of the new one.
    let rest = |tag: &str| {
        let call = edge.call("GET", &file("/a")).header("range", "bytes=3-");
        call.header("if-range", tag).send()
    };
    assert_eq!(rest(&tag).await.text(), "second");
    let tag = format!("\"{}\"", b3(b"second"));
    assert_eq!(rest(&tag).await.text(), "ond");
    assert_eq!(rest(&format!("W/{tag}")).await.text(), "second", "a weak tag proves nothing");
}

#[tokio::test]
async fn a_browser_does_not_take_a_file_for_a_page() {
    let edge = Edge::start().await;
    edge.put("/evil.html", b"<script>fetch('/v1/tokens')</script>").await;
    for method in ["GET", "HEAD"] {
        let mut call = edge.call(method, &file("/evil.html"));
        if method == "HEAD" {
            // What is announced does not come.
            call = call.header("connection", "close");
        }
        let answer = if method == "GET" { call.send().await } else { head(&edge, call).await };
        assert_eq!(answer.status, 200);
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("content-length", "36"),
            ("content-disposition", "attachment"),
            ("content-security-policy", "sandbox"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "private, no-cache"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{method} {name}");
        }
    }
    let put = |kind: &str| {
        let call = edge.call("PUT", &file("/kind")).bytes(b"x".to_vec());
        call.header("content-type", kind).send()
    };
    assert_eq!(put("image/png").await.json()["media_type"], "image/png");
    let unsaid = put("application/x-www-form-urlencoded").await.json();
    assert_eq!(unsaid["media_type"], "application/octet-stream", "curl says that of anything");
    let error = put("x").await.refused(400, "request.invalid");
    assert_eq!(error["details"]["field"], "Content-Type");
}

/// The head of an answer that has no body.
async fn head(edge: &Edge, call: Call) -> Answer {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(edge.server.addr()).await.expect("connects");
    stream.write_all(call.head().as_bytes()).await.expect("sends");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert_eq!(body, "");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").expect("a header");
        (name.to_ascii_lowercase(), value.to_owned())
    };
    Answer {
        status: status.expect("a status"),
        headers: lines.map(header).collect(),
        body: Vec::new(),
    }
}

#[tokio::test]
async fn t031_hostile_paths_lead_nowhere() {
    let edge = Edge::start().await;
    assert_eq!(edge.post("/v1/worlds", json!({"world": "other"})).await.status, 201);
    let put = edge.call("PUT", "/v1/worlds/other/files/secret").bytes(b"s3cret".to_vec());
    assert_eq!(put.send().await.status, 201);
    let before = edge.objects.keys();
    for path in [
        "/../other/secret",
        "/..%2fother%2fsecret",
        "/%2e%2e/other/secret",
        "/%252e%252e/other/secret",
        "/.%2e/other/secret",
        "/a/../../other/secret",
        "/a/./b",
        "//other/secret",
        "/a//b",
        "/a/",
        "/a%2fb",
        "/a%252fb",
        "/a%2541",
        "/a%5c..%5cb",
        "/a%00",
        "/a%0d%0ab",
        "/a%",
        "/a%zz",
        "/a%e2%80%ae",
        "/a%cc%88",
        "/@",
        "/@r1",
        "/@r1/",
        "/@../x",
        "/@r1/../x",
        "/@r1/@2-1/0",
        &format!("/{}", "a".repeat(256)),
        &format!("/{}", "a/".repeat(600)),
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let call = edge.call(method, &file(path));
            let call = if method == "PUT" { call.bytes(b"x".to_vec()) } else { call };
            let error = call.send().await.refused(422, "scope.path_invalid");
            assert_eq!(error["details"]["key"], "path", "{method} {path}");
        }
        let begun = edge.post("/v1/worlds/default/uploads", json!({"path": path})).await;
        begun.refused(422, "scope.path_invalid");
    }
    edge.read("/").await.refused(404, "request.route_unknown");
    // What is not even text is refused before anybody looks.
    edge.read("/a%ff").await.refused(400, "request.invalid");
    for (path, code) in [
        ("/v1/worlds/default/trace?path=/../other/secret", "scope.path_invalid"),
        ("/v1/worlds/default/trace?path=/%252e%252e/other/secret", "scope.path_invalid"),
        ("/v1/worlds/default/trace?path=other", "scope.path_invalid"),
        ("/v1/worlds/default/trace?path=/a%2541", "scope.path_invalid"),
    ] {
        edge.get(path).await.refused(422, code);
    }
    edge.get("/v1/worlds/default/trace").await.refused(400, "request.invalid");
    edge.get("/v1/worlds/..%2fother/files/secret").await.refused(400, "request.invalid");
    assert_eq!(edge.objects.keys(), before);
    // Nobody but a run writes local files.
    edge.put("/@r1/x", b"x").await.refused(403, "scope.forbidden");
    assert_eq!(edge.objects.keys(), before);
}

#[tokio::test]
async fn a_file_with_another_hash_is_not_there() {
    let edge = Edge::start().await;
    let put = |bytes: &[u8], hash: &str| {
        edge.call("PUT", &file("/a")).bytes(bytes.to_vec()).header("wharf-b3", hash).send()
    };
    put(b"hello", &b3(b"other")).await.refused(422, "artifact.checksum");
    edge.read("/a").await.refused(404, "artifact.not_found");
    assert_eq!(put(b"hello", &b3(b"hello")).await.status, 201);
    put(b"changed", &b3(b"hello")).await.refused(422, "artifact.checksum");
    assert_eq!(edge.read("/a").await.text(), "hello", "what was there stays");
    let error = put(b"hello", "abc").await.refused(400, "request.invalid");
    assert_eq!(error["details"]["field"], "Wharf-B3");
}

#[tokio::test]
async fn files_of_a_world_that_is_not_there_are_not_found() {
    let edge = Edge::start().await;
    for path in ["artifacts", "usage", "trace?path=/a", "files/a"] {
        edge.get(&format!("/v1/worlds/none/{path}")).await.refused(404, "world.not_found");
    }
    let call = edge.call("PUT", "/v1/worlds/none/files/a").bytes(b"x".to_vec());
    call.send().await.refused(404, "world.not_found");
    edge.post("/v1/worlds/none/uploads", json!({"path": "/a"}))
        .await
        .refused(404, "world.not_found");
    edge.post("/v1/worlds/none/collect", json!({})).await.refused(404, "world.not_found");
}

#[tokio::test]
async fn what_can_go_is_told_before_it_goes() {
    let edge = Edge::start().await;
    edge.put("/a", b"hello").await;
    let answer = edge.post("/v1/worlds/default/collect?dry=true", json!({})).await.json();
    let expect = json!({"world": "default", "dry": true, "files": 0, "leftovers": 0, "bytes": 0,
        "in_use": 0, "unrecorded": 0});
    assert_eq!(answer, expect);
    let answer = edge.post("/v1/worlds/default/collect", json!({})).await.json();
    assert_eq!((&answer["dry"], &answer["files"]), (&json!(false), &json!(0)));
    assert_eq!(edge.read("/a").await.text(), "hello", "without retention everything stays");
    let error = edge.post("/v1/worlds/default/collect?dry=maybe", json!({})).await;
    assert_eq!(error.refused(400, "request.invalid")["details"]["field"], "dry");
}

#[tokio::test]
async fn t035_no_answer_holds_an_address_of_the_store() {
    let edge = Edge::start().await;
    edge.put("/in.txt", b"hello").await;
    let body = json!({"tool": "wharf/echo", "run_id": "r1", "inputs": {"text.world": "/in.txt",
        "page": "https://ada:pw@example.com/x?X-Amz-Signature=s1gnature"}});
    let run = edge.post("/v1/runs?wait=20s", body).await;
    assert_eq!(run.status, 200, "{}", run.text());
    let shown = run.json();
    assert_eq!(shown["inputs"]["text"], "world://default/in.txt");
    assert_eq!(shown["inputs"]["page"], "https://example.com/x");
    let read = json!({"world": "default", "path": "/in.txt", "bytes": 5, "b3": b3(b"hello"),
        "media_type": "text/plain; charset=utf-8", "run_id": "r1", "key": "text",
        "direction": "in"});
    assert_eq!(shown["artifacts"][0], read);
    let mut answers = vec![run];
    for path in [
        "/v1/runs/r1",
        "/v1/runs/r1/events",
        "/v1/runs",
        "/v1/audit?limit=200",
        "/v1/worlds/default/artifacts?local=true",
        "/v1/worlds/default/trace?path=/in.txt",
    ] {
        answers.push(edge.get(path).await);
    }
    let addresses = edge.objects.inner.addresses();
    for answer in answers {
        let text = answer.text();
        for secret in addresses.iter().map(String::as_str).chain(["s1gnature", "ada:pw", TOKEN]) {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[tokio::test]
async fn t037_a_missing_input_is_named_before_anything_runs() {
    let edge = Edge::start().await;
    let body = json!({"tool": "wharf/echo", "inputs": {"text.world": "/none.txt"}});
    let error = edge.post("/v1/runs?wait=20s", body).await.refused(404, "scope.not_found");
    assert_eq!(error["details"]["key"], "text.world");
    assert_eq!(edge.get("/v1/runs").await.json()["items"], json!([]));
}

#[tokio::test]
async fn t040_a_run_shows_what_it_read_and_wrote() {
    let edge = Edge::start().await;
    edge.put("/in.txt", b"hello").await;
    let body = json!({"tool": "wharf/echo", "run_id": "first",
        "inputs": {"said": "hello", "file.world": "/in.txt"},
        "outputs": {"said.local": "/said.txt"}});
    let run = edge.post("/v1/runs?wait=20s", body).await.json();
    assert_eq!(run["status"], "succeeded", "{run}");
    assert_eq!(run["outputs"]["said"], "world://default/@first/said.txt", "{run}");
    let directions: Vec<_> = run["artifacts"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| (file["key"].clone(), file["direction"].clone()))
        .collect();
    assert_eq!(directions, [(json!("file"), json!("in")), (json!("said"), json!("out"))]);
    let receipt = &run["receipt"];
    assert_eq!(receipt["cost_micro"], 0, "{run}");
    assert_eq!(receipt["over_hold"], false, "{run}");
    let written = edge.read("/@first/said.txt").await;
    assert_eq!(written.status, 200, "{}", written.text());
    assert_eq!(run["artifacts"][1]["bytes"], written.body.len());
    let listed = edge.get("/v1/worlds/default/artifacts?local=true").await.json();
    assert_eq!(listed["items"].as_array().expect("items").len(), 2, "{listed}");

    let body =
        json!({"tool": "wharf/echo", "continues": "first", "inputs": {"said.local": "/said.txt"}});
    let next = edge.post("/v1/runs?wait=20s", body).await.json();
    assert_eq!(next["continues"], "first", "{next}");
    assert_eq!(next["inputs"]["said"], "world://default/@first/said.txt");
    let trace = edge.get("/v1/worlds/default/trace?path=/@first/said.txt").await.json();
    assert_eq!(trace["written"][0]["run_id"], "first");
    assert_eq!(trace["read"][0]["run_id"], next["run_id"]);
    assert_eq!(trace["made_from"][0]["files"][0]["path"], "/in.txt", "{trace}");
}

#[tokio::test]
async fn t040_a_file_can_be_named_by_a_parameter() {
    let edge = Edge::start().await;
    // Clients that are made from the document encode every slash of an address.
    let at = |path: &str| format!("/v1/worlds/default/files?path={path}");
    let put = edge.call("PUT", &at("%2Fin%2Fdeep%2Fa.txt")).bytes(b"hello".to_vec()).send().await;
    assert_eq!((put.status, &put.json()["path"]), (201, &json!("/in/deep/a.txt")));
    let read = edge.get(&at("/in/deep/a.txt")).await;
    assert_eq!((read.status, read.body.as_slice()), (200, b"hello".as_slice()));
    assert_eq!(read.body, edge.read("/in/deep/a.txt").await.body);
    let part = edge.call("GET", &at("/in/deep/a.txt")).header("range", "bytes=1-2").send().await;
    assert_eq!((part.status, part.body.as_slice()), (206, b"el".as_slice()));
    edge.get(&at("")).await.refused(400, "request.invalid");
    edge.get(&at("/../x")).await.refused(422, "scope.path_invalid");
    assert_eq!(edge.call("DELETE", &at("/in/deep/a.txt")).send().await.status, 204);
    edge.get(&at("/in/deep/a.txt")).await.refused(404, "artifact.not_found");
}
