//! All that is measured of one state of the code.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::source::{Kind, Source};
use super::tree::Crate;
use super::{cycles, items, patterns, sessions};

/// A production file with less code than this should be part of another one.
const SMALL_FILE_LINES: usize = 30;
/// A name that is given to so many types says nothing.
const SHARED_NAME_TYPES: usize = 3;
/// A function longer than this should be several.
pub(super) const LONG_FUNCTION_LINES: usize = 70;

/// Lines of a crate.
#[derive(Debug, Default, Clone)]
pub(super) struct Lines {
    pub(super) files: usize,
    pub(super) code: usize,
    pub(super) test: usize,
    pub(super) doc: usize,
    pub(super) comment: usize,
    pub(super) ships: bool,
}

/// How long functions are.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    pub(super) count: usize,
    pub(super) p50: usize,
    pub(super) p90: usize,
    pub(super) p99: usize,
    pub(super) max: usize,
    /// Length and place of the long ones, longest first.
    pub(super) long: Vec<(usize, String)>,
}

/// The figures.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) crates: BTreeMap<String, Lines>,
    /// Code of every file that ships, by its path.
    pub(super) files: BTreeMap<String, usize>,
    pub(super) functions: Lengths,
    pub(super) test_functions: Lengths,
    pub(super) small_files: Vec<(String, usize)>,
    /// Modules in all, and those in a knot, of each crate that ships.
    pub(super) knots: BTreeMap<String, (usize, Vec<String>)>,
    pub(super) types: usize,
    /// Names of several types, with the places.
    pub(super) shared_names: BTreeMap<String, Vec<String>>,
    pub(super) sessions: BTreeMap<String, Vec<String>>,
    pub(super) patterns: Vec<(&'static str, Vec<String>)>,
}

impl Figures {
    /// Measures.
    pub(super) fn of(crates: &[Crate]) -> Self {
        let shipped: Vec<&Crate> = crates.iter().filter(|it| it.ships).collect();
        let files: Vec<&Source> = shipped.iter().flat_map(|it| &it.files).collect();
        let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in &files {
            for (name, line) in items::types(file) {
                types.entry(name).or_default().push(format!("{}:{}", file.path, line + 1));
            }
        }
        let knots = shipped.iter().map(|it| {
            let knot = cycles::knot(it);
            (it.folder.clone(), (knot.modules, knot.knotted))
        });
        Self {
            crates: crates.iter().map(|it| (it.folder.clone(), lines(it))).collect(),
            files: files
                .iter()
                .map(|it| (it.path.clone(), it.production_lines().count()))
                .collect(),
            functions: lengths(&files, false),
            test_functions: lengths(
                &crates.iter().flat_map(|it| &it.files).collect::<Vec<_>>(),
                true,
            ),
            small_files: files.iter().filter_map(|it| small(it)).collect(),
            knots: knots.collect(),
            types: types.values().map(Vec::len).sum(),
            shared_names: types.into_iter().filter(|it| it.1.len() >= SHARED_NAME_TYPES).collect(),
            sessions: sessions::shapes(crates),
            patterns: patterns::PATTERNS.iter().map(|it| (it.name, it.find(crates))).collect(),
        }
    }

    /// Lines of everything that ships.
    pub(super) fn production(&self) -> Lines {
        let mut sum = Lines { ships: true, ..Lines::default() };
        for it in self.crates.values().filter(|it| it.ships) {
            sum.files += it.files;
            sum.code += it.code;
            sum.test += it.test;
            sum.doc += it.doc;
            sum.comment += it.comment;
        }
        sum
    }

    /// The shared names that stand in several crates, with how many those are.
    pub(super) fn names_across(&self) -> BTreeMap<&str, usize> {
        let crates = |places: &[String]| {
            let folders = places.iter().filter_map(|it| it.split_once("/src/"));
            folders.map(|it| it.0).collect::<BTreeSet<_>>().len()
        };
        let names = self.shared_names.iter().map(|it| (it.0.as_str(), crates(it.1)));
        names.filter(|it| it.1 >= SHARED_NAME_TYPES).collect()
    }

    /// The figures for programs.
    pub(super) fn to_json(&self) -> Value {
        let lines = |it: &Lines| {
            json!({ "files": it.files, "code": it.code, "test": it.test, "doc": it.doc,
                    "comment": it.comment, "ships": it.ships })
        };
        let lengths = |it: &Lengths| {
            json!({ "count": it.count, "p50": it.p50, "p90": it.p90, "p99": it.p99,
                    "max": it.max, "over_70": it.long.len() })
        };
        let knots = self.knots.iter().map(|(name, (modules, knotted))| {
            (name.clone(), json!({ "modules": modules, "in_cycles": knotted }))
        });
        let patterns =
            self.patterns.iter().map(|(name, found)| ((*name).to_owned(), found.len().into()));
        json!({
            "production": lines(&self.production()),
            "crates": self.crates.iter().map(|it| (it.0.clone(), lines(it.1))).collect::<serde_json::Map<_, _>>(),
            "functions": lengths(&self.functions),
            "test_functions": lengths(&self.test_functions),
            "small_files": self.small_files.iter().map(|it| &it.0).collect::<Vec<_>>(),
            "module_cycles": knots.collect::<serde_json::Map<_, _>>(),
            "types": self.types,
            "shared_names": self.shared_names,
            "shared_names_across_crates": self.names_across(),
            "session_shapes": self.sessions,
            "patterns": patterns.collect::<serde_json::Map<_, _>>(),
        })
    }
}

fn lines(it: &Crate) -> Lines {
    let mut lines = Lines { files: it.files.len(), ships: it.ships, ..Lines::default() };
    for line in it.files.iter().flat_map(|it| &it.lines) {
        match (line.kind, line.test) {
            (Kind::Blank, _) => {}
            (Kind::Code, false) => lines.code += 1,
            (Kind::Code, true) => lines.test += 1,
            (Kind::Doc, _) => lines.doc += 1,
            (Kind::Comment, _) => lines.comment += 1,
        }
    }
    lines
}

fn lengths(files: &[&Source], tests: bool) -> Lengths {
    let mut all = Vec::new();
    for file in files {
        for function in items::functions(file).into_iter().filter(|it| it.test == tests) {
            let place = format!("{}:{} {}", file.path, function.lines.0 + 1, function.name);
            all.push((function.len(), place));
        }
    }
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let at = |share: usize| all.get(all.len() * (100 - share) / 100).map_or(0, |it| it.0);
    Lengths {
        count: all.len(),
        p50: at(50),
        p90: at(90),
        p99: at(99),
        max: at(100),
        long: all.into_iter().take_while(|it| it.0 > LONG_FUNCTION_LINES).collect(),
    }
}

/// A file that is too small to be one: not a module's or a crate's root.
fn small(file: &Source) -> Option<(String, usize)> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let code = file.production_lines().count();
    let counts =
        code > 0 && code < SMALL_FILE_LINES && !matches!(name, "mod.rs" | "lib.rs" | "main.rs");
    counts.then(|| (file.path.clone(), code))
}
