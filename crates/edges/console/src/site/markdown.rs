//! A document as HTML: what Markdown says, and nothing that could act.
//!
//! - HTML in a document is text like any other.
//! - A link leads to another document or to a place in one; all else is shown without a link.

use std::collections::BTreeMap;

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

/// Where links and pictures of a document lead.
pub(super) trait Targets {
    /// The address of what lies at a path beside the document; nothing if it is not shown.
    fn document(&self, path: &str) -> Option<String>;
    /// The address of a picture; nothing if it is not shown.
    fn picture(&self, path: &str) -> Option<String>;
}

/// A heading with the text below it, up to the next.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) level: u8,
    pub(super) heading: String,
    /// What names it in an address.
    pub(super) slug: String,
    pub(super) text: String,
}

/// The parts of a document; the first is what stands before any heading, if there is something.
pub(super) fn parts(text: &str) -> Vec<Part> {
    let (mut parts, mut slugs) = (vec![Part::default()], Slugs::default());
    let mut in_heading = false;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                in_heading = true;
                parts.push(Part { level: number(level), ..Part::default() });
            }
            Event::End(TagEnd::Heading(_)) => {
                in_heading = false;
                if let Some(part) = parts.last_mut() {
                    part.slug = slugs.next(&part.heading);
                }
            }
            Event::Text(piece)
            | Event::Code(piece)
            | Event::Html(piece)
            | Event::InlineHtml(piece) => {
                if let Some(part) = parts.last_mut() {
                    let into = if in_heading { &mut part.heading } else { &mut part.text };
                    into.push_str(&piece);
                }
            }
            Event::SoftBreak | Event::HardBreak | Event::End(_) => {
                if let (Some(part), false) = (parts.last_mut(), in_heading) {
                    part.text.push(' ');
                }
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.heading.is_empty() || !part.text.trim().is_empty());
    parts
}

/// A document as HTML.
pub(super) fn to_html(text: &str, targets: &impl Targets) -> String {
    let mut headings = parts(text).into_iter().filter(|part| part.level > 0);
    // Whether the links that are open are shown as such.
    let mut links = Vec::new();
    let events = parser(text).flat_map(|event| match event {
        Event::Html(piece) | Event::InlineHtml(piece) => vec![Event::Text(piece)],
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let id = headings.next().map(|part| CowStr::from(part.slug));
            vec![Event::Start(Tag::Heading { level, id, classes, attrs })]
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let address = address(&dest_url, targets);
            links.push(address.is_some());
            let link = |to: String| Tag::Link { link_type, dest_url: to.into(), title, id };
            address.map(|to| Event::Start(link(to))).into_iter().collect()
        }
        Event::End(TagEnd::Link) => {
            let shown = links.pop().unwrap_or(false);
            shown.then_some(Event::End(TagEnd::Link)).into_iter().collect()
        }
        Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
            match targets.picture(&dest_url) {
                Some(to) => {
                    links.push(true);
                    vec![Event::Start(Tag::Image { link_type, dest_url: to.into(), title, id })]
                }
                None => {
                    links.push(false);
                    vec![Event::Html("<span class=\"picture\">Picture: ".into())]
                }
            }
        }
        Event::End(TagEnd::Image) => match links.pop() {
            Some(true) => vec![Event::End(TagEnd::Image)],
            _ => vec![Event::Html("</span>".into())],
        },
        // What is wider than the page is scrolled, also by keys.
        Event::Start(Tag::Table(columns)) => vec![
            Event::Html("<div class=\"scroll\" tabindex=\"0\">".into()),
            Event::Start(Tag::Table(columns)),
        ],
        Event::End(TagEnd::Table) => {
            vec![Event::End(TagEnd::Table), Event::Html("</div>\n".into())]
        }
        Event::Start(Tag::CodeBlock(kind)) => vec![Event::Html(code_tag(&kind).into())],
        Event::End(TagEnd::CodeBlock) => vec![Event::Html("</code></pre>\n".into())],
        event => vec![event],
    });
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, events);
    out
}

/// Text as it can stand anywhere in a page.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
}

