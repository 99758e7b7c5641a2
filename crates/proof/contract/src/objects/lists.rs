//! Lists of keys.

use super::Subject;

/// Lists come in the order of the bytes of the keys, and a page goes on where one ended.
pub async fn a_list_is_paged_in_order(subject: Subject) {
    let mut paths = ["b", "a_b", "a/b", "a/c/d", "ab", "a0", "é", "Z", "@run/x"];
    for path in paths {
        subject.write(path, path.as_bytes()).await;
    }
    paths.sort_unstable();
    let prefix = subject.key("");
    let whole = subject.store.list(prefix.clone(), None, 100).await.expect("listed");
    let keys: Vec<_> = whole.iter().map(|entry| entry.key.clone()).collect();
    assert_eq!(keys, paths.map(|path| subject.key(path)));
    for (entry, path) in whole.iter().zip(paths) {
        let head = subject.store.head(entry.key.clone()).await.expect("answered").expect("there");
        assert_eq!(entry.bytes, path.len() as u64, "{path}");
        // Some stores keep seconds only in one of the two.
        assert_eq!(entry.written_at.0 / 1000, head.written_at.0 / 1000, "{path}");
    }
    for size in [1, 3, 9] {
        assert_eq!(subject.pages("", size).await, keys, "pages of {size}");
    }
    assert!(subject.store.list(prefix, None, 0).await.expect("listed").is_empty());
}

/// Pages leave nothing out and show nothing twice, whatever keys are called. Not all servers sort
/// folders as they should, so the order does not count here, and no key is that of a folder.
pub async fn a_list_in_pages_is_whole_whatever_keys_are_called(subject: Subject) {
    let paths = ["a b", "a!", "a-b/c", "a.b", "a/b", "a/b-c/d", "a/c/d", "a+", "@r-/x", "@r/y"];
    for path in paths {
        subject.write(path, b"x").await;
    }
    let mut keys = paths.map(|path| subject.key(path)).to_vec();
    keys.sort_unstable();
    for size in [1, 2, 3, 100] {
        let mut found = subject.pages("", size).await;
        found.sort_unstable();
        assert_eq!(found, keys, "pages of {size}");
    }
}

impl Subject {
    /// The keys of a list that is taken in pages of this size.
    async fn pages(&self, path: &str, size: usize) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.list(self.key(path), after, size).await.expect("listed");
            assert!(page.len() <= size);
            found.extend(page.iter().map(|entry| entry.key.clone()));
            assert!(found.len() < 1_000, "the list does not end");
            let Some(last) = page.last() else { return found };
            after = Some(last.key.clone());
        }
    }
}

/// A list shows what lies in one world or belongs to one run, and nothing of its neighbours.
pub async fn a_list_shows_one_world_or_run(subject: Subject) {
    let neighbour = Subject { world: format!("{}2", subject.world), ..subject };
    neighbour.write("file", b"x").await;
    neighbour.write("@r/file", b"x").await;
    let world = neighbour.world.trim_end_matches('2').to_owned();
    let subject = Subject { world, ..neighbour };
    for path in ["file", "@r/one", "@r/two/deep", "@r2/other", "@ra/x"] {
        subject.write(path, b"x").await;
    }
    let list = async |path: &str| {
        let found = subject.store.list(subject.key(path), None, 100).await.expect("listed");
        found.into_iter().map(|entry| entry.key).collect::<Vec<_>>()
    };
    let keys = |paths: &[&str]| paths.iter().map(|path| subject.key(path)).collect::<Vec<_>>();
    assert_eq!(list("").await, keys(&["@r/one", "@r/two/deep", "@r2/other", "@ra/x", "file"]));
    assert_eq!(list("@r/").await, keys(&["@r/one", "@r/two/deep"]));
    assert_eq!(list("@r/two/").await, keys(&["@r/two/deep"]));
    assert_eq!(list("fi").await, keys(&["file"]));
    assert_eq!(list("@none/").await, keys(&[]));
    for path in ["@r/one", "@r/two/deep"] {
        subject.store.delete(subject.key(path)).await.expect("removed");
    }
    assert_eq!(list("@r/").await, keys(&[]));
}
