//! Landlock: which files may be opened and changed, which ports be connected to
//! and listened on.
//!
//! With namespaces this repeats what the program sees anyway, so that a mistake in either does
//! not open the fence. Without them it is the only bound.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{FileType, fstat};

use super::view::{self, Grant, View};

/// The newest version whose rights were tried. Older kernels do what they can.
const VERSION: ABI = ABI::V7;
/// Devices that any program may use.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The TCP ports that may be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports<'a> {
    /// To connect to.
    pub(crate) connect: &'a [u16],
    /// To listen on.
    pub(crate) listen: Option<u16>,
}

/// Confines this thread and all it starts; answers with the kernel's version.
pub(crate) fn confine(view: &View, ports: Ports<'_>) -> io::Result<i32> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(VERSION))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(VERSION)))
        .and_then(|rules| rules.scope(Scope::from_all(VERSION)))
        .and_then(Ruleset::create)
        .map_err(into_io)?;
    for (path, grant) in view.grants() {
        rules = allow(rules, path, grant)?;
    }
    for path in ["/etc", "/proc"] {
        rules = allow(rules, Path::new(path), Grant::Read)?;
    }
    for path in DEVICES {
        rules = allow(rules, Path::new(path), Grant::Write)?;
    }
    let connect = ports.connect.iter().map(|port| (*port, AccessNet::ConnectTcp));
    for (port, access) in connect.chain(ports.listen.map(|port| (port, AccessNet::BindTcp))) {
        rules = rules.add_rule(NetPort::new(port, access)).map_err(into_io)?;
    }
    let status = rules.restrict_self().map_err(into_io)?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err(io::ErrorKind::Unsupported.into()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as i32),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn allow(rules: RulesetCreated, path: &Path, grant: Grant) -> io::Result<RulesetCreated> {
    let Ok(descriptor) = view::open(path) else {
        // What is not there cannot be used, and what comes later was not meant.
        return Ok(rules);
    };
    let is_folder = FileType::from_raw_mode(fstat(&descriptor)?.st_mode) == FileType::Directory;
    let rights: BitFlags<AccessFs> = match grant {
        Grant::Read => AccessFs::from_read(VERSION),
        Grant::Write => AccessFs::from_all(VERSION),
    };
    let rights = if is_folder { rights } else { rights & AccessFs::from_file(VERSION) };
    rules.add_rule(PathBeneath::new(descriptor, rights)).map_err(into_io)
}

fn into_io(error: RulesetError) -> io::Error {
    let mut source: Option<&dyn std::error::Error> = Some(&error);
    while let Some(inner) = source {
        if let Some(inner) = inner.downcast_ref::<io::Error>()
            && let Some(number) = inner.raw_os_error()
        {
            return io::Error::from_raw_os_error(number);
        }
        source = inner.source();
    }
    io::Error::other(error)
}
