//! Files of worlds: whether the store has what the database knows, and what it has besides.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;

use wharf_artifacts::ObjectFolder;
use wharf_ports::{Clock as _, FileRecord, ObjectStore as _, SystemClock};
use wharf_vocab::B3;

use super::Check;
use crate::database::Database;
use crate::settings::Settings;
use crate::settings::artifacts::{Location, S3};
use crate::{Home, fault, storage};

const FILES: &str = "files";
const LEFTOVERS: &str = "leftovers";
/// Objects that an S3 lists at once.
const LIST_PAGE: usize = 1_000;
/// What is younger may be about to be recorded; what is older is cleared away.
const YOUNG_MS: u64 = 24 * 60 * 60 * 1000;

/// Compares files with the store; their content, too, if that is wanted.
pub(super) fn checks(home: &Home, settings: &Settings, deep: bool) -> Vec<Check> {
    let database = &settings.store;
    if !database.exists() {
        return Vec::new();
    }
    let mut records = Vec::new();
    if let Err(error) = database.files(&mut |record| records.push(record)) {
        return vec![Check::fail(FILES, fault::of_store(&error).message)];
    }
    if let Location::S3(s3) = &settings.artifacts.place {
        return vec![in_s3(s3, database, &records)];
    }
    let folder = ObjectFolder::at(&home.objects_folder());
    let mut seen = FileComparison::default();
    for record in &records {
        if let Err(error) = seen.compare(&folder, database, record, deep) {
            let text = format!("{} cannot be read: {error}", home.objects_folder().display());
            return vec![Check::fail(FILES, text)];
        }
    }
    vec![seen.verdict(deep), leftovers(&folder, database, &records)]
}

/// How files compare.
#[derive(Debug, Default)]
struct FileComparison {
    count: u64,
    bytes: u64,
    missing: Vec<String>,
    differing: Vec<String>,
    damaged: Vec<String>,
}

impl FileComparison {
    fn compare(
        &mut self,
        folder: &ObjectFolder,
        database: &Database,
        record: &FileRecord,
        deep: bool,
    ) -> io::Result<()> {
        let file = &record.artifact;
        let key = file.path.key(&file.world);
        self.count += 1;
        self.bytes = self.bytes.saturating_add(file.bytes);
        let Some(object) = folder.look(&key)? else {
            // A core may have removed it since the records were read.
            if database.is_here(record).unwrap_or(true) {
                self.missing.push(key);
            }
            return Ok(());
        };
        let same_hash = file.b3.as_ref().is_none_or(|b3| *b3 == object.b3);
        if object.bytes != file.bytes || !same_hash {
            self.differing.push(key);
        } else if deep && !has_hash(folder, &key, &object.b3)? {
            self.damaged.push(key);
        }
        Ok(())
    }

    fn verdict(&self, deep: bool) -> Check {
        let Self { count, bytes, missing, differing, damaged } = self;
        if let Some(first) = missing.first() {
            let text = format!(
                "{} of {count} are not in the store, the first is {first}; restore a backup, or \
                 give them up with `wharf worlds rm`",
                missing.len()
            );
            return Check::fail(FILES, text);
        }
        if let Some(first) = damaged.first() {
            let text = format!(
                "{} of {count} are damaged on the disk, the first is {first}; restore a backup, \
                 or give them up with `wharf worlds rm`",
                damaged.len()
            );
            return Check::fail(FILES, text);
        }
        if let Some(first) = differing.first() {
            let text = format!(
                "{} of {count} are not what the database says, the first is {first}; they are \
                 taken as they are when they are next read, or by `wharf worlds gc`",
                differing.len()
            );
            return Check::warn(FILES, text);
        }
        let compared = if deep { "by size and hash" } else { "by size" };
        Check::ok(FILES, format!("{count} with {bytes} bytes, all in the store, {compared}"))
    }
}

/// Compares files with what an S3 lists of their worlds, by size.
fn in_s3(s3: &S3, database: &Database, records: &[FileRecord]) -> Check {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Check::warn(FILES, "the S3 cannot be asked") };
    let worlds: BTreeSet<&str> =
        records.iter().map(|record| record.artifact.world.as_str()).collect();
    let listed = runtime.block_on(async {
        let objects = storage::open_s3(s3, None).map_err(|fault| fault.message)?;
        let mut found = BTreeMap::new();
        for world in worlds {
            let mut after = None;
            loop {
                let page = objects.list(format!("{world}/"), after.take(), LIST_PAGE).await;
                let page = page.map_err(|error| error.to_string())?;
                let Some(last) = page.last() else { break };
                after = Some(last.key.clone());
                found.extend(page.into_iter().map(|entry| (entry.key, entry.bytes)));
            }
        }
        Ok::<_, String>(found)
    });
    let listed = match listed {
        Ok(listed) => listed,
        Err(why) => return Check::warn(FILES, format!("the S3 cannot be asked: {why}")),
    };
    let mut seen = FileComparison::default();
    for record in records {
        let file = &record.artifact;
        let key = file.path.key(&file.world);
        seen.count += 1;
        seen.bytes = seen.bytes.saturating_add(file.bytes);
        match listed.get(&key) {
            None if database.is_here(record).unwrap_or(true) => seen.missing.push(key),
            Some(bytes) if *bytes != file.bytes => seen.differing.push(key),
            _ => {}
        }
    }
    seen.verdict(false)
}

fn has_hash(folder: &ObjectFolder, key: &str, wanted: &B3) -> io::Result<bool> {
    let Some((_, file)) = folder.open(key)? else { return Ok(false) };
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut io::BufReader::<File>::with_capacity(1 << 20, file), &mut hasher)?;
    Ok(hasher.finalize().to_hex().as_str() == wanted.as_str())
}

/// Objects that no record speaks of and no run is about to publish.
fn leftovers(folder: &ObjectFolder, database: &Database, records: &[FileRecord]) -> Check {
    let mut known: BTreeSet<String> =
        records.iter().map(|record| record.artifact.path.key(&record.artifact.world)).collect();
    for staged in database.publications().unwrap_or_default() {
        known.extend(staged.moves.iter().map(|one| one.from.key(&staged.run.world)));
    }
    let now = SystemClock.now();
    let (mut count, mut bytes, mut old) = (0_u64, 0_u64, 0_u64);
    let walked = folder.each(&mut |object| {
        if !known.contains(&object.key) {
            count += 1;
            bytes = bytes.saturating_add(object.bytes);
            old += u64::from(object.written_at.plus_ms(YOUNG_MS) <= now);
        }
    });
    if let Err(error) = walked {
        return Check::warn(LEFTOVERS, format!("objects cannot be counted: {error}"));
    }
    match (count, old) {
        (0, _) => Check::ok(LEFTOVERS, "none: every object is on record"),
        (_, 0) => Check::ok(
            LEFTOVERS,
            format!(
                "{count} objects with {bytes} bytes are on no record; they are younger than a day \
                 and may still get one"
            ),
        ),
        _ => Check::warn(
            LEFTOVERS,
            format!(
                "{count} objects with {bytes} bytes are not recorded, {old} of them for more than \
                 a day; `wharf worlds gc WORLD` removes them, and so does a core every hour"
            ),
        ),
    }
}
