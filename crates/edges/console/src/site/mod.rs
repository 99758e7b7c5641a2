//! The documents that the program carries, as a site: pages with a navigation, and a search.
//!
//! - `docs/README.md` is the navigation: what it does not list is on no page of it.
//! - The same pages are served by a core and written as files; only their addresses differ.
//! - Nothing is asked of another host, and nothing in a page needs more than the console's policy.

mod markdown;
mod nav;
mod page;
mod search;

use std::sync::LazyLock;

use axum::response::Response;
use miniz_oxide::inflate::decompress_to_vec;

use crate::answer;

/// Where the site's own files lie below its root.
const STYLE: &str = "docs.css";
const SCRIPT: &str = "docs.js";
const INDEX: &str = "search.json";

/// The colours of the console, and what only documents have.
const CSS: &str =
    concat!(include_str!("../../../../../console/src/ui/tokens.css"), include_str!("docs.css"));
const JS: &str = include_str!("docs.js");

/// What was in the repository when the program was built: where it lies, and how long it is.
static LENGTHS: &[(&str, usize)] = include!(concat!(env!("OUT_DIR"), "/docs.rs"));
/// All texts of it one after the other, packed.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/docs.deflate"));
/// Where each document lies, and its text; unpacked when somebody first reads one.
pub(crate) static CARRIED: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(unpacked);

/// All pages, with their places in the navigation.
static SITE: LazyLock<Site> = LazyLock::new(|| Site::of(&CARRIED));
/// What is searched, made when somebody first searches.
static SEARCHED: LazyLock<String> = LazyLock::new(|| search::index(&SITE));

fn unpacked() -> Vec<(&'static str, &'static str)> {
    let bytes = decompress_to_vec(PACKED).expect("it was packed when the program was built");
    let texts = String::from_utf8(bytes).expect("it was packed from text");
    // They are needed until the program ends.
    let mut rest: &'static str = texts.leak();
    let each = |&(source, length): &(&'static str, usize)| {
        let (text, behind) = rest.split_at(length);
        rest = behind;
        (source, text)
    };
    LENGTHS.iter().map(each).collect()
}

/// A page or a file of the site by its path below `/docs`.
pub(crate) fn show(path: &str) -> Response {
    let name = path.trim_end_matches('/').trim_end_matches(".md");
    match name {
        STYLE => answer::named(STYLE, CSS),
        SCRIPT => answer::named(SCRIPT, JS),
        INDEX => answer::named(INDEX, &SEARCHED),
        name => match SITE.find(name) {
            Some(document) => {
                answer::document(&page::html(&SITE, document, page::PageStyle::Served))
            }
            None => answer::missing(),
        },
    }
}

/// The site as files that need no core, for `make docs`.
#[derive(Debug)]
pub struct SitePages {
    /// Paths below the folder, with what belongs there.
    pub files: Vec<(String, String)>,
    /// Paths below the folder, with the picture of the repository that belongs there.
    pub pictures: Vec<(String, String)>,
}

/// Writes every page of the site.
#[must_use]
pub fn written() -> SitePages {
    let named = [(STYLE, CSS), (SCRIPT, JS), (INDEX, SEARCHED.as_str())];
    let mut files: Vec<(String, String)> =
        named.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let mut pictures = Vec::new();
    for document in &SITE.documents {
        files.push((document.file(), page::html(&SITE, document, page::PageStyle::Files)));
        pictures.extend(document.pictures());
    }
    pictures.sort();
    pictures.dedup();
    SitePages { files, pictures }
}

/// The documents and their order.
#[derive(Debug)]
struct Site {
    /// By name.
    documents: Vec<Document>,
    sections: Vec<nav::Section>,
}

/// A document.
#[derive(Debug)]
struct Document {
    /// Its name below `/docs`; that of the first page is empty.
    name: String,
    /// Where it lies in the repository.
    source: &'static str,
    text: &'static str,
    title: String,
}

impl Site {
    fn of(carried: &[(&'static str, &'static str)]) -> Self {
        let mut documents: Vec<Document> = carried.iter().map(Document::of).collect();
        documents.sort_by(|a, b| a.name.cmp(&b.name));
        let sections = nav::sections(&documents);
        Self { documents, sections }
    }

    fn find(&self, name: &str) -> Option<&Document> {
        let at = self.documents.binary_search_by(|document| document.name.as_str().cmp(name));
        at.ok().and_then(|at| self.documents.get(at))
    }

    /// The document that lies at a path of the repository.
    fn at(&self, source: &str) -> Option<&Document> {
        self.documents.iter().find(|document| document.source == source)
    }
}

