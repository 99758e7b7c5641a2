//! The parts of the core that run in this process: `up`, and the work on a home without a core.
//!
//! No other file of the command line names the server or the simulator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wharf_server::doctor::Verdict;
use wharf_server::migrate::MigrationStatus;
pub(crate) use wharf_server::tokens::Narrower;
use wharf_server::{UpOptions, audit, doctor, migrate, tokens};
use wharf_testkit::sim::{self, SimOptions};
use wharf_wire::rest_v1::CoreInfo;

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

    /// What the core that uses it says about itself, if one does.
    pub(crate) fn core(&self) -> Result<Option<CoreInfo>> {
        Ok(self.0.read_core()?)
    }

    /// The owner's token.
    pub(crate) fn owner_token(&self) -> Result<String> {
        Ok(self.0.read_owner_token()?)
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

    /// Looks for what could keep a core from working well.
    pub(crate) fn examine(&self) -> Vec<Finding> {
        let finding = |check: doctor::Check| Finding {
            name: check.name,
            verdict: match check.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Fail => "fail",
            },
            text: check.text,
        };
        let mut checks = doctor::check(&self.0);
        checks.push(doctor::check_sandbox(&self.0));
        checks.into_iter().map(finding).collect()
    }
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
