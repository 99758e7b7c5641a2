//! What a fenced program cannot do to the modes of files, nor to what its user has only so many of.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{Bench, can};
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

#[tokio::test]
async fn no_file_is_made_that_runs_as_its_owner() {
    let bench = Bench::new();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let spec = bench.fenced(level, &[]);
        let home = spec.private_dirs[0].clone();
        let word = |what: &str, name: &str| format!("{what},{}", home.join(name).display());
        let words = [
            word("create:755", "a"),
            word("chmod:1711", "a"),
            word("create:600", "b"),
            word("chmod:4755", "a"),
            word("chmod:2755", "a"),
            word("create:4755", "c"),
            word("create:2755", "c"),
            word("node:4755", "c"),
            word("node:6755", "c"),
            format!("open2:{}", home.join("a").display()),
        ];
        let mut spec = spec;
        spec.args = ["attempt".to_owned()].into_iter().chain(words).collect();
        let said = bench.said(spec).await;
        assert!(said[..3].iter().all(|line| line.contains(": yes")), "{said:?}");
        assert!(said[3..].iter().all(|line| line.contains(": no")), "{said:?}");
        let mode = |name| fs::metadata(home.join(name)).expect("is there").mode() & 0o7777;
        assert_eq!([mode("a"), mode("b")], [0o1711, 0o600]);
        assert!(!home.join("c").exists());
    }
}

#[tokio::test]
async fn a_program_does_not_use_up_what_its_user_has_few_of() {
    let bench = Bench::new();
    let most = || fs::read_to_string("/proc/sys/user/max_inotify_instances").expect("is there");
    let before = most();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let said = bench.said(bench.fenced(level, &["attempt", "inotify"])).await;
        assert_eq!(said, ["inotify: yes 16"], "{level}");
    }
    assert_eq!(most(), before, "the machine's own number stays");
}