impl Document {
    fn of(&(source, text): &(&'static str, &'static str)) -> Self {
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(source);
        let title = title.replace('`', "");
        Self { name: name_of(source), source, text, title }
    }

    /// Its file among those that are written.
    fn file(&self) -> String {
        let name = if self.name.is_empty() { "index" } else { &self.name };
        format!("{name}.html")
    }

    /// The path in the repository to which a link of this document leads.
    fn path(&self, link: &str) -> Option<String> {
        let mut parts: Vec<&str> = self.source.split('/').collect();
        parts.pop();
        for part in link.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }

    /// The pictures that it shows: where they are written, and where they lie.
    fn pictures(&self) -> Vec<(String, String)> {
        let shown = self.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let paths = shown.filter(|path| path.ends_with(".png")).filter_map(|path| self.path(path));
        paths.map(|path| (page::picture(&path), path)).collect()
    }
}

/// The name of a page: documents by their path, what lies beside the code as a part of the project.
fn name_of(source: &str) -> String {
    let stem = source.trim_end_matches(".md");
    match stem.strip_prefix("docs/") {
        Some("README") => String::new(),
        Some(stem) => stem.trim_end_matches("/README").to_owned(),
        None => format!("project/{}", stem.trim_end_matches("/README").to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::http::StatusCode;

    use super::*;

    #[test]
    fn c009_every_error_has_its_page() {
        for code in wharf_vocab::Code::ALL {
            assert_eq!(show(&format!("errors/{code}")).status(), StatusCode::OK, "{code}");
        }
        for there in ["", "errors", "errors/", "http", "http.md", "docs.css", "search.json"] {
            assert_eq!(show(there).status(), StatusCode::OK, "{there}");
        }
        for none in ["nothing", "../README", "errors/../../x", "docs.css/x"] {
            assert_eq!(show(none).status(), StatusCode::NOT_FOUND, "{none}");
        }
    }

    #[test]
    fn every_page_is_reached_from_the_navigation() {
        let site = &*SITE;
        let names: Vec<&str> = site.sections.iter().map(|section| section.title.as_str()).collect();
        let expected =
            ["Start", "Guides", "Reference", "Operations", "Protocols", "Errors", "Decisions"];
        assert_eq!(names, expected);
        for document in site.documents.iter().filter(|document| !document.name.is_empty()) {
            let page = page::html(site, document, page::PageStyle::Served);
            let own = format!("href=\"/docs/{}\" aria-current=\"page\"", document.name);
            assert!(page.contains(&own), "{} is in no section", document.source);
        }
    }

    /// Every address of a page that leads to another place of the site.
    fn links(html: &str) -> Vec<&str> {
        let all = html.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        all.filter(|link| link.starts_with("/docs") || link.starts_with('#')).collect()
    }

    #[test]
    fn every_link_of_every_page_leads_to_a_page_and_a_heading() {
        let site = &*SITE;
        let served = |document| page::html(site, document, page::PageStyle::Served);
        let pages: BTreeMap<&str, String> = site
            .documents
            .iter()
            .map(|document| (document.name.as_str(), served(document)))
            .collect();
        let mut wrong = Vec::new();
        for (own, html) in &pages {
            for link in links(html) {
                let (path, place) = link.split_once('#').unwrap_or((link, ""));
                let name = path.strip_prefix("/docs").map_or(*own, |path| path.trim_matches('/'));
                let place = format!(" id=\"{place}\"");
                let leads = match pages.get(name) {
                    Some(page) => !link.contains('#') || page.contains(&place),
                    None => name == STYLE,
                };
                if !leads {
                    wrong.push(format!("{own}: {link}"));
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn the_pages_can_be_written_and_opened_without_a_core() {
        let written = written();
        let find = |path: &str| {
            let found = written.files.iter().find(|(name, _)| name == path);
            found.map(|(_, text)| text.as_str()).unwrap_or_else(|| panic!("{path} is missing"))
        };
        assert!(find("index.html").contains("href=\"docs.css\""));
        let error = find("errors/run.conflict.html");
        assert!(error.contains("href=\"../docs.css\"") && error.contains("href=\"../index.html\""));
        assert!(!error.contains("href=\"/"), "nothing leads to a core");
        assert!(find("console.html").contains("<img src=\"pictures/docs/console/"));
        let picture = |(_, path): &(String, String)| path == "docs/console/home-wide-light.png";
        assert!(written.pictures.iter().any(picture), "{:?}", written.pictures);
    }
}
