//! Functions and types of a file.

use super::source::{Source, Token, end_of, item_end};

/// A function with a body.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    /// First and last line, as indexes.
    pub(super) lines: (usize, usize),
    pub(super) test: bool,
}

impl Function {
    /// How long it is, signature and braces included.
    pub(super) fn len(&self) -> usize {
        self.lines.1 - self.lines.0 + 1
    }
}

/// Every function of a file, those inside others included.
pub(super) fn functions(source: &Source) -> Vec<Function> {
    let tokens = source.tokens();
    let mut functions = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        if pair[0].text != "fn" || !is_name(pair[1].text) {
            continue;
        }
        let end = item_end_of_function(&tokens, at);
        if tokens[end].text == "}" {
            functions.push(Function {
                name: pair[1].text.to_owned(),
                lines: (pair[0].line, tokens[end].line),
                test: source.lines[pair[0].line].test,
            });
        }
    }
    functions
}

/// Like the end of an item, but commas of a return type do not end it.
fn item_end_of_function(tokens: &[Token<'_>], start: usize) -> usize {
    let mut at = start;
    loop {
        at = item_end(tokens, at);
        if tokens[at].text != "," || at + 1 == tokens.len() {
            return at;
        }
        at += 1;
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The structs, enums, traits and aliases that production code defines, each with its line.
/// Types that belong to a trait or its implementation are none.
pub(super) fn types(source: &Source) -> Vec<(String, usize)> {
    let tokens = source.production();
    let mut types = Vec::new();
    let mut at = 0;
    while at + 1 < tokens.len() {
        let (word, name) = (tokens[at].text, tokens[at + 1]);
        let begins = at == 0 || !matches!(tokens[at - 1].text, "." | "$" | "'");
        if matches!(word, "struct" | "enum" | "trait" | "type") && begins && is_name(name.text) {
            types.push((name.text.to_owned(), name.line));
        }
        // What stands inside belongs to the block; functions inside may define types of their own.
        if word == "trait" || (word == "impl" && is_item(&tokens, at)) {
            let open = at + tokens[at..].iter().take_while(|it| it.text != "{").count();
            let close = end_of(&tokens, open.min(tokens.len() - 1));
            let inner = &tokens[open.min(close)..close];
            types.extend(inner.windows(2).filter_map(|it| {
                let begins = matches!(it[0].text, "struct" | "enum") && is_name(it[1].text);
                begins.then(|| (it[1].text.to_owned(), it[1].line))
            }));
            at = close;
        }
        at += 1;
    }
    types
}

/// Whether an `impl` begins an item and is no type.
fn is_item(tokens: &[Token<'_>], at: usize) -> bool {
    at == 0 || matches!(tokens[at - 1].text, "}" | ";" | "]" | "{" | "unsafe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_length() {
        let source = Source::read(
            "a.rs",
            "fn a(f: fn(u8) -> u8) -> Result<u8, ()>\nwhere\n    A: B,\n{\n    fn b() {}\n}\n\
             trait T {\n    fn c(&self);\n}\n",
        );
        let found: Vec<_> = functions(&source).into_iter().map(|it| (it.len(), it.name)).collect();
        assert_eq!(found, [(6, "a".to_owned()), (1, "b".to_owned())]);
    }

    #[test]
    fn types_are_what_can_be_named_from_outside() {
        let source = Source::read(
            "a.rs",
            "struct A(u8);\nenum B {}\ntype C = impl D;\ntrait E { type F; }\n\
             impl E for A { type F = u8; fn x() { struct G; } }\n\
             #[cfg(test)]\nmod tests { struct H; }\n",
        );
        let names: Vec<String> = types(&source).into_iter().map(|it| it.0).collect();
        assert_eq!(names, ["A", "B", "C", "E", "G"]);
    }
}
