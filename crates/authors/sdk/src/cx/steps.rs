//! Durable steps: what a tool has done is found again when its call is repeated.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use wharf_vocab::{Code, Fault, StepName};

use super::Cx;
use crate::host::{CallRequest, CoreTool, HostHandle, unavailable};
use crate::{Data, Tool};

/// A step that is under way; its name can be used again once this is gone.
struct StepUnderWay {
    host: Arc<HostHandle>,
    step: StepName,
}

impl Drop for StepUnderWay {
    fn drop(&mut self) {
        if let Some(names) = self.host.0.steps() {
            names.end(self.step.name());
        }
    }
}

impl<P> Cx<P> {
    /// Calls a tool of the core as a step of a [durable](Tool::durable) tool: what it gave is
    /// there again whenever the call is repeated, and one that was under way goes on. The
    /// definition says by [`Tool::at`] which tool it stands for; an agent process needs the
    /// owner's permission for it.
    ///
    /// A step is known by its name and by how often the name was used, so the code has to ask for
    /// the same steps each time. Steps may go on at the same time under different names.
    ///
    /// ```
    /// use wharf_sdk::{Cx, Fault, Tool, tool};
    ///
    /// const FETCH: Tool<String, String> = Tool::new("fetch", "Reads a page.").at("web/fetch");
    ///
    /// /// Counts the letters of a page.
    /// #[tool(durable = true)]
    /// async fn letters(url: String, cx: Cx) -> Result<usize, Fault> {
    ///     let page = cx.step("fetch", &FETCH, url).await?;
    ///     Ok(page.len())
    /// }
    /// # assert!(LETTERS.terms().durable);
    /// ```
    pub async fn step<I: Data, O: Data, Q: Data, S>(
        &self,
        name: impl Into<String>,
        tool: &Tool<I, O, Q, S>,
        input: I,
    ) -> Result<O, Fault> {
        let under_way = self.begin_step(name.into())?;
        let host = &under_way.host.0;
        let at = tool.terms().at.map(CoreTool::typed::<I, O, Q>);
        let Some(core_tool) = host.find(tool.name(), at.as_ref()) else {
            let message = format!(
                "The tool {:?} does not say which tool of the core it stands for: `Tool::at`.",
                tool.name()
            );
            return Err(Fault::new(Code::ToolNotFound, message));
        };
        let (chunks, _unread) = mpsc::channel(1);
        let request = CallRequest {
            tool: core_tool.id().to_owned(),
            input: core_tool.input(json_of(&input)?),
            timeout: None,
            idempotency_key: None,
            step: Some(under_way.step.clone()),
            chunks,
        };
        let output = host.call(request).await?;
        read(core_tool.output(output))
    }

    /// What some code of the tool's own gives, kept as JSON: it runs until that is kept, and not
    /// when the call is repeated afterwards. What it does may so be done twice, if it is cut off
    /// before. Time, chance and requests of the tool's own belong in here.
    ///
    /// ```
    /// use wharf_sdk::{Cx, Fault, tool};
    ///
    /// fn roll() -> u32 { 4 }
    ///
    /// /// Rolls dice.
    /// #[tool(durable = true)]
    /// async fn dice(_: (), cx: Cx) -> Result<u32, Fault> {
    ///     cx.local("roll", async || Ok(roll())).await
    /// }
    /// ```
    pub async fn local<T: Serialize + DeserializeOwned, W: Future<Output = Result<T, Fault>>>(
        &self,
        name: impl Into<String>,
        work: impl FnOnce() -> W,
    ) -> Result<T, Fault> {
        let under_way = self.begin_step(name.into())?;
        let (host, step) = (&under_way.host.0, &under_way.step);
        let mut known = host.keep(step.clone(), None).await?;
        if known.is_none() {
            let given = json_of(&work().await?)?;
            known = host.keep(step.clone(), Some(given)).await?;
        }
        read(known.unwrap_or_default())
    }

    /// The moment it was when the code came here first.
    pub async fn now(&self) -> Result<SystemTime, Fault> {
        let now_ms = async || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
        };
        Ok(UNIX_EPOCH + Duration::from_millis(self.local("wharf.now", now_ms).await?))
    }

    fn begin_step(&self, name: String) -> Result<StepUnderWay, Fault> {
        let host = self.hosted().ok_or_else(|| unavailable("do steps"))?;
        let names = host.0.steps().ok_or_else(|| unavailable("do steps"))?;
        let step = names.begin(name)?;
        Ok(StepUnderWay { host, step })
    }
}

fn json_of(value: &impl Serialize) -> Result<Value, Fault> {
    serde_json::to_value(value).map_err(|_| {
        let message = "What a step takes or gives cannot be written as JSON.";
        Fault::new(Code::ToolInternal, message)
    })
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Fault> {
    // The reader's own text can quote the value, so only the place is told.
    serde_path_to_error::deserialize(value).map_err(|error| {
        let message = format!("A step gave what does not fit at {}.", error.path());
        Fault::new(Code::ToolFailed, message)
    })
}
