//! MCP servers and what is asked and allowed of them.

use serde_json::Value;

use super::view::view;
use crate::scalars::{DateTime, Int64};

view! {
    /// An MCP server and its state.
    McpServer of McpServer {
        /// Its id, which the ids of its tools begin with.
        server_id: String,
        /// Its state. An idle server is `running` without a process.
        state: String,
        /// Why it is in that state, when there is something to say.
        reason: Option<String>,
        /// Whether it may be called, once approved.
        enabled: bool,
        /// Whether its tools were read since it was approved.
        listed: bool,
        /// The tools it offers.
        tools: Vec<String>,
        /// Tools that are new or have changed since the approval.
        quarantined: Vec<String>,
        /// The program that is started, and its arguments.
        command: Vec<String>,
        /// The address of a server elsewhere.
        url: Option<String>,
        /// Whether that address may lie in a private network.
        allow_private: bool,
        /// The package of Node it is installed from.
        npm: Option<String>,
        /// The package of Python it is installed from.
        pypi: Option<String>,
        /// What it is for.
        description: String,
        /// The folder with its manifest.
        folder: String,
        /// When it was added.
        added_at: DateTime,
        /// Its process, while there is one.
        pid: Option<u32>,
        /// The current start of its process; shown only to administrators.
        launch_id: Option<String>,
        /// How many of its processes run.
        instances: Int64,
        /// Variables of its environment; shown only to administrators.
        env: Value,
        /// Variables of its environment that hold secrets, with the names of these.
        env_secrets: Value,
        /// The secret that is sent as a bearer token.
        token_secret: Option<String>,
        /// Headers that hold secrets, with the names of these.
        header_secrets: Value,
        /// How one logs in to it with OAuth, where that is not found out.
        oauth: Option<McpOauth>,
        /// Whether tools that are new since the approval are taken on by themselves.
        accept_new: bool,
        /// Whether what it says about the effects of its tools counts.
        trust_annotations: bool,
        /// Which of the protocol's two ways to speak is tried: `auto`, `legacy` or `modern`.
        era: String,
        /// Who answers what it asks of a model; the core's setting when null.
        sampling: Option<String>,
        /// Which folders it is told of: `approved` or `caller`.
        roots: String,
        /// How long a process without a call is kept, in seconds.
        idle_s: Option<Int64>,
        /// Its sandbox: the one achieved while it runs, otherwise the one approved.
        sandbox: String,
        /// The sandbox it is to have, once approved.
        sandbox_wanted: Option<String>,
        /// What the sandbox lacks or does differently.
        sandbox_notes: Vec<String>,
        /// Which runs share a process, once approved.
        isolation: Option<String>,
        /// What its manifest asks for.
        permissions_requested: Vec<String>,
        /// What was approved; null until its present manifest is approved.
        permissions_approved: Option<Vec<String>>,
        /// The same, each with what it means.
        permissions: Vec<AgentPermission>,
        /// What its manifest asks for beyond the usual.
        wishes: Vec<AgentWish>,
        /// The limits in force.
        limits: AgentLimits,
        /// How each of these limits is enforced while it runs, by name.
        limits_kept: Value,
        /// Hash of its manifest.
        manifest_hash: String,
        /// Digests of the files approved with it, by path.
        pinned_files: Value,
        /// How its files differ from what was approved.
        drift: Vec<String>,
        /// What its owner should know before approving it; told when it is added.
        hints: Vec<String>,
    }
}

view! {
    /// How one logs in to an MCP server with OAuth, where that is not found out.
    McpOauth of McpOauth {
        /// The id of the core as a client there.
        client_id: Option<String>,
        /// The name of the secret that holds the client's own secret.
        client_secret: Option<String>,
        /// The only issuer that the client is shown to.
        issuer: Option<String>,
        /// What is asked for when the server does not say.
        scopes: Vec<String>,
    }
}

view! {
    /// A permission that a manifest asks for.
    AgentPermission of AgentPermission {
        /// The permission as the manifest writes it.
        permission: String,
        /// What it allows, for people.
        meaning: String,
        /// Whether it was approved unchanged.
        approved: bool,
        /// What was approved instead, when that is less.
        narrowed_to: Vec<String>,
    }
}

view! {
    /// Something beyond the usual that a manifest asks for.
    AgentWish of AgentWish {
        /// What it is about: `sandbox`, or the name of a limit.
        what: String,
        /// What the manifest asks for.
        asked: String,
        /// What applies otherwise.
        usual: String,
        /// What it would allow, for people.
        meaning: String,
        /// Whether the owner granted it.
        granted: bool,
    }
}

view! {
    /// How much a provider may be asked to do and may use.
    AgentLimits of AgentLimits {
        /// Calls in progress at once.
        calls_max: Option<u32>,
        /// Calls per period.
        rate: Option<Rate>,
        /// How long one call may run.
        call_ms: Option<Int64>,
        /// Largest inputs of a call, as JSON text.
        input_bytes: Option<Int64>,
        /// Largest outputs of a call, as JSON text.
        output_bytes: Option<Int64>,
        /// Progress one call may write.
        stream_bytes: Option<Int64>,
        /// Memory of all its processes in total.
        memory_bytes: Option<Int64>,
        /// Processor time of all its processes in total.
        cpu_ms: Option<Int64>,
        /// Share of processors, in thousandths of one.
        cpu_millicores: Option<Int64>,
        /// Processes and threads at once.
        processes: Option<Int64>,
        /// Open files of each process.
        open_files: Option<Int64>,
        /// Bytes in its own folders, and size of any one file.
        disk_bytes: Option<Int64>,
    }
}

view! {
    /// A number of calls per period.
    Rate of Rate {
        /// How many.
        count: u32,
        /// The period in milliseconds.
        per_ms: Int64,
    }
}
