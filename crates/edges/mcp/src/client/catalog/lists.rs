//! All pages of what a server lists, within bounds.

use std::time::Duration;

use serde::Serialize;
use wharf_protocol::mcp::McpAnswer;
use wharf_vocab::json::json_bytes;
use wharf_vocab::{Fault, Object};
use wharf_wire::mcp_v1::{
    McpCursor, McpError, McpMs, McpOpen, McpPrompt, McpPromptsPage, McpRequest, McpTemplate,
    McpTemplatesPage, McpTool, McpToolsPage, McpUnfit, code,
};

use super::super::era::away;
use super::super::upstream::{CallEnd, Upstream};
use crate::shown;

/// Tools, prompts or templates of one server, each.
pub(crate) const ITEMS_MAX: usize = 2_000;
/// Pages of one list.
pub(crate) const PAGES_MAX: usize = 50;
/// Bytes of all pages of one list together.
const LIST_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a page may take.
const PAGE_MAX: Duration = Duration::from_secs(30);

/// What a server says of itself and of what it offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct ServerLists {
    pub(crate) tools: Vec<McpOpen<McpTool>>,
    /// Tools that cannot be read: names, and what is wrong.
    pub(crate) unfit: Vec<(String, String)>,
    pub(crate) has_prompts: bool,
    pub(crate) prompts: Vec<McpOpen<McpPrompt>>,
    pub(crate) has_resources: bool,
    pub(crate) templates: Vec<McpOpen<McpTemplate>>,
    pub(crate) completes: bool,
    pub(crate) instructions: Option<String>,
    /// What was left out, one sentence each.
    pub(crate) notes: Vec<String>,
    /// How long all of it is good, as the server says.
    #[serde(skip)]
    pub(crate) good_for: Duration,
}

impl ServerLists {
    /// Asks a server for all that it offers, as far as it says that it has such things.
    pub(crate) async fn read(upstream: &Upstream) -> Result<Self, Fault> {
        let can = &upstream.peer.capabilities;
        let mut lists = Self {
            has_prompts: can.prompts.is_some(),
            has_resources: can.resources.is_some(),
            completes: can.completions.is_some(),
            instructions: upstream.peer.instructions.clone(),
            good_for: Duration::MAX,
            ..Self::default()
        };
        if can.tools.is_some() {
            let (tools, unfit) = lists.all::<McpTool>(upstream).await?;
            lists.tools = tools;
            for McpUnfit { name, why } in unfit {
                match name {
                    Some(name) => lists.unfit.push((name, why)),
                    None => lists.notes.push("A tool without a name is left out.".to_owned()),
                }
            }
        }
        if lists.has_prompts {
            lists.prompts = lists.fitting::<McpPrompt>(upstream).await?;
        }
        if lists.has_resources {
            lists.templates = lists.fitting::<McpTemplate>(upstream).await?;
        }
        Ok(lists)
    }

    async fn fitting<T: ListedItem>(
        &mut self,
        upstream: &Upstream,
    ) -> Result<Vec<McpOpen<T>>, Fault> {
        let (items, unfit) = self.all::<T>(upstream).await?;
        let (left_out, what) = (unfit.len(), T::WORD);
        if left_out > 0 {
            self.notes.push(format!("{left_out} {what} that cannot be read are left out."));
        }
        Ok(items)
    }

