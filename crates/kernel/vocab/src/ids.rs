//! Typed ids. Each is a checked string or a number, so that two kinds can never be mixed up.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::digest::fnv1a;
use crate::limits::{FLOW_NAME_BYTES_MAX, ID_BYTES_MAX, SHARDS};
use crate::text_enum;

/// Why a string is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must match [A-Za-z0-9][A-Za-z0-9._-]{{0,127}}")]
pub struct IdError {
    /// Which kind of id was expected, in a user's words.
    pub what: &'static str,
}

fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= ID_BYTES_MAX
        && bytes[0].is_ascii_alphanumeric()
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and makes an id of it.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                let text = text.as_ref();
                let valid: fn(&str) -> bool = $check;
                if valid(text) { Ok(Self(text.into())) } else { Err(IdError { what: $what }) }
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                &*self.0 == text
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                &*self.0 == *text
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }
    };
}

string_id!(
    /// A run's id, unique within its world.
    RunId, "a run id", is_id
);
string_id!(
    /// A world's id.
    WorldId, "a world id", is_id
);
string_id!(
    /// An attempt's id; the agent wire calls it `call_id`. Its first two characters are the hex
    /// number of the shard that owns its run, but for attempts of older versions.
    AttemptId, "an attempt id", is_id
);
string_id!(
    /// An ask's id. Its first two characters are the hex number of the shard that owns it.
    AskId, "an ask id", |text| is_id(text) && shard_prefix(text).is_some()
);
string_id!(
    /// The id of a launch: one start of a provider's process.
    LaunchId, "a launch id", is_id
);
string_id!(
    /// A provider's id: the part of a tool id before the slash, or the whole id of a tool that
    /// has a server of its own.
    ProviderId, "a provider id", |text| is_id(text) || is_reference(text)
);
string_id!(
    /// A seat's id.
    SeatId, "a seat id", is_id
);
string_id!(
    /// A flow's name.
    FlowId, "a flow's name", |text| {
        let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
        (1..=FLOW_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter)
    }
);
string_id!(
    /// A trigger's name.
    TriggerId, "a trigger's name", is_id
);
string_id!(
    /// The name of a receiver of notifications.
    ReceiverId, "a receiver's name", is_id
);
string_id!(
    /// A notification's id. Its first two characters are the hex number of the shard that owns it.
    NotificationId, "a notification's id", |text| is_id(text) && shard_prefix(text).is_some()
);
string_id!(
    /// The id of a run that a trigger owes. Its first two characters are the hex number of the
    /// shard that owns it.
    FiringId, "a firing's id", |text| is_id(text) && shard_prefix(text).is_some()
);
string_id!(
    /// A schedule's name.
    ScheduleId, "a schedule's name", is_id
);
string_id!(
    /// A grant's id; never the token itself.
    GrantId, "a grant id", is_id
);
string_id!(
    /// The name of a secret; never the secret itself.
    SecretName, "the name of a secret", is_id
);
string_id!(
    /// The name of a core among the cores of one Wharf.
    NodeId, "a node id", is_id
);
string_id!(
    /// An account in the budget tree: `world:W`, `token:G` or `run:W/R`.
    AccountId, "an account id", |text| {
        text.split_once(':').is_some_and(|(kind, rest)| {
            matches!(kind, "world" | "token" | "run") && rest.split('/').all(is_id)
        })
    }
);
string_id!(
    /// A hold on money, named after the attempt it was taken for.
    HoldId, "a hold id", is_id
);
string_id!(
    /// A tool's id: `provider/name`, or the reference of a tool with a server of its own,
    /// `namespace/name@version`, such as `llm/litellm@1`.
    ToolId, "a tool id of the form provider/name", |text| {
        let plain = |(provider, name)| is_id(provider) && is_id(name);
        is_reference(text) || text.split_once('/').is_some_and(plain)
    }
);

/// Whether a text is `namespace/name@version`, in lower case, with a whole number as version.
fn is_reference(text: &str) -> bool {
    let is_word = |word: &str| {
        let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b);
        (1..=ID_BYTES_MAX).contains(&word.len()) && word.bytes().all(is_letter)
    };
    let is_version = |version: &str| {
        (1..=9).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_digit())
    };
    text.split_once('/').is_some_and(|(namespace, rest)| {
        rest.split_once('@').is_some_and(|(name, version)| {
            is_word(namespace) && is_word(name) && is_version(version)
        })
    })
}

fn shard_prefix(text: &str) -> Option<u8> {
    u8::from_str_radix(text.get(..2)?, 16).ok()
}

