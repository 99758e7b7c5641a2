//! Checks the dependencies of every crate against the table.

use super::manifests::{CrateFacts, Use};
use super::table::{APART, LAYERS, NOT_IN_THE_KERNEL, ROWS, Reach, Row, TEST_SUPPORT};

/// Names every dependency that the table does not allow.
pub(super) fn check(crates: &[CrateFacts]) -> Vec<String> {
    crates.iter().flat_map(check_one).collect()
}

fn check_one(facts: &CrateFacts) -> Vec<String> {
    let folder = facts.folder.as_str();
    let Some(row) = ROWS.iter().find(|row| row.crates.contains(&folder)) else {
        return vec![format!(
            "crate {folder} is not in the direction table; give it a row in \
             xtask/src/tidy/table.rs and in ARCHITECTURE.md"
        )];
    };
    let mut findings = Vec::new();
    let expected = expected_name(folder);
    if facts.name != expected {
        findings.push(format!("crate {folder} is called {} and should be {expected}", facts.name));
    }
    for dependency in &facts.uses {
        match dependency {
            Use::Workspace { folder: target, in_tests: false } => {
                if !row.may_use.iter().any(|reach| reaches(*reach, target)) {
                    findings.push(format!("{folder} may not depend on {target}"));
                }
            }
            Use::Workspace { folder: target, in_tests: true } => {
                if !tests_may_use(row, folder, target) {
                    findings.push(format!("the tests of {folder} may not depend on {target}"));
                }
            }
            Use::External { name, in_tests: false } => {
                if group(folder) == "kernel" && NOT_IN_THE_KERNEL.contains(&name.as_str()) {
                    findings.push(format!(
                        "{folder} may not depend on {name}: the kernel does no I/O and knows \
                         neither clock nor chance"
                    ));
                }
            }
            Use::External { in_tests: true, .. } => {}
        }
    }
    findings
}

/// Whether the tests of a crate may use another: same or lower layer, never across a wall.
fn tests_may_use(row: &Row, from: &str, to: &str) -> bool {
    if row.may_use.iter().any(|reach| reaches(*reach, to)) {
        return true;
    }
    if matches!(group(from), "app" | "proof") {
        return true;
    }
    if APART.iter().any(|(a, b)| {
        (reaches(*a, from) && reaches(*b, to)) || (reaches(*b, from) && reaches(*a, to))
    }) {
        return false;
    }
    let supported = group(from) != "kernel" && TEST_SUPPORT.iter().any(|reach| reaches(*reach, to));
    let downward = matches!((layer(from), layer(to)), (Some(a), Some(b)) if b <= a);
    supported || downward
}

fn reaches(reach: Reach, folder: &str) -> bool {
    match reach {
        Reach::Crate(name) => name == folder,
        Reach::Group(name) => name == group(folder),
        Reach::Everything => true,
    }
}

fn group(folder: &str) -> &str {
    folder.split('/').next().unwrap_or(folder)
}

fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|groups| groups.contains(&group(folder)))
}

