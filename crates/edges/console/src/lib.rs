//! The console's page: files that the program carries, or a folder of them while one works on it.
//!
//! It knows no engine and no caller: whatever the page shows it asks of the API like every other
//! client. What it serves here is the same for everybody and needs no token.
//!
//! Invariants: only the addresses that are listed here are answered; no path leads out of the
//! folder; nothing that is served here may load, send or frame anything of another origin.

mod answer;
mod files;
mod site;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;

use files::Files;

pub use site::{SitePages, written};

/// What the page may load and do.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; \
     style-src 'self'; img-src 'self' blob:; media-src 'self'; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
     require-trusted-types-for 'script'";

/// Addresses of screens; all of them are one page.
const SCREENS: [&str; 23] = [
    "/",
    "/runs",
    "/runs/{world}/{run}",
    "/inbox",
    "/tools",
    "/tools/{*tool}",
    "/providers",
    "/providers/{*provider}",
    "/worlds",
    "/worlds/{world}",
    "/flows",
    "/flows/{flow}",
    "/schedules",
    "/schedules/{schedule}",
    "/triggers",
    "/triggers/{trigger}",
    "/receivers",
    "/receivers/{receiver}",
    "/money",
    "/operators",
    "/audit",
    "/tokens",
    "/system",
];

/// The parts that screens are made of, shown where somebody works on them.
const PARTS: &str = "/ui";

/// Files that lie beside the page under fixed names, whether they are there or not: browsers ask
/// for some of them by themselves.
const BESIDE: [&str; 7] = [
    "/favicon.ico",
    "/favicon.svg",
    "/icon.svg",
    "/apple-touch-icon.png",
    "/apple-touch-icon-precomposed.png",
    "/manifest.webmanifest",
    "/robots.txt",
];

const ASSETS: &str = "/assets/{*path}";
const DOCS: [&str; 2] = ["/docs", "/docs/{*path}"];

/// Every route, for whoever lets requests through.
pub const ROUTES: &[&str] = &all_routes();

const ROUTES_COUNT: usize = SCREENS.len() + BESIDE.len() + DOCS.len() + 2;

const fn all_routes() -> [&'static str; ROUTES_COUNT] {
    let mut all = [ASSETS; ROUTES_COUNT];
    let mut at = 0;
    while at < SCREENS.len() {
        all[at] = SCREENS[at];
        at += 1;
    }
    let mut beside = 0;
    while beside < BESIDE.len() {
        all[at + beside] = BESIDE[beside];
        beside += 1;
    }
    all[ROUTES_COUNT - 3] = PARTS;
    all[ROUTES_COUNT - 2] = DOCS[0];
    all[ROUTES_COUNT - 1] = DOCS[1];
    all
}

/// The page and its files; from a folder if one is named, else those that the program carries.
pub fn router(folder: Option<PathBuf>) -> io::Result<Router> {
    let mut router = Router::new();
    if folder.is_some() {
        router = router.route(PARTS, get(page));
    }
    let files = Arc::new(match folder {
        Some(folder) => Files::open(&folder)?,
        None => Files::carried(),
    });
    for screen in SCREENS {
        router = router.route(screen, get(page));
    }
    for path in BESIDE {
        let name = path.trim_start_matches('/');
        let beside = move |files: State<Arc<Files>>, headers: HeaderMap| async move {
            asset(&files, name.to_owned(), &headers).await
        };
        router = router.route(path, get(beside));
    }
    let index = async || site::show("");
    let document = async |Path(path): Path<String>| site::show(&path);
    router = router.route(DOCS[0], get(index)).route(DOCS[1], get(document));
    Ok(router.route(ASSETS, get(assets)).with_state(files))
}

/// The documents that the program carries: where each lies in the repository, such as
/// `docs/errors/CODE.md`, and its Markdown.
#[must_use]
pub fn documents() -> &'static [(&'static str, &'static str)] {
    &site::CARRIED
}

async fn page(State(files): State<Arc<Files>>, headers: HeaderMap) -> Response {
    match files.read(files::PAGE.to_owned(), answer::takes_gzip(&headers)).await {
        Some(file) => answer::page(file),
        None => answer::unbuilt(),
    }
}

async fn assets(
    State(files): State<Arc<Files>>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    asset(&files, format!("assets/{path}"), &headers).await
}

async fn asset(files: &Files, name: String, headers: &HeaderMap) -> Response {
    // What is packed is a form of a file, not one of its own.
    if !files::is_name(&name) || name.ends_with(files::PACKED) {
        return answer::missing();
    }
    match files.read(name.clone(), answer::takes_gzip(headers)).await {
        Some(file) => answer::asset(&name, file),
        None => answer::missing(),
    }
}
