//! Figures for people.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use super::figures::{Figures, LONG_FUNCTION_LINES, Lengths, Lines};

/// All tables, each figure beside what it was before.
pub(super) fn tables(now: &Figures, before: Option<&Figures>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "lines, without blank ones")?;
    writeln!(
        out,
        "{:<32} {:>16} {:>16} {:>16} {:>14} {:>14}",
        "crate", "code", "test", "doc", "comment", "files"
    )?;
    let row = |out: &mut dyn Write, name: &str, now: Option<&Lines>, was: Option<&Lines>| {
        let cell =
            |of: fn(&Lines) -> usize| change(now.map_or(0, of), before.map(|_| was.map_or(0, of)));
        writeln!(
            out,
            "{name:<32} {:>16} {:>16} {:>16} {:>14} {:>14}",
            cell(|it| it.code),
            cell(|it| it.test),
            cell(|it| it.doc),
            cell(|it| it.comment),
            cell(|it| it.files)
        )
    };
    let mut names: Vec<&String> = now.crates.keys().collect();
    names.extend(before.iter().flat_map(|it| it.crates.keys()));
    names.sort();
    names.dedup();
    for name in names {
        let was = before.and_then(|it| it.crates.get(name));
        row(out, name, now.crates.get(name), was)?;
    }
    row(out, "production", Some(&now.production()), before.map(Figures::production).as_ref())?;

    writeln!(out, "\nlines of functions")?;
    functions(out, "production", &now.functions, before.map(|it| &it.functions))?;
    functions(out, "tests", &now.test_functions, before.map(|it| &it.test_functions))?;
    for (lines, place) in now.functions.long.iter().take(10) {
        writeln!(out, "  {lines:>4} {place}")?;
    }

    writeln!(out, "\nmodules in a cycle, of all directly below src")?;
    for (name, (modules, knotted)) in &now.knots {
        let was = before.and_then(|it| it.knots.get(name));
        if !knotted.is_empty() || was.is_some_and(|it| !it.1.is_empty()) {
            let was = was.map_or_else(String::new, |it| format!("{} of {} → ", it.1.len(), it.0));
            writeln!(
                out,
                "  {name:<30} {was}{} of {modules}: {}",
                knotted.len(),
                knotted.join(" ")
            )?;
        }
    }

    writeln!(out, "\nthings to count")?;
    let mut count = |name: &str, of: &dyn Fn(&Figures) -> usize| {
        writeln!(out, "  {name:<44} {:>14}", change(of(now), before.map(of)))
    };
    count("production files under 30 lines of code", &|it| it.small_files.len())?;
    count("types", &|it| it.types)?;
    count("names of three or more types", &|it| it.shared_names.len())?;
    count("names of types in three or more crates", &|it| it.names_across().len())?;
    count("shapes of sessions", &|it| it.sessions.len())?;
    for (at, (name, _)) in now.patterns.iter().enumerate() {
        count(name, &|it| it.patterns[at].1.len())?;
    }
    writeln!(out, "\n--places shows where, --names shows the names; rules: xtask/src/measure/")
}

/// What became of the production code that was there, apart from what stands in new files. A file
/// that was moved or split is the one that it is most alike.
pub(super) fn like_for_like(
    now: &Figures,
    before: &Figures,
    renames: &BTreeMap<String, String>,
    out: &mut dyn Write,
) -> Result<()> {
    let then = |path: &String| before.files.get(renames.get(path).unwrap_or(path));
    let (mut was, mut is, mut new) = (0, 0, 0);
    for (path, lines) in &now.files {
        match then(path) {
            Some(lines_then) => (was, is) = (was + lines_then, is + lines),
            None => new += lines,
        }
    }
    let all: usize = before.files.values().sum();
    writeln!(out, "\nproduction code, like for like")?;
    writeln!(out, "  in files that are still there   {was} → {is}")?;
    writeln!(out, "  in files that went              {} → 0", all.saturating_sub(was))?;
    writeln!(out, "  in files that were there, sum   {all} → {is}")?;
    writeln!(out, "  in new files                    0 → {new}")
}

fn functions(
    out: &mut dyn Write,
    name: &str,
    now: &Lengths,
    before: Option<&Lengths>,
) -> Result<()> {
    let cell = |of: fn(&Lengths) -> usize| change(of(now), before.map(of));
    writeln!(
        out,
        "  {name:<10} {} functions, p50 {}, p90 {}, p99 {}, max {}, over {LONG_FUNCTION_LINES}: {}",
        cell(|it| it.count),
        cell(|it| it.p50),
        cell(|it| it.p90),
        cell(|it| it.p99),
        cell(|it| it.max),
        cell(|it| it.long.len())
    )
}

fn change(now: usize, before: Option<usize>) -> String {
    match before {
        Some(before) if before != now => format!("{before} → {now}"),
        _ => now.to_string(),
    }
}

/// The names that several types share, those of most crates first.
pub(super) fn names(now: &Figures, out: &mut dyn Write) -> Result<()> {
    let across = now.names_across();
    let crates = |name: &str| across.get(name).copied().unwrap_or(0);
    let mut names: Vec<_> = now.shared_names.iter().collect();
    names.sort_by_key(|it| std::cmp::Reverse((crates(it.0), it.1.len())));
    for (name, places) in names {
        let crates = match crates(name) {
            0 => String::new(),
            n => format!(" in {n} crates"),
        };
        writeln!(out, "{name}: {} types{crates}", places.len())?;
        for place in places {
            writeln!(out, "    {place}")?;
        }
    }
    Ok(())
}

/// Where what was counted stands.
pub(super) fn places(now: &Figures, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "production files under 30 lines of code")?;
    for (path, lines) in &now.small_files {
        writeln!(out, "    {lines:>4} {path}")?;
    }
    writeln!(out, "shapes of sessions")?;
    for (shape, sessions) in &now.sessions {
        writeln!(out, "    {}: {shape}", sessions.join(" "))?;
    }
    for (name, places) in &now.patterns {
        writeln!(out, "{name}")?;
        for place in places {
            writeln!(out, "    {place}")?;
        }
    }
    Ok(())
}
