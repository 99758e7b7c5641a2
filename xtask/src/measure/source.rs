//! A Rust file as lines and tokens.
//!
//! It is read by hand and not with a parser: that needs no dependency, sees lines, and also reads
//! a commit that this compiler would refuse. Files are formatted by rustfmt.

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Blank,
    Doc,
    Comment,
    Code,
}

/// One line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    /// Belongs to a test.
    pub(crate) test: bool,
    /// Without comments; what stands in quotes is blank.
    code: String,
    /// Without comments, with what stands in quotes.
    pub(crate) text: String,
}

/// A word or a sign, and the index of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// A file that has been read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Code,
    LineComment { doc: bool },
    BlockComment { doc: bool, depth: usize },
    Text,
    RawText { hashes: usize },
}

impl Source {
    /// Reads a file and marks what stands below `#[cfg(test)]`.
    pub(crate) fn read(path: &str, text: &str) -> Self {
        let mut within = Within::Code;
        let lines = text.lines().map(|line| read_line(line, &mut within)).collect();
        let mut source = Self { path: path.to_owned(), lines };
        for (first, last) in test_items(&source.tokens()) {
            source.lines[first..=last].iter_mut().for_each(|line| line.test = true);
        }
        source
    }

    /// Marks the whole file.
    pub(crate) fn mark_as_test(&mut self) {
        self.lines.iter_mut().for_each(|line| line.test = true);
    }

    /// All words and signs outside of comments and quotes.
    pub(crate) fn tokens(&self) -> Vec<Token<'_>> {
        self.lines.iter().enumerate().flat_map(|(at, line)| tokens_of(&line.code, at)).collect()
    }

    /// Words and signs that belong to no test.
    pub(crate) fn production(&self) -> Vec<Token<'_>> {
        self.tokens().into_iter().filter(|it| !self.lines[it.line].test).collect()
    }

    /// The modules that are declared here for tests only, as files.
    pub(crate) fn test_modules(&self) -> Vec<String> {
        let tokens = self.tokens();
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let stem = name.trim_end_matches(".rs");
        let base = match stem {
            "lib" | "main" | "mod" => folder.to_owned(),
            stem => format!("{folder}/{stem}"),
        };
        let declared = tokens
            .windows(3)
            .filter(|it| it[0].text == "mod" && it[2].text == ";" && self.lines[it[0].line].test);
        declared.map(|it| format!("{base}/{}", it[1].text)).collect()
    }

    /// The first line that is a doc comment, if there is one.
    pub(crate) fn documented_from(&self) -> Option<usize> {
        self.lines.iter().position(|line| line.kind == Kind::Doc)
    }

    /// Lines of code that belong to no test.
    pub(crate) fn production_lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.kind == Kind::Code && !line.test)
    }
}

fn read_line(line: &str, within: &mut Within) -> Line {
    let chars: Vec<char> = line.chars().collect();
    let (mut code, mut text) = (String::new(), String::new());
    // What a line without code is follows from where it begins and what it begins.
    let mut comment = match *within {
        Within::BlockComment { doc, .. } => Some(doc),
        _ => None,
    };
    let mut at = 0;
    while at < chars.len() {
        let (c, rest) = (chars[at], &chars[at..]);
        let mut step = 1;
        match within {
            Within::Code if starts(rest, "//") => {
                let doc = (starts(rest, "///") && !starts(rest, "////")) || starts(rest, "//!");
                *within = Within::LineComment { doc };
                comment = comment.or(Some(doc));
            }
            Within::Code if starts(rest, "/*") => {
                let doc = starts(rest, "/**") || starts(rest, "/*!");
                *within = Within::BlockComment { doc, depth: 1 };
                comment = comment.or(Some(doc));
                step = 2;
            }
            Within::Code => {
                step = match opening(&chars, at) {
                    Some((next, step)) => {
                        *within = next;
                        step
                    }
                    None if c == '\'' => char_literal(rest),
                    None => 1,
                };
                let shown = if step > 1 || c == '"' { '"' } else { c };
                code.push(shown);
                text.extend(&rest[..step]);
            }
            Within::LineComment { .. } => step = rest.len(),
            Within::BlockComment { depth, .. } => {
                if starts(rest, "*/") {
                    *depth -= 1;
                    step = 2;
                    if *depth == 0 {
                        *within = Within::Code;
                    }
                } else if starts(rest, "/*") {
                    *depth += 1;
                    step = 2;
                }
            }
            Within::Text => {
                step = if c == '\\' { 2.min(rest.len()) } else { 1 };
                text.extend(&rest[..step]);
                if c == '"' {
                    *within = Within::Code;
                }
            }
            Within::RawText { hashes } => {
                let after = rest[1..].iter().take_while(|it| **it == '#').count();
                let ends = c == '"' && after >= *hashes;
                step = if ends { 1 + *hashes } else { 1 };
                text.extend(&rest[..step]);
                if ends {
                    *within = Within::Code;
                }
            }
        }
        at += step;
    }
    if let Within::LineComment { .. } = within {
        *within = Within::Code;
    }
    let kind = match comment {
        _ if !text.trim().is_empty() => Kind::Code,
        Some(true) => Kind::Doc,
        Some(false) => Kind::Comment,
        None => Kind::Blank,
    };
    Line { kind, test: false, code, text }
}

