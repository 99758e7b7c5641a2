//! The index of files: who wrote and read each.

use wharf_domain::scope::WorldPath;
use wharf_domain::{Artifact, ArtifactOp};
use wharf_vocab::limits::{PATH_BYTES_MAX, PATH_SEGMENT_BYTES_MAX};
use wharf_vocab::{AttemptId, B3, Direction, Epoch, RunId, RunKey, WorldId};

use super::Subject;
use super::desk::{Desk, artifact, claim, key, path, reads, removes, run_key, writes};
use super::files::{every, files, paths, ranked, trace, traced};
use wharf_ports::{Batch, FileQuery, FileRecord, TraceQuery};

/// Each part of a record is kept, and so is what it does not have.
pub async fn t040_records_come_back_as_they_went_in(subject: Subject) {
    let desk = Desk::open(subject).await;
    let full = Artifact {
        world: WorldId::new("w").expect("valid"),
        path: path("/chat/Grüße 100_.txt"),
        bytes: 7,
        b3: Some(B3::parse("0f".repeat(32)).expect("valid")),
        media_type: "text/plain; charset=\"utf-8\"".into(),
        run: Some(key("r-1").run),
        key: Some("an 'answer'".into()),
        direction: Direction::Out,
    };
    let bare = Artifact {
        path: path("/@r-1/state.json"),
        bytes: 0,
        b3: None,
        media_type: String::new(),
        run: None,
        key: None,
        ..full.clone()
    };
    let read = Artifact { direction: Direction::In, ..full.clone() };
    let all = [full, bare, read];
    let batch = desk.tells(all.iter().cloned().map(ArtifactOp::Record).collect());
    let at = batch.at;
    desk.put(batch).await;
    let world = all[0].world.clone();
    let query = TraceQuery { world: world.clone(), ..trace() };
    let positions = traced(&desk, query.clone()).await;
    assert!(positions.is_sorted_by(|before, next| before < next), "{positions:?}");
    let expected: Vec<FileRecord> = positions
        .into_iter()
        .zip(all)
        .map(|(position, artifact)| FileRecord { position, at, artifact, gone_at: None })
        .collect();
    assert_eq!(desk.store().trace(query).await.expect("readable"), expected);
    assert_eq!(expected.len(), 3);
    let listed = files(&desk, FileQuery { world, ..every() }).await;
    assert_eq!(listed, [expected[1].clone(), expected[0].clone()]);
    assert!(expected[0].is_here() && !expected[2].is_here());
}

/// The longest paths, those of staged files, and those with characters that mean something
/// elsewhere.
pub async fn t040_every_path_there_can_be_is_kept(subject: Subject) {
    let desk = Desk::open(subject).await;
    let mut text = format!("/{}", "s".repeat(PATH_SEGMENT_BYTES_MAX)).repeat(4);
    text.truncate(PATH_BYTES_MAX);
    let longest = path(&text);
    let run = RunId::new("r".repeat(64)).expect("valid");
    let attempt = AttemptId::new("a-1").expect("valid");
    let all = [
        WorldPath::staged(&run, &attempt, 7),
        longest.local_to(&run).expect("fits"),
        path("/'; DROP TABLE artifacts; --"),
        path("/\"?*[]{}~^|<>"),
        longest,
    ];
    let base = artifact(&key("r"), "/a", 1, Direction::Out);
    let ops =
        all.iter().map(|path| ArtifactOp::Record(Artifact { path: path.clone(), ..base.clone() }));
    desk.put(desk.tells(ops.collect())).await;
    let records = desk.store().trace(trace()).await.expect("readable");
    let found: Vec<_> = records.into_iter().map(|record| record.artifact.path).collect();
    assert_eq!(found, all);
    assert_eq!(files(&desk, every()).await.len(), all.len());
    for path in all {
        let of_path = TraceQuery { path: Some(path.clone()), ..trace() };
        assert_eq!(traced(&desk, of_path).await.len(), 1, "{path}");
    }
}

