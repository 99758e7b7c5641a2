//! Copies of a database that is being written, and what they say about files.

use std::path::Path;

use crate::support::{Home, desk};
use wharf_contract::desk::{key, record, removes, writes};
use wharf_ports::StoreErrorKind;
use wharf_store_sqlite::{backup, integrity_check};

fn paths(database: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let read = backup::files(database, &mut |file| found.push(file.artifact.path.to_string()));
    read.expect("readable");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_one_moment_of_a_store_that_goes_on() {
    let home = Home::new();
    let store = home.open();
    let desk = desk(&store).await;
    for n in 0..400 {
        let mut batch = desk.creates(&key(&format!("r{n}")));
        batch.audit.push(record("tool.call_requested"));
        desk.put(batch).await;
    }
    desk.put(desk.tells(vec![writes(&key("r1"), "/a", 1), writes(&key("r1"), "/b", 2)])).await;
    let (from, to) = (home.path(), home.folder.path().join("copy.db"));
    let copying = tokio::task::spawn_blocking({
        let (from, to) = (from.clone(), to.clone());
        move || {
            let mut steps = Vec::new();
            backup::copy(&from, &to, &mut |done, all| steps.push((done, all))).map(|()| steps)
        }
    });
    let mut later = 0;
    while !copying.is_finished() {
        desk.put(desk.creates(&key(&format!("later{later}")))).await;
        later += 1;
    }
    let steps = copying.await.expect("ends").expect("copied");
    assert_eq!(steps.last().map(|(done, all)| done == all), Some(true), "{steps:?}");
    assert_eq!(integrity_check(&to).expect("readable"), Vec::<String>::new());
    assert!(!to.with_extension("db-wal").exists(), "the copy is one file");

    // What happens later is not in the copy; what is not there any more can be told.
    desk.put(desk.tells(vec![removes(&key("r1"), "/a"), writes(&key("r1"), "/c", 3)])).await;
    assert_eq!(paths(&to), ["/a", "/b"]);
    assert_eq!(paths(&from), ["/b", "/c"]);
    let mut records = Vec::new();
    backup::files(&to, &mut |file| records.push(file)).expect("readable");
    let here: Vec<_> =
        records.iter().map(|file| backup::is_here(&from, file).expect("readable")).collect();
    assert_eq!(here, [false, true]);
    backup::forget(&to, &records[..1]).expect("marked");
    assert_eq!(paths(&to), ["/b"]);
    assert_eq!(paths(&from), ["/b", "/c"], "the original stays as it is");
    let again = backup::copy(&from, &to, &mut |_, _| {}).expect_err("it is there");
    assert_eq!(again.kind, StoreErrorKind::Unavailable);
}
