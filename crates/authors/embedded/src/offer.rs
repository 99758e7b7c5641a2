//! Tools of an agent as a provider of the core.

use std::sync::Arc;

use wharf_domain::ToolDef;
use wharf_engine::in_process::{Cx, Done, InProcess};
use wharf_sdk::host::{Host, ServedTool};
use wharf_vocab::{Fault, Object, ProviderId};

use crate::core::{Embedded, tool_id};
use crate::desk::{Desk, invalid};

/// Registers tools under the name of a provider.
pub(crate) async fn offer(
    core: &Embedded,
    provider: &str,
    served: Vec<ServedTool>,
) -> Result<(), Fault> {
    let mut offered = InProcess::new(provider).map_err(|error| invalid(&error))?;
    for tool in served {
        let id = tool_id(&format!("{provider}/{}", tool.name()))?;
        let mut def = ToolDef::new(id, tool.description(), tool.input_schema().clone());
        def.output_schema = Some(tool.output_schema().clone());
        def.side_effects = tool.terms().side_effects;
        def.requires_directive = tool.terms().requires_directive.unwrap_or(false);
        let closing = core.inner.closing.clone();
        offered = offered.object_tool(def, move |input: Object, cx: Cx| {
            let (tool, desk) = (tool.clone(), Arc::new(Desk::new(cx, closing.clone())));
            async move {
                let outputs = tool.call(input, Arc::clone(&desk) as Arc<dyn Host>).await?;
                Ok(Done { outputs, cost_micro: desk.cost() })
            }
        });
    }
    offered.register(&core.inner.handle).await
}

pub(crate) fn provider_id(provider: &str) -> Result<ProviderId, Fault> {
    ProviderId::new(provider).map_err(|error| invalid(&error))
}
