//! Stands in for the way out until a core has it: there are no hosts to reach.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use wharf_domain::permission::HostPattern;
use wharf_engine::egress::{Egress, EgressDoor};
use wharf_vocab::{AgentId, Code, Fault};

#[derive(Debug)]
pub(crate) struct NoEgress;

impl Egress for NoEgress {
    fn open(
        &self,
        _: AgentId,
        _: PathBuf,
        _: Vec<HostPattern>,
    ) -> BoxFuture<'_, Result<Arc<dyn EgressDoor>, Fault>> {
        async { Err(Fault::new(Code::AgentStartFailed, "This core lets no agent out.")) }.boxed()
    }
}
