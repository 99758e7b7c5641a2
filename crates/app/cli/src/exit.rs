//! What the command's exit code says. Scripts rely on these numbers.

use std::process::ExitCode;

use wharf_vocab::RunStatus;
use wharf_wire::run_v1;

/// The number by which a core knows that another start is no use.
const HANDLER_EXIT: u8 = run_v1::HANDLER_EXIT as u8;

/// The way a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked; a run succeeded.
    Done,
    /// A run failed, or anything went wrong that is none of the others.
    Failed,
    /// The command was not used as it is meant to be, or names something that does not exist.
    Usage,
    /// Somebody or some rule said no.
    Refused,
    /// A run was canceled.
    Canceled,
    /// The handler of a tool server cannot be imported.
    Unusable,
}

impl Exit {
    /// How a command that followed a run ends when the run stands at `status`.
    pub(crate) fn of_run(status: RunStatus) -> Self {
        match status {
            RunStatus::Succeeded => Self::Done,
            RunStatus::Refused => Self::Refused,
            RunStatus::Canceled => Self::Canceled,
            RunStatus::Failed | RunStatus::Queued | RunStatus::Waiting | RunStatus::Running => {
                Self::Failed
            }
        }
    }

    /// How a command ends whose request was answered with an error of this HTTP status.
    pub(crate) fn of_http(status: u16) -> Self {
        match status {
            401..=403 => Self::Refused,
            400 | 404 | 405 | 413 | 422 => Self::Usage,
            _ => Self::Failed,
        }
    }

    /// The number the shell sees.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Canceled => 4,
            Self::Unusable => HANDLER_EXIT,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_vocab::Code;

    #[test]
    fn a_runs_end_decides_the_number() {
        let number = |status| Exit::of_run(status).number();
        assert_eq!(number(RunStatus::Succeeded), 0);
        assert_eq!(number(RunStatus::Failed), 1);
        assert_eq!(number(RunStatus::Refused), 3);
        assert_eq!(number(RunStatus::Canceled), 4);
    }

    #[test]
    fn a_refused_request_says_whether_the_caller_or_a_rule_is_the_reason() {
        for (code, number) in [
            (Code::AuthRequired, 3),
            (Code::AuthInvalid, 3),
            (Code::BudgetExceeded, 3),
            (Code::PermissionDenied, 3),
            (Code::ToolNotFound, 2),
            (Code::ToolInvalidInput, 2),
            (Code::RequestInvalid, 2),
            (Code::RunModeUnsupported, 2),
            (Code::AskAnswerInvalid, 2),
            (Code::RunConflict, 1),
            (Code::AskDecided, 1),
            (Code::CoreUnreachable, 1),
            (Code::StoreFull, 1),
        ] {
            assert_eq!(Exit::of_http(code.http_status()).number(), number, "{code}");
        }
    }
}