fn expected_name(folder: &str) -> String {
    if let Some(name) = folder.strip_prefix("examples/agents/") {
        return format!("{name}-agent");
    }
    if let Some(tool) = folder.strip_prefix("examples/tools/rust/") {
        return format!("{}-tool", tool.split('/').nth(1).unwrap_or(tool));
    }
    if let Some(name) = folder.strip_prefix("examples/sdk/") {
        return format!("{name}-example");
    }
    match folder.rsplit_once('/') {
        Some((_, name)) => format!("wharf-{name}"),
        None => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(folder: &str, uses: Vec<Use>) -> CrateFacts {
        CrateFacts {
            name: expected_name(folder),
            folder: folder.to_owned(),
            manifest: format!("crates/{folder}/Cargo.toml"),
            uses,
        }
    }

    fn on(folder: &str, in_tests: bool) -> Use {
        Use::Workspace { folder: folder.to_owned(), in_tests }
    }

    #[track_caller]
    fn check_pair(from: &str, to: &str, in_tests: bool, allowed: bool) {
        let findings = check(&[facts(from, vec![on(to, in_tests)])]);
        assert_eq!(findings.is_empty(), allowed, "{from} -> {to}, tests {in_tests}: {findings:?}");
    }

    #[test]
    fn code_follows_the_table() {
        for (from, to, allowed) in [
            ("kernel/domain", "kernel/vocab", true),
            ("kernel/vocab", "kernel/domain", false),
            ("kernel/domain", "kernel/wire", false),
            ("kernel/wire", "kernel/domain", false),
            ("engine/ports", "kernel/journal", false),
            ("engine/memory", "kernel/journal", true),
            ("engine/engine", "kernel/journal", false),
            ("engine/engine", "adapters/store-sqlite", false),
            ("adapters/store-sqlite", "engine/ports", true),
            ("adapters/store-sqlite", "engine/engine", false),
            ("edges/http", "engine/engine", true),
            ("edges/http", "engine/ports", true),
            ("edges/http", "adapters/store-sqlite", false),
            ("edges/builtin", "kernel/wire", false),
            ("app/server", "edges/builtin", true),
            ("app/server", "adapters/launcher", true),
            ("app/server", "kernel/wire", false),
            ("app/cli", "proof/testkit", true),
            ("app/cli", "engine/engine", false),
            ("proof/bench", "app/server", true),
            ("proof/testkit", "app/server", false),
        ] {
            check_pair(from, to, false, allowed);
        }
    }

    #[test]
    fn tests_may_reach_down_and_sideways_but_not_across_a_wall() {
        for (from, to, allowed) in [
            ("edges/http", "engine/ports", true),
            ("edges/http", "edges/builtin", true),
            ("edges/http", "adapters/store-sqlite", false),
            ("adapters/store-sqlite", "edges/http", false),
            ("adapters/store-sqlite", "engine/engine", true),
            ("adapters/store-sqlite", "proof/testkit", true),
            ("kernel/domain", "kernel/wire", false),
            ("kernel/domain", "kernel/journal", true),
            ("kernel/domain", "proof/testkit", false),
            ("engine/engine", "edges/http", false),
            ("engine/engine", "proof/testkit", true),
            ("app/server", "kernel/wire", true),
            ("proof/testkit", "adapters/store-sqlite", true),
        ] {
            check_pair(from, to, true, allowed);
        }
    }

    #[test]
    fn a_crate_outside_the_table_is_refused() {
        let findings = check(&[facts("edges/telepathy", Vec::new())]);
        assert!(findings[0].contains("not in the direction table"), "{findings:?}");
    }

    #[test]
    fn a_crate_is_called_after_its_folder() {
        let mut odd = facts("kernel/vocab", Vec::new());
        odd.name = "words".to_owned();
        assert_eq!(check(&[odd]).len(), 1);
    }

    #[test]
    fn the_kernel_has_no_runtime_except_in_tests() {
        let tokio = |in_tests| Use::External { name: "tokio".to_owned(), in_tests };
        assert_eq!(check(&[facts("kernel/domain", vec![tokio(false)])]).len(), 1);
        assert!(check(&[facts("kernel/domain", vec![tokio(true)])]).is_empty());
        assert!(check(&[facts("engine/engine", vec![tokio(false)])]).is_empty());
    }

    #[test]
    fn every_name_in_the_table_is_a_crate_of_the_table() {
        let known: Vec<&str> = ROWS.iter().flat_map(|row| row.crates.iter().copied()).collect();
        for row in ROWS {
            for reach in row.may_use {
                match reach {
                    Reach::Crate(name) => assert!(known.contains(name), "{name}"),
                    Reach::Group(name) => assert!(known.iter().any(|c| group(c) == *name)),
                    Reach::Everything => {}
                }
            }
        }
        for name in known {
            assert!(layer(name).is_some(), "{name} stands in no layer");
        }
    }
}
