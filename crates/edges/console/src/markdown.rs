//! Our own documents as pages: as much of Markdown as they use, and nothing that could act.
//!
//! Every letter of a document is escaped first; what is added are tags of this file only.

/// A document as HTML; its links lead to other documents, from the folder that it lies in.
pub(crate) fn to_html(text: &str, folder: &str) -> String {
    let mut page = Page { html: String::new(), open: Block::None, folder };
    for line in text.lines() {
        page.line(line);
    }
    page.turn(Block::None);
    page.html
}

/// Text as it can stand anywhere in a page.
pub(crate) fn escaped(text: &str) -> String {
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

/// What lines belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Paragraph,
    List,
    Table,
    Code,
}

struct Page<'a> {
    html: String,
    open: Block,
    folder: &'a str,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        if line.trim_start().starts_with("```") {
            let next = if self.open == Block::Code { Block::None } else { Block::Code };
            self.turn(next);
            return;
        }
        if self.open == Block::Code {
            self.html.push_str(&escaped(line));
            self.html.push('\n');
            return;
        }
        let text = line.trim();
        let level = text.bytes().take_while(|byte| *byte == b'#').count();
        if text.is_empty() {
            self.turn(Block::None);
        } else if (1..=6).contains(&level) && text[level..].starts_with(' ') {
            self.turn(Block::None);
            let title = self.inline(text[level..].trim());
            self.html.push_str(&format!("<h{level}>{title}</h{level}>\n"));
        } else if let Some(item) = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
            self.turn(Block::List);
            let item = self.inline(item);
            self.html.push_str(&format!("<li>{item}</li>\n"));
        } else if text.starts_with('|') {
            self.row(text);
        } else {
            self.turn(Block::Paragraph);
            let text = self.inline(text);
            self.html.push_str(&text);
            self.html.push('\n');
        }
    }

    /// A row of a table; the one that only draws a line is left out.
    fn row(&mut self, text: &str) {
        let cell = if self.open == Block::Table { "td" } else { "th" };
        self.turn(Block::Table);
        if text.chars().all(|c| "|-: ".contains(c)) {
            return;
        }
        let cells = text.trim_matches('|').replace("\\|", "\u{1}");
        let cells = cells.split('|').map(|text| {
            let text = self.inline(text.trim().replace('\u{1}', "|").as_str());
            format!("<{cell}>{text}</{cell}>")
        });
        let row: String = cells.collect();
        self.html.push_str(&format!("<tr>{row}</tr>\n"));
    }

    /// Ends the block that is open, unless the next line belongs to it.
    fn turn(&mut self, next: Block) {
        if self.open == next {
            return;
        }
        self.html.push_str(match self.open {
            Block::None => "",
            Block::Paragraph => "</p>\n",
            Block::List => "</ul>\n",
            Block::Table => "</table>\n",
            Block::Code => "</code></pre>\n",
        });
        self.html.push_str(match next {
            Block::None => "",
            Block::Paragraph => "<p>",
            Block::List => "<ul>\n",
            Block::Table => "<table>\n",
            Block::Code => "<pre><code>",
        });
        self.open = next;
    }

    /// Code, bold text and links within a line.
    fn inline(&self, text: &str) -> String {
        let mut html = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['`', '[', '*']) {
            html.push_str(&escaped(&rest[..at]));
            rest = &rest[at..];
            let (shown, left) = self.marked(rest);
            html.push_str(&shown);
            rest = left;
        }
        html.push_str(&escaped(rest));
        html
    }

    /// What begins with a mark, and what is left behind it.
    fn marked<'t>(&self, text: &'t str) -> (String, &'t str) {
        if let Some((code, left)) = text.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            return (format!("<code>{}</code>", escaped(code)), left);
        }
        if let Some((bold, left)) = text.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            return (format!("<strong>{}</strong>", self.inline(bold)), left);
        }
        if let Some((label, left)) = text.strip_prefix('[').and_then(|rest| rest.split_once("]("))
            && let Some((target, left)) = left.split_once(')')
        {
            let label = self.inline(label);
            return match self.address(target) {
                Some(address) => (format!("<a href=\"{}\">{label}</a>", escaped(&address)), left),
                None => (label, left),
            };
        }
        let first = text.chars().next().map_or(0, char::len_utf8);
        (escaped(&text[..first]), &text[first..])
    }

    /// Where a link leads: to another document. All else leads nowhere.
    fn address(&self, target: &str) -> Option<String> {
        let path = target.split('#').next().unwrap_or(target);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if !path.chars().all(fits) || path.starts_with('/') || path.contains("//") {
            return None;
        }
        let name = path.strip_suffix(".md")?;
        let mut parts: Vec<&str> = self.folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in name.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Some(format!("/docs/{}", parts.join("/")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(to_html(text, "errors"), expect);
    }

    #[test]
    fn documents_are_shown_as_they_are_written() {
        check("# a `b`\n\none\ntwo\n", "<h1>a <code>b</code></h1>\n<p>one\ntwo\n</p>\n");
        check(
            "- a\n- **b**\n\nc",
            "<ul>\n<li>a</li>\n<li><strong>b</strong></li>\n</ul>\n<p>c\n</p>\n",
        );
        check("```json\n{\"a\": 1}\n```\n", "<pre><code>{&quot;a&quot;: 1}\n</code></pre>\n");
        check(
            "| a | b |\n|---|---|\n| 1 | `x` |\n",
            "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td><code>x</code></td></tr>\n</table>\n",
        );
        check("[a](../http.md#x)", "<p><a href=\"/docs/http\">a</a>\n</p>\n");
        check("[a](run.conflict.md)", "<p><a href=\"/docs/errors/run.conflict\">a</a>\n</p>\n");
    }

    #[test]
    fn c004_nothing_in_a_document_can_act() {
        for (text, expect) in [
            ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;\n</p>\n"),
            ("[a](javascript:x)", "<p>a\n</p>\n"),
            ("[a](https://evil.example/x.md)", "<p>a\n</p>\n"),
            ("[a](//evil.example/x.md)", "<p>a\n</p>\n"),
            ("[a](x\" onclick=y.md)", "<p>a\n</p>\n"),
            ("[a](../../../x.md)", "<p>a\n</p>\n"),
            ("`<b>`", "<p><code>&lt;b&gt;</code>\n</p>\n"),
            ("[", "<p>[\n</p>\n"),
            ("**", "<p>**\n</p>\n"),
        ] {
            check(text, expect);
        }
    }
}
