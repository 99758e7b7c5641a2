//! Our own documents on a terminal: as much of Markdown as they use, in lines that fit.

use crate::output::Paint;

/// Lines are not made longer than this, however wide the terminal is.
const WIDTH_MAX: usize = 100;
/// What stands for a line of code.
const INDENT: &str = "    ";

/// A document as people read it; without a width no line is broken.
pub(crate) fn text(markdown: &str, width: Option<usize>, paint: Paint) -> String {
    let width = width.map_or(usize::MAX, |width| width.min(WIDTH_MAX));
    let (mut out, mut in_code) = (String::new(), false);
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if in_code {
            out.push_str(format!("{INDENT}{line}").trim_end());
            out.push('\n');
            continue;
        }
        let title = line.trim_start_matches('#');
        if title.len() < line.len() && title.starts_with(' ') {
            out.push_str(&paint.strong(&inline(title.trim())));
            out.push('\n');
        } else if let Some(item) = line.strip_prefix("- ") {
            out.push_str(&wrapped(&inline(item), width, "- ", "  "));
        } else {
            out.push_str(&wrapped(&inline(line), width, "", ""));
        }
    }
    out
}

/// A line without the signs of code, emphasis and links.
pub(crate) fn inline(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for (at, part) in line.split('`').enumerate() {
        match at % 2 {
            // Whatever stands between two signs is code, and is kept as it is.
            1 => out.push_str(part),
            _ => out.push_str(&without_links(&part.replace("**", ""))),
        }
    }
    out
}

/// Of `[text](address)` the text.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after
            .split_once("](")
            .and_then(|(text, more)| Some((text, more.split_once(')')?.1)))
            .filter(|(text, _)| !text.contains('['));
        out.push_str(before);
        match link {
            Some((text, behind)) => {
                out.push_str(text);
                rest = behind;
            }
            None => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The text in lines of at most this width, the first one begun with `first`, others with `next`.
fn wrapped(text: &str, width: usize, first: &str, next: &str) -> String {
    let (mut out, mut line) = (String::new(), first.to_owned());
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let length = line.chars().count() + word.chars().count() + usize::from(!is_empty);
        if !is_empty && length > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = next.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_loses_its_signs_and_keeps_its_words() {
        let page = "# a.b\n\nSee [the **guide**](x.md) or `wharf [x](y)`.\n\n- one [two](z)\n\n\
                    ```console\n$ wharf `x`\n```\n";
        let expect = "a.b\n\nSee the guide or wharf [x](y).\n\n- one two\n\n    $ wharf `x`\n";
        assert_eq!(text(page, None, Paint::off()), expect);
    }

    #[test]
    fn lines_fit_and_items_hang() {
        let shown = text("- aa bb cc dd\nee ff gg hh", Some(8), Paint::off());
        assert_eq!(shown, "- aa bb\n  cc dd\nee ff gg\nhh\n");
        let word = "x".repeat(20);
        assert_eq!(text(&word, Some(8), Paint::off()), format!("{word}\n"));
        assert_eq!(inline("a [b] (c) [d"), "a [b] (c) [d");
    }
}
