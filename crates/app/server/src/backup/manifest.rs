//! What a backup says about itself.

use serde::{Deserialize, Serialize};
use wharf_vocab::{B3, Timestamp};

/// What `format` says.
pub(super) const FORMAT: &str = "wharf-backup";
/// The newest version of the format that this program knows.
pub(super) const VERSION: u32 = 1;
/// The names of what a state holds.
pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const DATABASE: &str = "wharf.db";
pub(super) const OBJECTS: &str = "objects.jsonl";

/// `backup.json`: which state is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) version: u32,
    /// The folder of the state.
    pub(super) state: String,
    pub(super) made_at: Timestamp,
    /// Which key opens it, if it is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    pub(super) manifest: ByteDigest,
}

/// How many bytes something holds, and their hash; of the text, also if that is encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ByteDigest {
    pub(super) bytes: u64,
    pub(super) b3: B3,
}

/// Everything that a state holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The version of Wharf that made it.
    pub(super) wharf: String,
    /// When its database was copied.
    pub(super) taken_at: Timestamp,
    pub(super) database: ByteDigest,
    pub(super) objects: Objects,
    /// Files and folders of the home; a folder stands before what it holds.
    pub(super) files: Vec<HomeFile>,
}

/// The objects that the database knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Objects {
    pub(super) kept: BytesLocation,
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// The list of them, one JSON object per line.
    pub(super) list: ByteDigest,
    /// Keys of files that the database knew and the store did not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<String>,
}

/// Where the bytes of objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BytesLocation {
    /// In the backup.
    Here,
    /// In the S3 that the home's configuration names; the backup lists keys and hashes.
    S3,
}

/// A file, folder or link of the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HomeFile {
    /// Where it lies in the home.
    pub(super) path: String,
    /// Its permission bits.
    pub(super) mode: u32,
    pub(super) kind: FileKind,
}

/// What a file of the home is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileKind {
    /// A folder.
    Folder,
    /// A link to this place.
    Link { to: String },
    /// A file with this content; when it was changed last tells whether it must be read again.
    File { content: ByteDigest, changed_ns: i64 },
}
