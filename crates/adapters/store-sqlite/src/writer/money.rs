//! Accounts and holds of one transaction.
//!
//! Accounts are read once per transaction, changed in memory, and written once at its end, since
//! the account of a busy world is part of nearly every batch. The rules are those of the domain's
//! ledger; a property test compares the two.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension as _, params};
use wharf_domain::{Account, Funds, LedgerOp, OpenHold};
use wharf_ports::{Refusal, StoreError};
use wharf_vocab::limits::PRICES_PER_TOOL_MAX;
use wharf_vocab::{AccountId, Digest, HoldId, Micro, ShardId, ToolId};

use super::apply::Halt;
use crate::error::corrupt;
use crate::number::{clamp, clamp_len};

/// The accounts that a transaction has looked at.
#[derive(Default)]
pub(crate) struct Money {
    accounts: HashMap<AccountId, AccountState>,
}

/// An account, or that there is none.
struct AccountState {
    account: Option<Account>,
    changed: bool,
}

/// The moves of one batch, checked and not yet taken.
#[derive(Default)]
pub(super) struct Moves {
    accounts: BTreeMap<AccountId, Account>,
    /// Holds that are taken, or `None` for those that end.
    holds: BTreeMap<HoldId, Option<OpenHold>>,
    /// Those of them that were there before and belong to the shard that took them.
    grown: BTreeSet<HoldId>,
    /// What tools have cost.
    prices: Vec<(ToolId, Digest, Micro)>,
}

impl Money {
    /// Works out what the moves of a batch change, or which account has too little.
    pub(super) fn check(&mut self, conn: &Connection, ops: &[LedgerOp]) -> Result<Moves, Halt> {
        let mut draft = MovesDraft { money: self, conn, moves: Moves::default() };
        for op in ops {
            draft.apply(op)?;
        }
        Ok(draft.moves)
    }

    /// Makes the moves of a batch part of the transaction.
    pub(super) fn take(
        &mut self,
        conn: &Connection,
        shard: ShardId,
        moves: Moves,
    ) -> rusqlite::Result<()> {
        for (id, account) in moves.accounts {
            self.accounts.insert(id, AccountState { account: Some(account), changed: true });
        }
        for (hold, taken) in moves.holds {
            match taken {
                Some(OpenHold { amount, reported, .. }) if moves.grown.contains(&hold) => conn
                    .prepare_cached("UPDATE holds SET amount = ?2, reported = ?3 WHERE id = ?1")?
                    .execute(params![
                        hold.as_str(),
                        amount.cast_signed(),
                        reported.cast_signed()
                    ])?,
                Some(OpenHold { account, amount, reported }) => conn
                    .prepare_cached(
                        "INSERT OR REPLACE INTO holds (id, shard, account, amount, reported)
                         VALUES (?1, ?2, ?3, ?4, ?5)",
                    )?
                    .execute(params![
                        hold.as_str(),
                        shard.0,
                        account.as_str(),
                        amount.cast_signed(),
                        reported.cast_signed()
                    ])?,
                None => conn
                    .prepare_cached("DELETE FROM holds WHERE id = ?1")?
                    .execute([hold.as_str()])?,
            };
        }
        for (tool, hash, cost) in moves.prices {
            learn(conn, &tool, &hash, cost)?;
        }
        Ok(())
    }

    /// Writes the accounts that have changed.
    pub(super) fn flush(self, conn: &Connection) -> rusqlite::Result<()> {
        let mut write = conn.prepare_cached(
            "INSERT INTO accounts (id, parent, max, held, spent) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET parent = excluded.parent, max = excluded.max,
                 held = excluded.held, spent = excluded.spent",
        )?;
        for (id, seen) in self.accounts {
            if let AccountState { account: Some(account), changed: true } = seen {
                write.execute(params![
                    id.as_str(),
                    account.parent.as_ref().map(AccountId::as_str),
                    account.limit.map(Micro::cast_signed),
                    account.held.cast_signed(),
                    account.spent.cast_signed()
                ])?;
            }
        }
        Ok(())
    }

    fn account(&mut self, conn: &Connection, id: &AccountId) -> Result<Option<&Account>, Halt> {
        if !self.accounts.contains_key(id) {
            let account = read_columns(conn, id)?.map(to_account).transpose()?;
            self.accounts.insert(id.clone(), AccountState { account, changed: false });
        }
        Ok(self.accounts.get(id).and_then(|seen| seen.account.as_ref()))
    }
}

/// The moves of a batch while they are worked out.
struct MovesDraft<'a> {
    money: &'a mut Money,
    conn: &'a Connection,
    moves: Moves,
}

