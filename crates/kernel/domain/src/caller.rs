//! Who asks for something, and who may decide about it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{AccountId, Digest, GrantId, IdError, ProviderId, SeatId, ToolId, Verb, WorldId};

use crate::grant::{Narrowing, Rights};
use crate::permission::ToolPattern;
use crate::{Receiver, Schedule, Seat, Trigger};

/// Who asks for something: the bearer of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The grant the caller's token carries.
    pub grant: GrantId,
    /// Every grant the caller's rights come from that is not a person's own: the one above and
    /// those it was narrowed from, and for an agent those of the run it works on.
    pub links: Vec<GrantId>,
    /// The person's own grant that the chain begins with, if it does and is not this one.
    pub root: Option<GrantId>,
    /// Whether the token is a person's own.
    pub person: bool,
    /// What kind of peer bears it.
    pub kind: CallerKind,
    /// The account the grant spends from, when it has one of its own.
    pub account: Option<AccountId>,
    /// What the caller may do.
    pub rights: Arc<Rights>,
    /// The seat that was given up and for which whoever may answer asks of the world stands in.
    pub stands_in: Option<SeatId>,
    /// The browser's session at the console that the caller comes with; it ends with that.
    pub console: Option<GrantId>,
}

/// What kind of peer bears a grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallerKind {
    /// A person, a program of theirs, or the core itself.
    #[default]
    Client,
    /// An agent, while it works on a run.
    Agent,
    /// An MCP client, which may answer questions but never decides approvals.
    Mcp,
    /// An operator on its seat.
    Seat,
}

impl Caller {
    /// The owner of this Wharf, a person with every right.
    pub fn owner() -> Self {
        Self { person: true, links: Vec::new(), ..Self::token("owner", Rights::all()) }
    }

    /// The core itself, which may decide nothing that is left to people.
    pub fn core() -> Self {
        Self::token("core", Rights::all())
    }

    /// The bearer of a plain grant. The name must be a valid id.
    pub fn token(grant: &str, rights: Rights) -> Self {
        let grant = GrantId::new(grant).expect("a valid id");
        Self {
            links: vec![grant.clone()],
            grant,
            root: None,
            person: false,
            kind: CallerKind::Client,
            account: None,
            rights: Arc::new(rights),
            stands_in: None,
            console: None,
        }
    }

    /// An agent that works on a run started by `above`: the same rights or fewer, and only the
    /// tools that the agent's own permissions name.
    pub fn agent(id: &ProviderId, above: &CallerRef, tools: Vec<ToolPattern>) -> Self {
        let narrowing = Narrowing { tools: Some(tools), ..Narrowing::default() };
        let grant = grant_named("agent", id.as_str());
        Self { kind: CallerKind::Agent, ..Self::below(above, above.links(), grant, &narrowing) }
    }

    /// An operator on its seat: what its maker may do, as far as it concerns asks and workers. One
    /// that is no person's stands in the chain of what its maker starts, also if that is a person.
    pub fn seat(seat: &Seat) -> Self {
        let above = maker(seat);
        let verbs = [Verb::Answer, Verb::Approve, Verb::Read, Verb::Operate];
        let narrowing =
            Narrowing { verbs: Some(verbs.into_iter().collect()), ..Narrowing::default() };
        let mut links = above.links();
        if above.person && seat.person == Some(false) {
            links.push(above.grant.clone());
        }
        let person = seat.person == Some(true);
        let caller = Self::below(&above, links, seat_grant(&seat.id), &narrowing);
        Self { kind: CallerKind::Seat, person, ..caller }
    }

    /// A schedule: what its maker may do, as far as its own tool in its own world needs it, paid
    /// from the same account.
    pub fn schedule(schedule: &Schedule) -> Self {
        let spec = &schedule.spec;
        let grant = grant_named("schedule", schedule.id.as_str());
        let narrowing = starting(&spec.tool, &spec.world, &spec.allow);
        let caller = Self::below(&schedule.by, schedule.by.links(), grant, &narrowing);
        Self { account: schedule.account.clone(), ..caller }
    }

    /// A trigger: the same for what somebody outside starts by calling its hook.
    pub fn trigger(trigger: &Trigger) -> Self {
        let spec = &trigger.spec;
        let grant = grant_named("trigger", trigger.id.as_str());
        let narrowing = starting(&spec.tool, &spec.world, &spec.allow);
        let caller = Self::below(&trigger.by, trigger.by.links(), grant, &narrowing);
        Self { account: trigger.account.clone(), ..caller }
    }

    /// A receiver of notifications: it may know what its maker may, and do nothing.
    pub fn receiver(receiver: &Receiver) -> Self {
        let verbs = Some([Verb::Read].into_iter().collect());
        let worlds = receiver.spec.world.clone().map(|world| [world].into_iter().collect());
        let narrowing = Narrowing { verbs, worlds, ..Narrowing::default() };
        let grant = grant_named("receiver", receiver.id.as_str());
        Self::below(&receiver.by, receiver.by.links(), grant, &narrowing)
    }

    /// Somebody with a part of the rights of `above`, whose chain begins with `links`.
    fn below(
        above: &CallerRef,
        mut links: Vec<GrantId>,
        grant: GrantId,
        narrowing: &Narrowing,
    ) -> Self {
        let rights = above.rights().narrowed(narrowing);
        debug_assert!(above.rights().covers(&rights), "nobody below has more rights");
        links.push(grant.clone());
        Self {
            grant,
            links,
            root: above.root.clone().or_else(|| above.person.then(|| above.grant.clone())),
            person: false,
            kind: CallerKind::Client,
            account: None,
            rights: Arc::new(rights),
            stands_in: None,
            console: None,
        }
    }

