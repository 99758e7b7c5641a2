//! What a fenced program cannot do to the modes of files, nor to what its user has only so many of.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;

use support::{Bench, can};
use wharf_vocab::SandboxLevel::{self, Standard, Strict};

const FIRM: [SandboxLevel; 2] = [Standard, Strict];

#[tokio::test]
async fn devices_can_be_written_to_but_not_changed() {
    let bench = Bench::new();
    let mode = || fs::metadata("/dev/full").expect("is there").mode();
    let before = mode();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let words = ["attempt", "write:/dev/null", "chmod:660,/dev/full", "chmod:666,/dev/null"];
        let said = bench.said(bench.fenced(level, &words)).await;
        assert!(said[0].ends_with(": yes"), "{said:?}");
        assert!(said[1..].iter().all(|line| line.contains(": no")), "{said:?}");
    }
    assert_eq!(mode(), before);
}
