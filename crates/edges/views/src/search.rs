//! Accounts, and looking for anything by a few letters.

use wharf_domain::{Account, Caller};
use wharf_engine::{Handle, RunQuery};
use wharf_vocab::{AccountId, Fault, Verb, WorldId};
use wharf_wire::rest_v1 as wire;

use crate::{listed, runs_within, tool};

/// Things of each kind that a search shows.
const FOUND_MAX: usize = 10;
/// Longest text that is looked for.
const TEXT_CHARS_MAX: usize = 200;

/// The accounts of worlds that a caller may read, each followed by those of the tokens with a
/// budget in it.
pub async fn accounts(
    handle: &Handle,
    caller: &Caller,
    world: Option<&WorldId>,
) -> Result<Vec<wire::Account>, Fault> {
    let mut worlds = handle.worlds().list().await?;
    worlds.retain(|view| {
        caller.rights.in_world(&view.world.id) && world.is_none_or(|world| view.world.id == *world)
    });
    worlds.sort_by(|a, b| a.world.id.cmp(&b.world.id));
    let grants = handle.trust().grants();
    let mut accounts = Vec::new();
    for view in worlds {
        let id = AccountId::of_world(&view.world.id);
        let limit = view.world.settings.limit_micro;
        accounts.push(account(&id, &view.world.id, &Account { limit, ..view.account.clone() }));
        for grant in grants.iter().filter(|grant| grant.budget_micro.is_some()) {
            if grant.rights.only_world() == Some(&view.world.id) {
                let id = AccountId::of_grant(&grant.id);
                let found = handle.worlds().account(id.clone()).await?;
                accounts.extend(found.map(|found| account(&id, &view.world.id, &found)));
            }
        }
    }
    Ok(accounts)
}

fn account(id: &AccountId, world: &WorldId, account: &Account) -> wire::Account {
    wire::Account {
        account: id.to_string(),
        parent: account.parent.as_ref().map(ToString::to_string),
        world: world.clone(),
        limit_micro: account.limit,
        spent_micro: account.spent,
        held_micro: account.held,
        over_micro: Some(account.over()).filter(|over| *over > 0),
    }
}

/// What a few letters fit, within a caller's rights: runs by how their id begins, all else by what
/// its id contains. `providers` are those there are, with what each is.
pub async fn search(
    handle: &Handle,
    caller: &Caller,
    text: &str,
    providers: impl IntoIterator<Item = (wharf_vocab::ProviderId, String)>,
) -> Result<wire::Search, Fault> {
    if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
        let message = format!("The field `q` must have 1 to {TEXT_CHARS_MAX} characters.");
        return Err(Fault::invalid("q", message));
    }
    caller.rights.check_verb(Verb::Read)?;
    let lower = text.to_lowercase();
    let fits = |it: &str| it.to_lowercase().contains(&lower);
    let query =
        RunQuery { id_prefix: Some(text.to_owned()), limit: FOUND_MAX, ..RunQuery::default() };
    let own: Option<Vec<WorldId>> =
        caller.rights.worlds.as_ref().map(|worlds| worlds.iter().cloned().collect());
    let (runs, _) = runs_within(handle, query, (own.as_deref(), &caller.rights)).await?;
    let mut tools = handle.providers().tools();
    tools.retain(|it| !it.def.hidden && (fits(it.def.tool.as_str()) || fits(&it.def.description)));
    // Those whose name fits come first.
    tools.sort_by_key(|it| (!fits(it.def.tool.as_str()), it.def.tool.to_string()));
    let mut worlds = handle.worlds().list().await?;
    worlds.retain(|it| caller.rights.in_world(&it.world.id) && fits(it.world.id.as_str()));
    let providers = providers.into_iter().filter(|(id, _)| fits(id.as_str()));
    Ok(wire::Search {
        runs: runs.iter().map(|run| listed(handle, run)).collect(),
        tools: tools
            .iter()
            .take(FOUND_MAX)
            .map(|it| wire::FoundTool {
                tool_id: it.def.tool.clone(),
                description: it.def.description.clone(),
                state: tool(it).state,
            })
            .collect(),
        providers: providers
            .take(FOUND_MAX)
            .map(|(provider_id, kind)| wire::FoundProvider { provider_id, kind })
            .collect(),
        worlds: worlds
            .into_iter()
            .take(FOUND_MAX)
            .map(|it| wire::FoundWorld { world: it.world.id })
            .collect(),
    })
}
