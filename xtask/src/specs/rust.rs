//! The tests that `cargo test` runs, read from Rust sources.
//!
//! Files are read as tokens, from the roots of each crate's targets along their modules, so that
//! comments and texts are no tests, a file that belongs to no target is none, and macros that
//! hold tests are seen into.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::marks::Sources;

/// The names of all tests.
pub(super) fn tests(sources: &Sources<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> =
        sources.keys().filter(|it| is_root(it)).map(ToString::to_string).collect();
    while let Some(path) = open.pop() {
        let Some(text) = sources.get(path.as_str()) else { continue };
        // One file may be a module of several targets.
        if !seen.insert(path.clone()) {
            continue;
        }
        // What does not even have tokens does not build.
        let Ok(tokens) = text.parse::<TokenStream>() else { continue };
        let mut found = Found::default();
        found.read(tokens, &[]);
        names.append(&mut found.names);
        for module in found.modules {
            open.extend(module.paths(&path));
        }
    }
    names
}

/// Whether a file is the root of a target whose tests are run.
fn is_root(path: &str) -> bool {
    let Some((folder, file)) = path.rsplit_once('/') else { return false };
    let is_in = |name: &str| folder == name || folder.ends_with(&format!("/{name}"));
    if is_in("src") {
        return matches!(file, "lib.rs" | "main.rs");
    }
    let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
    let beside = |name: &str| above == name || above.ends_with(&format!("/{name}"));
    is_in("src/bin")
        || is_in("tests")
        || (file == "main.rs" && (beside("tests") || beside("src/bin")))
}

/// A module in a file of its own.
#[derive(Debug)]
struct Module {
    /// The modules around it in the same file, and itself.
    names: Vec<String>,
    /// Where it lies, if it says so.
    place: Option<String>,
}

impl Module {
    /// Where it may lie when it is declared in this file.
    fn paths(&self, file: &str) -> Vec<String> {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        if let Some(place) = &self.place {
            return vec![normal(&format!("{folder}/{place}"))];
        }
        let stem = name.trim_end_matches(".rs");
        let is_top = matches!(stem, "lib" | "main" | "mod") || is_root(file);
        let base = if is_top { folder.to_owned() } else { format!("{folder}/{stem}") };
        let path = format!("{base}/{}", self.names.join("/"));
        vec![format!("{path}.rs"), format!("{path}/mod.rs")]
    }
}

/// A path without `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What stands in a file.
#[derive(Debug, Default)]
struct Found {
    names: Vec<String>,
    modules: Vec<Module>,
}

