//! Small closed choices that appear in every layer.

use serde::{Deserialize, Serialize};

/// A closed choice whose values have one text each, whatever it is written in.
pub trait Choice: Copy + Send + Sync + 'static {
    /// Every value there is.
    const ALL: &'static [Self];

    /// The value as text.
    fn as_str(self) -> &'static str;

    /// Reads the text.
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.as_str() == text)
    }
}

/// An enum whose values have one text each.
#[macro_export]
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant),+
        }

        impl $name {
            /// Every value there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The value as text.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads the text.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// Words that are written in every API.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? })+) => {$(
        text_enum! {
            $(#[$doc])*
            #[derive(Serialize, Deserialize)]
            $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant = $text),+ }
        }

        impl Choice for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn as_str(self) -> &'static str {
                self.as_str()
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $crate::openapi::one_of([$($text),+])
            }
        }

        impl utoipa::ToSchema for $name {}
    )+};
}
pub(crate) use choices;

choices! {
    /// Where a run stands.
    RunStatus {
        /// Accepted; no attempt is under way.
        Queued = "queued",
        /// An ask is open.
        Waiting = "waiting",
        /// An attempt is under way.
        Running = "running",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended with an error.
        Failed = "failed",
        /// Ended because somebody or some rule said no.
        Refused = "refused",
        /// Ended because it was canceled.
        Canceled = "canceled",
    }

    /// How firmly a launched provider is fenced in, from not at all to most.
    SandboxLevel {
        /// Not at all, beyond a process of its own.
        None = "none",
        /// No new privileges, limits, a clean environment, nothing outlives it.
        Basic = "basic",
        /// Also its own view of files and processes, and no network but what was approved.
        Standard = "standard",
        /// Also a network of its own and no shared files beyond what its interpreter needs.
        Strict = "strict",
    }

    /// Which runs share a process of a launched provider.
    Isolation {
        /// All of them.
        Shared = "shared",
        /// Those of one world.
        World = "world",
        /// None: each run has its own.
        Run = "run",
    }

    /// What a grant lets its bearer do.
    Verb {
        /// Start and cancel runs.
        Run = "run",
        /// Look at runs, tools, agents, worlds and asks.
        Read = "read",
        /// Answer questions.
        Answer = "answer",
        /// Decide approvals.
        Approve = "approve",
        /// Start and stop providers and read their logs.
        Operate = "operate",
        /// Offer tools as an operative, under names that the grant's tools cover.
        Serve = "serve",
        /// Add and remove flows, and run documents that come with a request.
        WriteFlow = "flow:write",
        /// Read metrics, and nothing else.
        Metrics = "metrics",
        /// Change worlds, agents, tokens and secrets, and read the audit.
        Admin = "admin",
    }

    /// What a launched process can have too much of.
    Resource {
        /// Memory.
        Memory = "memory",
        /// Processor time.
        Cpu = "cpu",
        /// Processes and threads.
        Processes = "processes",
        /// Bytes in its own folders.
        Disk = "disk",
        /// Lines of output.
        Log = "log",
        /// Open files of all its processes together.
        OpenFiles = "open_files",
        /// What it keeps where nobody can count it.
        Hidden = "hidden",
    }

    /// How a limit of a launched process is kept.
    Keeping {
        /// The kernel refuses more, or ends the process at once.
        Kernel = "kernel",
        /// It is looked at many times a second, and whoever is over it is ended.
        Measured = "measured",
        /// Nobody can keep it here.
        Unkept = "unkept",
    }

    /// Which way a file went.
    Direction {
        /// A run read it.
        In = "in",
        /// It was written.
        Out = "out",
    }

    /// When the outputs of a world's runs can be seen.
    Publish {
        /// As soon as each is written.
        Direct = "direct",
        /// All together, when the run has succeeded.
        Staged = "staged",
    }

    /// What is kept of the values of a run that is over: what it was given, what it gave, and what
    /// it said meanwhile.
    #[derive(Default)]
    Retain {
        /// All of them.
        #[default]
        Full = "full",
        /// Their hashes and sizes.
        Digest = "digest",
    }

    /// How far an order to remove runs has come.
    PurgeState {
        /// Runs are being removed.
        Running = "running",
        /// Nothing is left to remove.
        Done = "done",
        /// Somebody called it off.
        Canceled = "canceled",
    }

    /// What is booked for an attempt whose provider never gave a last account of its cost.
    #[derive(Default)]
    UnknownCost {
        /// What it had reported.
        #[default]
        Reported = "reported",
        /// What was held for it, or what it had reported if that is more.
        Held = "held",
    }

    /// Whether a run acts on the world or pretends to.
    Mode {
        /// Acts.
        Real = "real",
        /// Pretends.
        Mock = "mock",
    }

    /// Whether a run is written down.
    Durability {
        /// Every step is committed before it is shown.
        Journal = "journal",
        /// Nothing is stored; the run is gone after a restart.
        Memory = "memory",
    }

    /// What an ask asks for.
    AskKind {
        /// Information.
        Question = "question",
        /// Permission.
        Approval = "approval",
    }

    /// Whether a failed attempt acted on the world.
    Executed {
        /// It provably never started.
        No = "no",
        /// Nobody can tell.
        Maybe = "maybe",
        /// It did.
        Yes = "yes",
    }

    /// How much a log line matters.
    Level {
        /// For whoever looks for a fault.
        Debug = "debug",
        /// Ordinary.
        Info = "info",
        /// Worth a look.
        Warn = "warn",
        /// Something failed.
        Error = "error",
    }

    /// How much a record of the audit matters.
    Severity {
        /// Ordinary work.
        Info = "info",
        /// Worth a look.
        Warn = "warn",
        /// Something failed.
        Error = "error",
        /// Somebody was refused, or tried what they may not.
        Security = "security",
    }

    /// How a provider fares that the core looks after: an agent or a tool server.
    ProviderState {
        /// Known, not approved.
        Added = "added",
        /// Approved, never started.
        Approved = "approved",
        /// Its process starts or has not said hello yet.
        Starting = "starting",
        /// Connected and well.
        Running = "running",
        /// Connected, but not well or silent.
        Unhealthy = "unhealthy",
        /// It ended and will be started again.
        BackingOff = "backing_off",
        /// It finishes what is under way, takes nothing new and stops then.
        Draining = "draining",
        /// It was stopped.
        Stopped = "stopped",
        /// It ended too often and is not started again.
        Crashed = "crashed",
        /// Its files are not those that were approved.
        Drifted = "drifted",
    }

    /// What an agent says of its own health.
    Health {
        /// All is well.
        Ok = "ok",
        /// It works, but not as it should.
        Degraded = "degraded",
        /// It cannot work.
        Unhealthy = "unhealthy",
    }

    /// How a tool with a server of its own is served.
    ServerKind {
        /// By a file that a worker of Wharf loads.
        Handler = "handler",
        /// By a program that speaks the tool server's protocol.
        Program = "program",
        /// By a container's image.
        Image = "image",
        /// By a server that somebody else runs.
        Remote = "remote",
    }

    /// Which of MCP's two ways to speak is tried with a server.
    #[derive(Default)]
    McpEraChoice {
        /// What the server turns out to speak.
        #[default]
        Auto = "auto",
        /// With a handshake and a session.
        Legacy = "legacy",
        /// Each request by itself.
        Modern = "modern",
    }

    /// Who answers what an MCP server asks of a model.
    #[derive(Default)]
    McpSampling {
        /// The caller if it can, else the core's own model if the server may call it, else nobody.
        #[default]
        Auto = "auto",
        /// The client whose call it is.
        Caller = "caller",
        /// The core's own model.
        Model = "model",
        /// Nobody.
        Refuse = "refuse",
    }

    /// Which folders an MCP server is told of. Telling of a folder permits nothing.
    #[derive(Default)]
    McpRoots {
        /// Those that it may use.
        #[default]
        Approved = "approved",
        /// Those of the client whose call it is.
        Caller = "caller",
    }

    /// Whether a tool can be called.
    ToolState {
        /// It can.
        Available = "available",
        /// Its provider is about to be there; calls wait for it.
        Starting = "starting",
        /// Its provider is not there.
        Unavailable = "unavailable",
        /// Its owner has switched it off.
        Disabled = "disabled",
        /// Its definition is not the one that was approved.
        Quarantined = "quarantined",
    }

    /// Whether a token is still good.
    TokenState {
        /// It is.
        Active = "active",
        /// Its time is over.
        Expired = "expired",
        /// It was revoked.
        Revoked = "revoked",
    }

    /// What a grant is that stands in the list of tokens.
    #[derive(Default)]
    TokenKind {
        /// A token.
        #[default]
        Token = "token",
        /// A browser that is signed in at the console.
        Console = "console",
    }

    /// What a change that is told to readers is about.
    ChangeKind {
        /// A run.
        Run = "run",
        /// An ask.
        Ask = "ask",
        /// A provider.
        Provider = "provider",
        /// A world.
        World = "world",
        /// A token.
        Token = "token",
    }

    /// What is decided about an approval.
    Decision {
        /// The run may go on.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
    }

    /// How far an allowance reaches.
    AllowScope {
        /// This run only.
        Run = "run",
        /// Also later runs of the same tool and caller within the same parent run.
        Parent = "parent",
    }

    /// Why a question has no answer.
    NoAnswer {
        /// Whoever was asked does not want to say.
        Declined = "declined",
        /// Whoever was asked wants the run to stop asking.
        Cancelled = "cancelled",
        /// Whoever was asked says something else instead.
        OffScript = "off_script",
    }

    /// How an ask ended.
    AskOutcome {
        /// An approval was given.
        Allow = "allow",
        /// An approval was refused.
        Deny = "deny",
        /// A question was answered.
        Answered = "answered",
        /// Whoever was asked did not want to say.
        Declined = "declined",
        /// Whoever was asked wanted the run to stop asking.
        Cancelled = "cancelled",
        /// Whoever was asked said something else instead.
        OffScript = "off_script",
        /// Nobody decided in time.
        Expired = "expired",
        /// The run does not wait for it any more.
        Withdrawn = "withdrawn",
    }

    /// What a run waits for.
    WaitKind {
        /// An answer or a decision.
        Ask = "ask",
        /// Room at its provider.
        Room = "room",
        /// Its provider, which is not there.
        Provider = "provider",
        /// The time of its next attempt.
        Retry = "retry",
    }

    /// What a check of the core's health found.
    Verdict {
        /// Nothing to do.
        Ok = "ok",
        /// It works, but somebody should look.
        Warn = "warn",
        /// It does not work.
        Fail = "fail",
    }

    /// Who wrote a line of a provider's log.
    LogSource {
        /// The program, on its standard output.
        Stdout = "stdout",
        /// The program, on its standard error.
        Stderr = "stderr",
        /// The launcher itself.
        Launcher = "launcher",
    }
}

impl RunStatus {
    /// Whether the run is over. Terminal states are final.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Refused | Self::Canceled)
    }
}
