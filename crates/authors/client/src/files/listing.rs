//! A world's files in the order of their paths, page by page, so that a long list needs no more
//! memory than a short one.

use std::collections::VecDeque;

use serde::Serialize;
use wharf_vocab::DateTime;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_wire::rest_v1::Artifact;

use crate::call::List;
use crate::client::Client;
use crate::error::Result;

/// Which files are listed, and how.
#[derive(Debug, Clone, Default)]
pub struct FileFilter {
    /// The world.
    pub world: String,
    /// Only paths that begin with this; see [`prefix`](crate::prefix).
    pub prefix: Option<String>,
    /// Include local files of runs.
    pub local: bool,
    /// List every file instead of one entry for each folder.
    pub recursive: bool,
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEntry {
    /// A file.
    File(Artifact),
    /// All that lies in a folder.
    Folder(FolderSummary),
}

/// What lies in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FolderSummary {
    /// Its path, with a slash at its end.
    pub folder: String,
    /// How many files lie in it and below.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
    /// When the newest of them was written.
    pub at: Option<DateTime>,
}

/// A listing that is being read.
#[derive(Debug)]
pub struct FileListing<'a> {
    client: &'a Client,
    filter: FileFilter,
    page: VecDeque<Artifact>,
    cursor: Option<String>,
    ended: bool,
    /// A file that belongs after the folder that was just closed.
    next: Option<Artifact>,
}

impl<'a> FileListing<'a> {
    /// Nothing is asked for yet.
    pub(crate) fn new(client: &'a Client, filter: FileFilter) -> Self {
        Self { client, filter, page: VecDeque::new(), cursor: None, ended: false, next: None }
    }

    /// The next entry; none at the end.
    pub async fn next(&mut self) -> Result<Option<FileEntry>> {
        let first = match self.next.take() {
            Some(file) => Some(file),
            None => self.file().await?,
        };
        let Some(file) = first else { return Ok(None) };
        let Some(name) = self.folder_of(&file.path).map(str::to_owned) else {
            return Ok(Some(FileEntry::File(file)));
        };
        // Paths come in order, so that all of a folder come one after the other.
        let mut folder = FolderSummary { folder: name, files: 0, bytes: 0, at: None };
        let mut file = Some(file);
        while let Some(inside) = file {
            if !inside.path.starts_with(&folder.folder) {
                self.next = Some(inside);
                break;
            }
            folder.files += 1;
            folder.bytes = folder.bytes.saturating_add(inside.bytes);
            folder.at = folder.at.max(inside.at);
            file = self.file().await?;
        }
        Ok(Some(FileEntry::Folder(folder)))
    }

    /// The next file, whatever folder it lies in.
    pub async fn file(&mut self) -> Result<Option<Artifact>> {
        while self.page.is_empty() && !self.ended {
            self.turn().await?;
        }
        Ok(self.page.pop_front())
    }

    async fn turn(&mut self) -> Result<()> {
        let path = ["v1", "worlds", self.filter.world.as_str(), "artifacts"];
        let list = List::<Artifact>::new(self.client, &path)
            .query("prefix", self.filter.prefix.as_deref())
            .query("local", self.filter.local.then_some("true"));
        let page = list.page(PAGE_ITEMS_MAX, self.cursor.as_deref()).await?;
        self.ended = page.next_cursor.is_none() || page.items.is_empty();
        self.cursor = page.next_cursor;
        self.page = page.items.into();
        Ok(())
    }

    /// The folder a file is listed under; none if it is listed for itself.
    fn folder_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.filter.recursive {
            return None;
        }
        let prefix = self.filter.prefix.as_deref().unwrap_or("/");
        let rest = path.strip_prefix(prefix)?;
        let slash = rest.find('/')?;
        Some(&path[..=prefix.len() + slash])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scripted::{Reply, Scripted, ScriptedClient as _};

    /// Two files to a page.
    async fn listed(paths: &'static [&'static str], filter: FileFilter) -> Vec<String> {
        let mut scripted = Scripted::new();
        scripted
            .start(move |request| {
                let at = request.line.split_once("cursor=").map_or(0, |(_, at)| at.parse().expect("a number"));
                let file = |path: &&str| {
                    json!({"world": "w", "path": path, "bytes": 5, "media_type": "", "direction": "out"})
                };
                let items: Vec<_> = paths.iter().skip(at).take(2).map(file).collect();
                let next = (at + 2 < paths.len()).then(|| (at + 2).to_string());
                Reply::Json(200, json!({"items": items, "next_cursor": next}))
            })
            .await;
        let client = scripted.client();
        let mut listing = FileListing::new(&client, filter);
        let mut lines = Vec::new();
        while let Some(entry) = listing.next().await.expect("listed") {
            lines.push(match entry {
                FileEntry::File(file) => file.path,
                FileEntry::Folder(folder) => {
                    format!("{} {} {}", folder.folder, folder.files, folder.bytes)
                }
            });
        }
        lines
    }

    const PATHS: &[&str] = &["/a", "/a/1", "/a/b/2", "/a/b/3", "/a/c", "/a0", "/z/z/z"];

    #[tokio::test]
    async fn folders_are_one_line_each() {
        assert_eq!(
            listed(PATHS, FileFilter::default()).await,
            ["/a", "/a/ 4 20", "/a0", "/z/ 1 5"]
        );
        assert_eq!(listed(&[], FileFilter::default()).await, [""; 0]);
    }

    #[tokio::test]
    async fn a_folder_is_looked_into_and_all_of_it_when_asked_for() {
        let filter = |prefix: &str, recursive| FileFilter {
            prefix: Some(prefix.to_owned()),
            recursive,
            ..FileFilter::default()
        };
        const INSIDE: &[&str] = &["/a/1", "/a/b/2", "/a/b/3", "/a/c"];
        assert_eq!(listed(INSIDE, filter("/a/", false)).await, ["/a/1", "/a/b/ 2 10", "/a/c"]);
        assert_eq!(listed(INSIDE, filter("/a", false)).await, ["/a/ 4 20"]);
        assert_eq!(listed(INSIDE, filter("/a/", true)).await, INSIDE);
    }
}
