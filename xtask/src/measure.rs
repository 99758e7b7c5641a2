//! `cargo xtask measure`: the size and shape of the code, as figures that can be compared.
//!
//! Production code is what ships: not tests, not the contract suite of the ports, not `proof/`,
//! examples or this crate. Lines are counted once, as code, test (whatever belongs to one), doc
//! comment, other comment or blank. A function's length includes its signature and braces.

mod cycles;
mod figures;
mod items;
mod patterns;
mod report;
mod sessions;
pub(crate) mod source;
mod tree;

use std::io::Write;

use anyhow::{Result, bail};

use self::figures::Figures;
use crate::repo::Repo;

#[derive(Debug, Default)]
struct Options<'a> {
    json: bool,
    names: bool,
    places: bool,
    against: Option<&'a str>,
}

/// Measures the checkout, and a commit to compare it with if one is named.
pub(crate) fn run(repo: &Repo, args: &[&str], out: &mut dyn Write) -> Result<bool> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (*arg, args.as_slice()) {
            ("--json", _) => options.json = true,
            ("--names", _) => options.names = true,
            ("--places", _) => options.places = true,
            ("--against", [commit, ..]) => {
                options.against = Some(commit);
                args.next();
            }
            ("--against", []) => bail!("--against needs a commit"),
            (other, _) => bail!("measure does not know {other}"),
        }
    }
    let now = Figures::of(&tree::checkout(repo)?);
    let before = match options.against {
        Some(commit) => Some(Figures::of(&tree::commit(repo, commit)?)),
        None => None,
    };
    if options.json {
        let mut json = now.to_json();
        if let (Some(before), Some(json)) = (&before, json.as_object_mut()) {
            json.insert("before".to_owned(), before.to_json());
        }
        serde_json::to_writer_pretty(&mut *out, &json)?;
        writeln!(out)?;
    } else if options.names {
        report::names(&now, out)?;
    } else if options.places {
        report::places(&now, out)?;
    } else {
        report::tables(&now, before.as_ref(), out)?;
        if let (Some(before), Some(commit)) = (&before, options.against) {
            report::like_for_like(&now, before, &tree::renames(repo, commit)?, out)?;
        }
    }
    Ok(true)
}
