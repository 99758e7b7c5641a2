//! Executing one call on the threads for tools: whatever a handler does, one report comes out.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use wharf_protocol::agent::{CallOutcome, CallReport};
use wharf_vocab::{Code, Executed, Fault, Object};

use crate::process::AgentCx;
use crate::process::tool::Tool;

/// Executes a call to its end.
pub(crate) async fn execute(tool: Tool, input: Object, cx: AgentCx) -> CallReport {
    // The caught panic may leave state of the author's behind that is not whole; that is what
    // `tool.internal` says. Nothing of ours is shared with a handler but through the context.
    let worked = AssertUnwindSafe(work(tool, input, cx.clone())).catch_unwind().await;
    let outcome = match worked {
        Ok(Ok(output)) => CallOutcome::Succeeded(output),
        Ok(Err(fault)) if fault.is(Code::ToolCanceled) && cx.is_cancelled() => {
            CallOutcome::Canceled(fault)
        }
        Ok(Err(fault)) => CallOutcome::Failed(fault),
        Err(_) => CallOutcome::Failed(
            Fault::new(Code::ToolInternal, "The tool failed in a way its author did not foresee.")
                .executed(Executed::Maybe),
        ),
    };
    let (cost_micro, metrics) = cx.take_tally();
    CallReport { outcome, cost_micro, metrics }
}

/// Runs the handler. One that does not stop in time after a cancel is dropped where it waits.
async fn work(tool: Tool, input: Object, cx: AgentCx) -> Result<Object, Fault> {
    let too_late = async {
        cx.cancelled().await;
        tokio::time::sleep(Duration::from_millis(cx.grace_ms())).await;
    };
    tokio::select! {
        biased;
        worked = tool.execute(input, cx.clone()) => worked,
        () = too_late => Err(Fault::new(
            Code::ToolCanceled,
            "The call was canceled; the tool did not stop by itself and was cut off.",
        )
        .executed(Executed::Maybe)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc;
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;
    use wharf_protocol::agent::CallReceived;
    use wharf_vocab::limits::CANCEL_GRACE_MS;
    use wharf_wire::agent_v1::{CallId, Echo};

    use super::*;
    use crate::process::cx::Cancel;
    use crate::process::tool::Draft;

    async fn never_stops(_input: Object, _cx: AgentCx) -> Result<(), Fault> {
        std::future::pending().await
    }

    async fn fails_after_cancel(_input: Object, cx: AgentCx) -> Result<(), Fault> {
        cx.cancelled().await;
        Err(Fault::new(Code::ToolFailed, "The file was left half written."))
    }

    async fn succeeds_after_cancel(_input: Object, cx: AgentCx) -> Result<(), Fault> {
        cx.cancelled().await;
        Ok(())
    }

    fn context() -> (AgentCx, Cancel) {
        let cancel = Cancel::new(CancellationToken::new(), CANCEL_GRACE_MS);
        let call = CallReceived {
            call_id: CallId::new("c").expect("an id"),
            tool_id: "a/t".to_owned(),
            input: Object::new(),
            timeout_ms: None,
            idempotency_key: None,
            caller: None,
            actor: None,
            context: None,
            echo: Echo::default(),
        };
        (AgentCx::new(mpsc::channel(1).0, call, cancel.clone()), cancel)
    }

    async fn canceled_within(draft: Draft, within_ms: u64) -> CallOutcome {
        let (cx, cancel) = context();
        let (_, tool) = draft.build("a").expect("usable");
        cancel.cancel(within_ms);
        execute(tool, json!({}).as_object().expect("an object").clone(), cx).await.outcome
    }

    #[tokio::test(start_paused = true)]
    async fn r130_a_handler_that_does_not_stop_is_cut_off_before_the_deadline() {
        let started = Instant::now();
        let draft = Draft::new("t".to_owned(), String::new(), never_stops);
        let outcome = canceled_within(draft, 1_000).await;
        assert!(matches!(outcome, CallOutcome::Canceled(fault) if fault.is(Code::ToolCanceled)));
        assert_eq!(started.elapsed(), Duration::from_millis(750));
    }

    #[tokio::test(start_paused = true)]
    async fn r131_a_canceled_call_ends_as_its_handler_says_and_never_twice() {
        let draft = Draft::new("t".to_owned(), String::new(), fails_after_cancel);
        let outcome = canceled_within(draft, 1_000).await;
        assert!(matches!(outcome, CallOutcome::Failed(fault) if fault.is(Code::ToolFailed)));
        let draft = Draft::new("t".to_owned(), String::new(), succeeds_after_cancel);
        assert!(matches!(canceled_within(draft, 1_000).await, CallOutcome::Succeeded(_)));
    }
}
