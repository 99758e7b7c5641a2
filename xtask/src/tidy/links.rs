//! Relative links of markdown files must lead somewhere, and to a heading if they name one.
//!
//! Addresses on the web are not visited.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::repo::{Repo, TextFile};

/// Names every relative link whose target does not exist.
pub(super) fn check(repo: &Repo, files: &[TextFile]) -> Vec<String> {
    let mut findings = Vec::new();
    let pages = files.iter().filter(|file| file.has_extension(&["md"]));
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages.map(|file| (file.path.as_str(), slugs_of(&file.text))).collect();
    for file in files.iter().filter(|file| file.has_extension(&["md"])) {
        for (line, target) in links_of(&file.text) {
            let Some(path) = local_path(&file.path, target) else {
                findings.push(format!("{}:{line}: {target} leads outside", file.path));
                continue;
            };
            if !repo.path(&path.to_string_lossy()).exists() {
                findings.push(format!("{}:{line}: {target} leads nowhere", file.path));
                continue;
            }
            let place = target.split_once('#').map(|(_, place)| place);
            let known = headings.get(path.to_string_lossy().as_ref());
            if let (Some(place), Some(known)) = (place, known)
                && !known.contains(place)
            {
                findings.push(format!("{}:{line}: {target} names no heading", file.path));
            }
        }
    }
    findings
}

/// The relative links of a markdown text with their line numbers.
fn links_of(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        // Every second piece between backticks is code.
        for prose in line.split('`').step_by(2) {
            for (at, _) in prose.match_indices("](") {
                let rest = &prose[at + 2..];
                if let Some(target) = rest.split([')', ' ']).next() {
                    links.push((number + 1, target));
                }
            }
        }
        if let Some((name, target)) = line.split_once("]: ")
            && name.starts_with('[')
            && !name.contains(' ')
        {
            links.push((number + 1, target.trim()));
        }
    }
    links.retain(|(_, target)| {
        !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
    });
    links
}

/// The names of a page's headings, as code hosts and `/docs` make them.
fn slugs_of(text: &str) -> BTreeSet<String> {
    let mut slugs = BTreeSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading.trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        });
        let slug: String = kept.flat_map(char::to_lowercase).collect();
        let count = counts.entry(slug.clone()).or_insert(0);
        slugs.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    slugs
}

/// The path of a link's target from the root; nothing if it climbs out of the repository.
fn local_path(from: &str, target: &str) -> Option<PathBuf> {
    let target = target.split('#').next().unwrap_or(target);
    if target.is_empty() {
        return Some(PathBuf::from(from));
    }
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_prose_and_not_in_code() {
        let text = "\
see [a](a.md) and [b](../b.md#part \"title\")
`[c](c.md)` is code, [d](https://example.org/d) is elsewhere, [e](#here) is here
```
[f](f.md)
```
[g]: docs/g.md
";
        let found = vec![(1, "a.md"), (1, "../b.md#part"), (2, "#here"), (6, "docs/g.md")];
        assert_eq!(links_of(text), found);
    }

    #[test]
    fn targets_are_resolved_from_the_page_and_stay_inside() {
        let path = |target| local_path("docs/errors/a.md", target);
        assert_eq!(path("b.md#x"), Some(PathBuf::from("docs/errors/b.md")));
        assert_eq!(path("../../README.md"), Some(PathBuf::from("README.md")));
        assert_eq!(path("../../../x.md"), None);
        assert_eq!(path("/etc/passwd"), None);
    }

    #[test]
    fn a_broken_link_is_named_with_its_line() {
        let repo = Repo::open().expect("opens");
        let page = |text: &str| TextFile { path: "xtask/a.md".to_owned(), text: text.to_owned() };
        assert!(check(&repo, &[page("[ok](Cargo.toml)")]).is_empty());
        let findings = check(&repo, &[page("\n[bad](no-such-file.md)")]);
        assert_eq!(findings, vec!["xtask/a.md:2: no-such-file.md leads nowhere"]);
    }

    #[test]
    fn a_link_to_a_heading_that_is_not_there_is_named() {
        let repo = Repo::open().expect("opens");
        let text = "# The `a.b`, c\n\n## Twice\n## Twice\n[1](#the-ab-c) [2](#twice-1) [3](#ab)\n";
        let page = TextFile { path: "README.md".to_owned(), text: text.to_owned() };
        assert_eq!(check(&repo, &[page]), vec!["README.md:5: #ab names no heading"]);
    }
}
