//! How a connection is asked for: the query.

use std::collections::BTreeMap;

use wharf_domain::Caller;
use wharf_domain::permission::ToolPattern;
use wharf_domain::provider::RESERVED_IDS;
use wharf_vocab::{Code, Fault, ProviderId, ToolId, Verb, WorldId};
use wharf_wire::tool_v1::SUBPROTOCOL;

/// Shortest name of a session that a client chooses.
const SESSION_BYTES_MIN: usize = 16;
/// Longest name of a session.
const SESSION_BYTES_MAX: usize = 128;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerQuery {
    pub(crate) role: Role,
    /// The name of a session of server-sent events, if the client chose one.
    pub(crate) session: Option<String>,
    /// The number of the last event that was read.
    pub(crate) after: Option<u64>,
    /// Whether the client said that it knows the additions.
    pub(crate) marked: bool,
}

/// What the peer is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// One who calls.
    Principal {
        /// Where its runs are.
        world: WorldId,
        /// Whether they go on without it.
        detach: bool,
    },
    /// One who executes.
    Operative {
        /// The name it serves under.
        provider: ProviderId,
        /// Tools that it declares without saying more about them.
        tools: Option<Vec<String>>,
    },
}

impl PeerQuery {
    /// Reads a query.
    pub(crate) fn read(query: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let get = |name: &str| query.get(name).map(String::as_str);
        let role = match get("role") {
            Some("principal") => principal(get("world"), get("detach"))?,
            Some("operative") => operative(get("provider"), get("tools"))?,
            Some(_) => return Err(invalid("role", "must be principal or operative")),
            None => {
                return Err(invalid("role", "is missing: say role=principal or role=operative"));
            }
        };
        let session = get("session").map(session).transpose()?;
        let number = |text: &str| text.parse().map_err(|_| invalid("after", "must be a number"));
        let after = get("after").map(number).transpose()?;
        Ok(Self { role, session, after, marked: get("protocol") == Some(SUBPROTOCOL) })
    }
}

fn principal(world: Option<&str>, detach: Option<&str>) -> Result<Role, Fault> {
    let world = WorldId::new(world.unwrap_or("default"))
        .map_err(|_| invalid("world", "is no name of a world"))?;
    let detach = match detach {
        None | Some("false" | "0") => false,
        Some("true" | "1" | "") => true,
        Some(_) => return Err(invalid("detach", "must be true or false")),
    };
    Ok(Role::Principal { world, detach })
}

fn operative(provider: Option<&str>, tools: Option<&str>) -> Result<Role, Fault> {
    let name =
        provider.ok_or_else(|| invalid("provider", "is missing: it is the name to serve"))?;
    let wrong = || invalid("provider", "may have letters, digits, dots, dashes and underscores");
    let provider = ProviderId::new(name).map_err(|_| wrong())?;
    if name.contains('/') {
        return Err(wrong());
    }
    let named = |text: &str| text.split(',').map(|name| name.trim().to_owned()).collect();
    Ok(Role::Operative { provider, tools: tools.map(named) })
}

fn session(text: &str) -> Result<String, Fault> {
    let fits = (SESSION_BYTES_MIN..=SESSION_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let why = "must have 16 to 128 letters, digits, dots, dashes and underscores";
    if fits { Ok(text.to_owned()) } else { Err(invalid("session", why)) }
}

fn invalid(key: &str, why: &str) -> Fault {
    let message = format!("The query's `{key}` {why}.");
    Fault::new(Code::RequestInvalid, message).with("field", key)
}

/// Whether a caller may have this role; what it does in it is checked each time.
pub(crate) fn check(role: &Role, caller: &Caller) -> Result<(), Fault> {
    match role {
        Role::Principal { world, .. } => caller.rights.check(Verb::Run, world),
        Role::Operative { provider, .. } => {
            caller.rights.check_verb(Verb::Serve)?;
            check_name(caller, provider)
        }
    }
}

/// Whether a token's tools leave room for tools of this name, and the name is not the core's.
fn check_name(caller: &Caller, provider: &ProviderId) -> Result<(), Fault> {
    let name = provider.as_str();
    // A name that differs from one of the core's by its capitals only is there to be mistaken.
    if RESERVED_IDS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        let message = format!("{name} is a name of the core itself; serve under another one.");
        return Err(Fault::new(Code::PermissionDenied, message).with("provider", name));
    }
    let probe = ToolId::new(format!("{name}/tool"))
        .map_err(|_| invalid("provider", "is no name of a provider"))?;
    let fits = |pattern: &ToolPattern| {
        let text = pattern.to_string();
        let provider = text.split_once('/').map_or("", |(provider, _)| provider);
        ToolPattern::parse(&format!("{provider}/*")).is_ok_and(|wide| wide.matches(&probe))
    };
    if caller.rights.tools.iter().all(|list| list.iter().any(fits)) {
        return Ok(());
    }
    let message = format!("This token does not let its bearer serve under the name {name}.");
    let fault = Fault::new(Code::PermissionDenied, message).with("provider", name);
    Err(fault.with("permission", format!("tool:invoke:{name}/*")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::grant::Rights;

    fn read(text: &str) -> Result<PeerQuery, Fault> {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        PeerQuery::read(&pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn k032_a_query_says_who_wants_to_do_what() {
        let wanted = read("role=principal").expect("fits");
        let world = WorldId::new("default").expect("valid");
        assert_eq!(wanted.role, Role::Principal { world, detach: false });
        assert!(!wanted.marked);
        let wanted = read("role=operative&provider=browser&tools=a,b&protocol=wharf.tool.v1");
        let wanted = wanted.expect("fits");
        let provider = ProviderId::new("browser").expect("valid");
        let tools = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(wanted.role, Role::Operative { provider, tools });
        assert!(wanted.marked);
    }

    #[test]
    fn k032_what_is_wrong_with_a_query_is_named() {
        for (query, field) in [
            ("", "role"),
            ("role=x", "role"),
            ("role=operative", "provider"),
            ("role=operative&provider=a/b@1", "provider"),
            ("role=operative&provider=", "provider"),
            ("role=principal&world=../x", "world"),
            ("role=principal&detach=maybe", "detach"),
            ("role=principal&session=short", "session"),
            ("role=principal&session=with spaces and so on", "session"),
            ("role=principal&after=x", "after"),
        ] {
            let fault = read(query).expect_err(query);
            assert!(fault.is(Code::RequestInvalid));
            assert_eq!(fault.details["field"], field, "{query}");
        }
    }

    #[test]
    fn k032_a_name_must_be_covered_by_a_tokens_tools() {
        let may = |patterns: &[&str], name: &str| {
            let list = patterns.iter().map(|text| ToolPattern::parse(text).expect("valid"));
            let rights = Rights { tools: vec![list.collect()], ..Rights::all() };
            let caller = Caller::token("t", rights);
            let provider = ProviderId::new(name).expect("valid");
            check(&Role::Operative { provider, tools: None }, &caller).is_ok()
        };
        assert!(may(&["browser/*"], "browser") && may(&["browser/get-*"], "browser"));
        assert!(may(&["*"], "browser") && may(&["b*/x"], "browser"));
        assert!(!may(&["browser/*"], "browsers") && !may(&["x/*", "y/*"], "browser"));
        assert!(!may(&["*"], "wharf") && !may(&["*"], "Wharf"));
        assert!(!may(&["browser/*"], "Browser") && !may(&["browser/*"], "browser.x"));
    }
}