impl ToolId {
    /// Who executes the tool: what stands before the slash; a tool with a version has a server of
    /// its own, which has the tool's name.
    #[must_use]
    pub fn provider(&self) -> ProviderId {
        if self.is_reference() && !self.is_flow() {
            return ProviderId(Arc::clone(&self.0));
        }
        let provider = self.as_str().split_once('/').map_or("", |(provider, _)| provider);
        ProviderId(provider.into())
    }

    /// Whether it is a flow, which the core itself carries out.
    #[must_use]
    pub fn is_flow(&self) -> bool {
        self.as_str().starts_with("flow/")
    }

    /// The name of the flow and the version that is asked for, if it is a flow.
    #[must_use]
    pub fn flow(&self) -> Option<(FlowId, Option<u32>)> {
        let rest = self.as_str().strip_prefix("flow/")?;
        match rest.split_once('@') {
            Some((name, version)) => Some((FlowId::new(name).ok()?, Some(version.parse().ok()?))),
            None => Some((FlowId::new(rest).ok()?, None)),
        }
    }

    /// Whether it is the reference of a tool with a server of its own.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.as_str().contains('@')
    }

    /// The tool's own name, version included.
    #[must_use]
    pub fn name(&self) -> &str {
        self.as_str().split_once('/').map_or("", |(_, name)| name)
    }
}

impl AskId {
    /// Makes the id of an ask that belongs to `shard` from unique text.
    #[must_use]
    pub fn in_shard(shard: ShardId, unique: &str) -> Self {
        Self(format!("{:02x}{unique}", shard.0).into())
    }

    /// The shard that owns the ask.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        ShardId(shard_prefix(self.as_str()).unwrap_or(0))
    }
}

impl NotificationId {
    /// Makes the id of a notification that belongs to `shard` from unique text.
    #[must_use]
    pub fn in_shard(shard: ShardId, unique: &str) -> Self {
        Self(format!("{:02x}{unique}", shard.0).into())
    }

    /// The shard that owns the notification.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        ShardId(shard_prefix(self.as_str()).unwrap_or(0))
    }
}

impl FiringId {
    /// Makes the id of a firing that belongs to `shard` from unique text.
    #[must_use]
    pub fn in_shard(shard: ShardId, unique: &str) -> Self {
        Self(format!("{:02x}{unique}", shard.0).into())
    }

    /// The shard that owns the firing.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        ShardId(shard_prefix(self.as_str()).unwrap_or(0))
    }
}

impl AttemptId {
    /// What stands between the shard and the unique text; ids of older versions have none there.
    const AFTER_SHARD: char = '-';

    /// Makes the id of an attempt of a run in `shard` from unique text.
    #[must_use]
    pub fn in_shard(shard: ShardId, unique: &str) -> Self {
        Self(format!("{:02x}{}{unique}", shard.0, Self::AFTER_SHARD).into())
    }

    /// The shard of the run, so that whatever names the attempt can be sent where it belongs;
    /// `None` for an attempt that an older version began.
    #[must_use]
    pub fn shard(&self) -> Option<ShardId> {
        let (shard, _) = self.split_once(Self::AFTER_SHARD)?;
        (shard.len() == 2).then(|| shard_prefix(shard).map(ShardId)).flatten()
    }
}

impl AccountId {
    /// The account of a world.
    #[must_use]
    pub fn of_world(world: &WorldId) -> Self {
        Self(format!("world:{world}").into())
    }

    /// The account of a grant that carries a budget.
    #[must_use]
    pub fn of_grant(grant: &GrantId) -> Self {
        Self(format!("token:{grant}").into())
    }

    /// The account of a run that carries a budget.
    #[must_use]
    pub fn of_run(key: &RunKey) -> Self {
        Self(format!("run:{key}").into())
    }
}

/// A run is known by its world and its id in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// The world that owns the run.
    pub world: WorldId,
    /// The run's id in that world.
    pub run: RunId,
}

impl RunKey {
    /// The shard that owns the run.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.stream().shard()
    }

    /// The run's stream in the journal.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        StreamId::Run(self.clone())
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.world, self.run)
    }
}

text_enum! {
    /// What kind of thing a stream is the truth of; the text is the kind's name in the store.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    StreamKind {
        /// One run.
        Run = "run",
        /// One world.
        World = "world",
        /// One ask.
        Ask = "ask",
        /// One provider: an agent, a tool server or an operative. Its name is of the time when
        /// there were only agents.
        #[serde(rename = "agent")]
        Provider = "agent",
        /// One seat.
        Seat = "seat",
        /// One grant.
        Grant = "grant",
        /// One notice.
        Notice = "notice",
        /// One schedule.
        Schedule = "schedule",
        /// One receiver of notifications.
        Receiver = "receiver",
        /// One notification.
        Notification = "notification",
        /// One trigger.
        Trigger = "trigger",
        /// A run that a trigger owes.
        Firing = "firing",
        /// One flow.
        Flow = "flow",
    }
}