/// From a file to the runs that wrote and read it, and from a run to its files.
pub async fn t040_writers_and_readers_are_traced_by_file_and_by_run(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (one, two) = (key("r-1"), key("r-2"));
    let put = Artifact { run: None, key: None, ..artifact(&one, "/in", 1, Direction::Out) };
    desk.put(desk.tells(vec![ArtifactOp::Record(put)])).await;
    desk.put(desk.tells(vec![reads(&one, "/in", 1), writes(&one, "/mid", 2)])).await;
    desk.put(desk.tells(vec![writes(&run_key("other", "r-1"), "/mid", 2)])).await;
    desk.put(desk.tells(vec![reads(&two, "/mid", 2), reads(&two, "/in", 1)])).await;
    desk.put(desk.tells(vec![writes(&two, "/mid", 3), removes(&two, "/in")])).await;
    let of_path = |text: &str| TraceQuery { path: Some(path(text)), ..trace() };
    let of_run = |run: &RunKey| TraceQuery { run: Some(run.run.clone()), ..trace() };
    assert_eq!(ranked(&desk, of_path("/in")).await, [1, 2, 6]);
    assert_eq!(ranked(&desk, of_path("/mid")).await, [3, 5, 7]);
    assert_eq!(ranked(&desk, of_path("/mi")).await, [0; 0]);
    assert_eq!(ranked(&desk, of_run(&one)).await, [2, 3]);
    assert_eq!(ranked(&desk, of_run(&two)).await, [5, 6, 7]);
    assert_eq!(ranked(&desk, of_run(&key("r-3"))).await, [0; 0]);
    let both = TraceQuery { run: Some(two.run.clone()), ..of_path("/mid") };
    assert_eq!(ranked(&desk, both).await, [5, 7]);
    assert_eq!(ranked(&desk, trace()).await, [1, 2, 3, 5, 6, 7]);
    let other = TraceQuery { world: WorldId::new("other").expect("valid"), ..trace() };
    assert_eq!(ranked(&desk, other).await, [4]);

    for query in [trace(), of_path("/mid"), of_run(&two)] {
        let all = traced(&desk, query.clone()).await;
        let mut paged = Vec::new();
        loop {
            let after = paged.last().copied().unwrap_or(0);
            let page = traced(&desk, TraceQuery { after, limit: 2, ..query.clone() }).await;
            assert!(page.len() <= 2);
            if page.is_empty() {
                break;
            }
            paged.extend(page);
            assert!(paged.len() <= all.len(), "pages do not go on: {paged:?}");
        }
        assert_eq!(paged, all);
        assert_eq!(traced(&desk, TraceQuery { after: u64::MAX, ..query }).await, [0; 0]);
    }
}

/// Neither a new record, nor the end of a file, nor a later use of it.
pub async fn t040_a_refused_batch_indexes_nothing(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let mut first = desk.creates(&run);
    first.claims.push(claim("s", "taken", "r"));
    first.artifacts = vec![writes(&run, "/a", 1), writes(&run, "/b", 1)];
    desk.put(first).await;
    let before = desk.store().trace(trace()).await.expect("readable");
    let ops = vec![
        writes(&run, "/a", 2),
        writes(&run, "/new", 2),
        removes(&run, "/b"),
        reads(&run, "/b", 1),
    ];
    let mut claims = desk.tells(ops.clone());
    claims.claims.push(claim("s", "taken", "other"));
    let exists = Batch { artifacts: ops.clone(), ..desk.creates(&run) };
    let fenced = Batch { epoch: Epoch(99), ..desk.tells(ops) };
    let after = desk.tells(vec![reads(&run, "/a", 1)]);
    let at = after.at;
    let answers = desk.commit(vec![claims, exists, fenced, after]).await;
    let taken: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(taken, [false, false, false, true]);
    let records = desk.store().trace(trace()).await.expect("readable");
    assert_eq!(records[..2], before);
    assert_eq!(records.len(), 3, "its neighbour in the group is there");
    assert_eq!(records[2].at, at);
    assert_eq!(paths(&desk, every()).await, "/a /b");
    let unused = FileQuery { unused_since: Some(at), ..every() };
    assert_eq!(paths(&desk, unused).await, "/b");
}

/// Several things done to one file in one batch are as good as one after the other.
pub async fn t040_what_a_batch_says_of_files_happens_in_order(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let ops = vec![
        writes(&run, "/a", 1),
        reads(&run, "/a", 1),
        writes(&run, "/a", 2),
        removes(&run, "/a"),
        writes(&run, "/a", 3),
        removes(&run, "/b"),
        writes(&run, "/b", 4),
        writes(&run, "/c", 5),
        removes(&run, "/c"),
    ];
    let batch = desk.tells(ops);
    let at = Some(batch.at);
    desk.put(batch).await;
    let records = desk.store().trace(trace()).await.expect("readable");
    let told: Vec<_> =
        records.iter().map(|record| (record.artifact.bytes, record.gone_at)).collect();
    assert_eq!(told, [(1, at), (1, None), (2, at), (3, None), (4, None), (5, at)]);
    let found = files(&desk, every()).await;
    let found: Vec<_> = found.iter().map(|file| (file.position, file.artifact.bytes)).collect();
    assert_eq!(found, [(records[3].position, 3), (records[4].position, 4)]);
}

/// The files of a run that is removed stay, and can still be traced to it.
pub async fn t040_records_of_a_purged_run_stay(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    desk.put(desk.creates(&run)).await;
    let mut ends = desk.ends(&run, 2);
    ends.artifacts = vec![reads(&run, "/in", 1), writes(&run, "/out", 2)];
    desk.put(ends).await;
    let before = desk.store().trace(trace()).await.expect("readable");
    assert_eq!(desk.store().purge(vec![run.stream()]).await.expect("works"), 1);
    assert_eq!(desk.store().trace(trace()).await.expect("readable"), before);
    let of_run = TraceQuery { run: Some(run.run.clone()), ..trace() };
    assert_eq!(ranked(&desk, of_run).await, [1, 2]);
    assert_eq!(paths(&desk, every()).await, "/out");
    desk.put(desk.tells(vec![writes(&key("next"), "/out", 3)])).await;
    assert_eq!(ranked(&desk, trace()).await, [1, 2, 3], "positions go on");
}
