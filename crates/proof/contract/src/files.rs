//! The index of files: which there are now.

use wharf_vocab::{Direction, Timestamp, WorldId};

use super::Subject;
use super::desk::{Desk, artifact, key, path, reads, removes, run_key, writes};
use wharf_ports::{Batch, FileQuery, FileRecord, FolderQuery, FolderSize, TraceQuery, WorldSize};

/// The files of the default world, local ones included.
pub(super) fn every() -> FileQuery {
    FileQuery { locals: true, ..FileQuery::new(key("r").world, 100) }
}

pub(super) async fn files(desk: &Desk, query: FileQuery) -> Vec<FileRecord> {
    desk.store().files(query).await.expect("readable")
}

/// The paths of the files that a query finds, in one line.
pub(super) async fn paths(desk: &Desk, query: FileQuery) -> String {
    let found = files(desk, query).await;
    let found: Vec<_> = found.iter().map(|file| file.artifact.path.as_str()).collect();
    found.join(" ")
}

/// The positions of the records that a query finds.
pub(super) async fn traced(desk: &Desk, query: TraceQuery) -> Vec<u64> {
    let found = desk.store().trace(query).await.expect("readable");
    found.iter().map(|record| record.position).collect()
}

/// Where the records that a query finds stand among all there are, from 1: what positions are is
/// the store's business, and only their order counts.
pub(super) async fn ranked(desk: &Desk, query: TraceQuery) -> Vec<usize> {
    let mut all = Vec::new();
    for world in ["default", "other"] {
        let world = WorldId::new(world).expect("valid");
        all.extend(traced(desk, TraceQuery { world, limit: 1_000, ..trace() }).await);
    }
    all.sort_unstable();
    let rank = |position: u64| 1 + all.partition_point(|other| *other < position);
    traced(desk, query).await.into_iter().map(rank).collect()
}

/// All records of the default world.
pub(super) fn trace() -> TraceQuery {
    TraceQuery { world: key("r").world, path: None, run: None, after: 0, limit: 100 }
}

pub(super) async fn usage(desk: &Desk, world: &str) -> WorldSize {
    let world = WorldId::new(world).expect("valid");
    desk.store().usage(world).await.expect("readable")
}

/// There is one file at a path, the one that was written last.
pub async fn t040_a_written_file_replaces_the_one_before(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (first, second) = (key("r-1"), key("r-2"));
    let other = run_key("other", "r-1");
    desk.put(desk.tells(vec![writes(&first, "/a", 1), writes(&other, "/a", 9)])).await;
    let batch = desk.tells(vec![writes(&second, "/a", 2)]);
    let at = batch.at;
    desk.put(batch).await;
    let found = files(&desk, every()).await;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].at, found[0].gone_at), (at, None));
    assert_eq!(found[0].artifact, artifact(&second, "/a", 2, Direction::Out));
    let records = desk.store().trace(trace()).await.expect("readable");
    let gone: Vec<_> = records.iter().map(|record| record.gone_at).collect();
    assert_eq!(gone, [Some(at), None], "the one before is remembered with its end");
    assert_eq!(records[1].position, found[0].position);
    let others = files(&desk, FileQuery { world: other.world, ..every() }).await;
    assert_eq!(others.len(), 1, "another world's file of that path is another file");
    assert!(others[0].is_here());
}

/// Who reads a file changes nothing about it, and is remembered.
pub async fn t040_a_read_leaves_the_file_as_it_is(subject: Subject) {
    let desk = Desk::open(subject).await;
    desk.put(desk.tells(vec![writes(&key("r-1"), "/a", 1)])).await;
    let before = files(&desk, every()).await;
    desk.put(desk.tells(vec![reads(&key("r-2"), "/a", 1), reads(&key("r-2"), "/b", 5)])).await;
    assert_eq!(files(&desk, every()).await, before);
    assert_eq!(usage(&desk, "default").await.files, 1, "what is only read is not there by that");
    assert_eq!(ranked(&desk, trace()).await, [1, 2, 3]);
}

