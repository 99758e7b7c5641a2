//! The console's files behind its addresses, from a folder.

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use tower::ServiceExt;

struct Served {
    router: Router,
    folder: tempfile::TempDir,
}

fn served() -> Served {
    let folder = tempfile::tempdir().expect("a folder");
    let dist = folder.path().join("dist");
    std::fs::create_dir_all(dist.join("assets")).expect("made");
    let write = |name: &str, text: &str| std::fs::write(dist.join(name), text).expect("written");
    write("index.html", "<h1>page</h1>");
    write("index.html.gz", "packed page");
    write("assets/index-0123abcd.js", "plain");
    write("assets/index-0123abcd.js.gz", "packed");
    write("assets/logo.svg", "<svg/>");
    std::fs::write(folder.path().join("secret.txt"), "c4nary").expect("written");
    std::os::unix::fs::symlink(folder.path().join("secret.txt"), dist.join("assets/link.txt"))
        .expect("linked");
    std::os::unix::fs::symlink(folder.path(), dist.join("assets/up")).expect("linked");
    let router = wharf_console::router(Some(dist)).expect("opened");
    Served { router, folder }
}

impl Served {
    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        self.router.clone().oneshot(request).await.expect("an answer")
    }
}

async fn text(response: Response<Body>) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("a body");
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[tokio::test]
async fn c002_every_screen_is_the_page_and_is_never_kept() {
    let served = served();
    for path in [
        "/",
        "/runs",
        "/runs/default/r-1",
        "/inbox",
        "/tools",
        "/tools/llm/chat@1",
        "/providers",
        "/worlds",
        "/worlds/default",
        "/flows",
        "/flows/media",
        "/schedules",
        "/schedules/nightly",
        "/triggers",
        "/triggers/push",
        "/receivers",
        "/receivers/desk",
        "/money",
        "/operators",
        "/audit",
        "/tokens",
        "/system",
    ] {
        let answer = served.get(path, &[]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(answer.headers()["cache-control"], "no-store", "{path}");
        assert_eq!(answer.headers()["content-type"], "text/html; charset=utf-8", "{path}");
        assert_eq!(text(answer).await, "<h1>page</h1>", "{path}");
    }
    for path in ["/v1", "/v1/runs", "/graphql", "/mcp", "/index.html", "/runs/a", "/other"] {
        assert_eq!(served.get(path, &[]).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn c001_the_parts_of_the_page_are_shown_to_those_who_work_on_it() {
    assert_eq!(served().get("/ui", &[]).await.status(), StatusCode::OK, "from a folder");
    let carried = wharf_console::router(None).expect("a router");
    let request = Request::get("/ui").body(Body::empty()).expect("a request");
    let answer = carried.oneshot(request).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::NOT_FOUND, "from the program");
}

#[tokio::test]
async fn c004_every_answer_says_what_the_page_may_do() {
    let served = served();
    let policy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; \
                  img-src 'self' blob:; media-src 'self'; connect-src 'self'; \
                  frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
                  require-trusted-types-for 'script'";
    for path in ["/", "/assets/index-0123abcd.js", "/assets/none.js", "/favicon.ico"] {
        let answer = served.get(path, &[]).await;
        let said = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(said("content-security-policy"), policy, "{path}");
        assert_eq!(said("referrer-policy"), "no-referrer");
        assert_eq!(said("x-content-type-options"), "nosniff");
        assert_eq!(said("cross-origin-opener-policy"), "same-origin");
        assert_eq!(said("cross-origin-resource-policy"), "same-origin");
    }
}

#[tokio::test]
async fn c002_files_with_a_hash_are_kept_and_packed_ones_sent_to_those_who_unpack() {
    let served = served();
    let plain = served.get("/assets/index-0123abcd.js", &[]).await;
    assert_eq!(plain.headers()["cache-control"], "public, max-age=31536000, immutable");
    assert_eq!(plain.headers()["vary"], "accept-encoding");
    assert!(!plain.headers().contains_key("content-encoding"));
    assert_eq!(text(plain).await, "plain");
    let packed = served.get("/assets/index-0123abcd.js", &[("accept-encoding", "gzip, br")]).await;
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert_eq!(packed.headers()["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(text(packed).await, "packed");
    let logo = served.get("/assets/logo.svg", &[("accept-encoding", "gzip")]).await;
    assert_eq!(logo.headers()["cache-control"], "no-cache");
    assert_eq!(text(logo).await, "<svg/>");
    let page = served.get("/", &[("accept-encoding", "gzip")]).await;
    assert_eq!(text(page).await, "packed page");
}

#[tokio::test]
async fn c002_no_path_leads_out_of_the_folder() {
    let served = served();
    assert!(Path::new(&served.folder.path().join("secret.txt")).exists());
    for path in [
        "/assets/../../secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/link.txt",
        "/assets/up/secret.txt",
        "/assets/%2fetc/passwd",
        "/assets//etc/passwd",
        "/assets/index-0123abcd.js.gz",
        "/assets/",
        "/assets/.",
        "/assets/%00",
        "/favicon.svg",
    ] {
        let answer = served.get(path, &[]).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        assert!(!text(answer).await.contains("c4nary"), "{path}");
    }
}

#[tokio::test]
async fn c002_without_a_page_one_is_told_how_to_make_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let router = wharf_console::router(Some(folder.path().to_owned())).expect("opened");
    let served = Served { router, folder };
    let answer = served.get("/runs", &[]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(text(answer).await.contains("make console"));
    assert!(wharf_console::router(Some("/nowhere/at/all".into())).is_err());
}

#[test]
fn every_route_is_told_to_whoever_lets_requests_through() {
    let mut routes = wharf_console::ROUTES.to_vec();
    routes.sort_unstable();
    let all = routes.len();
    routes.dedup();
    assert_eq!(routes.len(), all);
    assert!(routes.contains(&"/") && routes.contains(&"/assets/{*path}"));
    assert!(routes.iter().all(|route| !route.starts_with("/v1")));
}
