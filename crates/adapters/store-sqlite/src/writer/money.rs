//! Accounts and holds of one transaction.
//!
//! Accounts are read once per transaction, changed in memory, and written once at its end, since
//! the account of a busy world is part of nearly every batch. What moves is decided by
//! `wharf_ports::plan`.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};
use wharf_domain::{Account, OpenHold};
use wharf_ports::StoreError;
use wharf_ports::plan::Moves;
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

impl Money {
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

    /// One account, as the transaction left it so far.
    pub(super) fn account(
        &mut self,
        conn: &Connection,
        id: &AccountId,
    ) -> Result<Option<&Account>, Halt> {
        if !self.accounts.contains_key(id) {
            let columns = read_columns(conn, id).map_err(Halt::Group)?;
            let account = columns.map(to_account).transpose()?;
            self.accounts.insert(id.clone(), AccountState { account, changed: false });
        }
        Ok(self.accounts.get(id).and_then(|seen| seen.account.as_ref()))
    }
}

/// One open hold.
pub(super) fn hold(conn: &Connection, id: &HoldId) -> Result<Option<OpenHold>, Halt> {
    let found: Option<(String, i64, i64)> = conn
        .prepare_cached("SELECT account, amount, reported FROM holds WHERE id = ?1")
        .and_then(|mut select| {
            select
                .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })
        .map_err(Halt::Group)?;
    let Some((account, amount, reported)) = found else { return Ok(None) };
    Ok(Some(OpenHold {
        account: account_id(&account)?,
        amount: amount.cast_unsigned(),
        reported: reported.cast_unsigned(),
    }))
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
