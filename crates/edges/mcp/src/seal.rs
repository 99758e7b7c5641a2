//! Texts that a client comes back with: sealed, so that nothing of a session is stored.
//!
//! Each names what it gives a right to, and is good for the grant that it was made for and for no
//! other, at every core that has the same keys. What stands in one can be read by its bearer; it
//! says nothing that the bearer does not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wharf_domain::Caller;
use wharf_domain::grant::StampKind;
use wharf_engine::Handle;
use wharf_vocab::{Digest, Object, ProviderId, RunKey, Timestamp};
use wharf_wire::mcp_v1::{
    McpClientCapabilities, McpElicitationModes, McpEra, McpId, McpListSupport, McpRevision,
    McpSamplingSupport, key,
};

/// How long a session is good.
pub(crate) const SESSION_GOOD_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// How long a client may take to repeat a request with answers.
pub(crate) const REQUEST_STATE_GOOD_MS: u64 = 24 * 60 * 60 * 1_000;

/// Parts of a request that differ when it is repeated.
const REPEATED: [&str; 3] = [key::META, "inputResponses", "requestState"];

/// What tells one session from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionNonce(pub(crate) [u8; 16]);

impl SessionNonce {
    /// One that there was never before.
    pub(crate) fn new(handle: &Handle) -> Self {
        let unique = blake3::hash(handle.runs().new_session().as_bytes());
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&unique.as_bytes()[..16]);
        Self(nonce)
    }
}

/// What a session id says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionSeal {
    /// What was agreed.
    pub(crate) revision: McpRevision,
    /// What the client can do, as far as it is ever used.
    pub(crate) capabilities: McpClientCapabilities,
    /// What tells it from other sessions.
    pub(crate) nonce: SessionNonce,
    /// The start of a core that it was made in.
    pub(crate) core: u64,
    /// When it ends.
    pub(crate) end: Timestamp,
}

impl SessionSeal {
    /// The session id, for this grant at the door of this provider or of all.
    pub(crate) fn write(
        &self,
        handle: &Handle,
        caller: &Caller,
        provider: Option<&ProviderId>,
    ) -> String {
        let mut bytes = vec![1, revision_number(self.revision), abilities(&self.capabilities)];
        bytes.extend_from_slice(&self.nonce.0);
        bytes.extend_from_slice(&self.core.to_be_bytes());
        bytes.extend_from_slice(&self.end.0.to_be_bytes());
        handle.seals().stamp(StampKind::Session, &at_door(caller, provider), &bytes)
    }

    /// What a session id says, if it is this grant's at this door and not over.
    pub(crate) fn read(
        handle: &Handle,
        caller: &Caller,
        provider: Option<&ProviderId>,
        text: &str,
    ) -> Option<Self> {
        let unsaid = at_door(caller, provider);
        let bytes = handle.seals().read_stamp(StampKind::Session, &unsaid, text)?;
        let [1, revision, able, rest @ ..] = bytes.as_slice() else { return None };
        let (nonce, rest) = rest.split_first_chunk::<16>()?;
        let (core, rest) = rest.split_first_chunk::<8>()?;
        let end = Timestamp(u64::from_be_bytes(rest.try_into().ok()?));
        let revision = McpRevision::ALL.get(usize::from(*revision)).copied()?;
        let read = Self {
            revision,
            capabilities: able_to(*able),
            nonce: SessionNonce(*nonce),
            core: u64::from_be_bytes(*core),
            end,
        };
        (revision.era() == McpEra::Legacy && end > handle.now()).then_some(read)
    }
}

/// A grant, and the door it came to.
fn at_door(caller: &Caller, provider: Option<&ProviderId>) -> Vec<u8> {
    // No id has a zero in it.
    let provider = provider.map_or("", ProviderId::as_str);
    [caller.grant.as_str().as_bytes(), b"\0", provider.as_bytes()].concat()
}

fn revision_number(revision: McpRevision) -> u8 {
    let at = McpRevision::ALL.iter().position(|it| *it == revision);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

const FORM: u8 = 1;
const URL: u8 = 1 << 1;
const SAMPLING: u8 = 1 << 2;
const SAMPLING_TOOLS: u8 = 1 << 3;
const SAMPLING_CONTEXT: u8 = 1 << 4;
const ROOTS: u8 = 1 << 5;
const ROOTS_CHANGE: u8 = 1 << 6;

fn abilities(capabilities: &McpClientCapabilities) -> u8 {
    let sampling = capabilities.sampling.as_ref();
    let roots = capabilities.roots.as_ref();
    let able = [
        (FORM, capabilities.elicits_forms()),
        (URL, capabilities.elicits_urls()),
        (SAMPLING, sampling.is_some()),
        (SAMPLING_TOOLS, sampling.is_some_and(|it| it.tools.is_some())),
        (SAMPLING_CONTEXT, sampling.is_some_and(|it| it.context.is_some())),
        (ROOTS, roots.is_some()),
        (ROOTS_CHANGE, roots.is_some_and(|it| it.list_changed == Some(true))),
    ];
    able.into_iter().filter(|(_, is_able)| *is_able).fold(0, |all, (flag, _)| all | flag)
}

fn able_to(able: u8) -> McpClientCapabilities {
    let has = |flag: u8| able & flag != 0;
    let empty = |flag: u8| has(flag).then(Object::new);
    let modes = McpElicitationModes { form: empty(FORM), url: empty(URL) };
    let sampling =
        McpSamplingSupport { context: empty(SAMPLING_CONTEXT), tools: empty(SAMPLING_TOOLS) };
    let roots = McpListSupport { list_changed: has(ROOTS_CHANGE).then_some(true) };
    McpClientCapabilities {
        elicitation: has(FORM | URL).then(|| modes.into()),
        sampling: has(SAMPLING).then(|| sampling.into()),
        roots: has(ROOTS).then(|| roots.into()),
        ..McpClientCapabilities::default()
    }
}

/// What a request is answered under: its id, and what names its progress if that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestRef {
    /// Its id.
    #[serde(rename = "i")]
    pub(crate) id: McpId,
    /// What names its progress.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<McpId>,
}

