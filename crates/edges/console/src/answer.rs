//! Answers: the page, its files, and what is said where there is none.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    HeaderName, HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::files::ServedFile;

const FOREVER: &str = "public, max-age=31536000, immutable";
/// Letters that a name must have behind its last `-` to be the name of one content only.
const HASH_CHARS_MIN: usize = 8;

/// What is shown by a program that carries no page.
const UNBUILT: &str = "<!doctype html>
<html lang=\"en\">
<head><meta charset=\"utf-8\"><title>Wharf</title></head>
<body>
<h1>The console is not built</h1>
<p>This core runs, but it was built without its console. Run <code>make console</code> in the
source folder, which needs Node.js, then build and start the core again.</p>
<p>Everything else works without it: see <code>wharf --help</code>.</p>
</body>
</html>
";

/// The page, which is asked for anew each time.
pub(crate) fn page(file: ServedFile) -> Response {
    sent(StatusCode::OK, "text/html; charset=utf-8", "no-store", file)
}

/// A file of the page.
pub(crate) fn asset(name: &str, file: ServedFile) -> Response {
    let cache = if is_hashed(name) { FOREVER } else { "no-cache" };
    sent(StatusCode::OK, media_type(name), cache, file)
}

/// There is no such file.
pub(crate) fn missing() -> Response {
    let text = ServedFile { bytes: "There is no such file.\n".into(), is_packed: false };
    sent(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "no-store", text)
}

/// The program carries no page.
pub(crate) fn unbuilt() -> Response {
    page(ServedFile { bytes: UNBUILT.into(), is_packed: false })
}

/// A file that the documents share.
pub(crate) fn named(name: &str, text: &'static str) -> Response {
    sent(
        StatusCode::OK,
        media_type(name),
        "no-cache",
        ServedFile { bytes: text.into(), is_packed: false },
    )
}

/// A document of the program.
pub(crate) fn document(html: &str) -> Response {
    let file = ServedFile { bytes: html.to_owned().into(), is_packed: false };
    sent(StatusCode::OK, "text/html; charset=utf-8", "no-cache", file)
}

fn sent(status: StatusCode, kind: &'static str, cache: &'static str, file: ServedFile) -> Response {
    let mut response = (status, Body::from(file.bytes)).into_response();
    let headers = response.headers_mut();
    let mut say = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    say(CONTENT_TYPE, kind);
    say(CACHE_CONTROL, cache);
    say(CONTENT_SECURITY_POLICY, crate::CONTENT_SECURITY_POLICY);
    say(REFERRER_POLICY, "no-referrer");
    say(X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    say(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    say(VARY, "accept-encoding");
    if file.is_packed {
        say(CONTENT_ENCODING, "gzip");
    }
    response
}

/// Whether whoever asks can unpack what is packed.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut forms = values.flat_map(|value| value.split(','));
    forms.any(|form| {
        let (name, weight) = form.split_once(';').unwrap_or((form, ""));
        let weight = weight.trim().trim_start_matches("q=").trim();
        let refused = !weight.is_empty() && weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Whether a name stands for one content only: `name-<hash>.ext`.
fn is_hashed(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let stem = file.split('.').next().unwrap_or(file);
    // A hash may hold the letter that stands before it.
    let hash = stem.get(stem.len().saturating_sub(HASH_CHARS_MIN)..).unwrap_or_default();
    let before = stem.get(..stem.len().saturating_sub(HASH_CHARS_MIN)).unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    name.starts_with("assets/")
        && before.len() > 1
        && before.contains('-')
        && hash.len() == HASH_CHARS_MIN
        && hash.bytes().all(fits)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        // A page of its own would be one more address.
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c002_only_names_with_a_hash_are_kept_for_ever() {
        for hashed in [
            "assets/index-BxYz12_a.js",
            "assets/a/main-01234567.css",
            "assets/x-y-abcdefgh.js",
            "assets/index-B-Yz12_a.js",
        ] {
            assert!(is_hashed(hashed), "{hashed}");
        }
        for plain in [
            "index.html",
            "assets/index.js",
            "assets/a-short.js",
            "favicon-01234567.svg",
            "assets/01234567.js",
        ] {
            assert!(!is_hashed(plain), "{plain}");
        }
    }

    #[test]
    fn c002_packed_files_are_for_those_who_can_unpack_them() {
        let takes = |said: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, said.parse().expect("a header"));
            takes_gzip(&headers)
        };
        for yes in ["gzip", "br, gzip", "GZIP;q=0.5", "deflate,gzip;q=1.0"] {
            assert!(takes(yes), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip;q=0.0", "xgzip"] {
            assert!(!takes(no), "{no}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
