//! Pages of the documentation, followed command by command.
//!
//! A block of `sh run` is run and must succeed, one of `sh run fails` must not, and every line of a
//! block of `text shown` must be among what the last of them said; `…` stands for anything. A block
//! such as `python file a/b.py` is written to that file. `sh run until shown` is run again until it
//! says what is shown. `sh kills the core` and `sh starts the core`
//! show what a reader types; the test does the same to its own core. A block of `console` shows what
//! cannot be run here, one of `ts`, `rust` or `toml` a piece of a file.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::agents::example;
use crate::children::{Finish as _, command};
use crate::support::{Core, TestHome, wait_for};

/// What came of a page.
pub(crate) struct Followed {
    /// How many blocks were run.
    pub(crate) ran: usize,
    /// How many lines were looked for.
    pub(crate) checked: usize,
    /// Where its commands were run.
    pub(crate) folder: TempDir,
    /// The core that runs at its end, if the page may kill it.
    core: Option<Core>,
}

/// Follows a page of `docs` beside the core of a home, in a folder of its own; says how many blocks
/// were run and how many lines were looked for.
pub(crate) fn follow(home: &TestHome, name: &str) -> (usize, usize) {
    let followed = followed(home, None, name);
    (followed.ran, followed.checked)
}

/// Follows a page that kills this core and starts it again.
pub(crate) fn follow_with(home: &TestHome, core: Core, name: &str) -> Followed {
    followed(home, Some(core), name)
}

fn followed(home: &TestHome, core: Option<Core>, name: &str) -> Followed {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(name);
    let page = std::fs::read_to_string(page).expect("the page is there");
    let folder = tempfile::tempdir().expect("a folder");
    let mut followed = Followed { ran: 0, checked: 0, folder, core };
    let (mut said, mut awaited) = (String::new(), None);
    for block in blocks(&page) {
        let words: Vec<&str> = block.kind.split(' ').collect();
        match words[..] {
            ["sh", "run"] | ["sh", "run", "fails"] => {
                said = run(home, followed.folder.path(), &block);
                followed.ran += 1;
            }
            ["sh", "run", "until", "shown"] => {
                awaited = Some(block);
                followed.ran += 1;
            }
            ["text", "shown"] => {
                if let Some(asked) = awaited.take() {
                    let shows = |said: &String| missing(&block, said).is_none();
                    let what = format!("what line {} shows", block.line);
                    said = wait_for(&what, || {
                        Some(run(home, followed.folder.path(), &asked)).filter(shows)
                    });
                }
                if let Some(shown) = missing(&block, &said) {
                    panic!("line {}: {shown:?} is not in\n{said}", block.line);
                }
                followed.checked += block.text.lines().count();
            }
            [_, "file", path] => {
                let path = followed.folder.path().join(path);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                std::fs::write(path, &block.text).expect("written");
            }
            ["sh", "kills", "the", "core"] => followed.core.take().expect("a core").kill(),
            ["sh", "starts", "the", "core"] => followed.core = Some(home.up()),
            ["console" | "text" | "ts" | "rust" | "toml"] => {}
            _ => panic!("line {}: nobody runs a block of {:?}", block.line, block.kind),
        }
    }
    followed
}

/// A block of the page.
#[derive(Debug)]
struct Block {
    /// What stands behind the fence, such as `sh run`.
    kind: String,
    line: usize,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(kind), None) => {
                let text = String::new();
                open = Some(Block { kind: kind.to_owned(), line: number + 1, text });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "the last block is not closed");
    blocks
}

/// The first line that a block shows and that was not said.
fn missing<'a>(block: &'a Block, said: &str) -> Option<&'a str> {
    block.text.lines().find(|shown| !said.lines().any(|line| fits(line, shown)))
}

/// Whether a line is one that the page shows; `…` stands for anything.
fn fits(line: &str, shown: &str) -> bool {
    let mut rest = line;
    let mut first = true;
    for piece in shown.split('…') {
        let Some(at) = rest.find(piece.trim_end()) else { return false };
        if first && at != 0 {
            return false;
        }
        first = false;
        rest = &rest[at + piece.trim_end().len()..];
    }
    shown.ends_with('…') || rest.is_empty()
}

/// Runs a block in a shell that finds the program under its own name.
fn run(home: &TestHome, folder: &Path, block: &Block) -> String {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_wharf"));
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", program.parent().expect("a folder").display());
    let mut shell = command("sh");
    shell.args(["-euc", &format!("exec 2>&1\n{}", block.text)]).current_dir(folder);
    for (name, value) in home.wharf(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.env("PATH", path).env("EXAMPLES", example("..").canonicalize().expect("a folder"));
    let output = shell.finish();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let fails = block.kind == "sh run fails";
    assert_eq!(output.status.success(), !fails, "line {}: {text}", block.line);
    text
}

#[test]
fn what_a_page_shows_is_looked_for_exactly() {
    assert!(fits("a b c", "a b c") && fits("a b c", "a …") && fits("a b c", "…c"));
    assert!(fits("at 10:20 by r1", "at … by r1"));
    assert!(!fits("a b c", "a b") && !fits("a b c", "b c") && !fits("a b c", "a … d"));
}
