//! The lock of an environment: each package at one version, with the hash of its wheel.

use std::fmt::Write as _;

use serde::Deserialize;
use wharf_domain::provider::LockedPackage;
use wharf_hosting::toml_table;
use wharf_vocab::{Code, shown};

/// Packages of one environment, those that others need included.
const PACKAGES_MAX: usize = 1_000;
const NAME_BYTES_MAX: usize = 200;

/// What pip says it would install.
#[derive(Deserialize)]
struct InstallReport {
    install: Vec<Planned>,
}

#[derive(Deserialize)]
struct Planned {
    metadata: Metadata,
    download_info: Download,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct Download {
    url: String,
    archive_info: Option<Archive>,
}

#[derive(Deserialize)]
struct Archive {
    hash: Option<String>,
    #[serde(default)]
    hashes: std::collections::BTreeMap<String, String>,
}

/// Reads what pip would install. What is wrong is a sentence without its end.
pub(super) fn of_pip(report: &[u8]) -> Result<Vec<LockedPackage>, String> {
    let report: InstallReport = serde_json::from_slice(report).map_err(|_| {
        "This pip does not say what it would install; version 22.3 or later does".to_owned()
    })?;
    let planned = report.install.into_iter().map(|planned| {
        let Planned { metadata: Metadata { name, version }, download_info } = planned;
        let plain = |hash: &str| hash.strip_prefix("sha256=").map(str::to_owned);
        let sha256 = download_info.archive_info.and_then(|mut archive| {
            let plain = archive.hash.as_deref().and_then(plain);
            archive.hashes.remove("sha256").or(plain)
        });
        (name, version, sha256.filter(|_| is_wheel(&download_info.url)))
    });
    lock_of(planned)
}

/// What uv says it would install: a lock of the form that all of Python shares, with the one wheel
/// of each package that fits this machine.
#[derive(Deserialize)]
struct UvLock {
    #[serde(default)]
    packages: Vec<UvPackage>,
}

#[derive(Deserialize)]
struct UvPackage {
    name: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    wheels: Vec<UvWheel>,
}

#[derive(Deserialize)]
struct UvWheel {
    #[serde(default)]
    hashes: std::collections::BTreeMap<String, String>,
}

/// Reads what uv would install. What is wrong is a sentence without its end.
pub(super) fn of_uv(lock: &[u8]) -> Result<Vec<LockedPackage>, String> {
    let unread = || "This uv does not say what it would install".to_owned();
    let table = toml_table(lock, Code::ToolEnvironmentFailed).map_err(|_| unread())?;
    let lock: UvLock = serde_json::from_value(table.into()).map_err(|_| unread())?;
    lock_of(lock.packages.into_iter().map(|package| {
        let wheel = package.wheels.into_iter().next();
        let sha256 = wheel.and_then(|mut wheel| wheel.hashes.remove("sha256"));
        (package.name, package.version, sha256)
    }))
}

/// A lock of packages, each with its version and the hash of its wheel, if it has one.
fn lock_of(
    planned: impl ExactSizeIterator<Item = (String, String, Option<String>)>,
) -> Result<Vec<LockedPackage>, String> {
    if planned.len() > PACKAGES_MAX {
        return Err(format!("More than {PACKAGES_MAX} packages would be installed"));
    }
    let mut packages = planned.map(locked).collect::<Result<Vec<_>, String>>()?;
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(packages)
}

fn is_wheel(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    std::path::Path::new(path).extension().is_some_and(|end| end == "whl")
}

fn locked(
    (name, version, sha256): (String, String, Option<String>),
) -> Result<LockedPackage, String> {
    let told = shown(&name, 80).to_string();
    let is_word = |text: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+!".contains(&byte);
        (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter)
    };
    if !is_word(&name) || !is_word(&version) {
        return Err(format!("The package {told} has a name or a version that cannot be locked"));
    }
    let is_hash = |hash: &String| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    match sha256.filter(is_hash) {
        Some(sha256) => {
            let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
            Ok(LockedPackage { name, version, sha256: sha256.to_ascii_lowercase() })
        }
        _ => Err(format!("The package {told} cannot be pinned: it is no wheel with a hash")),
    }
}

/// The lock as pip reads it.
pub(super) fn text(packages: &[LockedPackage]) -> String {
    let mut text = String::new();
    for LockedPackage { name, version, sha256 } in packages {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name}=={version} --hash=sha256:{sha256}");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn planned(name: &str, url: &str, archive: &Value) -> Value {
        let metadata = json!({"name": name, "version": "1.0"});
        json!({"metadata": metadata, "download_info": {"url": url, "archive_info": archive}})
    }

    fn read_of(install: &[Value]) -> Result<Vec<LockedPackage>, String> {
        of_pip(json!({"version": "1", "install": install}).to_string().as_bytes())
    }

    #[test]
    fn a_lock_names_each_wheel_with_its_hash() {
        let hash = "A".repeat(64);
        let both = [
            planned("Typing_Extensions", "https://x/t.whl#a", &json!({"hashes": {"sha256": hash}})),
            planned("six", "file:///w/six.whl", &json!({"hash": format!("sha256={hash}")})),
        ];
        let packages = read_of(&both).expect("wheels");
        let hash = hash.to_lowercase();
        let lines =
            format!("six==1.0 --hash=sha256:{hash}\ntyping-extensions==1.0 --hash=sha256:{hash}\n");
        assert_eq!(text(&packages), lines);
    }

    #[test]
    fn what_is_built_or_has_no_hash_is_not_locked() {
        let hashed = json!({"hashes": {"sha256": "a".repeat(64)}});
        for (planned, why) in [
            (planned("a", "https://x/a.tar.gz", &hashed), "no wheel"),
            (planned("a", "https://x/a.whl", &json!({})), "no wheel"),
            (planned("a", "https://x/a.whl", &Value::Null), "no wheel"),
            (planned("a --pre", "https://x/a.whl", &hashed), "cannot be locked"),
        ] {
            assert!(read_of(&[planned]).is_err_and(|said| said.contains(why)), "{why}");
        }
        assert!(of_pip(b"usage: pip").is_err());
    }

    #[test]
    fn a_lock_of_uv_is_read_like_a_report_of_pip() {
        let hash = "b".repeat(64);
        let package = |name: &str, rest: &str| {
            format!("[[packages]]\nname = \"{name}\"\nversion = \"1.0\"\n{rest}\n")
        };
        let wheel = format!(
            "wheels = [{{ url = \"https://x/a.whl\", upload-time = 2025-04-30T11:51:06Z, \
             hashes = {{ sha256 = \"{hash}\" }} }}]"
        );
        let both = package("zope.x", &wheel) + &package("six", &wheel);
        let packages = of_uv(both.as_bytes()).expect("wheels");
        assert_eq!(
            text(&packages),
            format!("six==1.0 --hash=sha256:{hash}\nzope-x==1.0 --hash=sha256:{hash}\n")
        );
        let built = package("a", "sdist = { url = \"https://x/a.tar.gz\" }");
        assert!(of_uv(built.as_bytes()).is_err_and(|said| said.contains("no wheel")));
        let unhashed = package("a", "wheels = [{ url = \"https://x/a.whl\" }]");
        assert!(of_uv(unhashed.as_bytes()).is_err_and(|said| said.contains("no wheel")));
        assert_eq!(of_uv(b"lock-version = \"1.0\"\n"), Ok(Vec::new()));
        assert!(of_uv(b"usage: uv").is_err());
    }
}
