//! The home itself: whether it is there, private, on a disk with room, and set up rightly.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use wharf_vocab::Fault;

use super::Check;
use crate::Home;
use crate::logging;
use crate::settings::Settings;

const MIB: u64 = 1024 * 1024;
/// Below this a core soon cannot write any more.
const DISK_BYTES_MIN: u64 = 64 * MIB;
/// Below this somebody should look.
const DISK_BYTES_WISE: u64 = 1024 * MIB;

/// A certificate that ends within so many days should be renewed.
const CERTIFICATE_DAYS_WISE: i64 = 14;

pub(super) fn home(home: &Home) -> Check {
    let (name, path) = ("home", home.path());
    let shown = path.display();
    if !path.exists() {
        return Check::warn(name, format!("{shown} does not exist yet; `wharf up` makes it"));
    }
    if !path.is_dir() {
        return Check::fail(name, format!("{shown} is not a folder; choose another with --home"));
    }
    if home.is_half_restored() {
        let text = format!("{shown} was not restored to the end; remove it and restore it again");
        return Check::fail(name, text);
    }
    let read_only = statvfs(path).is_ok_and(|at| at.f_flag.contains(StatVfsMountFlags::RDONLY));
    if read_only || access(path, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let text = format!("{shown} cannot be written by this account; choose another with --home");
        return Check::fail(name, text);
    }
    Check::ok(name, format!("{shown}"))
}

/// The certificate, if the core speaks TLS.
pub(super) fn certificate(settings: &Settings) -> Option<Check> {
    let name = "certificate";
    let certificate = match settings.tls.as_ref()?.read() {
        Ok(certificate) => certificate,
        Err(error) => return Some(Check::fail(name, error.to_string())),
    };
    let until = certificate.until();
    let names = certificate.names().collect::<Vec<_>>().join(", ");
    let text = format!("good until {until}, for {names}");
    let left = until.duration_since(jiff::Timestamp::now());
    Some(match left < jiff::SignedDuration::from_hours(24 * CERTIFICATE_DAYS_WISE) {
        true => Check::warn(name, format!("{text}; renew it soon, the core takes it on by itself")),
        false => Check::ok(name, text),
    })
}

pub(super) fn permissions(home: &Home) -> Check {
    let name = "permissions";
    let open = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
    };
    let secrets = [
        home.owner_token_file(),
        home.audit_key_file(),
        home.secrets_folder(),
        home.run_folder(),
        home.path().join("wharf.db"),
    ];
    if let Some(path) = secrets.iter().find(|path| open(path)) {
        let path = path.display();
        let text = format!("{path} can be used by other accounts; run: chmod go-rwx {path}");
        return Check::fail(name, text);
    }
    let path = home.path().to_owned();
    if open(&path) {
        let path = path.display();
        let text = format!("{path} can be looked into by other accounts; run: chmod go-rwx {path}");
        return Check::warn(name, text);
    }
    Check::ok(name, "the home is private")
}

pub(super) fn disk(home: &Home) -> Check {
    let name = "disk";
    let Ok(room) = statvfs(home.path()) else {
        return Check::warn(name, "the free space is unknown");
    };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let text = match free / MIB {
        mib if mib < 10 * 1024 => format!("{mib} MiB are free"),
        mib => format!("{} GiB are free", mib / 1024),
    };
    match free {
        free if free < DISK_BYTES_MIN => Check::fail(name, format!("{text}; make room")),
        free if free < DISK_BYTES_WISE => Check::warn(name, format!("{text}; make room soon")),
        _ => Check::ok(name, text),
    }
}

pub(super) fn configuration(settings: &Result<Settings, Fault>) -> Check {
    let name = "configuration";
    let checked = settings.as_ref().map_err(Clone::clone).and_then(|settings| {
        logging::filter(&settings.log.filter)?;
        Ok(settings)
    });
    match checked {
        Ok(settings) => Check::ok(name, format!("set to listen on {}", settings.listen)),
        Err(fault) => Check::fail(name, fault.message),
    }
}