/// A file that is removed is remembered; removing what is not there does nothing.
pub async fn t040_a_removed_file_is_listed_no_more(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    desk.put(desk.tells(vec![writes(&run, "/a", 1), reads(&run, "/a", 1), writes(&run, "/b", 2)]))
        .await;
    let batch = desk.tells(vec![removes(&run, "/a")]);
    let at = batch.at;
    desk.put(batch).await;
    desk.put(desk.tells(vec![removes(&run, "/a"), removes(&run, "/never")])).await;
    desk.put(desk.tells(vec![removes(&run_key("other", "r"), "/b")])).await;
    assert_eq!(paths(&desk, every()).await, "/b");
    let records = desk.store().trace(trace()).await.expect("readable");
    let gone: Vec<_> = records.iter().map(|record| record.gone_at).collect();
    assert_eq!(gone, [Some(at), None, None], "the first removal counts, and reads do not end");
    desk.put(desk.tells(vec![writes(&run, "/a", 3)])).await;
    assert_eq!(paths(&desk, every()).await, "/a /b");
}

/// Pages meet without a gap or an overlap, in an order that no language has a say in.
pub async fn t040_files_are_paged_in_the_order_of_their_bytes(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let sorted =
        ["/!", "/A", "/Z", "/a", "/a b", "/a!", "/a-b", "/a/b", "/a0", "/b", "/ä", "/雪", "/𝄞"];
    let shuffled = [7, 12, 0, 3, 10, 5, 1, 11, 4, 9, 2, 8, 6];
    let ops = shuffled.iter().map(|n| writes(&run, sorted[*n], 1)).collect();
    desk.put(desk.tells(ops)).await;
    for limit in [1, 4, 13, 100] {
        let mut query = FileQuery { limit, locals: limit == 4, ..every() };
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = files(&desk, query.clone()).await;
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            query.after = Some(last.artifact.path.clone());
            found.extend(page.iter().map(|file| file.artifact.path.to_string()));
            assert!(found.len() <= sorted.len(), "pages do not go on: {found:?}");
        }
        assert_eq!(found, sorted);
    }
    let behind = |after: &str| FileQuery { after: Some(path(after)), ..every() };
    assert_eq!(paths(&desk, behind("/a/zzz")).await, "/a0 /b /ä /雪 /𝄞", "also one that is not");
    assert_eq!(paths(&desk, FileQuery { limit: 0, ..every() }).await, "");
}

/// Nothing in a prefix stands for something else.
pub async fn t040_a_prefix_is_taken_letter_for_letter(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let all = ["/a", "/a*b", "/a/1", "/a/2", "/a[b", "/a_b", "/axb", "/b?", "/bé", "/b\u{10ffff}c"];
    desk.put(desk.tells(all.iter().map(|path| writes(&run, path, 1)).collect())).await;
    desk.put(desk.tells(vec![writes(&run_key("other", "r"), "/a/3", 1)])).await;
    let cases = [
        ("", "/a /a*b /a/1 /a/2 /a[b /a_b /axb /b? /bé /b\u{10ffff}c"),
        ("/", "/a /a*b /a/1 /a/2 /a[b /a_b /axb /b? /bé /b\u{10ffff}c"),
        ("/a/", "/a/1 /a/2"),
        ("/a_", "/a_b"),
        ("/a*", "/a*b"),
        ("/a[", "/a[b"),
        ("/a%", ""),
        ("/b?", "/b?"),
        ("/A", ""),
        ("/bé", "/bé"),
        ("/be", ""),
        ("/b\u{10ffff}", "/b\u{10ffff}c"),
        ("/b\u{10ffff}\u{10ffff}", ""),
        ("a", ""),
        ("!", ""),
        ("\u{10ffff}", ""),
        ("/a' OR 1=1 --", ""),
        ("/a\0", ""),
    ];
    for (prefix, expected) in cases {
        let query = FileQuery { prefix: Some(prefix.to_owned()), ..every() };
        assert_eq!(paths(&desk, query.clone()).await, expected, "{prefix:?}");
        let query = FileQuery { locals: false, ..query };
        assert_eq!(paths(&desk, query).await, expected, "{prefix:?}");
    }
    let within =
        |after: &str| FileQuery { prefix: Some("/a/".into()), after: Some(path(after)), ..every() };
    assert_eq!(paths(&desk, within("/a/1")).await, "/a/2");
    assert_eq!(paths(&desk, within("/a")).await, "/a/1 /a/2");
    assert_eq!(paths(&desk, within("/b")).await, "");
}

