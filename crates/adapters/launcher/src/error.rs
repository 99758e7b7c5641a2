//! Why a launch failed, and how it is said to whoever asked for it.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use wharf_vocab::{Code, Fault, FaultCode, LaunchId, SandboxLevel};

use crate::shim::message::{StartFailure, StartStep};

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("The environment variable {name:?} cannot be set; its name or value is not allowed.")]
    Environment { name: String },
    #[error("The program's path, directory or environment is not UTF-8 text or too long.")]
    Order,
    #[error("The private directory {} cannot be made: {}.", path.display(), plain(source))]
    PrivateDir { path: PathBuf, source: io::Error },
    #[error("The log {} cannot be written: {}.", path.display(), plain(source))]
    Log { path: PathBuf, source: io::Error },
    #[error("The log {} cannot be read: {}.", path.display(), plain(source))]
    LogRead { path: PathBuf, source: io::Error },
    #[error("Too many programs are being started at once; try again in a moment.")]
    Busy,
    #[error("The core is stopping and starts nothing any more.")]
    Stopping,
    #[error("The supervisor of the program could not be started: {}.", plain(.0))]
    Shim(io::Error),
    #[error("The supervisor of the program ended before the program was started.")]
    ShimLost,
    #[error("The program {} was not started in time.", program.display())]
    Slow { program: PathBuf },
    #[error("The path {} cannot be opened to a program that is fenced in.", path.display())]
    Path { path: PathBuf },
    #[error("A link lies on the way to {}; name the place where it leads.", path.display())]
    Linked { path: PathBuf },
    #[error("A control group for the program cannot be made: {}.", plain(.0))]
    Group(io::Error),
    #[error("The socket {} for connections to the program cannot be made: {}.", path.display(), plain(source))]
    Inbound { path: PathBuf, source: io::Error },
    #[error("The secrets of the program cannot be written: {}.", plain(.0))]
    Secrets(io::Error),
    #[error(
        "The program must be fenced in at the level {minimum} or higher, but here it can only be \
         {level}.{}",
        also(notes)
    )]
    Sandbox { level: SandboxLevel, minimum: SandboxLevel, notes: Vec<String> },
    #[error("{}", start_failed(program, cwd, *failure))]
    Start { program: PathBuf, cwd: PathBuf, failure: StartFailure },
}

impl Error {
    /// The fault that is shown.
    pub(crate) fn into_fault(self, launch: Option<&LaunchId>) -> Fault {
        let (code, retryable) = match &self {
            Self::Environment { .. }
            | Self::Order
            | Self::Path { .. }
            | Self::Linked { .. }
            | Self::Inbound { .. } => (Code::AgentStartFailed, false),
            Self::Sandbox { .. } | Self::Group(_) => (Code::AgentSandboxUnavailable, false),
            Self::Start { failure, .. } if failure.step.is_of_the_fence() => {
                (Code::AgentSandboxUnavailable, false)
            }
            Self::Secrets(_)
            | Self::PrivateDir { .. }
            | Self::Log { .. }
            | Self::LogRead { .. } => (Code::HomeUnwritable, false),
            Self::Busy => (Code::CoreBusy, true),
            Self::Stopping => (Code::CoreStopping, true),
            Self::Shim(_) | Self::ShimLost | Self::Slow { .. } => (Code::AgentStartFailed, true),
            Self::Start { failure, .. } => (Code::AgentStartFailed, may_pass(*failure)),
        };
        let mut fault = Fault::with_code(FaultCode::Known(code), self.to_string(), retryable);
        if let Self::Start { failure: StartFailure { errno: Some(errno), .. }, .. } = &self {
            fault = fault.with("os_error", *errno);
        }
        match launch {
            Some(launch) => fault.with("launch_id", launch.as_str()),
            None => fault,
        }
    }
}

/// Whether a start that failed so may work later without anybody mending something.
fn may_pass(failure: StartFailure) -> bool {
    let lasting = [Errno::NOENT, Errno::ACCESS, Errno::PERM, Errno::NOTDIR, Errno::NOEXEC];
    !lasting.iter().any(|errno| failure.errno == Some(errno.raw_os_error()))
}

fn start_failed(program: &std::path::Path, cwd: &std::path::Path, failure: StartFailure) -> String {
    let (program, cwd) = (program.display(), cwd.display());
    let errno = failure.errno.map(Errno::from_raw_os_error);
    match (failure.step, errno) {
        (StartStep::Cwd, Some(Errno::NOENT)) => {
            format!("The working directory {cwd} does not exist.")
        }
        (StartStep::Cwd, _) => {
            format!("The working directory {cwd} cannot be entered: {}.", reason(errno))
        }
        (StartStep::Exec, Some(Errno::NOENT)) if failure.program_exists => format!(
            "The program {program} cannot be run: the interpreter that its first line names does \
             not exist, or the program may not see it."
        ),
        (StartStep::Exec, Some(Errno::NOENT)) => {
            format!("The program {program} was not found; check its path, or install it.")
        }
        (StartStep::Exec, Some(Errno::ACCESS)) => {
            format!("The program {program} may not be executed; make it executable.")
        }
        (StartStep::Exec, _) => format!("The program {program} cannot be run: {}.", reason(errno)),
        (StartStep::Prepare, _) => {
            format!("The program {program} could not be started: {}.", reason(errno))
        }
        (
            step @ (StartStep::Limits
            | StartStep::Namespaces
            | StartStep::Files
            | StartStep::Network
            | StartStep::Landlock
            | StartStep::Seccomp),
            _,
        ) => format!(
            "The program {program} could not be fenced in, so it was not started; {} failed: {}.",
            step.what(),
            reason(errno)
        ),
    }
}

/// Sentences that follow another.
fn also(notes: &[String]) -> String {
    notes.iter().map(|note| format!(" {note}")).collect()
}

pub(crate) fn reason(errno: Option<Errno>) -> String {
    errno.map_or_else(|| "unknown reason".to_owned(), |errno| plain(&errno.into()))
}

/// An error of the system in its words, without the number it adds.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(step: StartStep, errno: Errno, program_exists: bool) -> Fault {
        let failure = StartFailure { step, errno: Some(errno.raw_os_error()), program_exists };
        let error = Error::Start { program: "./agent".into(), cwd: "/w".into(), failure };
        error.into_fault(None)
    }

    #[test]
    fn each_failed_start_says_what_to_mend() {
        let check = |fault: Fault, message: &str, retryable: bool| {
            assert_eq!(fault.message, message);
            assert_eq!(fault.retryable, retryable, "{message}");
            assert!(fault.is(Code::AgentStartFailed));
        };
        check(
            fault(StartStep::Exec, Errno::NOENT, false),
            "The program ./agent was not found; check its path, or install it.",
            false,
        );
        check(
            fault(StartStep::Exec, Errno::NOENT, true),
            "The program ./agent cannot be run: the interpreter that its first line names does \
             not exist, or the program may not see it.",
            false,
        );
        check(
            fault(StartStep::Exec, Errno::ACCESS, false),
            "The program ./agent may not be executed; make it executable.",
            false,
        );
        check(
            fault(StartStep::Exec, Errno::NOMEM, false),
            "The program ./agent cannot be run: cannot allocate memory.",
            true,
        );
        check(
            fault(StartStep::Cwd, Errno::NOENT, false),
            "The working directory /w does not exist.",
            false,
        );
        check(
            fault(StartStep::Cwd, Errno::ACCESS, false),
            "The working directory /w cannot be entered: permission denied.",
            false,
        );
    }
}
