//! Seats with a name: what opens them is kept in a file of the user, one per core and name.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wharf_client::Client;
use wharf_vocab::Code;

use crate::commands::{CliError, Result};

/// Longest name.
const NAME_BYTES_MAX: usize = 64;

/// What opens a seat.
#[derive(Serialize, Deserialize)]
struct SeatKey {
    sid: String,
    token: String,
}

/// The file of one name.
#[derive(Debug)]
pub(super) struct KeptSeat {
    path: PathBuf,
}

/// Reads a name that can be that of a file.
pub(super) fn name(text: &str) -> std::result::Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(format!("give up to {NAME_BYTES_MAX} letters, digits, - and _")),
    }
}

impl KeptSeat {
    /// The file of a name at this core.
    pub(super) async fn at(client: &Client, name: &str) -> Result<Self> {
        let home = client.session().await?.home_id;
        // It is the core's word, and becomes the name of a folder.
        let home: String = home.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
        let folder = state_folder().ok_or_else(|| {
            CliError::usage("there is no folder for the seat's token; set HOME or XDG_STATE_HOME")
        })?;
        Ok(Self { path: folder.join("wharf/seats").join(home).join(format!("{name}.json")) })
    }

    /// The id and the token of the seat, if it is still there.
    pub(super) async fn open(&self, client: &Client) -> Result<Option<(String, String)>> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CliError::unreadable(self.path.display(), &error)),
        };
        let Ok(key) = serde_json::from_str::<SeatKey>(&text) else {
            let message = format!("{} holds no seat; remove it", self.path.display());
            return Err(CliError::usage(message));
        };
        match client.seats().get(&key.sid).await {
            Ok(_) => Ok(Some((key.sid, key.token))),
            // It was given up elsewhere.
            Err(error) if error.is(Code::SeatNotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps a seat for the next time; only its owner may read the file.
    pub(super) fn keep(&self, sid: &str, token: &str) -> Result<()> {
        let failed = |error: &std::io::Error| CliError::unwritable(self.path.display(), error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| failed(&error))?;
        let key = SeatKey { sid: sid.to_owned(), token: token.to_owned() };
        let text = serde_json::to_string(&key).unwrap_or_default();
        // Beside its place first, so that half a file never takes the place of a whole one.
        let part = self.path.with_extension("part");
        let mut options = std::fs::File::options();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&part);
        let mut file = file.map_err(|error| failed(&error))?;
        let written = writeln!(file, "{text}").and_then(|()| std::fs::rename(&part, &self.path));
        written.map_err(|error| failed(&error))
    }
}

/// Where programs keep what they must find again.
fn state_folder() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    var("XDG_STATE_HOME").or_else(|| var("HOME").map(|home| home.join(".local/state")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        assert_eq!(name("desk-1"), Ok("desk-1".to_owned()));
        for wrong in ["", "../x", "a/b", "a b", ".hidden", &"x".repeat(65)] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_opens_a_seat_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let kept = KeptSeat { path: dir.path().join("seats/h/desk.json") };
        kept.keep("S-1", "secret").expect("kept");
        kept.keep("S-2", "secret").expect("kept again");
        let facts = std::fs::metadata(&kept.path).expect("there");
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&kept.path).expect("readable");
        assert!(text.contains("S-2"), "{text}");
    }
}
