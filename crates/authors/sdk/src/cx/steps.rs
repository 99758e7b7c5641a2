//! Durable steps: what a tool has done is found again when its call is repeated.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use wharf_vocab::{Code, Fault, StepName};

use super::Cx;
use crate::host::{CallRequest, CoreTool, HostHandle, unavailable};
use crate::{Data, Tool};

/// Steps that `each` does at once. A core takes 256 from all calls of an agent together.
const AT_ONCE_MAX: usize = 16;

/// Steps of one name that are under way; it can be used again once this is gone.
struct StepsUnderWay {
    host: Arc<HostHandle>,
    /// The first of them.
    step: StepName,
}

impl Drop for StepsUnderWay {
    fn drop(&mut self) {
        if let Some(names) = self.host.0.steps() {
            names.end(self.step.name());
        }
    }
}

/// Steps of one name that go on at the same time: [`Cx::each`]. Nothing is begun before it is
/// awaited.
#[must_use = "nothing is begun before it is awaited"]
pub struct Each<O> {
    steps: Result<Prepared<O>, Fault>,
    at_once: usize,
}

/// What is asked for, with its numbers, and what gives the name back.
type Prepared<O> = (StepsUnderWay, Vec<BoxFuture<'static, (u32, Result<O, Fault>)>>);

impl<O> Each<O> {
    /// How many go on at the same time; sixteen if nothing is said.
    pub fn at_once(self, at_once: usize) -> Self {
        Self { at_once, ..self }
    }
}

impl<O: Data> IntoFuture for Each<O> {
    type Output = Result<Vec<O>, Fault>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { steps, at_once } = self;
        Box::pin(async move {
            let (_under_way, steps) = steps?;
            let mut given: Vec<_> =
                stream::iter(steps).buffer_unordered(at_once.max(1)).collect().await;
            given.sort_unstable_by_key(|(n, _)| *n);
            given.into_iter().map(|(_, given)| given).collect()
        })
    }
}

debug_only!(Each<O>: at_once);

impl<P> Cx<P> {
    /// Calls a tool of the core as a step of a [durable](Tool::durable) tool: what it gave is
    /// there again whenever the call is repeated, and one that was under way goes on. The
    /// definition says by [`Tool::at`] which tool it stands for; an agent process needs the
    /// owner's permission for it.
    ///
    /// A step is known by its name and by how often the name was used, so the code has to ask for
    /// the same steps each time. Steps may go on at the same time under different names;
    /// [`each`](Cx::each) is for those of one name.
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
        let under_way = self.begin_steps(name.into(), 1)?;
        let core_tool = core_tool(&under_way.host, tool)?;
        let step = under_way.step.clone();
        do_step(Arc::clone(&under_way.host), core_tool, step, json_of(&input)).await
    }

    /// Calls a tool with each of these inputs as a step, several at once, and gives what came out
    /// in their order. Of those that fail the first gives its fault when all are over.
    ///
    /// ```
    /// use wharf_sdk::{Cx, Fault, Tool, tool};
    ///
    /// const FETCH: Tool<String, String> = Tool::new("fetch", "Reads a page.").at("web/fetch");
    ///
    /// /// Counts the letters of pages.
    /// #[tool(durable = true)]
    /// async fn letters(urls: Vec<String>, cx: Cx) -> Result<usize, Fault> {
    ///     let pages = cx.each("fetch", &FETCH, urls).at_once(4).await?;
    ///     Ok(pages.iter().map(String::len).sum())
    /// }
    /// ```
    pub fn each<I: Data, O: Data, Q: Data, S>(
        &self,
        name: impl Into<String>,
        tool: &Tool<I, O, Q, S>,
        inputs: impl IntoIterator<Item = I>,
    ) -> Each<O> {
        let inputs: Vec<_> = inputs.into_iter().map(|input| json_of(&input)).collect();
        Each { steps: self.prepare(name.into(), tool, inputs), at_once: AT_ONCE_MAX }
    }

    fn prepare<I: Data, O: Data, Q: Data, S>(
        &self,
        name: String,
        tool: &Tool<I, O, Q, S>,
        inputs: Vec<Result<Value, Fault>>,
    ) -> Result<Prepared<O>, Fault> {
        let count = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
        let under_way = self.begin_steps(name, count)?;
        let core_tool = core_tool(&under_way.host, tool)?;
        let first = under_way.step.n();
        let steps = (first..).zip(inputs).map(|(n, input)| {
            let step = StepName::new(under_way.step.name(), n)
                .map_err(|error| Fault::new(Code::RequestInvalid, format!("Not so: {error}.")))?;
            let (host, core_tool) = (Arc::clone(&under_way.host), core_tool.clone());
            Ok(do_step(host, core_tool, step, input).map(move |given| (n, given)).boxed())
        });
        let steps = steps.collect::<Result<Vec<_>, Fault>>()?;
        Ok((under_way, steps))
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
        let under_way = self.begin_steps(name.into(), 1)?;
        let (host, step) = (&under_way.host.0, &under_way.step);
        let mut known = host.keep(step.clone(), None).await?;
        if known.is_none() {
            let given = json_of(&work().await?)?;
            known = host.keep(step.clone(), Some(given)).await?;
        }
        read(known.unwrap_or_default())
    }

    /// The moment it was when the code came here first.
    pub async fn now(&self) -> Result<std::time::SystemTime, Fault> {
        let host = self.hosted().ok_or_else(|| unavailable("do steps"))?;
        let now_ms = async || {
            let since = host.0.now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
        };
        Ok(UNIX_EPOCH + Duration::from_millis(self.local("wharf.now", now_ms).await?))
    }

    fn begin_steps(&self, name: String, count: u32) -> Result<StepsUnderWay, Fault> {
        let host = self.hosted().ok_or_else(|| unavailable("do steps"))?;
        let names = host.0.steps().ok_or_else(|| unavailable("do steps"))?;
        let step = names.begin(name, count)?;
        Ok(StepsUnderWay { host, step })
    }
}

/// Which tool of the core a definition stands for in steps.
fn core_tool<I: Data, O: Data, Q: Data, S>(
    host: &HostHandle,
    tool: &Tool<I, O, Q, S>,
) -> Result<CoreTool, Fault> {
    let at = tool.terms().at.map(CoreTool::typed::<I, O, Q>);
    host.0.find(tool.name(), at.as_ref()).ok_or_else(|| {
        let message = format!(
            "The tool {:?} does not say which tool of the core it stands for: `Tool::at`.",
            tool.name()
        );
        Fault::new(Code::ToolNotFound, message)
    })
}

/// Has the core do a step, or find it, and waits for what it gives.
async fn do_step<O: Data>(
    host: Arc<HostHandle>,
    core_tool: CoreTool,
    step: StepName,
    input: Result<Value, Fault>,
) -> Result<O, Fault> {
    let (chunks, _unread) = mpsc::channel(1);
    let request = CallRequest {
        tool: core_tool.id().to_owned(),
        input: core_tool.input(input?),
        timeout: None,
        idempotency_key: None,
        step: Some(step),
        chunks,
    };
    let output = host.0.call(request).await?;
    read(core_tool.output(output))
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
