//! Tools that are called otherwise elsewhere.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Exchange, Kind, Outgoing, Transport};
use crate::Tool;

/// A transport over which some tools go by other names, as a tool that a core knows by its id.
///
/// ```
/// use wharf_sdk::transport::{Named, memory};
/// use wharf_sdk::{Scope, Tool};
///
/// const GET_LOCATION: Tool<(), String> = Tool::new("get-location", "Where the user is.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (link, _peer) = memory::pair();
/// let core = Named::new(link).named(&GET_LOCATION, "browser/get-location");
/// let scope = Scope::root().with_transport(core);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Named<T> {
    transport: T,
    names: HashMap<&'static str, String>,
}

impl<T: Transport> Named<T> {
    /// The same transport, with no other names yet.
    pub fn new(transport: T) -> Self {
        Self { transport, names: HashMap::new() }
    }

    /// Lets a tool go by another name.
    #[must_use]
    pub fn named<I, O, P, S>(mut self, tool: &Tool<I, O, P, S>, name: impl Into<String>) -> Self {
        self.names.insert(tool.name(), name.into());
        self
    }
}

impl<T: Transport> Transport for Named<T> {
    fn request(&self, mut request: Outgoing) -> Exchange {
        if request.kind == Kind::Elicit
            && let Some(name) = self.names.get(request.method.as_ref())
        {
            request.method = Cow::Owned(name.clone());
        }
        self.transport.request(request)
    }
}
