//! Laws of the matchers, on patterns and texts drawn from small alphabets so that they meet.

use proptest::prelude::*;
use proptest::sample::select;
use wharf_domain::Permission;
use wharf_domain::permission::{HostPattern, PathGlob, ToolPattern};
use wharf_vocab::ToolId;

/// A slow matcher that says what `*`, `?` and whole segments `**` mean and nothing else.
fn fits(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            fits(rest, path) || (!path.is_empty() && fits(pattern, &path[1..]))
        }
        ([segment, rest @ ..], [first, below @ ..]) => {
            let (segment, first): (Vec<char>, Vec<char>) =
                (segment.chars().collect(), first.chars().collect());
            fits_segment(&segment, &first) && fits(rest, below)
        }
        _ => false,
    }
}

fn fits_segment(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['*', rest @ ..], _) => {
            fits_segment(rest, text) || (!text.is_empty() && fits_segment(pattern, &text[1..]))
        }
        (['?', rest @ ..], [_, others @ ..]) => fits_segment(rest, others),
        ([literal, rest @ ..], [first, others @ ..]) => {
            literal == first && fits_segment(rest, others)
        }
        _ => false,
    }
}

fn segments(path: &str) -> Vec<&str> {
    path[1..].split('/').filter(|segment| !segment.is_empty()).collect()
}

fn segment() -> impl Strategy<Value = String> {
    let piece = select(vec!["a", "b", "ä", "*", "?"]);
    prop::collection::vec(piece, 1..4)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("** is for whole segments", |text| !text.contains("**"))
}

fn path_pattern() -> impl Strategy<Value = String> {
    let segment =
        prop_oneof![4 => segment(), 1 => Just("**".to_owned()), 1 => Just("*".to_owned())];
    prop::collection::vec(segment, 1..5).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::collection::vec(select(vec!["a", "b", "ä", "c"]), 1..4);
    let name = name.prop_map(|pieces| pieces.concat());
    prop::collection::vec(name, 0..5).prop_map(|names| format!("/{}", names.join("/")))
}

/// A pattern that is likely, but not sure, to lie within the given one: some of its wildcards are
/// replaced by something more definite.
fn narrower(pattern: String) -> impl Strategy<Value = String> {
    let choices = prop::collection::vec(0_u8..6, pattern.split('/').count());
    choices.prop_map(move |choices| {
        let narrowed = pattern.split('/').zip(choices).map(|(segment, choice)| match choice {
            0 => segment.replace("**", "*/a").replace('?', "b"),
            1 if segment != "**" => segment.replace('*', "a"),
            2 if segment != "**" => segment.replace('*', "?"),
            3 => segment.replace("**", "a/**"),
            4 if segment == "**" => "*".to_owned(),
            5 if segment != "**" => segment.replace('*', "b*"),
            _ => segment.to_owned(),
        });
        narrowed.collect::<Vec<_>>().join("/")
    })
}

fn pair() -> impl Strategy<Value = (String, String)> {
    path_pattern().prop_flat_map(|wide| {
        let narrow = prop_oneof![3 => narrower(wide.clone()), 1 => path_pattern()];
        (Just(wide), narrow)
    })
}

/// Paths that the pattern fits, most of the time.
fn sample(pattern: &str, fill: &[String]) -> String {
    let mut fill = fill.iter().map(String::as_str).cycle();
    let mut next = || fill.next().unwrap_or("a");
    let mut names: Vec<String> = Vec::new();
    for segment in segments(pattern) {
        if segment == "**" {
            names.extend(next().split('c').filter(|name| !name.is_empty()).map(str::to_owned));
            continue;
        }
        let mut name = String::new();
        for c in segment.chars() {
            match c {
                '*' => name.push_str(next()),
                '?' => name.extend(next().chars().next()),
                c => name.push(c),
            }
        }
        names.push(if name.is_empty() { "a".to_owned() } else { name });
    }
    format!("/{}", names.join("/"))
}

fn fill() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abcä]{0,4}", 1..8)
}

fn glob(text: &str) -> PathGlob {
    PathGlob::parse(text).unwrap_or_else(|error| panic!("{text} {error}"))
}

