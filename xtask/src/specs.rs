//! `cargo xtask coverage-of-specs`: which numbered requirements have a test that carries the
//! number, and which are measured by a benchmark instead.
//!
//! The list comes from `docs/protocols/*.md`, the tests from the sources, and what needs no test
//! from `docs/protocols/untested.toml`; nothing else decides. A missing test is told, and punished
//! where `--require` names the protocol.

mod exceptions;
mod marks;
mod python;
mod report;
mod requirements;
mod rust;
mod script;

use std::io::Write;

use anyhow::{Context as _, Result, bail};

use crate::repo::Repo;
use exceptions::Exceptions;
use marks::Marks;
use report::Coverage;
use requirements::Protocol;

const FOLDER: &str = "docs/protocols";
const INDEX: &str = "README.md";
const UNTESTED: &str = "docs/protocols/untested.toml";

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    json: bool,
    require: Vec<char>,
}

/// Prints the coverage and says whether every required protocol is complete.
pub(crate) fn run(repo: &Repo, options: &[&str], out: &mut dyn Write) -> Result<bool> {
    let options = parse(options)?;
    let protocols = read_protocols(repo)?;
    if let Some(letter) =
        options.require.iter().find(|l| !protocols.iter().any(|p| p.letter == **l))
    {
        bail!("no protocol in {FOLDER} is numbered {letter}");
    }
    let untested = Exceptions::parse(&repo.read(UNTESTED)?).context(UNTESTED)?;
    let coverage = Coverage::of(&protocols, &Marks::read(repo)?, untested);
    if options.json {
        writeln!(out, "{:#}", coverage.to_json())?;
    } else {
        coverage.print(out)?;
    }
    let wrong = coverage.wrong(&options.require);
    if !options.json {
        for finding in &wrong {
            writeln!(out, "coverage-of-specs: {finding}")?;
        }
    }
    Ok(wrong.is_empty())
}

/// For `tidy`: the numbers of each protocol begin at 1, have no holes and stand once.
pub(crate) fn check_numbers(repo: &Repo) -> Result<Vec<String>> {
    Ok(read_protocols(repo)?.iter().flat_map(Protocol::findings).collect())
}

fn read_protocols(repo: &Repo) -> Result<Vec<Protocol>> {
    let mut protocols = Vec::new();
    for name in repo.markdown_names(FOLDER)? {
        if name != INDEX {
            let path = format!("{FOLDER}/{name}");
            protocols.push(Protocol::parse(&path, &repo.read(&path)?)?);
        }
    }
    Ok(protocols)
}

fn parse(args: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--json" => options.json = true,
            "--require" => {
                let letters = args.next().copied().unwrap_or_default();
                for letter in letters.split(',') {
                    match letter.chars().collect::<Vec<_>>().as_slice() {
                        [one] if one.is_ascii_uppercase() => options.require.push(*one),
                        _ => bail!("--require takes the letter of a protocol, such as R"),
                    }
                }
            }
            other => bail!("unknown option {other}; there are --json and --require LETTER"),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = parse(&["--json", "--require", "R,T", "--require", "K"]).expect("parses");
        assert_eq!(options, Options { json: true, require: vec!['R', 'T', 'K'] });
        for bad in [&["--jsn"][..], &["--require"], &["--require", "RT"], &["--require", "r"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_protocols_of_this_repository_keep_their_numbers() {
        let repo = Repo::open().expect("opens");
        let protocols = read_protocols(&repo).expect("reads");
        let found: Vec<_> = protocols.iter().map(|p| (p.letter, p.numbers.len())).collect();
        assert_eq!(
            found,
            vec![
                ('R', 175),
                ('C', 31),
                ('F', 44),
                ('M', 86),
                ('O', 31),
                ('T', 49),
                ('S', 59),
                ('K', 36)
            ]
        );
        assert_eq!(check_numbers(&repo).expect("reads"), Vec::<String>::new());
    }

    #[test]
    fn every_requirement_of_this_repository_has_a_test_or_a_reason() {
        let mut out = Vec::new();
        let repo = Repo::open().expect("opens");
        let good = run(&repo, &["--require", "R,T,O,K,M,C"], &mut out).expect("runs");
        assert!(good, "{}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn an_unknown_required_letter_is_an_error() {
        let repo = Repo::open().expect("opens");
        assert!(run(&repo, &["--require", "Z"], &mut Vec::new()).is_err());
    }
}
