//! Which file of which world.

use reqwest::{Method, RequestBuilder};
use wharf_vocab::Code;

use crate::client::Client;
use crate::error::{Error, Result};

/// One file of a world.
#[derive(Debug, Clone)]
pub struct RemoteFile {
    /// The world's id.
    pub world: String,
    /// The file's path in the world, such as `/out/a.png`.
    pub path: String,
}

impl RemoteFile {
    /// A file by its path. Only what an address could not carry unchanged is refused here; the
    /// core knows all the rules.
    pub fn new(world: &str, path: &str) -> Result<Self> {
        if path.ends_with('/') {
            return Err(invalid(path, "it names a folder, not a file"));
        }
        check(path)?;
        Ok(Self { world: world.to_owned(), path: path.to_owned() })
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The path of the file's route.
    pub(crate) fn segments(&self) -> Vec<&str> {
        let mut segments = vec!["v1", "worlds", &self.world, "files"];
        segments.extend(self.path.split('/').skip(1));
        segments
    }

    pub(super) fn request(&self, client: &Client, method: Method) -> RequestBuilder {
        client.request(method, &self.segments())
    }

    /// A request about an upload to the file.
    pub(super) fn upload(&self, client: &Client, method: Method, below: &[&str]) -> RequestBuilder {
        let segments = [&["v1", "worlds", self.world.as_str(), "uploads"], below].concat();
        client.request(method, &segments).query(&[("path", &self.path)])
    }
}

/// Checks the beginning of paths, for a [`FileFilter`](crate::FileFilter); none means the whole
/// world.
pub fn prefix(typed: Option<&str>) -> Result<Option<String>> {
    let Some(typed) = typed.filter(|typed| *typed != "/") else { return Ok(None) };
    check(typed.strip_suffix('/').unwrap_or(typed))?;
    Ok(Some(typed.to_owned()))
}

/// Refuses what would become another path in an address, where `..` leads up and `.` nowhere.
fn check(path: &str) -> Result<()> {
    let Some(rest) = path.strip_prefix('/') else {
        return Err(invalid(path, "it must begin with /"));
    };
    match rest.split('/').find(|part| matches!(*part, "" | "." | "..")) {
        Some("") => Err(invalid(path, "a part of it is empty")),
        Some(dots) => Err(invalid(path, &format!("it has a part {dots}"))),
        None => Ok(()),
    }
}

fn invalid(path: &str, why: &str) -> Error {
    let message = format!("{path:?} is not a path in a world such as /out/a.png: {why}");
    Error::new(Code::ScopePathInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t031_a_path_that_an_address_would_change_is_refused() {
        for path in ["", "/", "a", "a/b", "/a/", "//a", "/a//b", "/./a", "/a/..", "/../x", "/a/."] {
            let error = RemoteFile::new("w", path).expect_err(path);
            assert!(error.is(Code::ScopePathInvalid), "{path}: {error:?}");
            assert_eq!(error.status(), Code::ScopePathInvalid.http_status());
        }
        for path in ["/a", "/a/b.txt", "/@r1/x", "/a b", "/..a", "/ä/…", "/100%"] {
            assert_eq!(RemoteFile::new("w", path).expect(path).path, path);
        }
    }

    #[test]
    fn a_prefix_may_end_anywhere() {
        assert_eq!(prefix(None), Ok(None));
        assert_eq!(prefix(Some("/")), Ok(None));
        assert_eq!(prefix(Some("/a/")), Ok(Some("/a/".to_owned())));
        assert_eq!(prefix(Some("/a/b")), Ok(Some("/a/b".to_owned())));
        for bad in ["a", "//", "/a//", "/../"] {
            assert!(prefix(Some(bad)).is_err(), "{bad}");
        }
    }
}
