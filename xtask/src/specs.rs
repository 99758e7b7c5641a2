//! `cargo xtask coverage-of-specs`: which numbered requirements have a test that carries the
//! number, and which are measured by a benchmark instead.
//!
//! The list comes from `docs/protocols/*.md`, the tests from the sources; nothing else decides.
//! A missing test is told, not punished, until `--require` names the protocol.

mod marks;
mod report;
mod requirements;

use std::io::Write;

use anyhow::{Result, bail};

use crate::repo::Repo;
use marks::Marks;
use report::Coverage;
use requirements::Protocol;

const FOLDER: &str = "docs/protocols";
const INDEX: &str = "README.md";

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
    let coverage = Coverage::of(&protocols, &Marks::read(repo)?);
    if options.json {
        writeln!(out, "{:#}", coverage.to_json())?;
    } else {
        coverage.print(out)?;
    }
    let incomplete = coverage.incomplete(&options.require);
    if !options.json && !incomplete.is_empty() {
        let letters: Vec<String> = incomplete.iter().map(ToString::to_string).collect();
        writeln!(out, "required to be complete and not: {}", letters.join(", "))?;
    }
    Ok(incomplete.is_empty())
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
        assert_eq!(found, vec![('R', 170), ('O', 31), ('T', 47), ('K', 35)]);
        assert_eq!(check_numbers(&repo).expect("reads"), Vec::<String>::new());
    }

    #[test]
    fn an_unknown_required_letter_is_an_error() {
        let repo = Repo::open().expect("opens");
        assert!(run(&repo, &["--require", "Z"], &mut Vec::new()).is_err());
    }
}
