//! The navigation: the lists of `docs/README.md`, by section.

use super::Document;

/// The page that lists the others.
const INDEX: &str = "docs/README.md";

/// A section of the navigation.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    /// Names of pages with what they are called here, in their order.
    pub(super) pages: Vec<(String, String)>,
    /// The folder whose other pages belong here, too; they are shown beside each other only.
    pub(super) folder: Option<String>,
}

impl Section {
    /// Whether a page belongs here.
    pub(super) fn holds(&self, name: &str) -> bool {
        let listed = self.pages.iter().any(|(page, _)| page == name);
        let below = |folder: &String| {
            name.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        listed || self.folder.as_ref().is_some_and(below)
    }
}

/// Reads the sections. A section whose first page is the list of a folder has all of it.
pub(super) fn sections(documents: &[Document]) -> Vec<Section> {
    let Some(index) = documents.iter().find(|document| document.source == INDEX) else {
        return Vec::new();
    };
    let mut sections: Vec<Section> = Vec::new();
    for line in index.text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let title = title.trim().to_owned();
            sections.push(Section { title, pages: Vec::new(), folder: None });
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        let entry = line.strip_prefix("- [").and_then(|rest| rest.split_once("]("));
        let Some((title, Some(link))) = entry.map(|(title, rest)| (title, rest.split(')').next()))
        else {
            continue;
        };
        let path = index.path(link);
        let found = documents.iter().find(|document| path.as_deref() == Some(document.source));
        let Some(found) = found else { continue };
        if found.source.ends_with("/README.md") && found.source.starts_with("docs/") {
            section.folder = Some(found.name.clone());
        }
        section.pages.push((found.name.clone(), title.replace('`', "")));
    }
    sections
}
