//! Anchors: signed heads of the audit's chains, kept beside the database.
//!
//! Whoever puts an older copy of the database in place, or cuts off its end, cannot take these
//! back. When a core finds at its start that the database does not reach what an anchor says, it
//! keeps those anchors under a name of their own, so that `wharf audit verify` goes on to tell.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wharf_journal::audit::Anchors;
use wharf_ports::{Clock as _, SystemClock};
use wharf_vocab::{Fault, Timestamp};

use crate::database::StoreAdmin;
use crate::{Home, fault, files};

/// All anchors that a home keeps, and what is wrong with the files.
pub(crate) fn kept(home: &Home) -> (Anchors, Vec<String>) {
    let (mut anchors, mut findings) = (Anchors::default(), Vec::new());
    for path in anchor_files(home) {
        let read = files::read(&path).map_err(|error| error.to_string());
        let parsed = read.and_then(|bytes| {
            let bytes = bytes.unwrap_or_default();
            serde_json::from_slice::<Anchors>(&bytes).map_err(|error| error.to_string())
        });
        match parsed {
            Ok(found) => anchors.heads.extend(found.heads),
            Err(_) => {
                let path = path.display();
                findings.push(format!("The anchors in {path} cannot be read; they were changed."));
            }
        }
    }
    (anchors, findings)
}

/// Writes down how far the audit has come. Anchors that the database does not reach any more are
/// kept under another name.
pub(crate) async fn write(home: &Home, store: &dyn StoreAdmin) -> Result<(), Fault> {
    let anchors = store.anchors().await.map_err(|error| fault::of_store(&error))?;
    if is_behind(home, &anchors) {
        set_aside(home)?;
    }
    let text = serde_json::to_vec(&anchors).unwrap_or_default();
    files::replace(&home.anchors_file(), &text).map_err(|error| home.unwritable(&error))
}

/// Compares the database with the anchors of the last life; those that it does not reach are set
/// aside and not written over.
pub(crate) async fn compare(
    home: &Home,
    store: &dyn StoreAdmin,
    now: Timestamp,
) -> Result<(), Fault> {
    let reached = store.anchors().await.map_err(|error| fault::of_store(&error))?;
    if !is_behind(home, &reached) {
        return Ok(());
    }
    tracing::error!(
        "the audit does not reach its anchors: records were cut off, or an older copy of the \
         database was put in its place; see `wharf audit verify`"
    );
    keep_as(home, now)
}

/// Whether the database does not reach what the home's anchors say.
fn is_behind(home: &Home, reached: &Anchors) -> bool {
    let reached: BTreeMap<_, _> = reached.heads.iter().map(|head| (head.shard, head)).collect();
    let Ok(Some(text)) = files::read(&home.anchors_file()) else { return false };
    let known = serde_json::from_slice::<Anchors>(&text).unwrap_or_default().heads;
    known.iter().any(|anchor| {
        reached
            .get(&anchor.shard)
            .is_none_or(|head| head.n < anchor.n || (head.n == anchor.n && head.mac != anchor.mac))
    })
}

/// Keeps the anchors under a name of their own, since the database has lost what they stand for.
pub(crate) fn set_aside(home: &Home) -> Result<(), Fault> {
    match home.anchors_file().exists() {
        true => keep_as(home, SystemClock.now()),
        false => Ok(()),
    }
}

fn keep_as(home: &Home, now: Timestamp) -> Result<(), Fault> {
    let aside = home.run_folder().join(format!("audit.anchors.{}", now.0));
    std::fs::rename(home.anchors_file(), &aside).map_err(|error| home.unwritable(&error))
}

fn anchor_files(home: &Home) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(home.run_folder()) else { return Vec::new() };
    let is_one =
        |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_anchor);
    let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).filter(is_one).collect();
    paths.sort();
    paths
}

/// Whether a file of this name holds anchors.
pub(crate) fn is_anchor(name: &str) -> bool {
    name.starts_with("audit.anchors") && !name.ends_with(".new")
}
