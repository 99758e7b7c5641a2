//! Lists of keys.

use super::Subject;

/// Lists come in the order of the bytes of the keys, and a page goes on where one ended.
pub async fn a_list_is_paged_in_order(subject: Subject) {
    let mut paths = ["b", "a", "a-b", "a/b", "a/b/c", "a b", "a0", "é", "Z", "@run/x"];
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
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = subject.store.list(prefix.clone(), after, size).await.expect("listed");
            assert!(page.len() <= size);
            found.extend(page.iter().map(|entry| entry.key.clone()));
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
        }
        assert_eq!(found, keys, "pages of {size}");
    }
    assert!(subject.store.list(prefix, None, 0).await.expect("listed").is_empty());
}

/// A list shows what lies in one world or belongs to one run, and nothing of its neighbours.
pub async fn a_list_shows_one_world_or_run(subject: Subject) {
    let neighbour = Subject { world: format!("{}2", subject.world), ..subject };
    neighbour.write("file", b"x").await;
    neighbour.write("@r/file", b"x").await;
    let world = neighbour.world.trim_end_matches('2').to_owned();
    let subject = Subject { world, ..neighbour };
    for path in ["file", "@r/one", "@r/two/deep", "@r2/other", "@r-/x"] {
        subject.write(path, b"x").await;
    }
    let list = async |path: &str| {
        let found = subject.store.list(subject.key(path), None, 100).await.expect("listed");
        found.into_iter().map(|entry| entry.key).collect::<Vec<_>>()
    };
    let keys = |paths: &[&str]| paths.iter().map(|path| subject.key(path)).collect::<Vec<_>>();
    assert_eq!(list("").await, keys(&["@r-/x", "@r/one", "@r/two/deep", "@r2/other", "file"]));
    assert_eq!(list("@r/").await, keys(&["@r/one", "@r/two/deep"]));
    assert_eq!(list("@r/two/").await, keys(&["@r/two/deep"]));
    assert_eq!(list("fi").await, keys(&["file"]));
    assert_eq!(list("@none/").await, keys(&[]));
    for path in ["@r/one", "@r/two/deep"] {
        subject.store.delete(subject.key(path)).await.expect("removed");
    }
    assert_eq!(list("@r/").await, keys(&[]));
}
