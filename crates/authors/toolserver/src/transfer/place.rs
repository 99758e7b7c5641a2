//! Places that inputs are read from and outputs are written to.

use reqwest::Url;
use wharf_wire::run_v1::code;

use super::TransferTrouble;

/// What paths of files begin with.
const ARTIFACTS: &str = "/artifacts/";
/// The longest path.
const PATH_BYTES_MAX: usize = 4_096;
/// The longest part of a path.
const PART_BYTES_MAX: usize = 255;

/// A place.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum FileAddress {
    /// An address of storage. It is a capability and never shown.
    Remote(Url),
    /// A file beneath the folder of artifacts.
    Local(LocalPath),
}

/// The parts of a path beneath the folder of artifacts. None of them can lead upward.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LocalPath {
    parts: Vec<String>,
}

impl FileAddress {
    /// Reads a place.
    pub(super) fn parse(text: &str) -> Result<Self, TransferTrouble> {
        if let Some(rest) = text.strip_prefix(ARTIFACTS) {
            return Ok(Self::Local(LocalPath::parse(rest)?));
        }
        if text.starts_with('/') {
            return Err(TransferTrouble::path("its path is not beneath /artifacts/"));
        }
        let url = Url::parse(text);
        let mut url =
            url.map_err(|_| TransferTrouble::new(code::INPUTS, "it is no address or path"))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(TransferTrouble::new(
                code::INPUTS,
                "its address is neither https nor http",
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TransferTrouble::egress("its address names a user"));
        }
        url.set_fragment(None);
        Ok(Self::Remote(url))
    }

    /// The last part of the name, for the ending.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Remote(url) => url.path().rsplit('/').next().unwrap_or_default(),
            Self::Local(path) => path.name(),
        }
    }
}

impl LocalPath {
    /// Reads what stands behind `/artifacts/`. What is odd is refused, never repaired.
    fn parse(text: &str) -> Result<Self, TransferTrouble> {
        if text.len() > PATH_BYTES_MAX {
            return Err(TransferTrouble::path("its path is too long"));
        }
        let parts: Vec<String> = text.split('/').map(str::to_owned).collect();
        let is_odd = |part: &String| {
            matches!(part.as_str(), "" | "." | "..")
                || part.len() > PART_BYTES_MAX
                || part.chars().any(char::is_control)
        };
        if parts.iter().any(is_odd) {
            return Err(TransferTrouble::path("its path has a part that is not a plain name"));
        }
        if parts.len() < 2 {
            return Err(TransferTrouble::path("its path names no file of a run"));
        }
        Ok(Self { parts })
    }

    /// Whether it is a file of this run: beneath `/artifacts/{run}`, or beneath
    /// `/artifacts/~{world}/{run}` where a run of another world has that name.
    pub(super) fn is_of(&self, run_id: &str, world: Option<&str>) -> bool {
        let (first, second) = (self.parts[0].as_str(), self.parts[1].as_str());
        let of_world = || world.is_some() && first.strip_prefix('~') == world;
        first == run_id || (of_world() && second == run_id && self.parts.len() > 2)
    }

    /// The folders on the way.
    pub(super) fn folders(&self) -> &[String] {
        &self.parts[..self.parts.len() - 1]
    }

    /// The last part.
    pub(super) fn name(&self) -> &str {
        &self.parts[self.parts.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> Option<&'static str> {
        FileAddress::parse(text).err().map(|trouble| trouble.code)
    }

    #[test]
    fn t026_paths_that_could_lead_elsewhere_are_refused() {
        let long = format!("/artifacts/r1/{}", "x".repeat(256));
        let longer = format!("/artifacts/r1{}", "/x".repeat(2_100));
        for path in [
            "/artifacts/",
            "/artifacts/r1",
            "/artifacts/r1/",
            "/artifacts//x",
            "/artifacts/r1//x",
            "/artifacts/r1/./x",
            "/artifacts/r1/../r2/x",
            "/artifacts/../etc/passwd",
            "/artifacts/r1/..",
            "/artifacts/r1/x/",
            "/artifacts/r1/a\0b",
            "/artifacts/r1/a\nb",
            "/etc/passwd",
            "/artifacts",
            "/artifactsx/r1/x",
            "//artifacts/r1/x",
            long.as_str(),
            longer.as_str(),
        ] {
            assert_eq!(code_of(path), Some(code::PATH), "{path:?}");
        }
        for path in ["/artifacts/r1/x", "/artifacts/r1/a b/ö.txt", "/artifacts/r1/..x/%2e%2e"] {
            assert_eq!(code_of(path), None, "{path:?}");
        }
    }

    #[test]
    fn t026_a_file_belongs_to_a_run_of_a_world() {
        let is_of = |path: &str, run_id, world| match FileAddress::parse(path) {
            Ok(FileAddress::Local(path)) => path.is_of(run_id, world),
            _ => panic!("{path} is no path"),
        };
        assert!(is_of("/artifacts/r/x", "r", None));
        assert!(is_of("/artifacts/r/x", "r", Some("w")));
        assert!(is_of("/artifacts/~w/r/x", "r", Some("w")));
        for path in ["/artifacts/s/x", "/artifacts/~v/r/x", "/artifacts/~w/s/x", "/artifacts/~w/r"]
        {
            assert!(!is_of(path, "r", Some("w")), "{path}");
        }
        assert!(!is_of("/artifacts/~w/r/x", "r", None));
        assert!(!is_of("/artifacts/~/r/x", "r", None));
    }

    #[test]
    fn t028_only_addresses_and_paths_are_places() {
        for text in ["", "hello", "ftp://x/y", "s3://bucket/key", "file:///etc/passwd", "r1/x"] {
            assert_eq!(code_of(text), Some(code::INPUTS), "{text}");
        }
        assert_eq!(code_of("https://user:word@s3.example/x"), Some(code::EGRESS));
        assert_eq!(code_of("https://s3.example/x?X-Amz-Signature=1"), None);
    }
}
