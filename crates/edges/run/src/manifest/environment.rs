//! What a handler runs with: an interpreter and packages.

use std::path::Path;

use serde_json::Value;
use wharf_domain::provider::{Serving, ToolEnvironment};
use wharf_hosting::{ManifestFields, toml_table};
use wharf_vocab::{Code, Fault, shown};

use super::file;

const FIELDS: [&str; 3] = ["python", "requirements", "wheels"];
const PATH_BYTES_MAX: usize = 1_000;
const REQUIREMENTS_BYTES_MAX: usize = 64 * 1024;
const PACKAGES_MAX: usize = 500;
/// The file whose `[project] dependencies` name packages.
const PROJECT: &str = "pyproject.toml";

/// Reads what a handler runs with. The file that names packages is part of the manifest.
pub(super) fn read(
    fields: &ManifestFields<'_>,
    how: &Serving,
    folder: &Path,
    read: &mut Vec<Vec<u8>>,
) -> Result<Option<ToolEnvironment>, Fault> {
    if FIELDS.iter().all(|field| fields.get(field).is_none()) {
        return Ok(None);
    }
    let is_python = matches!(how, Serving::Handler { file, .. } if Path::new(file).extension().is_some_and(|end| end == "py"));
    if !is_python {
        fields.none_of(&FIELDS, "it is for a handler in Python")?;
    }
    let requirements = fields.optional_text("requirements", PATH_BYTES_MAX)?;
    if let Some(name) = &requirements {
        let bytes = file::read(folder, name)
            .map_err(|why| fields.wrong("requirements", &format!("the file {name} {why}")))?;
        packages(name, &bytes).map_err(|why| fields.wrong("requirements", &why))?;
        read.push(bytes);
    }
    let wheels = fields.optional_text("wheels", PATH_BYTES_MAX)?;
    if let Some(name) = &wheels {
        if requirements.is_none() {
            return Err(fields.wrong("wheels", "there are no requirements that they are for"));
        }
        if !file::is_below(name) || !folder.join(name).is_dir() {
            return Err(fields.wrong("wheels", "it must be a folder in the tool's folder"));
        }
    }
    let python = fields.optional_text("python", PATH_BYTES_MAX)?;
    if python.as_ref().is_some_and(|text| text.is_empty() || text.chars().any(char::is_control)) {
        return Err(fields.wrong("python", "it must be the path of an interpreter, or a version"));
    }
    Ok(Some(ToolEnvironment { python, requirements, wheels, made: None }))
}

/// The packages that a file names, one requirement each. What is wrong is the end of a sentence.
pub(crate) fn packages(name: &str, bytes: &[u8]) -> Result<Vec<String>, String> {
    if bytes.len() > REQUIREMENTS_BYTES_MAX {
        return Err(format!("{name} is larger than {REQUIREMENTS_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| format!("{name} is not text"))?;
    let is_project = Path::new(name).file_name().is_some_and(|file| file == PROJECT);
    let packages = if is_project { of_project(name, bytes)? } else { of_lines(text) };
    if packages.len() > PACKAGES_MAX {
        return Err(format!("{name} names more than {PACKAGES_MAX} packages"));
    }
    for package in &packages {
        if !is_by_name(package) {
            let shown = shown(package, 80);
            return Err(format!(
                "{name} has the line {shown}, and only packages by name are taken: no options, \
                 paths or addresses"
            ));
        }
    }
    Ok(packages)
}

/// The lines of a requirements file, joined where they go on, without comments.
fn of_lines(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let plain = |line: &str| {
        let line = if line.trim_start().starts_with('#') { "" } else { line };
        let line = line.split(" #").next().unwrap_or(line);
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    joined.lines().map(plain).filter(|line| !line.is_empty()).collect()
}

fn of_project(name: &str, bytes: &[u8]) -> Result<Vec<String>, String> {
    let table = toml_table(bytes, Code::ToolManifestInvalid)
        .map_err(|fault| format!("{name}: {}", fault.message.trim_end_matches('.')))?;
    let found = table.get("project").and_then(|project| project.get("dependencies"));
    let Some(list) = found else { return Ok(Vec::new()) };
    let text = |item: &Value| item.as_str().map(|text| text.trim().to_owned());
    let texts = list.as_array().and_then(|list| list.iter().map(text).collect());
    texts.ok_or_else(|| format!("{name} has [project] dependencies that are no list of texts"))
}

/// Whether a requirement is a package's name with versions, extras, a marker and hashes, and
/// nothing that leads elsewhere.
fn is_by_name(package: &str) -> bool {
    let (package, hashes) = package.split_once(" --hash").map_or((package, ""), |both| both);
    let begins = package.chars().next().is_some_and(|first| first.is_ascii_alphanumeric());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-[],<>=!~*+ ();'\"".contains(c);
    let is_hash = |hash: &str| {
        let hash = hash.trim_start_matches(['=', ' ']).trim_end().strip_prefix("sha256:");
        hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let are_hashes = hashes.is_empty() || hashes.split(" --hash").all(is_hash);
    begins && package.chars().all(is_plain) && !package.contains("--") && are_hashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_by_lines_or_by_a_project() {
        let lines = "# all of it\nhumanize>=4  # for people\n\nrequests[socks]==2.0; python_version < \"4\"\nsix==1.16.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n";
        let read = packages("requirements.txt", lines.as_bytes()).expect("plain");
        assert_eq!(
            read,
            [
                "humanize>=4",
                "requests[socks]==2.0; python_version < \"4\"",
                "six==1.16.0 --hash=sha256:00 --hash=sha256:11"
            ]
        );
        let project = "[project]\nname = 'x'\ndependencies = ['humanize', 'six>=1']\n";
        assert_eq!(
            packages("sub/pyproject.toml", project.as_bytes()).expect("plain"),
            ["humanize", "six>=1"]
        );
        assert!(packages("pyproject.toml", b"[tool.x]\n").expect("none").is_empty());
    }

    #[test]
    fn what_is_no_package_by_name_is_refused() {
        for line in [
            "-e .",
            "-r other.txt",
            "--index-url https://example.dev/simple",
            "./local",
            "/srv/x.whl",
            "git+https://example.dev/x",
            "x @ https://example.dev/x.whl",
            "x --config-settings=a=b",
            "x==1 --hash=sha256:00 --index-url=y",
            "-f /etc",
        ] {
            let why = packages("requirements.txt", line.as_bytes()).expect_err(line);
            assert!(why.contains("only packages by name"), "{why}");
        }
        assert!(packages("r.txt", &[0xff]).is_err());
        assert!(packages("r.txt", "a\n".repeat(501).as_bytes()).is_err());
    }
}