impl Found {
    /// Reads items, inside these modules of the same file.
    fn read(&mut self, tokens: TokenStream, within: &[String]) {
        let mut tokens = tokens.into_iter().peekable();
        let mut attributes: Vec<TokenStream> = Vec::new();
        let mut is_macro = false;
        while let Some(token) = tokens.next() {
            let after_bang = std::mem::take(&mut is_macro);
            match token {
                TokenTree::Punct(it) if it.as_char() == '#' => {
                    let inner = tokens.next_if(|it| is_punct(it, '!')).is_some();
                    let attribute = tokens.next_if(|it| group(it, Delimiter::Bracket).is_some());
                    let Some(TokenTree::Group(attribute)) = attribute else { continue };
                    if inner && is_left_out(&[attribute.stream()]) {
                        return;
                    } else if !inner {
                        attributes.push(attribute.stream());
                    }
                }
                TokenTree::Punct(it) => {
                    is_macro = it.as_char() == '!';
                    if it.as_char() == ';' {
                        attributes.clear();
                    }
                }
                TokenTree::Ident(it) if it == "fn" => {
                    let name = tokens.next_if(|it| matches!(it, TokenTree::Ident(_)));
                    let body = tokens.by_ref().find_map(|it| match &it {
                        TokenTree::Group(it) if it.delimiter() == Delimiter::Brace => {
                            Some(Some(it.clone()))
                        }
                        it => is_punct(it, ';').then_some(None),
                    });
                    let runs = body.flatten().is_some_and(|body| !body.stream().is_empty())
                        && is_test(&attributes);
                    self.names.extend(name.filter(|_| runs).map(|name| name.to_string()));
                    attributes.clear();
                }
                TokenTree::Ident(it) if it == "mod" => {
                    let Some(TokenTree::Ident(name)) = tokens.next() else { continue };
                    let attributes = std::mem::take(&mut attributes);
                    if let Some(body) = self.module(&name, tokens.peek(), &attributes, within) {
                        let within = [within, &[name.to_string()]].concat();
                        self.read(body.stream(), &within);
                    }
                }
                // The name of a macro's definition stands between its `!` and its body.
                TokenTree::Ident(_) => is_macro = after_bang,
                TokenTree::Group(it) if it.delimiter() == Delimiter::Brace => {
                    if after_bang && !is_left_out(&attributes) {
                        self.read(it.stream(), within);
                    }
                    attributes.clear();
                }
                TokenTree::Group(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Notes a module; gives its body if that stands in the same file.
    fn module<'a>(
        &mut self,
        name: &Ident,
        next: Option<&'a TokenTree>,
        attributes: &[TokenStream],
        within: &[String],
    ) -> Option<Group> {
        if is_left_out(attributes) {
            return None;
        }
        let next: &'a TokenTree = next?;
        if is_punct(next, ';') {
            let names = [within, &[name.to_string()]].concat();
            let place = attributes.iter().find_map(|it| text_of(it, "path"));
            self.modules.push(Module { names, place });
        }
        group(next, Delimiter::Brace).cloned()
    }
}

/// Whether these attributes make a function a test that is run.
fn is_test(attributes: &[TokenStream]) -> bool {
    let is = |attribute: &TokenStream, path: &str| {
        let text: String = attribute.clone().into_iter().map(|it| it.to_string()).collect();
        let path_end = text.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
        &text[..path_end.unwrap_or(text.len())] == path
    };
    attributes.iter().any(|it| is(it, "test") || is(it, "tokio::test"))
        && !attributes.iter().any(|it| is(it, "ignore"))
        && !is_left_out(attributes)
}

/// Whether these attributes leave out what they stand on, on the machine that runs all tests.
fn is_left_out(attributes: &[TokenStream]) -> bool {
    attributes.iter().any(|attribute| {
        let mut tokens = attribute.clone().into_iter();
        let name = tokens.next().map(|it| it.to_string()).unwrap_or_default();
        let Some(TokenTree::Group(condition)) = tokens.next() else { return false };
        match name.as_str() {
            "cfg" => holds(&condition.stream()) == Some(false),
            "cfg_attr" => {
                let parts = parts(condition.stream());
                let [condition, rest @ ..] = parts.as_slice() else { return false };
                let ignores = rest.iter().any(|it| it.to_string().starts_with("ignore"));
                ignores && holds(condition) == Some(true)
            }
            _ => false,
        }
    })
}

/// Whether a condition holds; `None` if that cannot be told from here, as for features.
fn holds(condition: &TokenStream) -> Option<bool> {
    let mut tokens = condition.clone().into_iter();
    let name = tokens.next()?.to_string();
    match tokens.next() {
        Some(TokenTree::Group(inner)) => {
            let parts: Vec<_> = parts(inner.stream()).iter().map(holds).collect();
            let (any, all) = (parts.contains(&Some(true)), !parts.contains(&Some(false)));
            let sure = !parts.contains(&None);
            match name.as_str() {
                "not" => parts.first().copied().flatten().map(|it| !it),
                "all" if !all => Some(false),
                "all" if sure => Some(true),
                "any" if any => Some(true),
                "any" if sure => Some(false),
                _ => None,
            }
        }
        Some(_) if name == "target_os" => Some(text_of(condition, &name)? == "linux"),
        Some(_) if name == "target_family" => Some(text_of(condition, &name)? == "unix"),
        Some(_) => None,
        None => match name.as_str() {
            "test" | "unix" | "true" | "debug_assertions" => Some(true),
            "windows" | "false" | "doc" | "doctest" => Some(false),
            _ => None,
        },
    }
}

/// What stands between commas.
fn parts(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![Vec::new()];
    for token in tokens {
        match is_punct(&token, ',') {
            true => parts.push(Vec::new()),
            false => parts.last_mut().into_iter().for_each(|it| it.push(token.clone())),
        }
    }
    parts.into_iter().filter(|it| !it.is_empty()).map(TokenStream::from_iter).collect()
}

/// The text in `name = "text"`.
fn text_of(attribute: &TokenStream, name: &str) -> Option<String> {
    let mut tokens = attribute.clone().into_iter();
    let is_it = tokens.next().is_some_and(|it| it.to_string() == name)
        && tokens.next().is_some_and(|it| is_punct(&it, '='));
    let text = tokens.next().filter(|_| is_it)?.to_string();
    Some(text.trim_matches('"').to_owned())
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == sign)
}

fn group(token: &TokenTree, delimiter: Delimiter) -> Option<&Group> {
    match token {
        TokenTree::Group(it) if it.delimiter() == delimiter => Some(it),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(files: &[(&str, &str)]) -> Vec<String> {
        let mut names = tests(&files.iter().copied().collect());
        names.sort();
        names
    }

    fn names(source: &str) -> Vec<String> {
        names_of(&[("crates/a/src/lib.rs", source)])
    }

    #[test]
    fn only_functions_that_are_tests_count() {
        let source = r##"
            #[test]
            fn r001_frames() { a(); }
            #[tokio::test(flavor = "multi_thread")]
            /// Why.
            pub(crate) async fn r002_utf8() -> Result<(), Fault> { a(); Ok(()) }
            fn r003_is_only_called_by_others() { a(); }
            #[inline]
            fn r004_neither() { a(); }
            // #[test] fn r005_is_a_comment() { a(); }
            const TEXT: &str = r#"#[test] fn r006_is_a_text() { a(); }"#;
            #[cfg(test)]
            fn r007_helps_tests() { a(); }
            #[cfg(not(test))]
            fn r008_helps_nobody() { a(); }
            #[my::test_of_something]
            fn r009_is_something_else() { a(); }
            struct Tester { #[allow(unused)] test: u8 }
            #[test]
            struct R010;
            fn r010_is_behind_it() { a(); }
        "##;
        assert_eq!(names(source), ["r001_frames", "r002_utf8"]);
    }

    #[test]
    fn a_test_that_does_nothing_or_is_ignored_does_not_count() {
        let source = r#"
            #[test]
            fn r001_empty() {}
            #[test]
            fn r002_only_words() { /* to be written */ }
            #[test]
            #[LEFT_OUT = "slow"]
            fn r003_ignored() { a(); }
            #[LEFT_OUT]
            #[tokio::test]
            async fn r004_ignored() { a(); }
            #[cfg_attr(unix, ignore)]
            #[test]
            fn r005_ignored_here() { a(); }
            #[cfg_attr(windows, ignore)]
            #[test]
            fn r006_ignored_elsewhere() { a(); }
        "#;
        // The word itself stands in no source of this repository.
        let source = source.replace("LEFT_OUT", "ignore");
        assert_eq!(names(&source), ["r006_ignored_elsewhere"]);
    }

    #[test]
    fn what_a_condition_leaves_out_does_not_count() {
        let source = r#"
            #[cfg(test)]
            mod tests { #[test] fn r001_a() { a(); } mod deeper { #[test] fn r002_b() { a(); } } }
            #[cfg(not(test))]
            mod never { #[test] fn r003_c() { a(); } }
            #[cfg(all(test, target_os = "linux"))]
            mod here { #[test] fn r004_d() { a(); } }
            #[cfg(any(windows, target_os = "macos"))]
            mod elsewhere { #[test] fn r005_e() { a(); } }
            #[cfg(feature = "tls")]
            mod perhaps { #[test] fn r006_f() { a(); } }
            #[cfg(all(feature = "tls", windows))]
            mod not_even_perhaps { #[test] fn r007_g() { a(); } }
            mod inner { #![cfg(windows)] #[test] fn r008_h() { a(); } }
            #[cfg(not(target_os = "linux"))]
            #[test]
            fn r009_i() { a(); }
        "#;
        assert_eq!(names(source), ["r001_a", "r002_b", "r004_d", "r006_f"]);
    }

    #[test]
    fn tests_inside_macros_count() {
        let source =
            "proptest! { #![proptest_config(few())] #[test] fn r001_a(x in 0..9) { b(x); } }
            macro_rules! cases { ($name:ident) => { #[test] fn $name() { b(); } } }
            impl A { #[test] fn r002_b() { b(); } }";
        assert_eq!(names(source), ["r001_a"]);
    }

    #[test]
    fn only_files_that_belong_to_a_target_are_read() {
        let test = |name: &str| format!("#[test] fn {name}() {{ a(); }}");
        let (a, b, c, d, e) =
            (test("r001_a"), test("r002_b"), test("r003_c"), test("r004_d"), test("r005_e"));
        let lib = format!("mod read; #[cfg(windows)] mod wide; {}", test("r006_f"));
        let read = format!("mod deep; mod inline {{ mod file; }} {a}");
        let files = [
            ("crates/x/src/lib.rs", lib.as_str()),
            ("crates/x/src/read.rs", read.as_str()),
            ("crates/x/src/read/deep.rs", b.as_str()),
            ("crates/x/src/read/inline/file.rs", c.as_str()),
            ("crates/x/src/wide.rs", d.as_str()),
            ("crates/x/src/forgotten.rs", d.as_str()),
            ("crates/x/tests/all/main.rs", "#[path = \"../shared/it.rs\"] mod it; mod part;"),
            ("crates/x/tests/all/part/mod.rs", e.as_str()),
            ("crates/x/tests/all/orphan.rs", d.as_str()),
            ("crates/x/tests/shared/it.rs", "#[tokio::test] async fn r007_g() { a().await; }"),
            ("crates/x/examples/show.rs", d.as_str()),
        ];
        let names = names_of(&files);
        assert_eq!(names, ["r001_a", "r002_b", "r003_c", "r005_e", "r006_f", "r007_g"]);
    }
}