    /// Every grant that stands behind what this caller executes, its own among them.
    pub fn behind(&self) -> Vec<GrantId> {
        joined(self.links.clone(), [&self.grant])
    }

    /// Every grant that stands behind what a seat executes: its own, and those it was made with.
    pub fn behind_seat(seat: &Seat) -> Vec<GrantId> {
        let above = maker(seat);
        joined(above.links(), [&above.grant, &seat_grant(&seat.id)])
    }

    /// The caller with more grants in its chain: those that stand behind whoever executes for it.
    #[must_use]
    pub fn executing_for(self, behind: &[GrantId]) -> Self {
        Self { links: joined(self.links, behind), ..self }
    }

    /// Whose share of names this caller takes: a token has one together with all that were made
    /// or narrowed from it. A person's own may have all.
    pub fn share(&self) -> Option<&GrantId> {
        match self.person {
            true => None,
            false => Some(self.links.first().unwrap_or(&self.grant)),
        }
    }

    /// Whether the caller sits on this seat.
    pub fn sits_on(&self, seat: &SeatId) -> bool {
        self.kind == CallerKind::Seat && self.grant == seat_grant(seat)
    }

    /// The caller as one that stands in for a seat that was given up.
    #[must_use]
    pub fn standing_in(self, seat: &SeatId) -> Self {
        Self { stands_in: Some(seat.clone()), ..self }
    }

    /// Whether a run was started by this caller, or by somebody whose rights come from it.
    pub fn owns(&self, run: &CallerRef) -> bool {
        if self.person {
            return run.grant == self.grant || run.root.as_ref() == Some(&self.grant);
        }
        let chain = run.links();
        !self.links.is_empty() && self.links.iter().all(|link| chain.contains(link))
    }

    /// What a run remembers of its caller.
    pub fn to_ref(&self) -> CallerRef {
        let everything = *self.rights == Rights::all();
        CallerRef {
            grant: self.grant.clone(),
            person: self.person,
            links: self.links.clone(),
            root: self.root.clone(),
            rights: (!everything).then(|| Arc::clone(&self.rights)),
        }
    }
}

/// What is left to something that starts runs of one tool in one world by itself.
fn starting(tool: &ToolId, world: &WorldId, allow: &[ToolPattern]) -> Narrowing {
    let own = ToolPattern::parse(tool.as_str()).ok();
    Narrowing {
        verbs: Some([Verb::Run, Verb::Read].into_iter().collect()),
        worlds: Some([world.clone()].into_iter().collect()),
        tools: Some(own.into_iter().chain(allow.iter().cloned()).collect()),
        until: None,
    }
}

/// Whoever made a seat; of older ones it is not known.
fn maker(seat: &Seat) -> CallerRef {
    seat.by.clone().unwrap_or_else(|| Caller::core().to_ref())
}

/// Grants with others that are not among them yet.
fn joined<'a>(
    mut links: Vec<GrantId>,
    more: impl IntoIterator<Item = &'a GrantId>,
) -> Vec<GrantId> {
    for link in more {
        if !links.contains(link) {
            links.push(link.clone());
        }
    }
    links
}

/// The name under which a seat acts.
fn seat_grant(id: &SeatId) -> GrantId {
    grant_named("seat", id.as_str())
}

/// The name under which somebody acts who has no token; a digest stands for an id that is too long.
fn grant_named(kind: &str, id: &str) -> GrantId {
    GrantId::new(format!("{kind}.{id}")).unwrap_or_else(|_| {
        let digest = Digest::of(&[id.as_bytes()]);
        GrantId::new(format!("{kind}.{}", &digest.as_str()[..32])).expect("hex is a valid id")
    })
}

/// What a run remembers of whoever started it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerRef {
    /// The grant it was started with.
    pub grant: GrantId,
    /// Whether that was a person's own.
    pub person: bool,
    /// Every grant the caller's rights come from that is not a person's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<GrantId>,
    /// The person's own grant that the chain begins with, if it does and is not this one.
    pub root: Option<GrantId>,
    /// What the caller may do; everything when absent.
    pub rights: Option<Arc<Rights>>,
}

impl CallerRef {
    /// Every grant in the chain that is not a person's own.
    pub fn links(&self) -> Vec<GrantId> {
        match (self.links.is_empty(), self.person) {
            // Written before chains were remembered.
            (true, false) => vec![self.grant.clone()],
            _ => self.links.clone(),
        }
    }

    /// The same with more grants in its chain.
    pub fn executed_by(&self, behind: &[GrantId]) -> Self {
        Self { links: joined(self.links(), behind), ..self.clone() }
    }

    /// Whose share of names it takes; see [`Caller::share`].
    pub fn share(&self) -> Option<GrantId> {
        match self.person {
            true => None,
            false => self.links().into_iter().next(),
        }
    }

    /// What the caller may do.
    pub fn rights(&self) -> Arc<Rights> {
        self.rights.clone().unwrap_or_else(|| Arc::new(Rights::all()))
    }
}

/// Who may decide an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Audience {
    /// Only a person.
    Person,
    /// Only the holder of this seat.
    Seat(SeatId),
    /// Whoever may answer asks of the world.
    Any,
}

impl std::fmt::Display for Audience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Person => f.write_str("person"),
            Self::Seat(seat) => write!(f, "seat:{seat}"),
            Self::Any => f.write_str("any"),
        }
    }
}

impl From<Audience> for String {
    fn from(audience: Audience) -> String {
        audience.to_string()
    }
}

impl TryFrom<String> for Audience {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        match text.as_str() {
            "person" => Ok(Self::Person),
            "any" => Ok(Self::Any),
            other => match other.strip_prefix("seat:") {
                Some(seat) => Ok(Self::Seat(SeatId::new(seat)?)),
                None => Err(IdError { what: "an audience" }),
            },
        }
    }
}
