//! Accounts, and how long what is left of each lasts.
//!
//! A forecast says nothing but how long what is left lasts at the pace of late. It needs a few runs
//! that cost something: below that, one dear run would look like a pace.

use std::collections::BTreeMap;

use wharf_domain::{Account, Caller};
use wharf_engine::{CostBy, CostKey, CostRequest, Handle, RunQuery};
use wharf_vocab::{AccountId, Fault, GrantId, Micro, Timestamp, WorldId};
use wharf_wire::rest_v1 as wire;

/// Runs of the last week that have to have cost something.
const PAID_MIN: usize = 10;
const DAY_MS: u64 = 86_400_000;
const WEEK_DAYS: u64 = 7;

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
    let mut grants = handle.trust().grants();
    grants.retain(|grant| grant.budget_micro.is_some());
    let paces = Paces::read(handle, caller, !grants.is_empty()).await?;
    let mut accounts = Vec::new();
    for view in worlds {
        let world = &view.world.id;
        let limit = view.world.settings.limit_micro;
        let of_world = Account { limit, ..view.account.clone() };
        let lasts = paces.lasts(handle, world, None, &of_world).await?;
        accounts.push(account(&AccountId::of_world(world), world, &of_world, lasts));
        for grant in grants.iter().filter(|it| it.rights.only_world() == Some(world)) {
            let id = AccountId::of_grant(&grant.id);
            if let Some(found) = handle.worlds().account(id.clone()).await? {
                let lasts = paces.lasts(handle, world, Some(&grant.id), &found).await?;
                accounts.push(account(&id, world, &found, lasts));
            }
        }
    }
    Ok(accounts)
}

fn account(
    id: &AccountId,
    world: &WorldId,
    account: &Account,
    lasts: Option<wire::Lasts>,
) -> wire::Account {
    wire::Account {
        account: id.to_string(),
        parent: account.parent.as_ref().map(ToString::to_string),
        world: world.clone(),
        limit_micro: account.limit,
        spent_micro: account.spent,
        held_micro: account.held,
        over_micro: Some(account.over()).filter(|over| *over > 0),
        lasts,
    }
}

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Pace {
    day: Micro,
    week: Micro,
    /// How many runs of the week there are, whatever they cost.
    runs: u64,
    /// Since ever; only of tokens.
    ever: Micro,
}

/// What was spent, by world and by whoever called for the runs.
#[derive(Debug, Default)]
struct Paces {
    since: Timestamp,
    of: BTreeMap<CostKey, Pace>,
}

impl Paces {
    /// Whoever may not know what all tools have cost together learns nothing about how fast they
    /// are.
    async fn read(handle: &Handle, caller: &Caller, of_tokens: bool) -> Result<Self, Fault> {
        let now = handle.now();
        let ago = |days| Timestamp(now.0.saturating_sub(days * DAY_MS));
        let mut paces = Self { since: ago(WEEK_DAYS), of: BTreeMap::new() };
        if !caller.rights.tools.is_empty() {
            return Ok(paces);
        }
        let rows = async |by, since| {
            let request = CostRequest { since, by, ..CostRequest::default() };
            handle.worlds().costs(caller, request).await.map(|costs| costs.rows)
        };
        for by in [CostBy::World, CostBy::Caller].into_iter().take(if of_tokens { 2 } else { 1 }) {
            for row in rows(by, Some(ago(1))).await? {
                paces.of.entry(row.key).or_default().day = row.sum.cost_micro;
            }
            for row in rows(by, Some(paces.since)).await? {
                let pace = paces.of.entry(row.key).or_default();
                (pace.week, pace.runs) = (row.sum.cost_micro, row.sum.runs);
            }
        }
        if of_tokens {
            for row in rows(CostBy::Caller, None).await? {
                paces.of.entry(row.key).or_default().ever = row.sum.cost_micro;
            }
        }
        Ok(paces)
    }

    /// How long what is left of an account lasts, if enough runs have cost something. Nothing is
    /// said of a token whose account others spend from, too, such as runs that its runs started:
    /// how fast they do is not known.
    async fn lasts(
        &self,
        handle: &Handle,
        world: &WorldId,
        token: Option<&GrantId>,
        account: &Account,
    ) -> Result<Option<wire::Lasts>, Fault> {
        let key = match token {
            Some(grant) => CostKey::Caller(Some(grant.clone())),
            None => CostKey::World(world.clone()),
        };
        let (Some(limit), Some(pace)) = (account.limit, self.of.get(&key)) else { return Ok(None) };
        let others = token.is_some() && pace.ever < account.spent;
        if pace.week == 0 || pace.runs < PAID_MIN as u64 || others {
            return Ok(None);
        }
        let query = RunQuery {
            world: Some(world.clone()),
            caller: token.cloned(),
            paid: true,
            since: Some(self.since),
            limit: PAID_MIN,
            ..RunQuery::default()
        };
        if handle.run_lists().list(query).await?.runs.len() < PAID_MIN {
            return Ok(None);
        }
        let left = limit.saturating_sub(account.spent).saturating_sub(account.held);
        Ok(Some(at_pace(left, *pace)))
    }
}

/// How long this much lasts: at the slower and at the faster of both paces.
fn at_pace(left: Micro, pace: Pace) -> wire::Lasts {
    let ms = |spent: Micro, days: u64| {
        let ms = u128::from(left) * u128::from(days * DAY_MS) / u128::from(spent);
        u64::try_from(ms).unwrap_or(u64::MAX)
    };
    let week = ms(pace.week.max(1), WEEK_DAYS);
    let day = if pace.day == 0 { week } else { ms(pace.day, 1) };
    wire::Lasts { min_ms: week.min(day), max_ms: week.max(day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c017_what_is_left_lasts_between_two_paces() {
        let lasts = |left, day, week| {
            let wire::Lasts { min_ms, max_ms } =
                at_pace(left, Pace { day, week, ..Pace::default() });
            (min_ms / 3_600_000, max_ms / 3_600_000)
        };
        assert_eq!(lasts(1_000, 500, 700), (48, 240), "two days, or ten");
        assert_eq!(lasts(1_000, 50, 700), (240, 480), "the day was a quiet one");
        assert_eq!(lasts(1_000, 0, 700), (240, 240), "nothing was spent today");
        assert_eq!(lasts(0, 500, 700), (0, 0));
        assert_eq!(at_pace(u64::MAX, Pace { day: 1, week: 1, ..Pace::default() }).max_ms, u64::MAX);
    }
}
