//! A handler that is any program, started once per run.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use wharf_wire::run_v1::code;

use super::drive::drive;
use super::keeper;
use super::message::{FolderView, KeeperOrder};
use super::settings::WorkerSettings;
use super::ways::{ServerEnds, send_with, ways};
use crate::{Call, Done, Failure, Handler, Reporter};

/// Starts a program for each run and speaks with it over its descriptor 3.
#[derive(Debug)]
pub struct ExecHandler {
    /// The program and its arguments.
    argv: Vec<OsString>,
    /// Where it runs.
    cwd: PathBuf,
    /// The binary that becomes a keeper when its first argument is [`keeper::WORD`].
    keeper: PathBuf,
    settings: Arc<WorkerSettings>,
    digest: String,
}

impl ExecHandler {
    /// A handler for a program with its arguments; it runs in `cwd`. The binary of this process
    /// must call [`keeper::main`] when it is asked to.
    pub fn new(
        argv: impl IntoIterator<Item = impl Into<OsString>>,
        cwd: impl Into<PathBuf>,
        settings: WorkerSettings,
    ) -> Self {
        let argv: Vec<OsString> = argv.into_iter().map(Into::into).collect();
        let cwd = cwd.into();
        let digest = digest(&argv, &cwd);
        let keeper = "/proc/self/exe".into();
        Self { argv, cwd, keeper, settings: Arc::new(settings), digest }
    }

    /// The same handler with another binary as its keeper.
    #[must_use]
    pub fn with_keeper(mut self, program: impl Into<PathBuf>) -> Self {
        self.keeper = program.into();
        self
    }

    /// Starts a keeper and tells it what to start.
    async fn start(order: KeeperOrder, keeper: PathBuf) -> io::Result<ServerEnds> {
        let (ours, theirs) = ways()?;
        // Who drops the child's handle leaves it to the runtime to take note of its end.
        Command::new(keeper)
            .arg0("wharf")
            .arg(keeper::WORD)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs.control))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = serde_json::to_vec(&order)?;
        line.push(b'\n');
        let passed = [theirs.channel.as_fd(), theirs.out.as_fd(), theirs.err.as_fd()];
        let ServerEnds { mut control, channel, out, err } = ours;
        let sent = send_with(&control, &line, &passed).await?;
        control.write_all(&line[sent..]).await?;
        Ok(ServerEnds { control, channel, out, err })
    }
}

impl Handler for ExecHandler {
    fn run(&self, call: Call, report: Reporter) -> BoxFuture<'static, Done> {
        let apart = FolderView::of(&call, &self.settings);
        let mut environment = self.settings.variables();
        if let Ok(folder) = call.files.folder()
            && apart.is_some()
        {
            environment.push(("TMPDIR".into(), folder.into()));
        }
        let (argv, cwd) = (self.argv.clone(), self.cwd.clone());
        let order = KeeperOrder { argv, cwd, environment, apart };
        let (keeper, settings) = (self.keeper.clone(), Arc::clone(&self.settings));
        Box::pin(
            async move { drive(Self::start(order, keeper).await, call, report, &settings).await },
        )
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), Failure>> {
        let found = self.argv.first().is_some_and(|program| find(program, &self.cwd).is_some());
        let result = if found && self.cwd.is_dir() {
            Ok(())
        } else {
            let name = self.argv.first().map(|program| Path::new(program).display().to_string());
            let name = name.unwrap_or_default();
            let text = format!("The program `{name}` of the tool is not there, or cannot be run.");
            Err(Failure::new(code::WORKER, text))
        };
        Box::pin(std::future::ready(result))
    }

    fn digest(&self) -> String {
        self.digest.clone()
    }
}

/// Where a program is: by its path from `cwd`, or by its name.
fn find(program: &OsString, cwd: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(cwd.join(path)).filter(is_program);
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(path)).find(is_program)
}

/// A hash of the arguments, and of the contents of those that are files of the tool.
fn digest(argv: &[OsString], cwd: &Path) -> String {
    let mut hash = blake3::Hasher::new();
    for argument in argv {
        hash.update(&(argument.len() as u64).to_le_bytes());
        hash.update(argument.as_encoded_bytes());
        let path = cwd.join(argument);
        if path.starts_with(cwd)
            && path.is_file()
            && let Ok(file) = std::fs::File::open(&path)
        {
            let _ = hash.update_reader(file);
        }
    }
    format!("b3:{}", hash.finalize().to_hex())
}
