//! Chores of the repository, run as `cargo xtask <chore>`.
//!
//! They read the checkout and report; only `security-page` changes a file of it.

mod measure;
mod repo;
mod sbom;
mod security_page;
mod skipped;
mod specs;
mod tests;
mod tidy;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use crate::repo::Repo;

const USAGE: &str = "\
usage: cargo xtask <chore>

  measure [--against COMMIT] [--json] [--names] [--places]
                                          count lines, functions, cycles and what is there twice
  test                                    lint, build and run all tests
  tidy                                    check the rules of the repository
  coverage-of-specs [--json] [--require LETTER ...]
                                          say which numbered requirements have a test
  sbom                                    list what is linked into wharf, as CycloneDX
  security-page                           put docs/security.md together from the last hostile run
  skipped-tests                           say which tests of the last `make test` were left out
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        // Whoever read the report has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if even standard error is gone.
            let _ = writeln!(std::io::stderr(), "xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run(args: &[String]) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let good = match args.as_slice() {
        ["tidy"] => tidy::run(&Repo::open()?, &mut out)?,
        ["coverage-of-specs", options @ ..] => specs::run(&Repo::open()?, options, &mut out)?,
        ["measure", options @ ..] => measure::run(&Repo::open()?, options, &mut out)?,
        ["security-page"] => security_page::run(&Repo::open()?, &mut out)?,
        ["sbom"] => sbom::run(&Repo::open()?, &mut out)?,
        ["test"] => tests::run(&Repo::open()?, &mut out)?,
        ["skipped-tests"] => skipped::run(&mut out)?,
        ["help" | "--help" | "-h"] => {
            out.write_all(USAGE.as_bytes())?;
            true
        }
        _ => {
            write!(std::io::stderr(), "{USAGE}")?;
            return Ok(ExitCode::from(2));
        }
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
