//! What is in the program: every crate that is linked into `wharf`, as CycloneDX.
//!
//! Crates that only build, test or write code are left out: they are not in what is handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::repo::Repo;

const PROGRAM: &str = "wharf-cli";
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Writes the list.
pub(crate) fn run(repo: &Repo, out: &mut impl Write) -> Result<bool> {
    let args = ["metadata", "--format-version=1", "--locked", "--filter-platform", PLATFORM];
    let metadata: Value = serde_json::from_str(&repo.output_of("cargo", &args)?)?;
    let lock = repo.read("Cargo.lock")?;
    let sbom =
        document(&metadata, &checksums(&lock)).context("cargo's metadata is not as usual")?;
    serde_json::to_writer_pretty(&mut *out, &sbom)?;
    writeln!(out)?;
    Ok(true)
}

/// The hashes of packages, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(" = \"")?.strip_suffix('"').map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

fn document(metadata: &Value, sums: &BTreeMap<(String, String), String>) -> Option<Value> {
    let packages: BTreeMap<&str, &Value> = metadata["packages"]
        .as_array()?
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()?
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let program = *packages.iter().find(|(_, package)| package["name"] == PROGRAM)?.0;
    let linked = reached(program, &nodes, &packages);
    let components: Vec<_> = linked
        .iter()
        .filter(|id| **id != program)
        .filter_map(|id| component(packages.get(id)?, sums))
        .collect();
    let dependencies: Vec<_> = linked
        .iter()
        .filter_map(|id| {
            let on: BTreeSet<_> = uses(nodes.get(id)?)
                .filter(|used| linked.contains(used))
                .filter_map(|used| purl(packages.get(used)?))
                .collect();
            Some(json!({"ref": purl(packages.get(id)?)?, "dependsOn": on}))
        })
        .collect();
    let mut subject = component(packages.get(program)?, sums)?;
    subject["type"] = "application".into();
    subject["name"] = "wharf".into();
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// What is linked into a package, itself included.
fn reached<'m>(
    from: &'m str,
    nodes: &BTreeMap<&'m str, &'m Value>,
    packages: &BTreeMap<&'m str, &'m Value>,
) -> BTreeSet<&'m str> {
    let (mut found, mut next) = (BTreeSet::from([from]), vec![from]);
    while let Some(id) = next.pop() {
        for used in nodes.get(id).into_iter().flat_map(|node| uses(node)) {
            let is_macro = packages.get(used).is_some_and(|package| is_macro(package));
            if !is_macro && found.insert(used) {
                next.push(used);
            }
        }
    }
    found
}

/// What a package uses when it runs.
fn uses(node: &Value) -> impl Iterator<Item = &str> {
    let all = node["deps"].as_array().into_iter().flatten();
    let runs = |used: &&Value| {
        let kinds = used["dep_kinds"].as_array().into_iter().flatten();
        kinds.into_iter().any(|kind| kind["kind"].is_null())
    };
    all.filter(runs).filter_map(|used| used["pkg"].as_str())
}

/// Whether a package only writes code while others are compiled.
fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    let mut kinds = targets.flat_map(|target| target["kind"].as_array().into_iter().flatten());
    kinds.any(|kind| kind == "proc-macro")
}

fn component(package: &Value, sums: &BTreeMap<(String, String), String>) -> Option<Value> {
    let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
    let purl = purl(package)?;
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    });
    if let Some(license) = package["license"].as_str() {
        // Cargo still takes the old spelling with a slash.
        let expression = license.replace('/', " OR ").replace("  ", " ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(description) = package["description"].as_str() {
        component["description"] =
            description.split_whitespace().collect::<Vec<_>>().join(" ").into();
    }
    if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    Some(component)
}

fn purl(package: &Value) -> Option<String> {
    Some(format!("pkg:cargo/{}@{}", package["name"].as_str()?, package["version"].as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_linked_is_listed_with_its_hash_and_license() {
        let package = |name: &str, kind: &str| {
            json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                   "description": "does\n things", "targets": [{"kind": [kind]}]})
        };
        let uses = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                package(PROGRAM, "bin"),
                package("linked", "lib"),
                package("deep", "lib"),
                package("tested", "lib"),
                package("built", "lib"),
                package("derive", "proc-macro"),
                package("of-derive", "lib"),
            ],
            "resolve": {"nodes": [
                {"id": PROGRAM, "deps": [
                    uses("linked", Value::Null), uses("tested", json!("dev")),
                    uses("built", json!("build")), uses("derive", Value::Null)]},
                {"id": "linked", "deps": [uses("deep", Value::Null)]},
                {"id": "derive", "deps": [uses("of-derive", Value::Null)]},
                {"id": "deep", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"deep\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let sbom = document(&metadata, &checksums(lock)).expect("a document");
        let names: Vec<_> = sbom["components"].as_array().expect("some").iter().collect();
        assert_eq!(names.iter().map(|it| &it["name"]).collect::<Vec<_>>(), ["deep", "linked"]);
        assert_eq!(names[0]["hashes"][0]["content"], "abc");
        assert_eq!(names[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(names[0]["description"], "does things");
        assert_eq!(sbom["metadata"]["component"]["name"], "wharf");
        let tree = sbom["dependencies"].as_array().expect("some");
        let own = tree.iter().find(|it| it["ref"] == "pkg:cargo/wharf-cli@1.0.0").expect("there");
        assert_eq!(own["dependsOn"], json!(["pkg:cargo/linked@1.0.0"]));
    }
}
