//! Tokens without a core: whoever bears one can make it narrower.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wharf_domain::grant::{Narrowing, OwnerKey, token};
use wharf_domain::permission::ToolPattern;
use wharf_vocab::{Code, Fault, GrantId, Timestamp, Verb, WorldId};

/// What a narrower token is left with; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrower {
    /// The name of the narrower token among those made from the same one.
    pub name: String,
    /// Only these verbs.
    pub verbs: Option<Vec<Verb>>,
    /// Only these worlds.
    pub worlds: Option<Vec<String>>,
    /// Only tools that one of these patterns fits.
    pub tools: Option<Vec<String>>,
    /// Only for so long from now on.
    pub ttl: Option<Duration>,
}

/// Makes a token narrower. Nothing is asked of a core, and nothing can be added by it.
pub fn narrow(token: &str, by: Narrower) -> Result<String, Fault> {
    let invalid = |message: String| Fault::new(Code::RequestInvalid, message);
    let name = GrantId::new(&by.name).ok().filter(|name| !name.as_str().contains('.'));
    let name = name.ok_or_else(|| invalid(format!("{:?} cannot name a token.", by.name)))?;
    let world = |text: &String| {
        WorldId::new(text).map_err(|error| invalid(format!("{text:?} does not fit; {error}.")))
    };
    let tool = |text: &String| {
        ToolPattern::parse(text).map_err(|error| invalid(format!("The pattern {text:?} {error}.")))
    };
    let worlds = by.worlds.map(|worlds| worlds.iter().map(world).collect()).transpose()?;
    let tools = by.tools.map(|tools| tools.iter().map(tool).collect()).transpose()?;
    let narrowing = Narrowing {
        verbs: by.verbs.map(|verbs| verbs.into_iter().collect()),
        worlds,
        tools,
        until: by.ttl.map(from_now),
    };
    let narrowed = match OwnerKey::fits(token) {
        true => OwnerKey::new(token).narrow(&name, &narrowing),
        false => token::narrow(token, &name, &narrowing),
    };
    let narrowed = narrowed.map_err(|error| invalid(format!("It cannot be narrowed: {error}.")))?;
    Ok(narrowed.expose().to_owned())
}

fn from_now(ttl: Duration) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = now.saturating_add(ttl);
    Timestamp(u64::try_from(until.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_token_or_no_narrowing_is_refused_without_being_repeated() {
        let named = |name: &str| Narrower { name: name.to_owned(), ..Narrower::default() };
        let fault = narrow("c4nary", named("a")).expect_err("no token");
        assert!(fault.is(Code::RequestInvalid) && !fault.message.contains("c4nary"), "{fault}");
        for bad in [
            named("a.b"),
            named(""),
            Narrower { worlds: Some(vec!["../x".to_owned()]), ..named("a") },
            Narrower { tools: Some(vec!["x".to_owned()]), ..named("a") },
        ] {
            assert!(narrow("c4nary", bad).is_err());
        }
    }
}