/// They would drown all others, so a list has them when it is told to, or led there.
pub async fn t040_local_files_are_listed_only_when_asked_for(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let all = ["/!", "/?", "/@r/a", "/@r/b", "/@s/a", "/A", "/a/@x", "/b"];
    desk.put(desk.tells(all.iter().map(|path| writes(&run, path, 1)).collect())).await;
    let shown = FileQuery { locals: false, ..every() };
    assert_eq!(paths(&desk, every()).await, all.join(" "));
    assert_eq!(paths(&desk, shown.clone()).await, "/! /? /A /a/@x /b");
    assert_eq!(paths(&desk, FileQuery { limit: 3, ..shown.clone() }).await, "/! /? /A");
    let led = |prefix: &str| FileQuery { prefix: Some(prefix.into()), ..shown.clone() };
    assert_eq!(paths(&desk, led("/")).await, "/! /? /A /a/@x /b");
    assert_eq!(paths(&desk, led("/!")).await, "/!", "what lies between it and them is not meant");
    assert_eq!(paths(&desk, led("/@")).await, "/@r/a /@r/b /@s/a");
    assert_eq!(paths(&desk, led("/@r/")).await, "/@r/a /@r/b");
    let behind = |after: &str| FileQuery { after: Some(path(after)), ..shown.clone() };
    assert_eq!(paths(&desk, behind("/?")).await, "/A /a/@x /b");
    assert_eq!(paths(&desk, behind("/@r/a")).await, "/A /a/@x /b");
    assert_eq!(
        paths(&desk, FileQuery { locals: true, ..behind("/@r/a") }).await[..12],
        *"/@r/b /@s/a "
    );
}

/// A file is used when it is written and whenever it is read; the latest of these counts, also
/// when they are committed in another order. What was done with a file of that path before does
/// not count.
pub async fn t040_unused_files_are_those_nobody_wrote_or_read_since(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let mut tell = Vec::new();
    for (at, op) in [
        (10, writes(&run, "/old", 1)),
        (10, writes(&run, "/read", 1)),
        (10, writes(&run, "/again", 1)),
        (10, writes(&run, "/gone", 1)),
        (10, writes(&run_key("other", "r"), "/old", 1)),
        (40, reads(&run, "/again", 1)),
        (25, reads(&run, "/read", 1)),
        (15, reads(&run, "/read", 1)),
        (30, writes(&run, "/again", 1)),
        (40, reads(&run, "/elsewhere", 1)),
        (40, reads(&run_key("other", "r"), "/read", 1)),
        (11, removes(&run, "/gone")),
    ] {
        tell.push(Batch { at: Timestamp(at), ..desk.tells(vec![op]) });
    }
    for answer in desk.commit(tell).await {
        assert_eq!(answer, Ok(()));
    }
    let unused = |since| FileQuery { unused_since: Some(Timestamp(since)), ..every() };
    assert_eq!(paths(&desk, unused(10)).await, "");
    assert_eq!(paths(&desk, unused(11)).await, "/old");
    assert_eq!(paths(&desk, unused(25)).await, "/old");
    assert_eq!(paths(&desk, unused(26)).await, "/old /read");
    assert_eq!(paths(&desk, unused(30)).await, "/old /read");
    assert_eq!(paths(&desk, unused(31)).await, "/again /old /read");
    assert_eq!(paths(&desk, unused(u64::MAX)).await, "/again /old /read");
    assert_eq!(paths(&desk, FileQuery { limit: 1, ..unused(26) }).await, "/old");
    let behind = FileQuery { after: Some(path("/old")), limit: 1, ..unused(26) };
    assert_eq!(paths(&desk, behind).await, "/read");
}

