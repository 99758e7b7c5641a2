//! Which file of which world: paths as they are typed, and addresses made of them.

use reqwest::{Method, RequestBuilder};
use wharf_vocab::Code;

use crate::client::{Client, Query};
use crate::failure::{Failure, Result};

/// One file of a world.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The world.
    pub(crate) world: String,
    /// The file's path in it.
    pub(crate) path: String,
}

impl Place {
    /// A file as it was typed. Only what an address could not carry unchanged is refused here;
    /// the core knows all the rules.
    pub(crate) fn new(world: &str, path: &str) -> Result<Self> {
        if path.ends_with('/') {
            return Err(invalid(path, "it names a folder, not a file"));
        }
        check(path)?;
        Ok(Self { world: world.to_owned(), path: path.to_owned() })
    }

    /// The beginning of a request for the file itself.
    pub(crate) fn request(&self, client: &Client, method: Method) -> Result<RequestBuilder> {
        let mut segments = vec!["v1", "worlds", &self.world, "files"];
        segments.extend(self.path.split('/').skip(1));
        client.request(method, &segments, &[])
    }

    /// The beginning of a request for an upload to the file.
    pub(crate) fn upload(
        &self,
        client: &Client,
        method: Method,
        below: &[&str],
    ) -> Result<RequestBuilder> {
        let segments = [&["v1", "worlds", self.world.as_str(), "uploads"], below].concat();
        let query: &Query<'_> = &[("path", Some(&self.path))];
        client.request(method, &segments, query)
    }
}

/// The beginning of paths as it was typed; the whole world when nothing was.
pub(crate) fn prefix(typed: Option<&str>) -> Result<Option<String>> {
    let Some(typed) = typed.filter(|typed| *typed != "/") else { return Ok(None) };
    check(typed.strip_suffix('/').unwrap_or(typed))?;
    Ok(Some(typed.to_owned()))
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
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

fn invalid(path: &str, why: &str) -> Failure {
    let message = format!("{path:?} is no path in a world such as /out/a.png: {why}");
    Failure::new(Code::ScopePathInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t031_a_path_that_an_address_would_change_is_refused() {
        for path in ["", "/", "a", "a/b", "/a/", "//a", "/a//b", "/./a", "/a/..", "/../x", "/a/."] {
            let failure = Place::new("w", path).expect_err(path);
            assert!(failure.is(Code::ScopePathInvalid), "{path}: {failure:?}");
            assert_eq!(failure.exit().number(), 2);
        }
        for path in ["/a", "/a/b.txt", "/@r1/x", "/a b", "/..a", "/ä/…", "/100%"] {
            assert_eq!(Place::new("w", path).expect(path).path, path);
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