fn code_tag(kind: &CodeBlockKind<'_>) -> String {
    let language = match kind {
        CodeBlockKind::Fenced(told) => told.split(' ').next().unwrap_or_default(),
        CodeBlockKind::Indented => "",
    };
    match language {
        "" => "<pre tabindex=\"0\"><code>".to_owned(),
        told => format!("<pre tabindex=\"0\"><code class=\"language-{}\">", escaped(told)),
    }
}

fn address(target: &str, targets: &impl Targets) -> Option<String> {
    let (path, place) = target.split_once('#').map_or((target, None), |(p, q)| (p, Some(q)));
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./@".contains(c);
    let is_slug = |slug: &str| slug.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    if !path.chars().all(fits) || path.starts_with('/') || !place.is_none_or(is_slug) {
        return None;
    }
    let place = place.map(|place| format!("#{place}")).unwrap_or_default();
    if path.is_empty() {
        return Some(place).filter(|place| !place.is_empty());
    }
    Some(targets.document(path)? + &place)
}

fn number(level: HeadingLevel) -> u8 {
    level as u8
}

/// Names of headings, as code hosts make them, so that a link works there and here.
#[derive(Debug, Default)]
struct Slugs {
    taken: BTreeMap<String, usize>,
}

impl Slugs {
    fn next(&mut self, heading: &str) -> String {
        let kept = heading.trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        });
        let slug: String = kept.flat_map(char::to_lowercase).collect();
        let count = self.taken.entry(slug.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents beside each other, and no pictures.
    struct Beside;

    impl Targets for Beside {
        fn document(&self, path: &str) -> Option<String> {
            path.strip_suffix(".md").map(|name| format!("/docs/{name}"))
        }

        fn picture(&self, _: &str) -> Option<String> {
            None
        }
    }

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(to_html(text, &Beside), expect);
    }

    #[test]
    fn documents_are_shown_as_they_are_written() {
        check("# a `b`\n\none\ntwo\n", "<h1 id=\"a-b\">a <code>b</code></h1>\n<p>one\ntwo</p>\n");
        check("1. a\n   - b\n", "<ol>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ol>\n");
        check(
            "```json\n{\"a\": 1}\n```\n",
            "<pre tabindex=\"0\"><code class=\"language-json\">{\"a\": 1}\n</code></pre>\n",
        );
        check("[a](http.md#x-y)", "<p><a href=\"/docs/http#x-y\">a</a></p>\n");
        check("[a](#x)", "<p><a href=\"#x\">a</a></p>\n");
        check("![a](b.png)", "<p><span class=\"picture\">Picture: a</span></p>\n");
        let table = to_html("| a |\n|---|\n| `x` |\n", &Beside);
        assert!(table.starts_with("<div class=\"scroll\" tabindex=\"0\"><table>"), "{table}");
    }

    #[test]
    fn c004_nothing_in_a_document_can_act() {
        for (text, expect) in [
            ("a <b onclick=x>c</b>", "<p>a &lt;b onclick=x&gt;c&lt;/b&gt;</p>\n"),
            ("[a](javascript:x)", "<p>a</p>\n"),
            ("[a](https://evil.example/x.md)", "<p>a</p>\n"),
            ("[a](//evil.example/x.md)", "<p>a</p>\n"),
            ("[a](<x\" onclick=y.md>)", "<p>a</p>\n"),
            ("[a](x.md#\"y)", "<p>a</p>\n"),
            ("`<b>`", "<p><code>&lt;b&gt;</code></p>\n"),
        ] {
            check(text, expect);
        }
        let block = to_html("<script>x</script>\n", &Beside);
        assert!(block.starts_with("&lt;script&gt;x&lt;/script&gt;"), "{block}");
    }

    #[test]
    fn headings_have_names_of_their_own() {
        let found = parts("before\n\n# The home\n\nx `y`\n\n## `a.b`, c!\n\n## The home\n");
        let slugs: Vec<&str> = found.iter().map(|part| part.slug.as_str()).collect();
        assert_eq!(slugs, ["", "the-home", "ab-c", "the-home-1"]);
        assert_eq!((found[0].text.trim(), found[1].text.trim()), ("before", "x y"));
    }
}
