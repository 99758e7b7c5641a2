//! Processes that are killed and disks that are full leave whole secrets behind.
//!
//! Where another process is needed, a test starts its own program again with one test of it,
//! which does nothing unless it is told a folder.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use wharf_ports::vault::{Secret, Vault};
use wharf_vocab::Code;

use crate::{name, open, secret};

const FOLDER: &str = "WHARF_VAULT_TEST_FOLDER";

fn again(test: &str, folder: &std::path::Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    command
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[tokio::test]
async fn whoever_is_killed_while_setting_leaves_an_older_secret_whole() {
    let home = tempfile::tempdir().expect("a folder");
    let vault = open(home.path());
    vault.set(name("a"), secret(&"0".repeat(50_000))).await.expect("kept");
    for round in 0..12_u64 {
        let mut command = again("crash::sets_until_it_is_killed", home.path());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        // Each line is a secret that was set; another number of them each time spreads the kills.
        let wanted = usize::try_from(1 + round * 3).expect("small");
        let lines = out.lines().map(|line| line.expect("read"));
        assert_eq!(lines.filter(|line| line.contains("set")).take(wanted).count(), wanted);
        child.kill().expect("killed");
        child.wait().expect("ends");
        let found = vault.get(name("a")).await.expect("whole");
        let text = found.expose();
        assert!(text.len() == 50_000 && text.iter().all(|byte| *byte == text[0]), "torn");
    }
    let again = open(home.path());
    again.set(name("a"), secret("after")).await.expect("kept");
    let files = std::fs::read_dir(home.path().join("secrets")).expect("there").count();
    assert_eq!(files, 2, "what was half-written is swept");
}

#[tokio::test]
async fn sets_until_it_is_killed() {
    let Some(folder) = folder() else { return };
    let vault = open(&folder);
    for digit in (b'1'..=b'9').cycle() {
        vault.set(name("a"), Secret::new(vec![digit; 50_000])).await.expect("kept");
        // The harness's own lines come without a break.
        writeln!(std::io::stdout(), "\nset").expect("heard");
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_older_secret_stays() {
    let home = tempfile::tempdir().expect("a folder");
    let mount = "mount -t tmpfs -o size=128k none \"$1\"";
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        command.arg(home.path());
        command
    };
    if !shell(mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return wharf_skips::skip("no small disk can be mounted here, so none could be filled");
    }
    let mut command = shell(&format!("{mount} && shift && exec \"$@\""));
    command.arg(std::env::current_exe().expect("a program"));
    command.args(["--exact", "crash::fills_a_small_disk", "--nocapture"]);
    let done = command.env(FOLDER, home.path()).output().expect("starts");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("filled"), "{said}");
}

#[tokio::test]
async fn fills_a_small_disk() {
    let Some(folder) = folder() else { return };
    let vault = open(&folder);
    vault.set(name("a"), secret("old")).await.expect("kept");
    vault.keyring().await.expect("made");
    let ring = vault.rotate(false).await.expect("rotated");
    let full = vec![1; 200 * 1024];
    // The write fails half-way, as it should: then there is no room at all.
    let filled = std::fs::write(folder.join("ballast"), full);
    assert!(filled.is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull));
    let refused = vault.set(name("a"), secret("new")).await.expect_err("no room");
    assert!(refused.is(Code::StoreFull), "{refused}");
    let refused = vault.rotate(false).await.expect_err("no room");
    assert!(refused.is(Code::StoreFull), "{refused}");
    assert_eq!(vault.get(name("a")).await.expect("there").expose(), b"old");
    assert_eq!(vault.keyring().await, Ok(ring));
    std::fs::remove_file(folder.join("ballast")).expect("removed");
    vault.set(name("a"), secret("new")).await.expect("kept");
    assert_eq!(vault.get(name("a")).await.expect("there").expose(), b"new");
    let files = std::fs::read_dir(folder.join("secrets")).expect("there").count();
    assert_eq!(files, 3, "nothing half-written is left");
    writeln!(std::io::stdout(), "filled").expect("heard");
}
