//! What a tool server declares: how it is reached, and the one tool it serves.

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{SandboxLevel, SecretName};

use crate::ToolDef;

/// A provider that is asked over the run protocol, and the tool it serves. Its id is the tool's.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolServer {
    /// How it is reached.
    pub how: Serving,
    /// The tool.
    pub tool: ToolDef,
    /// The secret that holds the bearer token it asks for.
    pub token_secret: Option<SecretName>,
    /// Runs it works on at once; further ones wait.
    pub calls_max: Option<u32>,
    /// Outputs without which a run has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_outputs: Vec<String>,
    /// Whether it fetches addresses only under `https://`.
    #[serde(default)]
    pub https_only: bool,
    /// How firmly it asks to be fenced in.
    pub sandbox: Option<SandboxLevel>,
    /// What its handler runs with, if it asks for more than the usual.
    pub environment: Option<ToolEnvironment>,
    /// Who says what the tool is.
    #[serde(default, skip_serializing_if = "ToolSource::is_manifest")]
    pub source: ToolSource,
}

/// Who says what a tool is: its name, what it takes and what it gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    /// The manifest, all of it.
    #[default]
    Manifest,
    /// The manifest, and the handler what that leaves open.
    Handler,
    /// A function of the handler: the manifest names the namespace of all of them.
    Function,
    /// A function of the handler, which has no manifest.
    File,
}

impl ToolSource {
    fn is_manifest(&self) -> bool {
        *self == Self::Manifest
    }

    /// Whether the tool is one of those of a file, which are added together.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Function | Self::File)
    }
}

impl ToolServer {
    /// How long a run may take when the tool does not say.
    pub const TIMEOUT_MS: u64 = 600_000;

    /// The tool as it stands in the catalog and is pinned: what the manifest leaves open is
    /// settled, and runs can be taken up again, as the run protocol has it.
    pub fn offered(&self) -> ToolDef {
        let mut tool = self.tool.clone();
        tool.reattach = true;
        tool.timeout_ms.get_or_insert(Self::TIMEOUT_MS);
        tool
    }
}

/// The interpreter of a handler and the packages it has.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEnvironment {
    /// The interpreter that the manifest asks for: a path, or a version.
    pub python: Option<String>,
    /// The file that names packages.
    pub requirements: Option<String>,
    /// The folder that packages come from instead of a registry.
    pub wheels: Option<String>,
    /// What was made of it when the folder was added.
    pub made: Option<MadeEnvironment>,
}

/// An environment as it was made.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeEnvironment {
    /// The interpreter it was made with.
    pub interpreter: String,
    /// The interpreter's version.
    pub version: String,
    /// The name of its folder, which is a hash of what went into it; none without packages.
    pub key: Option<String>,
    /// The packages it holds, each with the hash of what was installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<LockedPackage>,
}

/// A package at one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hash of its archive.
    pub sha256: String,
}

/// How a tool server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Serving {
    /// A Python file in its folder, which the core's own program serves.
    Handler {
        /// The file, from the folder.
        file: String,
        /// Whether each run starts an interpreter of its own.
        #[serde(default)]
        cold: bool,
        /// The function that is served, where the file has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<String>,
    },
    /// A program in its folder that listens on the port it is told.
    Program {
        /// The program and its arguments; `{port}` stands for the port.
        argv: Vec<String>,
    },
    /// A container image, by its digest.
    Image {
        /// The image.
        image: String,
    },
    /// A server elsewhere.
    Remote {
        /// Its address, `wss://` or, on this machine, `ws://`.
        url: String,
    },
}

impl Serving {
    /// Whether the core starts it.
    pub fn is_launched(&self) -> bool {
        !matches!(self, Self::Remote { .. })
    }
}
