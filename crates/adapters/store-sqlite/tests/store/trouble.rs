//! Disks that are full or read-only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wharf_contract::desk::{key, record};
use wharf_journal::audit::Anchors;
use wharf_ports::{CommitError, ManualClock, Store as _, StoreErrorKind};
use wharf_store_sqlite::{SqliteStore, integrity_check, verify_audit};
use wharf_vocab::Timestamp;

use crate::support::{desk, key as audit_key};

/// A small file system of its own, gone when it is dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None` where this process may not mount anything.
    fn of(kib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let size = format!("size={kib}k,mode=700");
        let mounted = mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], folder.path());
        if !mounted {
            wharf_skips::skip("no small disk can be mounted here, so none could be filled");
        }
        mounted.then_some(Self(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("wharf.db")
    }

    /// A process that another test is just starting may still hold a copy of an open file.
    fn make_read_only(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !mount(&["-o", "remount,ro"], self.0.path()) {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Out of sight at once, and gone when nobody holds a file in it any more.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn mount(args: &[&str], at: &Path) -> bool {
    let status = Command::new("mount").args(args).arg(at).output();
    status.is_ok_and(|output| output.status.success())
}

fn open(path: &Path) -> Result<Arc<SqliteStore>, wharf_ports::StoreError> {
    let clock = Arc::new(ManualClock::at(Timestamp(1)));
    SqliteStore::open(path, &audit_key(), clock).map(Arc::new)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_as_such_and_loses_nothing() {
    let Some(disk) = Disk::of(4 * 1024) else { return };
    let store = open(&disk.path()).expect("opens");
    let desk = desk(&store).await;
    let filler = disk.0.path().join("filler");
    let mut taken = Vec::new();
    let mut refused = 0;
    for n in 0.. {
        if n == 10 {
            // Whatever is left of the disk goes to somebody else.
            let full = std::fs::write(&filler, vec![0; 8 * 1024 * 1024]);
            assert!(full.is_err(), "the disk is smaller than that");
        }
        let run = key(&format!("r-{n}"));
        let mut batch = desk.creates(&run);
        batch.audit.push(record("tool.call_requested"));
        match store.commit(vec![Arc::new(batch)]).await.remove(0) {
            Ok(()) => taken.push(run),
            Err(CommitError::Failed(error)) => {
                assert_eq!(error.kind, StoreErrorKind::Full, "{error}");
                assert_eq!(desk.seq(&run).await, None, "what failed is not there");
                refused += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
        if refused == 5 {
            break;
        }
    }
    assert!(taken.len() >= 10);
    for run in &taken {
        assert_eq!(desk.seq(run).await, Some(2), "reading goes on");
    }
    std::fs::remove_file(filler).expect("removed");
    desk.put(desk.creates(&key("afterwards"))).await;
    store.close().await.expect("closes");
    assert_eq!(integrity_check(&disk.path()).expect("readable"), [""; 0]);
    let report = verify_audit(&disk.path(), &audit_key(), &Anchors::default()).expect("readable");
    assert!(report.is_whole(), "{:?}", report.findings);
    assert_eq!(report.records, taken.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_when_the_store_is_opened() {
    let Some(disk) = Disk::of(64) else { return };
    let _ = std::fs::write(disk.0.path().join("filler"), vec![0; 1024 * 1024]);
    let error = open(&disk.path()).expect_err("no room");
    assert_eq!(error.kind, StoreErrorKind::Full, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_home_is_told_when_the_store_is_opened() {
    let Some(disk) = Disk::of(4 * 1024) else { return };
    let store = open(&disk.path()).expect("opens");
    let desk = desk(&store).await;
    desk.put(desk.creates(&key("r"))).await;
    store.close().await.expect("closes");
    assert!(disk.make_read_only());
    let error = open(&disk.path()).expect_err("read-only");
    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
    assert!(error.message.starts_with("cannot write "), "{error}");
    assert!(error.message.to_lowercase().contains("read-only"), "{error}");
    let report = verify_audit(&disk.path(), &audit_key(), &Anchors::default()).expect("reads");
    assert!(report.findings.is_empty(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_cannot_be_made_is_told() {
    let error = open(Path::new("/proc/wharf-test/home/wharf.db")).expect_err("not there");
    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
    assert!(error.message.starts_with("cannot make the folder of "), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let error = open(folder.path()).expect_err("a folder is no file");
    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error}");
}
