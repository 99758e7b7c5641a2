//! A page of the site: header, navigation, the document, and its headings.

use super::markdown::{self, Targets, escaped};
use super::nav::Section;
use super::{Document, SCRIPT, STYLE, Site};

/// How pages find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageStyle {
    /// Behind a core, below `/docs`.
    Served,
    /// As files beside each other.
    Files,
}

/// Headings from which on a page has a list of them.
const HEADINGS_MIN: usize = 3;

/// A whole page.
pub(super) fn html(site: &Site, document: &Document, style: PageStyle) -> String {
    let from = Place { site, document, style };
    let title = escaped(&document.title);
    let (root, suffix) = (from.root(), from.suffix());
    let (nav, aside) = (from.nav(), headings(document));
    let (icon, console) = match style {
        PageStyle::Served => {
            ("<link rel=\"icon\" href=\"/favicon.svg\">\n", "<a href=\"/\">Console</a>\n")
        }
        PageStyle::Files => ("", ""),
    };
    let home = from.address("");
    let body = markdown::to_html(document.text, &from);
    format!(
        "<!doctype html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} · Wharf</title>\n{icon}\
         <link rel=\"stylesheet\" href=\"{root}{STYLE}\">\n<script src=\"{root}{SCRIPT}\"></script>\n\
         </head>\n<body data-root=\"{root}\" data-suffix=\"{suffix}\">\n\
         <a class=\"skip\" href=\"#main\">Skip to the text</a>\n\
         <header>\n<a class=\"home\" href=\"{home}\">Wharf <span>documentation</span></a>\n\
         <div class=\"search\" role=\"search\">\n<input id=\"search\" type=\"search\" hidden \
         placeholder=\"Search\" aria-label=\"Search the documentation\" autocomplete=\"off\" \
         spellcheck=\"false\">\n<div id=\"found\" hidden></div>\n</div>\n\
         <div class=\"tools\">\n<a class=\"pages\" href=\"#pages\">Pages</a>\n{console}\
         <button id=\"theme\" type=\"button\" hidden>Dark</button>\n</div>\n</header>\n\
         <div class=\"columns\">\n<main id=\"main\">\n{body}</main>\n{aside}\
         <nav id=\"pages\" aria-label=\"Pages\">\n{nav}</nav>\n</div>\n</body>\n</html>\n"
    )
}

/// Where a picture of the repository is written.
pub(super) fn picture(path: &str) -> String {
    format!("pictures/{path}")
}

/// A page as the place from which others are named.
struct Place<'a> {
    site: &'a Site,
    document: &'a Document,
    style: PageStyle,
}

impl Place<'_> {
    /// What stands before the name of a page.
    fn root(&self) -> String {
        match self.style {
            PageStyle::Served => "/docs/".to_owned(),
            PageStyle::Files => "../".repeat(self.document.name.matches('/').count()),
        }
    }

    /// What stands behind it.
    fn suffix(&self) -> &'static str {
        match self.style {
            PageStyle::Served => "",
            PageStyle::Files => ".html",
        }
    }

    fn address(&self, name: &str) -> String {
        match (self.style, name) {
            (PageStyle::Served, "") => "/docs".to_owned(),
            (PageStyle::Files, "") => format!("{}index.html", self.root()),
            (_, name) => format!("{}{}{}", self.root(), escaped(name), self.suffix()),
        }
    }

    fn nav(&self) -> String {
        self.site.sections.iter().map(|section| self.section(section)).collect()
    }

    fn section(&self, section: &Section) -> String {
        let mut items: String =
            section.pages.iter().map(|(name, title)| self.item(name, title)).collect();
        // A folder of many pages is spread out for those who are in it.
        if let Some(folder) = section.folder.as_ref().filter(|_| section.holds(&self.document.name))
        {
            let listed = |name: &String| section.pages.iter().any(|(page, _)| page == name);
            let inside = |name: &String| name.starts_with(&format!("{folder}/"));
            let others = self.site.documents.iter();
            let others = others.filter(|other| inside(&other.name) && !listed(&other.name));
            items.extend(others.map(|other| self.item(&other.name, &other.title)));
        }
        format!("<h2>{}</h2>\n<ul>\n{items}</ul>\n", escaped(&section.title))
    }

    fn item(&self, name: &str, title: &str) -> String {
        let here = if name == self.document.name { " aria-current=\"page\"" } else { "" };
        format!("<li><a href=\"{}\"{here}>{}</a></li>\n", self.address(name), escaped(title))
    }
}

impl Targets for Place<'_> {
    fn document(&self, path: &str) -> Option<String> {
        let path = self.document.path(path)?;
        let folder = format!("{path}/README.md");
        let found = self.site.at(&path).or_else(|| self.site.at(&folder))?;
        Some(self.address(&found.name))
    }

    /// Pictures are large, and whoever reads this behind a core has what they show.
    fn picture(&self, path: &str) -> Option<String> {
        let path = self.document.path(path)?;
        (self.style == PageStyle::Files).then(|| format!("{}{}", self.root(), picture(&path)))
    }
}

/// The headings of a long page.
fn headings(document: &Document) -> String {
    let parts = markdown::parts(document.text);
    let parts: Vec<_> = parts.iter().filter(|part| part.level == 2).collect();
    if parts.len() < HEADINGS_MIN {
        return String::new();
    }
    let items: String = parts
        .iter()
        .map(|part| {
            let (slug, heading) = (escaped(&part.slug), escaped(&part.heading));
            format!("<li><a href=\"#{slug}\">{heading}</a></li>\n")
        })
        .collect();
    format!(
        "<aside aria-label=\"On this page\">\n<h2>On this page</h2>\n<ul>\n{items}</ul>\n</aside>\n"
    )
}
