//! The tests that Node's runner collects: calls of `test` and `it` in files called `….test.ts`
//! and the like.

use super::marks::Sources;

/// Endings of files with tests.
const FILES: &[&str] = &[".test.ts", ".test.tsx", ".test.mts", ".test.js", ".test.mjs"];
/// Calls that make a test.
const CALLS: &[&str] = &["test", "it", "test.concurrent", "test.only", "it.only", "Deno.test"];

/// The names of all tests.
pub(super) fn tests(sources: &Sources<'_>) -> Vec<String> {
    let is_collected = |path: &&str| FILES.iter().any(|ending| path.ends_with(ending));
    let files = sources.iter().filter(|(path, _)| is_collected(path));
    files.flat_map(|(_, text)| of_file(text)).collect()
}

fn of_file(text: &str) -> Vec<String> {
    let text = without_comments(text);
    let left_out: Vec<_> = ["describe.skip(", "suite.skip("]
        .iter()
        .flat_map(|call| text.match_indices(call))
        .map(|(at, call)| at..at + call.len() + inside(&text[at + call.len()..]).len())
        .collect();
    let mut names = Vec::new();
    for (at, _) in text.match_indices('(') {
        let before = text[..at].trim_end();
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || c == '$';
        let word = &before[before.rfind(|c| !is_word(c)).map_or(0, |it| it + 1)..];
        if CALLS.contains(&word)
            && !left_out.iter().any(|range| range.contains(&at))
            && let Some(name) = name_of(inside(&text[at + 1..]))
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// The name of a test, by what stands in the brackets of its call, if it is run and does something.
fn name_of(arguments: &str) -> Option<&str> {
    let arguments = arguments.trim_start();
    let quote = arguments.chars().next().filter(|c| "\"'`".contains(*c))?;
    let (name, rest) = arguments[1..].split_once(quote)?;
    let (options, body) = rest.split_once("=>").or_else(|| rest.split_once("function"))?;
    let is_left_out = ["skip:", "todo:"].iter().any(|word| {
        let value = options.split_once(word).map(|(_, value)| value.trim_start());
        value.is_some_and(|value| !value.starts_with("false"))
    });
    let body = body.trim_start();
    let is_empty = body.strip_prefix('{').is_some_and(|body| body.trim_start().starts_with('}'));
    (!is_left_out && !is_empty).then_some(name)
}

/// What stands before the bracket that closes an open one.
fn inside(text: &str) -> &str {
    let mut depth = 0_u32;
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '{' | '[') => depth += 1,
            (None, ')' | '}' | ']') if depth == 0 => return &text[..at],
            (None, ')' | '}' | ']') => depth -= 1,
            (None, _) => {}
        }
    }
    text
}

/// The same text with comments blanked. Expressions that hold quotes may confuse it, so a line
/// always begins outside of texts that cannot span lines.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut quote, mut block) = (None, false);
    for line in text.lines() {
        if quote != Some('`') {
            quote = None;
        }
        let mut characters = line.char_indices();
        while let Some((at, c)) = characters.next() {
            let next = line[at..].chars().nth(1);
            match (block, quote, c) {
                (true, _, '*') if next == Some('/') => {
                    block = false;
                    characters.next();
                }
                (true, ..) => {}
                (_, None, '/') if next == Some('/') => break,
                (_, None, '/') if next == Some('*') => block = true,
                (_, Some(_), '\\') => {
                    kept.push(c);
                    kept.extend(characters.next().map(|(_, c)| c));
                }
                (_, Some(open), c) => {
                    quote = (c != open).then_some(open);
                    kept.push(c);
                }
                (_, None, c) => {
                    quote = "\"'`".contains(c).then_some(c);
                    kept.push(c);
                }
            }
        }
        kept.push('\n');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = r#"
test("k001_runs", async () => { await a(); });
  it('k002_runs', { timeout: 5 }, function () { a(); });
test("k003_is_skipped", { skip: "no program" }, () => { a(); });
test.skip("k004_is_skipped", () => { a(); });
test.todo("k005_is_to_be_written");
test("k006_is_empty", () => {});
// test("k007_is_a_comment", () => { a(); });
/* test("k008_is_a_comment", () => { a(); }); */
const a = "test(\"k009_is_a_text\", () => { a(); })";
latest("k010_is_another_function", () => { a(); });
describe.skip("all", () => { test("k011_is_skipped", () => { a(); }); });
describe("some", () => { test("k012_runs", () => a("http://x")); });
test("k013_runs", { skip: false }, async (t) => {
  await a();
});
pattern.test("k014_is_no_test");
"#;

    #[test]
    fn only_calls_that_are_run_count() {
        let files = Sources::from([("sdks/typescript/test/unit/a.test.ts", TESTS)]);
        assert_eq!(tests(&files), ["k001_runs", "k002_runs", "k012_runs", "k013_runs"]);
        let elsewhere = Sources::from([("sdks/typescript/src/tool.ts", TESTS)]);
        assert_eq!(tests(&elsewhere), Vec::<String>::new());
    }
}
