//! Pages of `tools/list` that were made lately, as they are sent.
//!
//! A client asks for the same pages again and again, and so do many clients with the same rights. A
//! page is good for as long as nothing has changed that it was made of; that is compared, and
//! nothing is ever told to forget one.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use wharf_domain::grant::Rights;
use wharf_engine::ApprovalTerms;
use wharf_vocab::ProviderId;
use wharf_wire::mcp_v1::McpRevision;

use super::door::McpContext;
use super::patience;

/// Pages that are kept.
const PAGES_MAX: usize = 64;
/// Bytes that they may have together.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// All that decides what is on a page.
#[derive(Debug, PartialEq)]
pub(super) struct PageTerms {
    /// How often the catalog had changed.
    catalog: u64,
    approvals: ApprovalTerms,
    rights: Arc<Rights>,
    provider: Option<ProviderId>,
    revision: McpRevision,
    /// Whether the client is one that cannot wait.
    impatient: bool,
    cursor: Option<String>,
}

impl PageTerms {
    /// What decides now. It is to be looked at before the page is made, so that what changes
    /// meanwhile is seen the next time.
    pub(super) fn now(cx: &McpContext, cursor: Option<&str>) -> Self {
        let handle = &cx.shared.handle;
        Self {
            catalog: handle.providers().changed(),
            approvals: handle.runs().approval_terms(&cx.door.world),
            rights: Arc::clone(&cx.caller.rights),
            provider: cx.door.provider.clone(),
            revision: cx.revision,
            impatient: patience::of(cx).is_some(),
            cursor: cursor.map(str::to_owned),
        }
    }
}

/// A page as it is sent.
#[derive(Debug)]
pub(crate) struct ToolPage {
    /// The tools, as a JSON array.
    pub(super) tools: String,
    pub(super) next_cursor: Option<String>,
}

/// Pages that were made lately, the newest last.
#[derive(Debug, Default)]
pub(crate) struct ToolPages(Mutex<VecDeque<(PageTerms, Arc<ToolPage>)>>);

impl ToolPages {
    /// The page of these terms, if it was made.
    pub(super) fn get(&self, terms: &PageTerms) -> Option<Arc<ToolPage>> {
        let kept = self.0.lock();
        kept.iter().find(|(of, _)| of == terms).map(|(_, page)| Arc::clone(page))
    }

    /// Keeps a page. Those of a catalog that has changed go, and then the oldest.
    pub(super) fn keep(&self, terms: PageTerms, page: &Arc<ToolPage>) {
        let mut kept = self.0.lock();
        kept.retain(|(of, _)| of.catalog == terms.catalog && *of != terms);
        kept.push_back((terms, Arc::clone(page)));
        let mut bytes: usize = kept.iter().map(|(_, page)| page.tools.len()).sum();
        while kept.len() > PAGES_MAX || bytes > BYTES_MAX {
            let Some((_, gone)) = kept.pop_front() else { return };
            bytes -= gone.tools.len();
        }
    }
}