/// Which stream of a run an event was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StreamOf {
    /// That of the call itself.
    #[serde(rename = "c")]
    Call,
    /// That of `tasks/result`.
    #[serde(rename = "r")]
    TaskResult,
}

/// A place in the stream of a run: what an event id says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventPlace {
    /// The run.
    #[serde(rename = "k")]
    pub(crate) run: RunKey,
    /// The number in its journal up to which everything was said.
    #[serde(rename = "n")]
    pub(crate) number: u64,
    /// The request that the stream answers.
    #[serde(rename = "q")]
    pub(crate) request: RequestRef,
    /// Which stream it is.
    #[serde(rename = "s")]
    pub(crate) stream: StreamOf,
    /// How far the run was said to be, in thousandths of a percent.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<u64>,
}

impl EventPlace {
    /// The event id, for this grant.
    pub(crate) fn write(&self, handle: &Handle, caller: &Caller) -> String {
        write(handle, StampKind::Event, of_grant(caller), self)
    }

    /// The place that an event id of this grant says.
    pub(crate) fn read(handle: &Handle, caller: &Caller, text: &str) -> Option<Self> {
        read(handle, StampKind::Event, of_grant(caller), text)
    }
}

/// The task id of a run, for this grant, in any session and after any restart.
pub(crate) fn task_id(handle: &Handle, caller: &Caller, run: &RunKey) -> String {
    write(handle, StampKind::Task, of_grant(caller), run)
}

/// The run that a task id of this grant names.
pub(crate) fn read_task_id(handle: &Handle, caller: &Caller, text: &str) -> Option<RunKey> {
    read(handle, StampKind::Task, of_grant(caller), text)
}

/// What a modern client repeats a request with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestState {
    /// The run that waits.
    #[serde(rename = "k")]
    pub(crate) run: RunKey,
    /// What was asked, by the keys that answers carry.
    #[serde(rename = "a")]
    pub(crate) asks: BTreeMap<String, String>,
    /// Until when an answer may come.
    #[serde(rename = "e")]
    pub(crate) end: Timestamp,
}

impl RequestState {
    /// A run that waits for these answers, for as long as a client may take.
    pub(crate) fn new(handle: &Handle, run: RunKey, asks: BTreeMap<String, String>) -> Self {
        Self { run, asks, end: handle.now().plus_ms(REQUEST_STATE_GOOD_MS) }
    }

    /// The text, for this grant and this request.
    pub(crate) fn write(&self, handle: &Handle, caller: &Caller, request: &Digest) -> String {
        write(handle, StampKind::State, &of_request(caller, request), self)
    }

    /// What such a text says, if it is this grant's for this request and not too old.
    pub(crate) fn read(
        handle: &Handle,
        caller: &Caller,
        request: &Digest,
        text: &str,
    ) -> Option<Self> {
        let state: Self = read(handle, StampKind::State, &of_request(caller, request), text)?;
        (state.end > handle.now()).then_some(state)
    }
}

/// What tells a repeated request from another one: method and parameters, without what a repeat
/// brings along.
pub(crate) fn request_digest(method: &str, params: Option<&Object>) -> Digest {
    let kept = params.into_iter().flatten();
    let kept = kept.filter(|(name, _)| !REPEATED.contains(&name.as_str()));
    let kept: Object = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    Digest::of(&[method.as_bytes(), Digest::of_object(&kept).as_str().as_bytes()])
}

fn of_grant(caller: &Caller) -> &[u8] {
    caller.grant.as_str().as_bytes()
}

fn of_request(caller: &Caller, request: &Digest) -> Vec<u8> {
    [of_grant(caller), b"\0", request.as_str().as_bytes()].concat()
}

fn write(handle: &Handle, kind: StampKind, unsaid: &[u8], said: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(said).unwrap_or_default();
    handle.seals().stamp(kind, unsaid, &bytes)
}

fn read<T: for<'de> Deserialize<'de>>(
    handle: &Handle,
    kind: StampKind,
    unsaid: &[u8],
    text: &str,
) -> Option<T> {
    let bytes = handle.seals().read_stamp(kind, unsaid, text)?;
    serde_json::from_slice(&bytes).ok()
}
