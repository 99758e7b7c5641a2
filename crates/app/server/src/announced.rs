//! `run/core.json`: where clients find the core of a home. It belongs to the core that wrote it,
//! and another one takes it away only when that core is gone.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use wharf_http::CoreInfo;

use crate::{Home, files};

/// Removes what a core left behind that was killed. What a core that is still there says stays:
/// this one may not come up, and then nobody could find the other.
pub(crate) fn clear(home: &Home) -> io::Result<()> {
    let known = files::read(&home.core_file())?;
    let known = known.and_then(|text| serde_json::from_slice::<CoreInfo>(&text).ok());
    if known.is_some_and(|known| is_there(known.pid)) {
        return Ok(());
    }
    files::remove(&home.core_file())
}

/// Removes what this core said, if it still stands there.
pub(crate) fn withdraw(home: &Home, own: &CoreInfo) -> io::Result<()> {
    let text = serde_json::to_vec(own).unwrap_or_default();
    match files::read(&home.core_file())? {
        Some(found) if found == text => files::remove(&home.core_file()),
        _ => Ok(()),
    }
}

/// Whether there is another process of this number. One that has it by chance does no harm: what
/// stands there is written over when this core is up.
fn is_there(pid: u32) -> bool {
    if pid == std::process::id() {
        return false;
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pid: u32) -> CoreInfo {
        CoreInfo {
            http: "http://127.0.0.1:1".into(),
            storage: None,
            agents: None,
            pid,
            version: "0".into(),
        }
    }

    fn write(home: &Home, info: &CoreInfo) {
        let text = serde_json::to_vec(info).expect("written");
        files::replace(&home.core_file(), &text).expect("written");
    }

    #[test]
    fn only_what_a_core_left_behind_that_is_gone_is_cleared() {
        let (_dir, home) = Home::in_a_test();
        clear(&home).expect("nothing is there");
        // The process that runs the tests was started by one that is still there.
        let other = std::os::unix::process::parent_id();
        write(&home, &info(other));
        clear(&home).expect("looked at");
        assert!(home.core_file().exists(), "another core may stand behind it");
        for gone in [std::process::id(), i32::MAX as u32] {
            write(&home, &info(gone));
            clear(&home).expect("cleared");
            assert!(!home.core_file().exists());
        }
        files::replace(&home.core_file(), b"{").expect("written");
        clear(&home).expect("cleared");
        assert!(!home.core_file().exists(), "nobody could read it");
    }

    #[test]
    fn a_core_takes_back_only_its_own_word() {
        let (_dir, home) = Home::in_a_test();
        write(&home, &info(7));
        withdraw(&home, &info(8)).expect("looked at");
        assert!(home.core_file().exists());
        withdraw(&home, &info(7)).expect("removed");
        assert!(!home.core_file().exists());
        withdraw(&home, &info(7)).expect("it is gone already");
    }
}