fn starts(chars: &[char], with: &str) -> bool {
    let mut chars = chars.iter();
    with.chars().all(|it| chars.next() == Some(&it))
}

/// Whether a text begins here, and how long its beginning is.
fn opening(chars: &[char], at: usize) -> Option<(Within, usize)> {
    if chars[at] == '"' {
        return Some((Within::Text, 1));
    }
    if chars[at] != 'r' {
        return None;
    }
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let before = chars[..at].iter().rev().take_while(|it| is_word(it)).count();
    if before > 1 || (before == 1 && !matches!(chars[at - 1], 'b' | 'c')) {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|it| **it == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some((Within::RawText { hashes }, hashes + 2))
}

/// How long the character in quotes is that begins here; 1 if it is a lifetime.
fn char_literal(rest: &[char]) -> usize {
    match rest {
        [_, '\\', _, tail @ ..] => tail.iter().position(|it| *it == '\'').map_or(1, |it| it + 4),
        [_, _, '\'', ..] => 3,
        _ => 1,
    }
}

fn tokens_of(code: &str, line: usize) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        tokens.push(Token { text: &rest[..end], line });
        rest = rest[end..].trim_start();
    }
    tokens
}

/// First and last line of every item below `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn test_items(tokens: &[Token<'_>]) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    for at in 0..tokens.len() {
        let begins = |words: &[&str]| {
            tokens[at..].iter().map(|it| it.text).take(words.len()).eq(words.iter().copied())
        };
        if begins(&["#", "[", "cfg", "(", "test", ")"])
            || begins(&["#", "[", "cfg", "(", "all", "(", "test", ","])
        {
            let attribute = end_of(tokens, at + 1);
            items.push((tokens[at].line, tokens[item_end(tokens, attribute + 1)].line));
        }
    }
    items
}

/// The token that ends the item which begins here: its `;`, or the end of its braces.
pub(crate) fn item_end(tokens: &[Token<'_>], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].text {
            ";" | "}" | "," => return at,
            "{" => return end_of(tokens, at),
            "(" | "[" => at = end_of(tokens, at),
            _ => {}
        }
        at += 1;
    }
    tokens.len().saturating_sub(1)
}

/// The token that closes the bracket which opens here.
pub(crate) fn end_of(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let text =
            "//! Doc.\n\nuse a; // why\n// Comment.\nlet x = \"// no\n  comment\";\n/* a\nb */\n";
        let kinds: Vec<Kind> = Source::read("a.rs", text).lines.iter().map(|it| it.kind).collect();
        use Kind::{Blank, Code, Comment, Doc};
        assert_eq!(kinds, [Doc, Blank, Code, Comment, Code, Code, Comment, Comment]);
    }

    #[test]
    fn quotes_hide_what_stands_in_them() {
        let source =
            Source::read("a.rs", r##"f('{', '\'', '\u{7b}', "}\"{", r#"{"#, b"{", 'a: loop {});"##);
        let braces: String =
            source.tokens().iter().map(|it| it.text).filter(|it| "{}".contains(it)).collect();
        assert_eq!(braces, "{}");
    }

    #[test]
    fn what_is_for_tests_is_marked() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n\
                    #[cfg(test)]\n#[path = \"x\"]\nmod far;\n#[cfg(not(test))]\nfn d() {}\n";
        let source = Source::read("src/lib.rs", text);
        let marked: Vec<usize> =
            (0..source.lines.len()).filter(|it| source.lines[*it].test).collect();
        assert_eq!(marked, [1, 2, 3, 4, 6, 7, 8]);
        assert_eq!(source.test_modules(), ["src/far"]);
    }
}
