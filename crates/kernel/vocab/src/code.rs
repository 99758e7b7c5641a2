//! The closed list of error codes. Each has a page under `docs/errors/`.

use crate::text_enum;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal, $retryable:literal;)+) => {
        text_enum! {
            /// A stable, dotted error code.
            Code { $($(#[$doc])* $variant = $text),+ }
        }

        impl Code {
            /// The HTTP status that goes with the code when it refuses a request.
            #[must_use]
            pub fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// Whether the same request may succeed later, unless the error says otherwise.
            #[must_use]
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$variant => $retryable),+ }
            }
        }
    };
}

codes! {
    /// The request carries no token.
    AuthRequired = "auth.required", 401, false;
    /// The token is malformed, unknown, expired or revoked.
    AuthInvalid = "auth.invalid", 401, false;
    /// Too many attempts to sign in failed lately.
    AuthRateLimited = "auth.rate_limited", 429, true;
    /// The token does not give this right.
    PermissionDenied = "permission.denied", 403, false;

    /// The request is malformed.
    RequestInvalid = "request.invalid", 400, false;
    /// The request's body is larger than the limit.
    RequestTooLarge = "request.too_large", 413, false;
    /// The request's JSON is nested too deeply.
    RequestTooDeep = "request.too_deep", 400, false;
    /// The request took too long to arrive.
    RequestTimeout = "request.timeout", 408, true;
    /// The request names a host this core does not serve.
    RequestHostUnknown = "request.host_unknown", 421, false;
    /// The request comes from a web page of another origin.
    RequestOriginForbidden = "request.origin_forbidden", 403, false;
    /// There is no such route.
    RequestRouteUnknown = "request.route_unknown", 404, false;
    /// The route does not take this method.
    RequestMethodUnknown = "request.method_unknown", 405, false;
    /// The cursor of a list was not made by this core.
    RequestCursorInvalid = "request.cursor_invalid", 400, false;

    /// There is no such run.
    RunNotFound = "run.not_found", 404, false;
    /// The run id or idempotency key already stands for another request.
    RunConflict = "run.conflict", 409, false;
    /// The tool does not support the run's mode.
    RunModeUnsupported = "run.mode_unsupported", 422, false;
    /// The run is still going, so it cannot be removed.
    RunStillOpen = "run.still_open", 409, true;
    /// Another run that is open needs the run, so it cannot be removed.
    RunStillNeeded = "run.still_needed", 409, true;
    /// Some values of a run that is to be run again were not kept whole.
    RunInputsStripped = "run.inputs_stripped", 422, false;
    /// The values of a run that is to be run again were not kept.
    RunValuesNotKept = "run.values_not_kept", 422, false;

    /// There is no such flow, or no such version of it.
    FlowNotFound = "flow.not_found", 404, false;
    /// The document of a flow is not right.
    FlowInvalid = "flow.invalid", 422, false;
    /// The version of a flow has open runs, so it is not removed.
    FlowInUse = "flow.in_use", 409, true;
    /// An expression of a flow gave nothing that can be used.
    FlowExpression = "flow.expression", 422, false;
    /// An expression of a flow takes more work or room than it may.
    FlowExpressionLimit = "flow.expression_limit", 422, false;
    /// A flow or a value in it is larger than it may be.
    FlowLimit = "flow.limit", 422, false;
    /// A tool of a pinned flow is not defined as it was when the flow was added.
    FlowToolChanged = "flow.tool_changed", 409, false;
    /// The flow has lived as long as it may.
    FlowDeadline = "flow.deadline", 504, false;
    /// What a step did could not be undone.
    FlowCompensationFailed = "flow.compensation_failed", 502, false;
    /// A message that a flow waited for did not come in time.
    FlowSignalExpired = "flow.signal_expired", 408, false;
    /// The flow waits for no message of this name.
    FlowSignalUnknown = "flow.signal_unknown", 404, false;
    /// Too many messages wait for the flow.
    FlowSignalLimit = "flow.signal_limit", 429, true;
    /// The flow is over or about to end.
    FlowOver = "flow.over", 409, false;
    /// An address with a secret part is not kept for steps to come.
    FlowAddressNotDurable = "flow.address_not_durable", 422, false;

    /// Durable code asked for another step than it did before.
    StepDiverged = "step.diverged", 409, false;
    /// A step of this name is under way in the same call.
    StepInUse = "step.in_use", 409, false;

    /// There is no such order to remove runs.
    PurgeNotFound = "purge.not_found", 404, false;

    /// There is no such schedule.
    ScheduleNotFound = "schedule.not_found", 404, false;
    /// A schedule has this name already.
    ScheduleExists = "schedule.exists", 409, false;

    /// There is no such trigger, or no such hook.
    TriggerNotFound = "trigger.not_found", 404, false;
    /// A trigger has this name already.
    TriggerExists = "trigger.exists", 409, false;
    /// The trigger starts nothing for now.
    TriggerPaused = "trigger.paused", 409, true;
    /// There is no such receiver of notifications.
    ReceiverNotFound = "receiver.not_found", 404, false;
    /// A receiver of notifications has this name already.
    ReceiverExists = "receiver.exists", 409, false;
    /// The address of a receiver of notifications cannot be used.
    ReceiverAddress = "receiver.address", 422, false;

    /// There is no such world.
    WorldNotFound = "world.not_found", 404, false;
    /// The world exists already.
    WorldExists = "world.exists", 409, false;
    /// The world holds files or has runs under way, so it is not removed.
    WorldNotEmpty = "world.not_empty", 409, false;
    /// What is left of a budget is less than what must be held.
    BudgetExceeded = "budget.exceeded", 402, false;

    /// A path of a run's inputs or outputs is malformed.
    ScopePathInvalid = "scope.path_invalid", 422, false;
    /// Two keys of a run's inputs or outputs stand for the same name.
    ScopeKeyConflict = "scope.key_conflict", 422, false;
    /// The value of a key is not a reference although it must be one.
    ScopeValueInvalid = "scope.value_invalid", 422, false;
    /// A reference leads out of the run's world or to a place that is not allowed.
    ScopeForbidden = "scope.forbidden", 403, false;
    /// What an input refers to is not there.
    ScopeNotFound = "scope.not_found", 404, false;

    /// There is no such file in the world.
    ArtifactNotFound = "artifact.not_found", 404, false;
    /// The file is used by a run that is under way.
    ArtifactInUse = "artifact.in_use", 409, true;
    /// What arrived does not have the hash or size it was said to have.
    ArtifactChecksum = "artifact.checksum", 422, true;
    /// The artifact store has lost a file that was to be published.
    ArtifactLost = "artifact.lost", 502, false;
    /// A file that the run was bound to is gone, or another is in its place.
    ArtifactChanged = "artifact.changed", 409, false;
    /// The artifact store does not keep what was written.
    ArtifactDamaged = "artifact.damaged", 502, false;
    /// The folder for a backup, or the home for a restored one, is in use or not empty.
    BackupOccupied = "backup.occupied", 409, false;
    /// The backup was broken off, or never made.
    BackupIncomplete = "backup.incomplete", 409, false;
    /// The backup is not what it was when it was made.
    BackupDamaged = "backup.damaged", 500, false;
    /// The key does not open the backup.
    BackupKeyInvalid = "backup.key_invalid", 422, false;
    /// The disk of the backup has no room left.
    BackupFull = "backup.full", 503, true;
    /// The backup cannot be read or written.
    BackupUnavailable = "backup.unavailable", 503, true;
    /// There is no such upload.
    UploadNotFound = "upload.not_found", 404, false;
    /// The range of a download lies outside the file.
    RequestRangeInvalid = "request.range_invalid", 416, false;

    /// The artifact store cannot be reached or does not answer.
    StorageUnavailable = "storage.unavailable", 503, true;
    /// The artifact store has no room left.
    StorageFull = "storage.full", 503, true;
    /// The artifact store does not let this core in.
    StorageDenied = "storage.denied", 502, false;

    /// There is no such ask.
    AskNotFound = "ask.not_found", 404, false;
    /// The ask has been decided already.
    AskDecided = "ask.decided", 409, false;
    /// The ask is about something else than what was shown.
    AskChanged = "ask.changed", 409, false;
    /// The answer does not fit the question.
    AskAnswerInvalid = "ask.answer_invalid", 422, false;
    /// The ask was denied.
    AskDenied = "ask.denied", 403, false;
    /// The ask's deadline passed.
    AskExpired = "ask.expired", 408, false;
    /// The run has raised too many asks.
    AskLimit = "ask.limit", 429, false;

    /// There is no such seat.
    SeatNotFound = "seat.not_found", 404, false;
    /// A role is held by another seat.
    SeatRoleTaken = "seat.role_taken", 409, false;
    /// The operator ended the run for good.
    OperatorHalted = "operator.halted", 502, false;
    /// The operator or its worker said that the work failed.
    OperatorFailed = "operator.failed", 502, true;
    /// The seat has no such request.
    OperatorRequestUnknown = "operator.request_unknown", 404, false;
    /// The reply is not of the kind that the request waits for.
    OperatorReplyMismatch = "operator.reply_mismatch", 422, false;
    /// The request was answered differently before.
    OperatorAlreadyAnswered = "operator.already_answered", 409, false;
    /// Nobody waits for the reply any more.
    OperatorRequestWithdrawn = "operator.request_withdrawn", 410, false;
    /// Another result was given before.
    WorkerAlreadyFinal = "worker.already_final", 409, false;
    /// A later attempt has taken the worker's place.
    WorkerSuperseded = "worker.superseded", 410, false;
    /// The run is over.
    WorkerRunOver = "worker.run_over", 410, false;

    /// There is no such agent.
    AgentNotFound = "agent.not_found", 404, false;
    /// The agent's manifest is not approved.
    AgentNotApproved = "agent.not_approved", 403, false;
    /// The agent is running, so this cannot be done now.
    AgentRunning = "agent.running", 409, true;
    /// The agent's manifest cannot be used.
    AgentManifestInvalid = "agent.manifest_invalid", 422, false;
    /// The agent's process could not be started.
    AgentStartFailed = "agent.start_failed", 502, true;

    /// The agent's files are not the ones that were approved.
    AgentDrifted = "agent.drifted", 409, false;
    /// The agent cannot be fenced in as firmly as its owner wants.
    AgentSandboxUnavailable = "agent.sandbox_unavailable", 409, false;

    /// There is no such grant.
    GrantNotFound = "grant.not_found", 404, false;
    /// A token has made as many seats, names, worlds or tokens as one token may have.
    GrantLimit = "grant.limit", 429, false;
    /// There is no such secret.
    SecretNotFound = "secret.not_found", 404, false;
    /// An approved host cannot be found or reached from here.
    EgressUnreachable = "egress.unreachable", 502, true;
    /// A server elsewhere wants a person to log in first.
    McpLoginRequired = "mcp.login_required", 409, false;
    /// A login at a server elsewhere did not come about.
    McpLoginFailed = "mcp.login_failed", 502, false;

    /// The key of a model provider is not kept here.
    LlmKeyMissing = "llm.key_missing", 409, false;
    /// A model provider did not take the key.
    LlmUnauthorized = "llm.unauthorized", 502, false;
    /// A model provider is asked too often.
    LlmRateLimited = "llm.rate_limited", 429, true;
    /// A model provider failed, or gave no answer.
    LlmUnavailable = "llm.unavailable", 503, true;
    /// A model provider cannot be reached.
    LlmUnreachable = "llm.unreachable", 502, true;
    /// A model provider broke off its answer.
    LlmStreamCut = "llm.stream_cut", 502, false;
    /// A model provider did not take the request.
    LlmRefused = "llm.refused", 422, false;
    /// What a model provider answered cannot be read.
    LlmAnswerInvalid = "llm.answer_invalid", 502, false;

    /// There is no such tool in the catalog.
    ToolNotFound = "tool.not_found", 404, false;
    /// The tool server's manifest cannot be used.
    ToolManifestInvalid = "tool.manifest_invalid", 422, false;
    /// The interpreter or the packages of a tool cannot be had.
    ToolEnvironmentFailed = "tool.environment_failed", 422, false;
    /// The tool's handler cannot be imported.
    ToolHandlerInvalid = "tool.handler_invalid", 422, false;
    /// The tool's definition changed and has not been approved again.
    ToolQuarantined = "tool.quarantined", 409, false;
    /// The tool's provider is stopped, crashed or disabled.
    ToolUnavailable = "tool.unavailable", 503, true;
    /// The tool's provider is not healthy.
    ToolAgentUnhealthy = "tool.agent_unhealthy", 503, true;
    /// The tool's provider went away while the attempt was under way.
    ToolAgentLost = "tool.agent_lost", 502, true;
    /// The tool server or its worker went away before it gave a result.
    ToolWorkerLost = "tool.worker_lost", 502, true;
    /// Whoever answered serves another tool, or another definition of it.
    ToolMismatch = "tool.mismatch", 502, false;
    /// Too many runs wait for the tool's provider.
    ToolBusy = "tool.busy", 503, true;
    /// The inputs do not fit the tool's schema.
    ToolInvalidInput = "tool.invalid_input", 422, false;
    /// The outputs do not fit the tool's schema.
    ToolInvalidOutput = "tool.invalid_output", 502, false;
    /// The inputs are larger than the limit.
    ToolInputTooLarge = "tool.input_too_large", 413, false;
    /// The outputs or the progress are larger than the limit.
    ToolOutputTooLarge = "tool.output_too_large", 502, false;
    /// The attempt ran longer than its timeout.
    ToolTimeout = "tool.timeout", 504, true;
    /// The attempt was canceled.
    ToolCanceled = "tool.canceled", 409, false;
    /// The tool failed inside.
    ToolInternal = "tool.internal", 502, false;
    /// The tool failed and gave no usable code.
    ToolFailed = "tool.failed", 502, false;
    /// The tool has reached one of its limits.
    ToolLimit = "tool.limit", 429, true;
    /// Child runs are nested too deeply.
    ToolDepthExceeded = "tool.depth_exceeded", 422, false;
    /// The tool was called more often than its rate allows.
    ToolRateLimited = "tool.rate_limited", 429, true;
    /// A call id was used a second time.
    ToolDuplicateCall = "tool.duplicate_call", 409, false;
    /// An idempotency key came back with other inputs.
    ToolIdempotencyConflict = "tool.idempotency_conflict", 409, false;
    /// The tool acts only with an approved directive.
    ToolDirectiveRequired = "tool.directive_required", 403, false;
    /// A tool id was registered twice with different definitions.
    ToolConflict = "tool.conflict", 409, false;
    /// A tool's definition or schema is not valid.
    ToolSchemaInvalid = "tool.schema_invalid", 422, false;
    /// A tool's schema is too large or too deep.
    ToolSchemaTooLarge = "tool.schema_too_large", 413, false;
    /// The provider answered in a way the protocol does not allow.
    ToolProtocolViolation = "tool.protocol_violation", 502, false;
    /// Whoever was to execute the tool does not want to.
    ToolDeclined = "tool.declined", 403, false;
    /// The connection to the other side of a call ended before it answered.
    TransportLost = "transport.lost", 502, true;
    /// The tool failed and did not say why.
    ToolUnspecified = "tool.unspecified", 502, false;

    /// The agent could not prove that this core launched it.
    ProtocolUnauthorized = "protocol.unauthorized", 401, false;
    /// The two ends of a connection share no version of the protocol.
    ProtocolUnsupportedVersion = "protocol.unsupported_version", 400, false;
    /// What arrived on a connection is not a message.
    ProtocolMalformed = "protocol.malformed", 400, false;
    /// A frame is larger than the connection allows.
    ProtocolFrameTooLarge = "protocol.frame_too_large", 413, false;
    /// A message lacks a field or has one of the wrong type.
    ProtocolInvalidEnvelope = "protocol.invalid_envelope", 400, false;
    /// A message that wants an answer has a type nobody knows.
    ProtocolUnknownType = "protocol.unknown_type", 400, false;
    /// A message came at a moment or from a side where it may not.
    ProtocolUnexpectedMessage = "protocol.unexpected_message", 409, false;
    /// The agent is connected already.
    ProtocolSessionConflict = "protocol.session_conflict", 409, true;
    /// The handshake of a connection took too long.
    ProtocolHandshakeTimeout = "protocol.handshake_timeout", 408, true;

    /// The store cannot be written or read now.
    StoreUnavailable = "store.unavailable", 503, true;
    /// The store has no room left.
    StoreFull = "store.full", 503, true;
    /// The database was written by a newer version.
    StoreNewer = "store.newer", 500, false;
    /// What the store holds cannot be understood.
    StoreCorrupt = "store.corrupt", 500, false;

    /// Another core uses this home.
    HomeLocked = "home.locked", 500, true;
    /// The home cannot be written.
    HomeUnwritable = "home.unwritable", 500, false;
    /// The configuration is wrong.
    ConfigInvalid = "config.invalid", 500, false;

    /// The core has too much to do.
    CoreBusy = "core.busy", 503, true;
    /// The core is stopping.
    CoreStopping = "core.stopping", 503, true;
    /// The core cannot be reached.
    CoreUnreachable = "core.unreachable", 503, true;
    /// Something inside the core went wrong.
    CoreInternal = "core.internal", 500, false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dotted_unique_and_read_back() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code} stands twice");
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            let (domain, name) = code.as_str().split_once('.').expect("dotted");
            for part in [domain, name] {
                assert!(!part.is_empty());
                assert!(part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
            }
            assert!((400..600).contains(&code.http_status()));
        }
    }
}
