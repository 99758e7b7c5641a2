//! The documents that the program carries, for whoever meets an error or wants to know more.

use axum::response::Response;

use crate::answer;
use crate::markdown;

/// What was in `docs` when the program was built, by name and in order.
static DOCUMENTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));

/// A document by its name below `/docs`, or the list of all.
pub(crate) fn show(path: &str) -> Response {
    let name = path.trim_end_matches('/').trim_end_matches(".md");
    if name.is_empty() {
        return answer::document(&page("Documents", &index()));
    }
    let found = DOCUMENTS.binary_search_by(|(known, _)| (*known).cmp(name)).ok();
    let Some((name, text)) = found.and_then(|at| DOCUMENTS.get(at)) else {
        return answer::missing();
    };
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    answer::document(&page(name, &markdown::to_html(text, folder)))
}

fn index() -> String {
    let item = |(name, _): &(&str, &str)| {
        let name = markdown::escaped(name);
        format!("<li><a href=\"/docs/{name}\">{name}</a></li>\n")
    };
    let items: String = DOCUMENTS.iter().map(item).collect();
    format!("<h1>Documents</h1>\n<ul>\n{items}</ul>\n")
}

fn page(title: &str, body: &str) -> String {
    let title = markdown::escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} · Wharf</title></head>\n<body>\n\
         <p><a href=\"/\">Console</a> · <a href=\"/docs\">Documents</a></p>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c009_every_error_has_its_page() {
        assert!(DOCUMENTS.is_sorted_by_key(|(name, _)| *name));
        for code in wharf_vocab::Code::ALL {
            let status = show(&format!("errors/{code}")).status();
            assert_eq!(status, axum::http::StatusCode::OK, "{code}");
        }
        assert_eq!(show("").status(), axum::http::StatusCode::OK);
        for none in ["nothing", "../README", "errors/../../x", "errors"] {
            assert_eq!(show(none).status(), axum::http::StatusCode::NOT_FOUND, "{none}");
        }
    }
}