/// All paths that are not too deep, with names that are not too long.
fn all_paths() -> Vec<String> {
    let mut paths = vec!["/".to_owned()];
    for (depth, letters) in [(2, 3), (3, 2), (4, 1)] {
        let mut names = vec![String::new()];
        for _ in 0..letters {
            let longer =
                names.iter().flat_map(|name| ["", "a", "b", "z"].map(|c| format!("{name}{c}")));
            names = longer.collect();
        }
        names.retain(|name| !name.is_empty());
        names.sort();
        names.dedup();
        let mut last = vec![String::new()];
        for _ in 0..depth {
            let deeper =
                last.iter().flat_map(|path| names.iter().map(move |n| format!("{path}/{n}")));
            last = deeper.collect();
            paths.extend(last.iter().cloned());
        }
    }
    paths
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

    #[test]
    fn paths_match_as_the_slow_matcher_says(pattern in path_pattern(), path in path(), fill in fill()) {
        for path in [path, sample(&pattern, &fill)] {
            let slow = fits(&segments(&pattern), &segments(&path));
            prop_assert_eq!(glob(&pattern).matches(&path), slow, "{} {}", pattern, path);
        }
    }

    #[test]
    fn what_is_covered_fits_nothing_more((wide, narrow) in pair(), path in path(), fill in fill()) {
        if glob(&wide).covers(&glob(&narrow)) {
            for path in [path, sample(&narrow, &fill)] {
                let escapes = glob(&narrow).matches(&path) && !glob(&wide).matches(&path);
                prop_assert!(!escapes, "{} does not cover {}: {}", wide, narrow, path);
            }
        }
    }

    #[test]
    fn covering_is_reflexive_and_transitive(
        (one, two, three) in pair().prop_flat_map(|(one, two)| {
            (Just(one), Just(two.clone()), narrower(two))
        }),
    ) {
        let (one, two, three) = (glob(&one), glob(&two), glob(&three));
        for pattern in [&one, &two, &three] {
            prop_assert!(pattern.covers(pattern) && glob("/**").covers(pattern), "{}", pattern);
        }
        if one.covers(&two) && two.covers(&three) {
            prop_assert!(one.covers(&three), "{} {} {}", one, two, three);
        }
    }

    #[test]
    fn a_root_holds_all_that_fits(pattern in path_pattern(), path in path(), fill in fill()) {
        let pattern = glob(&pattern);
        let (root, exact) = pattern.root();
        let below = |path: &str| {
            path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                || root == "/"
        };
        for path in [path, sample(&pattern.to_string(), &fill)] {
            if pattern.matches(&path) {
                prop_assert!(below(&path), "{} {}", pattern, path);
            } else if exact && pattern.is_tree() {
                prop_assert!(!below(&path), "{} {}", pattern, path);
            }
        }
    }

    #[test]
    fn tools_are_covered_only_by_wider_patterns(
        wide in "[ab*]{1,3}/[ab*]{1,3}",
        narrow in "[ab*]{1,3}/[ab*]{1,3}",
        tool in "[abc]{1,4}/[abc]{1,4}",
    ) {
        let (wide, narrow) = (ToolPattern::parse(&wide), ToolPattern::parse(&narrow));
        let (wide, narrow) = (wide.expect("valid"), narrow.expect("valid"));
        let id = ToolId::new(&tool).expect("valid");
        let slow = |pattern: &ToolPattern| {
            let pattern = pattern.to_string();
            fits(&pattern.split('/').collect::<Vec<_>>(), &tool.split('/').collect::<Vec<_>>())
        };
        // The slow matcher takes ** for many segments, which a tool's part never is.
        if !wide.to_string().contains("**") {
            prop_assert_eq!(wide.matches(&id), slow(&wide));
        }
        prop_assert!(wide.covers(&wide) && ToolPattern::any().covers(&wide));
        if wide.covers(&narrow) && narrow.matches(&id) {
            prop_assert!(wide.matches(&id), "{} {} {}", wide, narrow, tool);
        }
    }

    #[test]
    fn hosts_are_covered_only_by_wider_patterns(
        texts in prop::array::uniform3(r"(\*|(\*\.)?[ab](\.[ab]){0,2}|127\.0\.0\.[12]|\[::[12]\])(:[12])?"),
        host in r"([ab](\.[ab]){0,3}|127\.0\.0\.[12]|::[12])",
        port in 1_u16..4,
    ) {
        let [one, two, three] = texts.map(|text| HostPattern::parse(&text).expect("valid"));
        prop_assert!(one.covers(&one));
        if one.covers(&two) {
            prop_assert!(!two.matches(&host, port) || one.matches(&host, port), "{one} {two} {host}");
            prop_assert!(!two.covers(&three) || one.covers(&three), "{one} {two} {three}");
        }
    }

    #[test]
    fn a_permission_reads_back_as_it_is_shown(
        text in r"(filesystem:(read|write):[~/*?a.]{1,8}|network:egress:[*.:a1x0\[\]]{1,12}|tool:invoke:[a*/@1.]{1,8}|(secret|env|x):[a-z]{0,4}:[A1_.]{0,4})",
    ) {
        if let Ok(permission) = Permission::parse(&text) {
            let shown = permission.to_string();
            prop_assert_eq!(Permission::parse(&shown), Ok(permission.clone()));
            prop_assert!(permission.covers(&permission));
            prop_assert!(!permission.describe().is_empty());
        }
    }
}

/// On a whole small world of paths, `covers` says neither too much nor too little.
#[test]
fn covering_is_exact() {
    let patterns: Vec<PathGlob> = [
        "/**", "/*", "/a", "/a/**", "/a/*", "/*/a", "/**/a", "/a/**/b", "/a*", "/*a", "/?", "/??",
        "/a?", "/?a", "/*/*", "/*/**", "/**/*", "/a/b", "/a/b/**", "/a*/b", "/**/a/**", "/*a*",
        "/?*", "/?*?", "/a/*/b", "/a/**/*", "/a/*/**", "/**/b", "/**/a/b", "/ab", "/*/*/*",
    ]
    .iter()
    .map(|text| glob(text))
    .collect();
    let paths = all_paths();
    let fitting = |pattern: &PathGlob| -> Vec<bool> {
        paths.iter().map(|path| pattern.matches(path)).collect()
    };
    let patterns: Vec<_> = patterns.iter().map(|pattern| (pattern, fitting(pattern))).collect();
    for (wide, all) in &patterns {
        for (narrow, some) in &patterns {
            let within = some.iter().zip(all).all(|(narrow, wide)| !narrow || *wide);
            assert_eq!(wide.covers(narrow), within, "{wide} {narrow}");
        }
    }
}
