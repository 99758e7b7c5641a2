//! Reading a whole backup, to know that it can be restored.

use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::path::Path;

use serde::Serialize;
use wharf_artifacts::StoredObject;
use wharf_vocab::{DateTime, Fault};

use super::Watcher;
use super::blobs::{pass_on, read};
use super::error::{damaged, trouble};
use super::manifest::{ByteDigest, BytesLocation, DATABASE, FileKind, Manifest, OBJECTS};
use super::place::{BackupFolder, CompleteBackup};
use super::seal::Key;

/// How much is told at most; a backup this broken needs no longer list.
const FINDINGS_MAX: usize = 100;

/// What was found in a backup.
#[derive(Debug, Serialize)]
pub struct VerifyReport {
    /// When its database was copied.
    pub taken_at: DateTime,
    /// The version of Wharf that made it.
    pub wharf: String,
    /// Files of worlds that it holds, or lists.
    pub objects: u64,
    /// How many bytes those have.
    pub bytes: u64,
    /// Files of the home besides them.
    pub files: u64,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// Whether the bytes of files are in an S3, and only listed.
    pub by_reference: bool,
    /// Keys of files that the database knew and the store did not have.
    pub missing: Vec<String>,
    /// What is wrong, one sentence each.
    pub findings: Vec<String>,
}

/// Reads everything that a backup holds and compares it with its hashes.
pub fn verify(
    dir: &Path,
    key: Option<Key>,
    watcher: &mut dyn Watcher,
) -> Result<VerifyReport, Fault> {
    let (place, CompleteBackup { head, manifest }) = BackupFolder::to_read(dir, key)?;
    let mut check = Verification { place: &place, watcher, findings: Vec::new() };
    check.all(&head.state, &manifest)?;
    let findings = check.findings;
    let is_file = |kind: &FileKind| matches!(kind, FileKind::File { .. });
    Ok(VerifyReport {
        taken_at: manifest.taken_at.into(),
        wharf: manifest.wharf,
        objects: manifest.objects.count,
        bytes: manifest.objects.bytes,
        files: manifest.files.iter().filter(|file| is_file(&file.kind)).count() as u64,
        encrypted: place.key().is_some(),
        by_reference: manifest.objects.kept == BytesLocation::S3,
        missing: manifest.objects.missing,
        findings,
    })
}

struct Verification<'a> {
    place: &'a BackupFolder,
    watcher: &'a mut dyn Watcher,
    findings: Vec<String>,
}

impl Verification<'_> {
    fn all(&mut self, state: &str, manifest: &Manifest) -> Result<(), Fault> {
        let objects = &manifest.objects;
        let stored = if objects.kept == BytesLocation::Here { objects.bytes } else { 0 };
        self.watcher.begin("reading the backup", Some(manifest.database.bytes + stored));
        self.part(state, DATABASE, &manifest.database)?;
        self.part(state, OBJECTS, &objects.list)?;
        for file in &manifest.files {
            if let FileKind::File { content, .. } = &file.kind {
                self.content(&file.path, content)?;
            }
        }
        if objects.kept == BytesLocation::Here && self.findings.is_empty() {
            each_object(self.place, state, &mut |object| {
                let content = ByteDigest { bytes: object.bytes, b3: object.b3.clone() };
                self.content(&object.key, &content)
            })?;
        }
        Ok(())
    }

    fn part(&mut self, state: &str, name: &str, piece: &ByteDigest) -> Result<(), Fault> {
        let mut reader = match self.place.open(state, name) {
            Ok(reader) => reader,
            Err(fault) => {
                self.findings.push(fault.message);
                return Ok(());
            }
        };
        let watcher = &mut *self.watcher;
        let whole = pass_on(&mut reader, piece, &mut |bytes| {
            watcher.add(bytes.len() as u64);
            Ok(())
        });
        self.tell(name, whole)
    }

    fn content(&mut self, name: &str, content: &ByteDigest) -> Result<(), Fault> {
        if self.findings.len() >= FINDINGS_MAX {
            return Ok(());
        }
        let watcher = &mut *self.watcher;
        let whole = read(self.place, content, &mut |bytes| {
            watcher.add(bytes.len() as u64);
            Ok(())
        });
        self.tell(name, whole)
    }

    fn tell(&mut self, name: &str, whole: io::Result<bool>) -> Result<(), Fault> {
        match whole {
            Ok(true) => {}
            Ok(false) => self.findings.push(format!("{name} is not what was backed up.")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.findings.push(format!("The content of {name} is missing."));
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                self.findings.push(format!("{name} cannot be decrypted: {error}."));
            }
            Err(error) => return Err(trouble("read", Path::new(name), &error)),
        }
        Ok(())
    }
}

/// Reads the list of objects.
pub(super) fn each_object(
    place: &BackupFolder,
    state: &str,
    look: &mut dyn FnMut(StoredObject) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let path = place.in_state(state, OBJECTS);
    for line in BufReader::new(place.open(state, OBJECTS)?).lines() {
        let line = line.map_err(|error| trouble("read", &path, &error))?;
        let object = serde_json::from_str(&line)
            .map_err(|_| damaged(&format!("{} cannot be understood", path.display())))?;
        look(object)?;
    }
    Ok(())
}