/// The name of a stream of the journal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum StreamId {
    /// One run.
    Run(RunKey),
    /// One world.
    World(WorldId),
    /// One ask; it lives in the shard of the run that raised it.
    Ask(AskId),
    /// One provider.
    #[serde(rename = "Agent")]
    Provider(ProviderId),
    /// One seat.
    Seat(SeatId),
    /// One grant.
    Grant(GrantId),
    /// What a seat is to be told after it let an attempt pass, by the approval it gave; it lives
    /// in the shard of the run.
    Notice(AskId),
    /// One schedule.
    Schedule(ScheduleId),
    /// One receiver of notifications.
    Receiver(ReceiverId),
    /// One notification; it lives in the shard of what it tells.
    Notification(NotificationId),
    /// One trigger.
    Trigger(TriggerId),
    /// A run that a trigger owes; it lives in the shard of what made it.
    Firing(FiringId),
    /// One flow: the versions of its document.
    Flow(FlowId),
}

impl StreamId {
    /// What kind of stream it is.
    #[must_use]
    pub fn kind(&self) -> StreamKind {
        match self {
            Self::Run(_) => StreamKind::Run,
            Self::World(_) => StreamKind::World,
            Self::Ask(_) => StreamKind::Ask,
            Self::Provider(_) => StreamKind::Provider,
            Self::Seat(_) => StreamKind::Seat,
            Self::Grant(_) => StreamKind::Grant,
            Self::Notice(_) => StreamKind::Notice,
            Self::Schedule(_) => StreamKind::Schedule,
            Self::Receiver(_) => StreamKind::Receiver,
            Self::Notification(_) => StreamKind::Notification,
            Self::Trigger(_) => StreamKind::Trigger,
            Self::Firing(_) => StreamKind::Firing,
            Self::Flow(_) => StreamKind::Flow,
        }
    }

    /// The stream's name among those of its kind.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Run(key) => key.to_string(),
            Self::World(id) => id.to_string(),
            Self::Ask(id) => id.to_string(),
            Self::Provider(id) => id.to_string(),
            Self::Seat(id) => id.to_string(),
            Self::Grant(id) => id.to_string(),
            Self::Notice(id) => id.to_string(),
            Self::Schedule(id) => id.to_string(),
            Self::Receiver(id) => id.to_string(),
            Self::Notification(id) => id.to_string(),
            Self::Trigger(id) => id.to_string(),
            Self::Firing(id) => id.to_string(),
            Self::Flow(id) => id.to_string(),
        }
    }

    /// Reads back what [`StreamId::kind`] and [`StreamId::key`] wrote.
    pub fn parse(kind: &str, key: &str) -> Result<Self, IdError> {
        match StreamKind::parse(kind).ok_or(IdError { what: "a stream kind" })? {
            StreamKind::Run => {
                let (world, run) = key.split_once('/').ok_or(IdError { what: "a run's key" })?;
                Ok(Self::Run(RunKey { world: WorldId::new(world)?, run: RunId::new(run)? }))
            }
            StreamKind::World => Ok(Self::World(WorldId::new(key)?)),
            StreamKind::Ask => Ok(Self::Ask(AskId::new(key)?)),
            StreamKind::Provider => Ok(Self::Provider(ProviderId::new(key)?)),
            StreamKind::Seat => Ok(Self::Seat(SeatId::new(key)?)),
            StreamKind::Grant => Ok(Self::Grant(GrantId::new(key)?)),
            StreamKind::Notice => Ok(Self::Notice(AskId::new(key)?)),
            StreamKind::Schedule => Ok(Self::Schedule(ScheduleId::new(key)?)),
            StreamKind::Receiver => Ok(Self::Receiver(ReceiverId::new(key)?)),
            StreamKind::Notification => Ok(Self::Notification(NotificationId::new(key)?)),
            StreamKind::Trigger => Ok(Self::Trigger(TriggerId::new(key)?)),
            StreamKind::Firing => Ok(Self::Firing(FiringId::new(key)?)),
            StreamKind::Flow => Ok(Self::Flow(FlowId::new(key)?)),
        }
    }

    /// The shard that owns the stream.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        match self {
            Self::Ask(id) | Self::Notice(id) => id.shard(),
            Self::Notification(id) => id.shard(),
            Self::Firing(id) => id.shard(),
            _ => {
                let hash = fnv1a(&[self.kind().as_str().as_bytes(), self.key().as_bytes()]);
                ShardId::from_hash(hash)
            }
        }
    }
}

