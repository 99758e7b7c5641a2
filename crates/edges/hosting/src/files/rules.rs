//! What of a folder is not looked at: what tools put there while they work, what is hidden, and
//! what a file in the folder names, in the form that git made known.
//!
//! The file counts as a part of the folder like any other, so nobody widens it unseen. One that
//! cannot be read as a whole leaves nothing out.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::open_plain;

/// The file that says what is left out.
pub const IGNORE_FILE: &str = ".wharfignore";
/// What is left out unless the file takes it back with a `!`.
const USUAL: [&str; 5] = [".*", "__pycache__/", "node_modules/", "target/", "venv/"];
const FILE_BYTES_MAX: u64 = 16 * 1024;
const RULES_MAX: usize = 200;

/// What of a folder is left out.
#[derive(Debug, Clone)]
pub struct FolderRules(Vec<Rule>);

#[derive(Debug, Clone)]
struct Rule {
    /// What the parts of a path look like; `**` stands for any number of them.
    parts: Vec<Vec<char>>,
    takes_back: bool,
    only_folders: bool,
}

impl FolderRules {
    /// The rules of a folder. It blocks, but only on a plain file.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        let mut text = String::new();
        let path = folder.join(IGNORE_FILE);
        // A link would let something else say what is left out.
        let is_plain = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        let file = is_plain.then(|| open_plain(&path).ok()).flatten();
        let read = file
            .is_some_and(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).is_ok());
        let is_whole = read && text.len() as u64 <= FILE_BYTES_MAX;
        Self::read(if is_whole { &text } else { "" })
    }

    fn read(text: &str) -> Self {
        let own: Vec<Rule> = text.lines().filter_map(Rule::read).take(RULES_MAX + 1).collect();
        let own = if own.len() > RULES_MAX { Vec::new() } else { own };
        Self(USUAL.iter().filter_map(|line| Rule::read(line)).chain(own).collect())
    }

    /// Whether this is left out, by its path from the folder. Nothing in a folder that is left out
    /// is asked for.
    #[must_use]
    pub fn leave_out(&self, path: &Path, is_folder: bool) -> bool {
        if path == Path::new(IGNORE_FILE) {
            return false;
        }
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        // The last word counts.
        let fitting = self.0.iter().rev().find(|rule| rule.fits(&parts, is_folder));
        fitting.is_some_and(|rule| !rule.takes_back)
    }
}

impl Rule {
    /// A line; none for a comment.
    fn read(line: &str) -> Option<Self> {
        let line = line.trim_end();
        let (takes_back, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (only_folders, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let mut parts: Vec<Vec<char>> = Vec::new();
        // Only what has a slash in it is meant from the folder.
        if !line.contains('/') {
            parts.push(vec!['*', '*']);
        }
        parts
            .extend(line.split('/').filter(|part| !part.is_empty()).map(|it| it.chars().collect()));
        Some(Self { parts, takes_back, only_folders })
    }

    fn fits(&self, path: &[&str], is_folder: bool) -> bool {
        let any_number = |part: &Vec<char>| part[..] == ['*', '*'];
        (is_folder || !self.only_folders)
            && like(&self.parts, path, any_number, |part, name| {
                let name: Vec<char> = name.chars().collect();
                like(part, &name, |c| *c == '*', |c, found| *c == '?' || c == found)
            })
    }
}

/// Whether a row looks like a pattern, some of whose items stand for any number of them. It takes
/// no longer than both are long, multiplied.
fn like<P, T>(
    pattern: &[P],
    row: &[T],
    is_any_number: impl Fn(&P) -> bool,
    is_like: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut r) = (0, 0);
    // Where to go on when what comes after the last such item does not fit.
    let mut last: Option<(usize, usize)> = None;
    while r < row.len() {
        match pattern.get(p) {
            Some(item) if is_any_number(item) => {
                last = Some((p, r));
                p += 1;
            }
            Some(item) if is_like(item, &row[r]) => (p, r) = (p + 1, r + 1),
            _ => match last {
                Some((after, from)) => {
                    last = Some((after, from + 1));
                    (p, r) = (after + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(is_any_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said_as_for_git() {
        let rules = FolderRules::read(
            "# what runs leave behind\n*.log\nout/\n/data\ncache/**/*.bin\nnotes-?.md\n\
             !keep.log\n!.env.example\n",
        );
        for (path, is_folder, left_out) in [
            ("a.log", false, true),
            ("deep/er/a.log", false, true),
            ("deep/keep.log", false, false),
            ("out", true, true),
            ("lib/out", true, true),
            ("out", false, false),
            ("data", true, true),
            ("lib/data", true, false),
            ("cache/a/b/c.bin", false, true),
            ("cache/c.bin", false, true),
            ("cache/c.txt", false, false),
            ("notes-1.md", false, true),
            ("notes-12.md", false, false),
            (".env", false, true),
            (".env.example", false, false),
            (".git", true, true),
            ("lib/__pycache__", true, true),
            ("target", false, false),
            ("handler.py", false, false),
            (".wharfignore", false, false),
        ] {
            assert_eq!(rules.leave_out(Path::new(path), is_folder), left_out, "{path}");
        }
    }

    #[test]
    fn a_pattern_that_is_made_to_take_long_takes_no_time() {
        let rules = FolderRules::read(&"*a".repeat(4_000));
        assert!(!rules.leave_out(Path::new(&"a".repeat(200)), false));
        let rules = FolderRules::read(&format!("{}x", "**/".repeat(2_000)));
        assert!(!rules.leave_out(Path::new(&"a/".repeat(500)), false));
    }

    #[test]
    fn a_list_that_is_no_plain_file_or_too_long_leaves_nothing_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(IGNORE_FILE);
        let leaves_out = || FolderRules::of(folder.path()).leave_out(Path::new("a.log"), false);
        assert!(!leaves_out());
        fs::write(&file, "*.log\n").expect("written");
        assert!(leaves_out());
        fs::write(&file, "*.log\n".repeat(RULES_MAX + 1)).expect("written");
        assert!(!leaves_out());
        fs::write(&file, format!("*.log\n#{}\n", "x".repeat(20_000))).expect("written");
        assert!(!leaves_out());
        fs::remove_file(&file).expect("removed");
        fs::write(folder.path().join("other"), "*.log\n").expect("written");
        std::os::unix::fs::symlink("other", &file).expect("linked");
        assert!(!leaves_out());
    }
}
