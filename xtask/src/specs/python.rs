//! The tests that Python's own runner collects: methods called `test_…` of test cases, in files
//! called `test_….py`.

use std::collections::BTreeMap;

use super::marks::Sources;

/// The names of all tests, without `test_`.
pub(super) fn tests(sources: &Sources<'_>) -> Vec<String> {
    let bases: BTreeMap<&str, &str> =
        sources.values().flat_map(|text| text.lines()).filter_map(class).collect();
    let is_collected =
        |path: &&str| path.rsplit('/').next().is_some_and(|file| file.starts_with("test_"));
    let files = sources.iter().filter(|(path, _)| is_collected(path));
    files.flat_map(|(_, text)| of_file(text, &bases)).collect()
}

fn of_file(text: &str, bases: &BTreeMap<&str, &str>) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut names = Vec::new();
    let mut inside = false;
    let mut skipped_class = false;
    let mut skips = false;
    for (n, line) in lines.iter().enumerate() {
        let (depth, words) = (indent(line), line.trim());
        if words.starts_with('@') {
            skips |= words.starts_with("@unittest.skip(")
                || words == "@unittest.skip"
                || words.starts_with("@skip");
        } else if depth == 0 && !words.is_empty() && !words.starts_with([')', '#']) {
            let name = class(line);
            inside = name.is_some_and(|(name, _)| is_case(name, bases, 0));
            skipped_class = std::mem::take(&mut skips);
        } else if let Some(name) = method(words) {
            let leaves_out = std::mem::take(&mut skips) || skipped_class;
            if inside && !leaves_out && does_something(&lines[n + 1..], depth) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Reads `class Name(bases):`.
fn class(line: &str) -> Option<(&str, &str)> {
    let (name, bases) = line.strip_prefix("class ")?.split_once('(')?;
    Some((name.trim(), bases.split(')').next().unwrap_or_default()))
}

/// Whether a class is a test case: by its bases, or by theirs.
fn is_case(name: &str, bases: &BTreeMap<&str, &str>, depth: u32) -> bool {
    let words = bases.get(name).map_or("", |bases| *bases).split(',').map(str::trim);
    depth < 8
        && words.into_iter().any(|base| {
            let base = base.rsplit('.').next().unwrap_or(base);
            matches!(base, "TestCase" | "IsolatedAsyncioTestCase")
                || is_case(base, bases, depth + 1)
        })
}

/// Reads `def test_name(`, also behind `async`.
fn method(words: &str) -> Option<&str> {
    let rest = words.strip_prefix("async ").unwrap_or(words).strip_prefix("def test_")?;
    rest.split('(').next()
}

/// Whether a body does more than to be there. The head may go over several lines.
fn does_something(below: &[&str], depth: usize) -> bool {
    let body = below.iter().take_while(|line| {
        line.trim().is_empty() || indent(line) > depth || line.trim().starts_with(')')
    });
    let mut quoted = false;
    body.map(|line| line.trim()).any(|words| {
        let marks = words.matches("\"\"\"").count();
        let is_words = quoted || words.starts_with("\"\"\"");
        quoted ^= marks % 2 == 1;
        let is_head = words.starts_with(')') || words == "self," || words == "self";
        !(words.is_empty()
            || is_words
            || is_head
            || words.starts_with('#')
            || words == "pass"
            || words == "...")
    })
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &str = r#"
class Served(unittest.TestCase):
    def test_k001_runs(self) -> None:
        """Says why."""
        self.assertTrue(True)

    async def test_k002_runs_too(
        self,
    ) -> None:
        await something()

    def test_k003_is_empty(self) -> None:
        """Nothing,
        in two lines."""
        pass

    @unittest.skip("slow")
    def test_k004_is_skipped(self) -> None:
        a()

    def k005_is_not_collected(self) -> None:
        a()

class Serving(Served):
    @given(1)
    def test_k006_is_inherited(self) -> None:
        a()

class Place:
    def test_k007_is_no_case(self) -> None:
        a()

@unittest.skip("all of it")
class Never(unittest.TestCase):
    def test_k008_is_skipped(self) -> None:
        a()

def test_k009_is_no_method() -> None:
    a()
"#;

    #[test]
    fn only_what_the_runner_collects_counts() {
        let files = Sources::from([("sdks/python/tests/test_it.py", CASES)]);
        assert_eq!(tests(&files), ["k001_runs", "k002_runs_too", "k006_is_inherited"]);
        for elsewhere in ["sdks/python/tests/support.py", "sdks/python/src/wharf_sdk/trial.py"] {
            assert_eq!(tests(&Sources::from([(elsewhere, CASES)])), Vec::<String>::new());
        }
    }

    #[test]
    fn a_base_of_another_file_is_found() {
        let base = "class WithCore(unittest.TestCase):\n    pass\n";
        let test = "class Runs(WithCore):\n    def test_k010_a(self):\n        b()\n";
        let files = Sources::from([("a/tests/support.py", base), ("a/tests/test_a.py", test)]);
        assert_eq!(tests(&files), ["k010_a"]);
        assert_eq!(tests(&Sources::from([("a/tests/test_a.py", test)])), Vec::<String>::new());
    }
}
