//! Where the core is: what the environment says, else the core of this machine.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

/// An address and what lets one in.
pub struct Core {
    /// The address.
    pub url: String,
    /// The token.
    pub token: String,
}

#[derive(Deserialize)]
struct Info {
    http: String,
}

impl Core {
    /// Finds the core; `None` if there is none.
    pub fn find() -> Option<Self> {
        let run = home().unwrap_or_default().join("run");
        let given = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let written = || {
            let info = fs::read(run.join("core.json")).ok()?;
            let info: Info = serde_json::from_slice(&info).ok()?;
            Some(info.http)
        };
        let owners = || {
            let token = fs::read_to_string(run.join("owner.token")).ok()?;
            Some(token.trim().to_owned())
        };
        let url = given("WHARF_URL").or_else(written)?;
        let token = given("WHARF_TOKEN").or_else(owners)?;
        Some(Self { url, token })
    }
}

fn home() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from);
    let data = || {
        let given = folder("XDG_DATA_HOME").filter(|path| path.is_absolute());
        given.or_else(|| Some(folder("HOME")?.join(".local/share")))
    };
    folder("WHARF_HOME").or_else(|| Some(data()?.join("wharf")))
}