/// Files that are there, each once, with local ones told apart.
pub async fn t040_usage_counts_what_is_there(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    assert_eq!(usage(&desk, "default").await, WorldSize::default());
    let ops = vec![
        writes(&run, "/a", 100),
        writes(&run, "/a", 10),
        writes(&run, "/b", 5),
        writes(&run, "/c", 1_000),
        writes(&run, "/@r/a", 7),
        writes(&run, "/@s/a", 8),
        reads(&run, "/a", 10),
        removes(&run, "/c"),
        writes(&run_key("other", "r"), "/a", 3),
    ];
    desk.put(desk.tells(ops)).await;
    let expected = WorldSize { files: 4, bytes: 30, local_files: 2, local_bytes: 15 };
    assert_eq!(usage(&desk, "default").await, expected);
    let expected = WorldSize { files: 1, bytes: 3, ..WorldSize::default() };
    assert_eq!(usage(&desk, "other").await, expected);
    assert_eq!(usage(&desk, "defaul").await, WorldSize::default());
}

/// Folders are summed up with what lies in folders within, no farther than asked, and in the order
/// in which they are named.
pub async fn c016_folders_are_summed_up_as_far_as_asked(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let ops = vec![
        writes(&run, "/a/1", 100),
        writes(&run, "/a/2", 20),
        writes(&run, "/a/b/3", 3),
        writes(&run, "/a0", 1_000),
        writes(&run, "/a-b/1", 5),
        writes(&run, "/a_/1", 7),
        writes(&run, "/z/gone", 9),
        removes(&run, "/z/gone"),
        writes(&run, "/@r/a", u64::MAX),
        writes(&run, "/@r/b", 8),
        writes(&run_key("other", "r"), "/a/1", 50),
    ];
    desk.put(desk.tells(ops)).await;
    let sizes = async |world: &str, folders: &[&str], files_max| {
        let world = WorldId::new(world).expect("valid");
        let folders = folders.iter().map(|&folder| folder.to_owned()).collect();
        let query = FolderQuery { world, folders, files_max };
        let sizes = desk.store().folder_sizes(query).await.expect("readable");
        sizes.into_iter().map(|FolderSize { files, bytes }| (files, bytes)).collect::<Vec<_>>()
    };
    let named = ["/z/", "/a/", "/a/b/", "/a_/", "/@r/", "/a-b/"];
    let all = [(0, 0), (3, 123), (1, 3), (1, 7), (2, u64::MAX), (1, 5)];
    assert_eq!(sizes("default", &named, 100).await, all);
    assert_eq!(sizes("default", &named, 3).await, all, "as many as there are may be counted");
    let some = [(0, 0), (2, 120), (1, 3), (1, 7), (2, u64::MAX), (1, 5)];
    assert_eq!(sizes("default", &named, 2).await, some);
    assert_eq!(sizes("other", &["/a/", "/"], 9).await, [(1, 50), (1, 50)]);
    assert_eq!(sizes("nowhere", &["/a/"], 9).await, [(0, 0)]);
    assert_eq!(sizes("default", &[], 9).await, []);
}

/// Sizes are exact over their whole range; a sum that has no room stays at the most there is.
pub async fn t040_sizes_of_64_bits_are_kept_and_sums_end_there(subject: Subject) {
    let desk = Desk::open(subject).await;
    let sizes = [0, 1, u64::from(u32::MAX) + 1, (1 << 63) - 1, 1 << 63, u64::MAX];
    let run = key("r");
    let mut sum: u64 = 0;
    for (n, bytes) in sizes.into_iter().enumerate() {
        desk.put(desk.tells(vec![writes(&run, &format!("/{n}"), bytes)])).await;
        sum = sum.saturating_add(bytes);
        assert_eq!(usage(&desk, "default").await.bytes, sum);
    }
    let found: Vec<_> =
        files(&desk, every()).await.iter().map(|file| file.artifact.bytes).collect();
    assert_eq!(found, sizes);
    desk.put(desk.tells(vec![removes(&run, "/3"), removes(&run, "/4")])).await;
    desk.put(desk.tells(vec![writes(&run, "/5", 2), writes(&run, "/@r/a", u64::MAX)])).await;
    let WorldSize { bytes, local_bytes, .. } = usage(&desk, "default").await;
    assert_eq!((bytes, local_bytes), (u64::MAX, u64::MAX));
    desk.put(desk.tells(vec![removes(&run, "/@r/a")])).await;
    let WorldSize { bytes, local_bytes, .. } = usage(&desk, "default").await;
    assert_eq!((bytes, local_bytes), ((1 << 32) + 3, 0), "and is exact again when it has");
}