/// One of the 256 slices of all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShardId(pub u8);

impl ShardId {
    /// Every shard there is.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(|n| Self(u8::try_from(n).unwrap_or(u8::MAX)))
    }

    fn from_hash(hash: u64) -> Self {
        // The high byte of a final multiply is well mixed; the low byte of FNV is not.
        Self(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0])
    }

    /// The shard's number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0)
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter!(
    /// The place of an entry in its stream; the first is 1, and 0 means "before the first".
    Seq
);
counter!(
    /// The rising number of a shard's lease; a write with an old one is refused.
    Epoch
);
counter!(
    /// The rising number of what a shard commits; refused batches leave holes.
    CommitNo
);
counter!(
    /// Which life of a core it is: each start begins another.
    Incarnation
);

/// Where attempts are handed to their providers: one life of one core. What a place was given is
/// gone with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The core.
    pub node: NodeId,
    /// Its life.
    pub incarnation: Incarnation,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{:x}", self.node, self.incarnation.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_accept_the_documented_alphabet_only() {
        for good in ["a", "A1", "0-x_y.z", &"a".repeat(128)] {
            assert!(RunId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "a/b", "a b", "ä", &"a".repeat(129)] {
            assert!(RunId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tool_ids_have_a_provider_and_a_name() {
        let tool = ToolId::new("dev.example.hello/echo").expect("valid");
        assert_eq!((tool.provider().as_str(), tool.name()), ("dev.example.hello", "echo"));
        for bad in ["echo", "/echo", "wharf/", "a/b/c", "a/b@", "a/b@x", "a/b@1@2"] {
            assert!(ToolId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn t043_a_reference_has_a_strict_grammar_and_names_its_own_server() {
        let tool = ToolId::new("llm/litellm@1").expect("valid");
        assert!(tool.is_reference());
        assert_eq!((tool.provider().as_str(), tool.name()), ("llm/litellm@1", "litellm@1"));
        assert!(ProviderId::new("llm/litellm@1").is_ok() && ProviderId::new("a_b/c-d@12").is_ok());
        for bad in ["Llm/a@1", "llm/A@1", "llm.x/a@1", "llm/a@", "llm/a@-1", "llm/a@1.0", "a@1"] {
            assert!(ToolId::new(bad).is_err() && ProviderId::new(bad).is_err(), "{bad}");
        }
        for bad in ["llm/a", "/a@1", "llm/@1", "llm/a@1234567890", "llm/a/b@1"] {
            assert!(ProviderId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn stream_ids_survive_their_text_form_and_keep_their_shard() {
        let key = RunKey {
            world: WorldId::new("default").expect("valid"),
            run: RunId::new("r1").expect("valid"),
        };
        for stream in [
            key.stream(),
            StreamId::World(WorldId::new("w").expect("valid")),
            StreamId::Ask(AskId::in_shard(ShardId(0xc3), "x")),
            StreamId::Notice(AskId::in_shard(ShardId(0xc3), "x")),
        ] {
            let back = StreamId::parse(stream.kind().as_str(), &stream.key()).expect("parses");
            assert_eq!(back, stream);
            assert_eq!(back.shard(), stream.shard());
        }
        assert_eq!(AskId::in_shard(ShardId(0xc3), "x").shard(), ShardId(0xc3));
    }

    #[test]
    fn s002_an_attempt_names_the_shard_of_its_run() {
        let attempt = AttemptId::in_shard(ShardId(0x0c), "0190-x");
        assert_eq!(attempt.shard(), Some(ShardId(0x0c)));
        assert_eq!(AttemptId::new(attempt.as_str()), Ok(attempt));
        for older in ["0190a1b2-7c1f-7000-8000-000000000000", "call-1", "0c", "0c1-x", "zz-x"] {
            assert_eq!(AttemptId::new(older).expect("an id").shard(), None, "{older}");
        }
    }

    #[test]
    fn runs_spread_over_all_shards() {
        let mut counts = [0_u32; 256];
        for n in 0..25_600 {
            let key = RunKey {
                world: WorldId::new("default").expect("valid"),
                run: RunId::new(format!("run-{n}")).expect("valid"),
            };
            counts[key.shard().index()] += 1;
        }
        assert!(counts.iter().all(|&n| (40..180).contains(&n)), "{counts:?}");
    }
}
