//! The parts of the core that run in this process: `up`, and the work on a home without a core.
//!
//! No other file of the command line names the server or the simulator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
pub(crate) use wharf_server::backup::{Key as BackupKey, Watcher as BackupWatcher};
use wharf_server::backup::{RestoreOptions, TakeOptions};
use wharf_server::doctor::Verdict;
use wharf_server::migrate::MigrationStatus;
pub(crate) use wharf_server::tokens::Narrower;
use wharf_server::{UpOptions, audit, backup, doctor, migrate, tokens};
use wharf_testkit::sim::{self, SimOptions};

use crate::failure::Result;

/// A home on this machine.
pub(crate) struct Home(wharf_server::Home);

impl Home {
    /// The home that was named, or the one the environment or the platform names.
    pub(crate) fn resolve(dir: Option<PathBuf>) -> Result<Self> {
        Ok(Self(wharf_server::Home::resolve(dir)?))
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Which migrations its database has had and which are to come.
    pub(crate) fn migrations(&self) -> Result<Migrations> {
        Ok(migrate::status(&self.0)?.into())
    }

    /// Brings its database to the newest version.
    pub(crate) fn migrate_up(&self) -> Result<Migrations> {
        Ok(migrate::up(&self.0)?.into())
    }

    /// Takes its database back to version `to`.
    pub(crate) fn migrate_down(&self, to: u32) -> Result<Migrations> {
        Ok(migrate::down(&self.0, to)?.into())
    }

    /// Checks its audit from the first record to the last.
    pub(crate) fn verify_audit(&self) -> Result<AuditCheck> {
        let report = audit::verify(&self.0)?;
        Ok(AuditCheck { records: report.records, chains: report.chains, findings: report.findings })
    }

    /// Looks for what could keep a core from working well; reads every file if that is wanted.
    pub(crate) fn examine(&self, hash: bool) -> Vec<Finding> {
        let finding = |check: doctor::Check| Finding {
            name: check.name,
            verdict: match check.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Fail => "fail",
            },
            text: check.text,
        };
        let mut checks = doctor::check(&self.0, hash);
        checks.extend(doctor::check_sandbox(&self.0));
        checks.into_iter().map(finding).collect()
    }

    /// Takes a backup of it.
    pub(crate) fn back_up(
        &self,
        dir: &Path,
        incremental: bool,
        key: Option<BackupKey>,
        watcher: &mut dyn BackupWatcher,
    ) -> Result<Backed> {
        let options = TakeOptions { incremental, key };
        let taken = backup::take(&self.0, dir, options, watcher)?;
        Ok(Backed {
            dir: dir.to_owned(),
            objects: taken.objects,
            bytes: taken.bytes,
            files: taken.files,
            copied: taken.copied,
            copied_bytes: taken.copied_bytes,
            by_reference: taken.by_reference,
            missing: taken.missing,
        })
    }

    /// Restores a backup into it.
    pub(crate) fn restore(
        &self,
        dir: &Path,
        replace: bool,
        key: Option<BackupKey>,
        watcher: &mut dyn BackupWatcher,
    ) -> Result<Restored> {
        let restored = backup::restore(dir, &self.0, RestoreOptions { replace, key }, watcher)?;
        Ok(Restored {
            home: self.path().to_owned(),
            taken_at: restored.taken_at.into(),
            objects: restored.objects,
            bytes: restored.bytes,
            by_reference: restored.by_reference,
            missing: restored.missing,
            aside: restored.aside.map(|path| path.display().to_string()),
        })
    }
}

/// Reads a whole backup.
pub(crate) fn verify_backup(
    dir: &Path,
    key: Option<BackupKey>,
    watcher: &mut dyn BackupWatcher,
) -> Result<BackupCheck> {
    let found = backup::verify(dir, key, watcher)?;
    Ok(BackupCheck {
        taken_at: found.taken_at.into(),
        wharf: found.wharf,
        objects: found.objects,
        bytes: found.bytes,
        files: found.files,
        encrypted: found.encrypted,
        by_reference: found.by_reference,
        missing: found.missing,
        findings: found.findings,
    })
}

/// Makes a key for encrypted backups.
pub(crate) fn make_backup_key(path: &Path) -> Result<()> {
    Ok(BackupKey::make(path)?)
}

/// Reads a key for encrypted backups.
pub(crate) fn read_backup_key(path: &Path) -> Result<BackupKey> {
    Ok(BackupKey::read(path)?)
}

/// A backup that was taken.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Backed {
    /// Where it is.
    pub(crate) dir: PathBuf,
    /// Files of worlds that it holds, or lists.
    pub(crate) objects: u64,
    /// How many bytes those have.
    pub(crate) bytes: u64,
    /// Files of the home besides them.
    pub(crate) files: u64,
    /// Contents that were not there before.
    pub(crate) copied: u64,
    /// How many bytes those have.
    pub(crate) copied_bytes: u64,
    /// Whether the bytes of files are in an S3, and only listed.
    pub(crate) by_reference: bool,
    /// Keys of files that the database knows and the store does not have.
    pub(crate) missing: Vec<String>,
}

