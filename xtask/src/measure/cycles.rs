//! Which modules of a crate need each other.
//!
//! A module is what stands directly below `src`, with all its files; it needs another one when its
//! production code names `crate::other` or reaches it by `super`. Modules that can reach each other
//! are one knot, whatever their files are called.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, Token, end_of};
use super::tree::Crate;

/// How many modules a crate has, and which of them are in a knot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Knot {
    pub(super) modules: usize,
    pub(super) knotted: Vec<String>,
}

/// Looks at one crate.
pub(super) fn knot(it: &Crate) -> Knot {
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let files: Vec<_> =
        it.files.iter().filter_map(|file| Some((module_path(file)?, file))).collect();
    for (path, _) in &files {
        needs.entry(path[0].clone()).or_default();
    }
    for (path, file) in &files {
        let named = named(&file.production(), path);
        let named: Vec<String> =
            named.into_iter().filter(|it| *it != path[0] && needs.contains_key(it)).collect();
        needs.entry(path[0].clone()).or_default().extend(named);
    }
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        needs.keys().map(|it| (it, reachable(&needs, it))).collect();
    let is_knotted =
        |it: &&String| reach[it].iter().any(|other| other != it && reach[other].contains(*it));
    Knot { modules: needs.len(), knotted: needs.keys().filter(is_knotted).cloned().collect() }
}

/// The path of a file's module; nothing for the crate's root and for tests.
fn module_path(file: &Source) -> Option<Vec<String>> {
    let (_, below) = file.path.split_once("/src/")?;
    let is_test = file.lines.iter().all(|line| line.test);
    let below = below.trim_end_matches(".rs").trim_end_matches("/mod");
    let path: Vec<String> = below.split('/').map(str::to_owned).collect();
    let is_root = path.len() == 1 && matches!(path[0].as_str(), "lib" | "main");
    (!is_test && !is_root && path[0] != "bin").then_some(path)
}

/// The modules below the root that these words name.
fn named(tokens: &[Token<'_>], path: &[String]) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for at in 0..tokens.len() {
        let text = |ahead: usize| tokens.get(at + ahead).map_or("", |it| it.text);
        let after_path = at > 0 && tokens[at - 1].text == ":";
        if after_path || text(1) != ":" || text(2) != ":" {
            continue;
        }
        match text(0) {
            "crate" => named.extend(first_names(tokens, at + 3)),
            "super" => {
                let mut ups = 1;
                while text(ups * 3) == "super" {
                    ups += 1;
                }
                match path.len().checked_sub(ups) {
                    Some(0) => named.extend(first_names(tokens, at + ups * 3)),
                    _ => continue,
                }
            }
            _ => {}
        }
    }
    named
}

/// The first word of a path, or of each path in braces.
fn first_names(tokens: &[Token<'_>], at: usize) -> Vec<String> {
    let Some(first) = tokens.get(at) else { return Vec::new() };
    if first.text != "{" {
        return vec![first.text.to_owned()];
    }
    let end = end_of(tokens, at);
    let (mut names, mut depth, mut begins) = (Vec::new(), 0usize, true);
    for token in &tokens[at + 1..end] {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => begins = true,
            text if begins && depth == 0 => {
                names.push(text.to_owned());
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn reachable<'a>(
    needs: &'a BTreeMap<String, BTreeSet<String>>,
    from: &'a String,
) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = needs[from].iter().collect();
    while let Some(it) = open.pop() {
        if seen.insert(it) {
            open.extend(&needs[it]);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_reach_each_other_are_a_knot() {
        let files = [
            ("c/src/lib.rs", "mod a; mod b; mod c; mod d;"),
            ("c/src/a.rs", "use crate::{b::B, d};"),
            ("c/src/b/mod.rs", "use super::c::C;"),
            ("c/src/b/deep.rs", "use super::other; use super::super::d;"),
            ("c/src/c.rs", "fn f() -> crate::a::A {}\n#[cfg(test)]\nmod tests { use crate::d; }"),
            ("c/src/d.rs", "#[cfg(test)]\nmod tests { use crate::a; }\nstruct D;"),
        ];
        let files = files.iter().map(|(path, text)| Source::read(path, text)).collect();
        let found = knot(&Crate { folder: "c".to_owned(), ships: true, files });
        let knotted = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(found, Knot { modules: 4, knotted });
    }
}