impl MovesDraft<'_> {
    fn apply(&mut self, op: &LedgerOp) -> Result<(), Halt> {
        match op {
            LedgerOp::Open { account: id, parent, limit } => {
                if self.account(id)?.is_none() {
                    let account =
                        Account { parent: parent.clone(), limit: *limit, ..Account::default() };
                    self.moves.accounts.insert(id.clone(), account);
                }
            }
            LedgerOp::SetLimit { account: id, limit } => {
                let account = self.account(id)?.unwrap_or_default();
                self.moves.accounts.insert(id.clone(), Account { limit: *limit, ..account });
            }
            LedgerOp::Admit { account } => {
                let path = self.path(account)?;
                enough(&path, 1)?;
            }
            // The same hold asked for again is the same hold.
            LedgerOp::Hold { hold, .. } if self.hold(hold)?.is_some() => {}
            LedgerOp::Hold { hold, account, amount } => {
                let path = self.path(account)?;
                enough(&path, *amount)?;
                self.change(path, |account| account.held = account.held.saturating_add(*amount));
                let taken = OpenHold { account: account.clone(), amount: *amount, reported: 0 };
                self.moves.holds.insert(hold.clone(), Some(taken));
            }
            LedgerOp::Report { hold, account, cost, beyond } => {
                let known = self.hold(hold)?;
                if known.is_some() && !self.moves.holds.contains_key(hold) {
                    self.moves.grown.insert(hold.clone());
                }
                let new = OpenHold { account: account.clone(), amount: 0, reported: 0 };
                let (grown, more) = known.unwrap_or(new).grown(*cost);
                let path = self.path(&grown.account)?;
                if !beyond {
                    enough(&path, more)?;
                }
                self.change(path, |account| account.held = account.held.saturating_add(more));
                self.moves.holds.insert(hold.clone(), Some(grown));
            }
            LedgerOp::Settle { hold, spent } => self.settle(hold, Some(*spent))?,
            LedgerOp::Release { hold } => self.settle(hold, None)?,
            LedgerOp::Charge { account, spent } => {
                let path = self.path(account)?;
                self.change(path, |account| account.spent = account.spent.saturating_add(*spent));
            }
            LedgerOp::Correct { account, by } => {
                let path = self.path(account)?;
                self.change(path, |account| {
                    account.spent = account.spent.saturating_add_signed(*by);
                });
            }
            LedgerOp::Learn { tool, tool_hash, cost } => {
                self.moves.prices.push((tool.clone(), tool_hash.clone(), *cost));
            }
        }
        Ok(())
    }

    /// Ends a hold; what was spent is what was reported, unless it is known.
    fn settle(&mut self, hold: &HoldId, spent: Option<Micro>) -> Result<(), Halt> {
        if let Some(OpenHold { account, amount, reported }) = self.hold(hold)? {
            let path = self.path(&account)?;
            self.change(path, |account| {
                account.held = account.held.saturating_sub(amount);
                account.spent = account.spent.saturating_add(spent.unwrap_or(reported));
            });
            self.moves.grown.remove(hold);
            self.moves.holds.insert(hold.clone(), None);
        }
        Ok(())
    }

    fn account(&mut self, id: &AccountId) -> Result<Option<Account>, Halt> {
        if let Some(account) = self.moves.accounts.get(id) {
            return Ok(Some(account.clone()));
        }
        Ok(self.money.account(self.conn, id)?.cloned())
    }

    /// The account and all above it. An account that nobody opened has no limit and no parent; a
    /// circle of parents is walked once.
    fn path(&mut self, id: &AccountId) -> Result<Vec<(AccountId, Account)>, Halt> {
        let mut path: Vec<(AccountId, Account)> = Vec::new();
        let mut next = Some(id.clone());
        while let Some(id) = next.filter(|id| path.iter().all(|(below, _)| below != id)) {
            let account = self.account(&id)?.unwrap_or_default();
            next = account.parent.clone();
            path.push((id, account));
        }
        Ok(path)
    }

    fn change(&mut self, path: Vec<(AccountId, Account)>, mut change: impl FnMut(&mut Account)) {
        for (id, mut account) in path {
            change(&mut account);
            self.moves.accounts.insert(id, account);
        }
    }

    fn hold(&self, id: &HoldId) -> Result<Option<OpenHold>, Halt> {
        if let Some(hold) = self.moves.holds.get(id) {
            return Ok(hold.clone());
        }
        let found: Option<(String, i64, i64)> = self
            .conn
            .prepare_cached("SELECT account, amount, reported FROM holds WHERE id = ?1")?
            .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((account, amount, reported)) = found else { return Ok(None) };
        Ok(Some(OpenHold {
            account: account_id(&account)?,
            amount: amount.cast_unsigned(),
            reported: reported.cast_unsigned(),
        }))
    }
}

/// Whether every account of a path has so much; the first that has not is told.
fn enough(path: &[(AccountId, Account)], amount: Micro) -> Result<(), Halt> {
    for (id, account) in path {
        if let Some(missing) = account.missing(amount) {
            return Err(Refusal::Funds(Funds { account: id.clone(), missing }).into());
        }
    }
    Ok(())
}

/// Remembers what a definition of a tool has cost, and forgets the oldest of too many.
fn learn(conn: &Connection, tool: &ToolId, hash: &Digest, cost: Micro) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO prices (tool, hash, cost) VALUES (?1, ?2, ?3)
         ON CONFLICT (tool, hash) DO UPDATE SET cost = max(cost, excluded.cost)",
    )?
    .execute(params![tool.as_str(), hash.as_str(), clamp(cost)])?;
    conn.prepare_cached(
        "DELETE FROM prices WHERE tool = ?1 AND id NOT IN
             (SELECT id FROM prices WHERE tool = ?1 ORDER BY id DESC LIMIT ?2)",
    )?
    .execute(params![tool.as_str(), clamp_len(PRICES_PER_TOOL_MAX)])?;
    Ok(())
}

/// An account as its columns hold it: parent, limit, held, spent.
type Columns = (Option<String>, Option<i64>, i64, i64);

/// One account's columns.
pub(crate) fn read_columns(conn: &Connection, id: &AccountId) -> rusqlite::Result<Option<Columns>> {
    conn.prepare_cached("SELECT parent, max, held, spent FROM accounts WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()
}

/// The account that columns hold.
pub(crate) fn to_account((parent, limit, held, spent): Columns) -> Result<Account, StoreError> {
    Ok(Account {
        parent: parent.as_deref().map(account_id).transpose()?,
        limit: limit.map(i64::cast_unsigned),
        held: held.cast_unsigned(),
        spent: spent.cast_unsigned(),
    })
}

fn account_id(text: &str) -> Result<AccountId, StoreError> {
    AccountId::new(text).map_err(|error| corrupt(format!("a stored account is damaged: {error}")))
}
