//! What the search of a page looks things up in: every word, with the headings below which it stands.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::markdown;
use super::{Document, Site};

/// Words that stand nearly everywhere and find nothing.
const COMMON: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "for", "from", "has", "if",
    "in", "is", "it", "its", "no", "not", "of", "on", "one", "or", "so", "that", "the", "then",
    "there", "they", "this", "to", "was", "what", "when", "which", "who", "with", "you",
];
/// Longer ones are keys and digests, which nobody types.
const WORD_CHARS_MAX: usize = 32;

/// The index as JSON: `pages` with name, title and section; `parts` with page, heading and the name
/// of the heading; `words` with the parts that each stands in, as distances from one to the next.
pub(super) fn index(site: &Site) -> String {
    let (mut pages, mut parts) = (Vec::new(), Vec::new());
    let mut words: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for document in &site.documents {
        let page = pages.len();
        pages.push(json!([document.name, document.title, section_of(site, document)]));
        for part in markdown::parts(document.text) {
            let all = [&part.heading, &part.text].map(|text| words_of(text));
            for word in all.into_iter().flatten() {
                words.entry(word).or_default().insert(parts.len());
            }
            // The heading of a page is where the page begins.
            let slug = if part.level == 1 { "" } else { &part.slug };
            parts.push(json!([page, part.heading, slug]));
        }
    }
    let words: BTreeMap<String, Vec<usize>> =
        words.into_iter().map(|(word, at)| (word, distances(&at))).collect();
    json!({"pages": pages, "parts": parts, "words": words}).to_string()
}

fn section_of(site: &Site, document: &Document) -> String {
    let found = site.sections.iter().find(|section| section.holds(&document.name));
    found.map(|section| section.title.clone()).unwrap_or_default()
}

/// The words of a text: `max_cost_micro` is one, and three more.
fn words_of(text: &str) -> BTreeSet<String> {
    let is_split = |c: char| !c.is_alphanumeric() && c != '_';
    let whole = text.split(is_split).flat_map(|word| [word].into_iter().chain(word.split('_')));
    let whole = whole.map(str::to_lowercase);
    let fits = |word: &String| {
        (2..=WORD_CHARS_MAX).contains(&word.chars().count()) && !COMMON.contains(&word.as_str())
    };
    whole.filter(fits).collect()
}

fn distances(at: &BTreeSet<usize>) -> Vec<usize> {
    let before = std::iter::once(&0).chain(at);
    at.iter().zip(before).map(|(place, before)| place - before).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole_and_in_their_parts() {
        let words = words_of("The `max_cost_micro` of tool.timeout, x, GET /v1/runs");
        let expected = ["cost", "get", "max", "max_cost_micro", "micro", "runs", "timeout", "tool"];
        let expected = expected.into_iter().chain(["v1"]).map(str::to_owned);
        assert_eq!(words, expected.collect());
    }

    #[test]
    fn the_index_is_json_and_small() {
        let index = index(&Site::of(&[
            ("docs/README.md", "# All\n\n## Start\n\n- [One](one.md): \"it\"\n"),
            ("docs/one.md", "# One\n\nfirst words\n\n## A \"part\"\n\nlater words\n"),
        ]));
        assert!(index.contains(r#"["one","One","Start"]"#), "{index}");
        assert!(index.contains(r#"[1,"A \"part\"","a-part"]"#), "{index}");
        assert!(index.contains(r#""words":[2,1]"#), "distances: {index}");
        let all = super::super::SEARCHED.len();
        assert!(all < 700 * 1024, "{all} bytes are more than a reader should wait for");
    }
}