    /// All items of a list. What goes beyond the bounds is left out and told.
    async fn all<T: ListedItem>(
        &mut self,
        upstream: &Upstream,
    ) -> Result<(Vec<McpOpen<T>>, Vec<McpUnfit>), Fault> {
        let (mut items, mut unfit) = (Vec::new(), Vec::new());
        let (mut cursor, mut left_bytes) = (None, LIST_BYTES_MAX);
        for _ in 0..PAGES_MAX {
            let Some(result) = page(upstream, T::WORD, T::request(cursor.clone())).await? else {
                return Ok((items, unfit));
            };
            let bytes = json_bytes(&result);
            let page = T::read(result).map_err(|error| unlisted(T::WORD, &error.message))?;
            self.good_for = self.good_for.min(Duration::from_millis(page.ttl_ms));
            items.extend(page.items);
            unfit.extend(page.unfit);
            let too_many = items.len() + unfit.len() > ITEMS_MAX;
            items.truncate(ITEMS_MAX);
            unfit.truncate(ITEMS_MAX - items.len());
            match page.next {
                None if !too_many => return Ok((items, unfit)),
                // A server that gives the same page for ever has no more of them.
                Some(next)
                    if !too_many && bytes <= left_bytes && cursor.as_ref() != Some(&next) =>
                {
                    left_bytes -= bytes;
                    cursor = Some(next);
                }
                _ => break,
            }
        }
        let note = format!("Not all {} are read: there are too many of them.", T::WORD);
        self.notes.push(note);
        Ok((items, unfit))
    }
}

/// One page of a list.
struct ListPage<T> {
    items: Vec<McpOpen<T>>,
    unfit: Vec<McpUnfit>,
    next: Option<String>,
    ttl_ms: u64,
}

/// Something that servers list.
trait ListedItem: Sized {
    /// What they are in a sentence.
    const WORD: &'static str;

    fn request(cursor: Option<String>) -> McpRequest;

    fn read(result: Object) -> Result<ListPage<Self>, McpError>;
}

macro_rules! listed {
    ($($item:ident in $page:ident.$items:ident by $request:ident: $word:literal)*) => {$(
        impl ListedItem for $item {
            const WORD: &'static str = $word;

            fn request(cursor: Option<String>) -> McpRequest {
                McpRequest::$request(McpOpen::boxed(McpCursor { cursor, meta: None }))
            }

            fn read(result: Object) -> Result<ListPage<Self>, McpError> {
                let (page, unfit) = $page::read_fitting(result)?;
                let ttl_ms = page.ttl_ms.map_or(0, |McpMs(ms)| ms);
                let (items, next) = (page.known.$items, page.known.next_cursor);
                Ok(ListPage { items, unfit, next, ttl_ms })
            }
        }
    )*};
}

listed! {
    McpTool in McpToolsPage.tools by ToolsList: "tools"
    McpPrompt in McpPromptsPage.prompts by PromptsList: "prompts"
    McpTemplate in McpTemplatesPage.resource_templates by TemplatesList: "templates"
}

/// Asks for a page; none if the server has no such list after all.
async fn page(
    upstream: &Upstream,
    what: &str,
    request: McpRequest,
) -> Result<Option<Object>, Fault> {
    match upstream.ask(request, PAGE_MAX).await {
        CallEnd::Answered(McpAnswer::Result { result, .. }) => Ok(Some(result)),
        CallEnd::Answered(McpAnswer::Error(error)) if error.code == code::METHOD_NOT_FOUND => {
            Ok(None)
        }
        CallEnd::Answered(answer) => Err(unlisted(what, &why(&answer))),
        CallEnd::Unsent(fault) => Err(fault),
        CallEnd::Lost => Err(unlisted(what, "it went away")),
    }
}

fn why(answer: &McpAnswer) -> String {
    match answer {
        McpAnswer::Error(error) => {
            format!("error {}: {}", error.code, shown::words(&error.message))
        }
        McpAnswer::Violation(why) => (*why).to_owned(),
        McpAnswer::Refused(status) => format!("status {status}"),
        McpAnswer::TimedOut => "it did not answer in time".to_owned(),
        McpAnswer::Canceled => "it called that off".to_owned(),
        McpAnswer::Lost | McpAnswer::Result { .. } => "it went away".to_owned(),
    }
}

fn unlisted(what: &str, why: &str) -> Fault {
    away(&format!("does not list its {what}: {}", why.trim_end_matches('.')))
}