/// What was found in a backup.
#[derive(Debug, serde::Serialize)]
pub(crate) struct BackupCheck {
    /// When its database was copied.
    pub(crate) taken_at: wharf_vocab::DateTime,
    /// The version of Wharf that made it.
    pub(crate) wharf: String,
    /// Files of worlds that it holds, or lists.
    pub(crate) objects: u64,
    /// How many bytes those have.
    pub(crate) bytes: u64,
    /// Files of the home besides them.
    pub(crate) files: u64,
    /// Whether it is encrypted.
    pub(crate) encrypted: bool,
    /// Whether the bytes of files are in an S3, and only listed.
    pub(crate) by_reference: bool,
    /// Keys of files that the database knew and the store did not have.
    pub(crate) missing: Vec<String>,
    /// What is wrong, one sentence each.
    pub(crate) findings: Vec<String>,
}

/// A home that was restored.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Restored {
    /// Where it is.
    pub(crate) home: PathBuf,
    /// When the database of the backup was copied.
    pub(crate) taken_at: wharf_vocab::DateTime,
    /// Files of worlds that are there again.
    pub(crate) objects: u64,
    /// How many bytes those have.
    pub(crate) bytes: u64,
    /// Whether the bytes of files are in an S3, where they were left.
    pub(crate) by_reference: bool,
    /// Keys of files that the backup does not have.
    pub(crate) missing: Vec<String>,
    /// Where the home that was there before lies now.
    pub(crate) aside: Option<String>,
}

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Home").field(&self.path()).finish()
    }
}

/// Makes a token narrower, without asking a core.
pub(crate) fn narrow_token(token: &str, by: Narrower) -> Result<String> {
    Ok(tokens::narrow(token, by)?)
}

/// The versions of a database.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Migrations {
    /// The version it has.
    pub(crate) current: u32,
    /// The version this program knows.
    pub(crate) newest: u32,
    /// What it has had, in order.
    pub(crate) applied: Vec<Migration>,
    /// What is to come, in order.
    pub(crate) pending: Vec<Migration>,
}

/// One step of a database.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Migration {
    /// The version the step leads to.
    pub(crate) version: u32,
    /// What it does.
    pub(crate) name: String,
}

impl From<MigrationStatus> for Migrations {
    fn from(status: MigrationStatus) -> Self {
        let steps = |list: Vec<(u32, String)>| {
            list.into_iter().map(|(version, name)| Migration { version, name }).collect()
        };
        Self {
            current: status.current,
            newest: status.newest,
            applied: steps(status.applied),
            pending: steps(status.pending),
        }
    }
}

/// What was found in an audit.
#[derive(Debug, serde::Serialize)]
pub(crate) struct AuditCheck {
    /// How many records were read.
    pub(crate) records: u64,
    /// How many chains they form.
    pub(crate) chains: u32,
    /// What is wrong, one sentence each.
    pub(crate) findings: Vec<String>,
}

/// One thing that was looked at.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Finding {
    /// What was looked at.
    pub(crate) name: String,
    /// `ok`, `warn` or `fail`.
    pub(crate) verdict: &'static str,
    /// What was seen.
    pub(crate) text: String,
}

/// How to start a core.
#[derive(Debug)]
pub(crate) struct Start {
    /// Its home.
    pub(crate) home: Home,
    /// Where it listens; the configuration says when absent.
    pub(crate) listen: Option<SocketAddr>,
    /// Whether a proxy in front of it takes care of TLS.
    pub(crate) behind_proxy: bool,
    /// Origins of pages that may call it, besides those of its configuration.
    pub(crate) origins: Vec<String>,
    /// Whether to add the example providers.
    pub(crate) demo: bool,
}

/// A core that is up.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Started {
    /// Where its API is.
    pub(crate) http: String,
    /// Its home.
    pub(crate) home: PathBuf,
    /// How many tools it has.
    pub(crate) tools: usize,
}

/// Runs a core until it is told to stop.
pub(crate) async fn run_core(start: Start, ready: impl FnOnce(Started) + Send) -> Result<()> {
    let Start { home, listen, behind_proxy, origins, demo } = start;
    let options = UpOptions { home: home.0, listen, behind_proxy, origins, demo };
    let tell = |core: &wharf_server::Ready| {
        ready(Started { http: core.http.clone(), home: core.home.clone(), tools: core.tools });
    };
    Ok(wharf_server::up(options, tell).await?)
}

/// What the simulator found.
#[derive(Debug)]
pub(crate) struct Simulated {
    /// Whether every rule held.
    pub(crate) ok: bool,
    /// The report for people.
    pub(crate) text: String,
    /// The report for programs.
    pub(crate) json: Value,
}

/// Drives the real engine through the faults that `seed` gives.
pub(crate) fn simulate(seed: u64, steps: u32) -> Simulated {
    let report = sim::run(SimOptions { seed, steps });
    Simulated { ok: report.ok, text: report.to_string(), json: report.to_json() }
}
