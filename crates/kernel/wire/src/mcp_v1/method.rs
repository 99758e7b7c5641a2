//! Every request and every notification, with the parameters each has, and in which revisions they
//! exist.

use serde::Serialize;
use wharf_vocab::Object;

use super::open::read_params;
use super::{
    McpCanceled, McpComplete, McpCursor, McpElicit, McpElicitationDone, McpEra, McpError,
    McpInitialize, McpListen, McpListened, McpLog, McpMeta, McpNoParams, McpOpen, McpProgress,
    McpPromptGet, McpResourceRead, McpResourceUri, McpRevision, McpSample, McpSetLevel, McpTask,
    McpTaskOf11, McpTaskRef, McpTaskUpdate, McpToolCall,
};

/// An enum with one variant for each method, and the ways from and to its name and parameters.
macro_rules! methods {
    ($(#[$doc:meta])* $name:ident { $($variant:ident($params:ty) = $method:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name {
            $(#[doc = concat!("`", $method, "`")] $variant(Box<McpOpen<$params>>),)*
            /// One that nobody here knows, as it came.
            Other {
                /// Its name.
                method: String,
                /// Its parameters.
                params: McpOpen<McpNoParams>,
            },
        }

        impl $name {
            /// Reads the parameters that belong to a method.
            pub fn read(method: &str, params: Option<Object>) -> Result<Self, McpError> {
                Ok(match method {
                    $($method => Self::$variant(Box::new(read_params(params)?)),)*
                    _ => Self::Other { method: method.to_owned(), params: read_params(params)? },
                })
            }

            /// The name.
            #[must_use]
            pub fn method(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $method,)*
                    Self::Other { method, .. } => method,
                }
            }

            /// The parameters as they are sent; none if there is nothing in them.
            #[must_use]
            pub fn params(&self) -> Option<Object> {
                match self {
                    $(Self::$variant(params) => written(params),)*
                    Self::Other { params, .. } => written(params),
                }
            }

            /// What travels beside the parameters.
            #[must_use]
            pub fn meta(&self) -> Option<&McpMeta> {
                match self {
                    $(Self::$variant(params) => params.meta.as_ref(),)*
                    Self::Other { params, .. } => params.meta.as_ref(),
                }
            }
        }
    };
}

fn written<T: Serialize>(params: &McpOpen<T>) -> Option<Object> {
    Some(params.to_object()).filter(|params| !params.is_empty())
}

methods! {
    /// A request of either side.
    McpRequest {
        Initialize(McpInitialize) = "initialize",
        Discover(McpNoParams) = "server/discover",
        Ping(McpNoParams) = "ping",
        ToolsList(McpCursor) = "tools/list",
        ToolsCall(McpToolCall) = "tools/call",
        ResourcesList(McpCursor) = "resources/list",
        TemplatesList(McpCursor) = "resources/templates/list",
        ResourcesRead(McpResourceRead) = "resources/read",
        ResourcesSubscribe(McpResourceUri) = "resources/subscribe",
        ResourcesUnsubscribe(McpResourceUri) = "resources/unsubscribe",
        PromptsList(McpCursor) = "prompts/list",
        PromptsGet(McpPromptGet) = "prompts/get",
        Complete(McpComplete) = "completion/complete",
        SetLevel(McpSetLevel) = "logging/setLevel",
        TasksGet(McpTaskRef) = "tasks/get",
        TasksResult(McpTaskRef) = "tasks/result",
        TasksList(McpCursor) = "tasks/list",
        TasksCancel(McpTaskRef) = "tasks/cancel",
        TasksUpdate(McpTaskUpdate) = "tasks/update",
        Listen(McpListen) = "subscriptions/listen",
        Elicit(McpElicit) = "elicitation/create",
        Sample(McpSample) = "sampling/createMessage",
        RootsList(McpNoParams) = "roots/list",
    }
}

methods! {
    /// A notification of either side.
    McpNotification {
        Initialized(McpNoParams) = "notifications/initialized",
        Canceled(McpCanceled) = "notifications/cancelled",
        Progress(McpProgress) = "notifications/progress",
        Log(McpLog) = "notifications/message",
        ToolsChanged(McpNoParams) = "notifications/tools/list_changed",
        PromptsChanged(McpNoParams) = "notifications/prompts/list_changed",
        ResourcesChanged(McpNoParams) = "notifications/resources/list_changed",
        ResourceUpdated(McpResourceUri) = "notifications/resources/updated",
        RootsChanged(McpNoParams) = "notifications/roots/list_changed",
        ElicitationDone(McpElicitationDone) = "notifications/elicitation/complete",
        TaskOf11(McpTaskOf11) = "notifications/tasks/status",
        Task(McpTask) = "notifications/tasks",
        Listened(McpListened) = "notifications/subscriptions/acknowledged",
    }
}

impl McpRequest {
    /// Whether clients of a revision may ask this of a server. What is not known is not judged.
    #[must_use]
    pub fn is_for_servers(&self, revision: McpRevision) -> bool {
        let modern = revision.era() == McpEra::Modern;
        match self {
            Self::Initialize(_)
            | Self::Ping(_)
            | Self::ResourcesSubscribe(_)
            | Self::ResourcesUnsubscribe(_)
            | Self::SetLevel(_) => !modern,
            Self::Discover(_) | Self::TasksUpdate(_) | Self::Listen(_) => modern,
            Self::TasksGet(_) | Self::TasksCancel(_) => modern || revision.has_core_tasks(),
            Self::TasksResult(_) | Self::TasksList(_) => revision.has_core_tasks(),
            Self::Elicit(_) | Self::Sample(_) | Self::RootsList(_) => false,
            Self::ToolsList(_)
            | Self::ToolsCall(_)
            | Self::ResourcesList(_)
            | Self::TemplatesList(_)
            | Self::ResourcesRead(_)
            | Self::PromptsList(_)
            | Self::PromptsGet(_)
            | Self::Complete(_)
            | Self::Other { .. } => true,
        }
    }

    /// Whether a result may say that more has to be known first, and the request then be repeated.
    #[must_use]
    pub fn may_need_input(&self) -> bool {
        matches!(self, Self::ToolsCall(_) | Self::PromptsGet(_) | Self::ResourcesRead(_))
    }
}
