//! What is locked and read before a group is decided, when it cannot be decided from memory.
//!
//! Locks are taken kind by kind and each kind in order, so that groups that meet wait for each
//! other and never in a circle.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;
use wharf_domain::{Account, LedgerOp, OpenHold};
use wharf_ports::plan::{Prepared, PreparedAppend, StreamPlace};
use wharf_ports::{Require, StoreError};
use wharf_vocab::{AccountId, HoldId, ShardId, StreamId};

use super::binding::{BoundStatement, Value, shard_number};
use super::known::{FileState, Known, ShardState, StreamState};
use super::statements::Statements;
use crate::error::{corrupt, from_postgres};
use crate::number::{Whole, from_text, to_text};

/// What a row of a kind adds to what is known.
type Learn = fn(&mut Known, &Row) -> Result<(), StoreError>;

/// Statements that lock and read, and what to do with their rows.
pub(super) struct Reads(pub(super) Vec<(BoundStatement, Learn)>);

impl Reads {
    pub(super) fn of(statements: &Statements, group: &[&Prepared]) -> Self {
        let mut reads: Vec<(BoundStatement, Learn)> = Vec::new();
        let shards: BTreeSet<i16> = group.iter().map(|it| shard_number(it.shard)).collect();
        let shards: Vec<i16> = shards.into_iter().collect();
        reads.push((
            BoundStatement::new(&statements.lock_shards, vec![Box::new(shards)]),
            learn_shard,
        ));
        let appends = || group.iter().flat_map(|batch| &batch.appends);
        if appends().next().is_some() {
            let step = BoundStatement::new(&statements.read_streams, stream_names(appends()));
            reads.push((step, learn_stream));
        }
        let replacing = || appends().filter(|append| append.replaces);
        if replacing().next().is_some() {
            let step = BoundStatement::new(&statements.read_rows, stream_names(replacing()));
            reads.push((step, learn_row));
        }
        let claims: BTreeSet<(&str, &str)> = group
            .iter()
            .flat_map(|batch| &batch.claims)
            .map(|claim| (claim.scope.as_str(), claim.key.as_str()))
            .collect();
        if !claims.is_empty() {
            let text = |text: &str| to_text(text).into_owned();
            let scopes: Vec<String> = claims.iter().map(|(scope, _)| text(scope)).collect();
            let keys: Vec<String> = claims.iter().map(|(_, key)| text(key)).collect();
            let values: Vec<Value> = vec![Box::new(scopes), Box::new(keys)];
            reads.push((BoundStatement::new(&statements.read_claims, values), learn_claim));
        }
        let named = NamedMoney::of(group);
        if !named.holds.is_empty() {
            let step =
                BoundStatement::new(&statements.lock_holds, vec![Box::new(named.holds.clone())]);
            reads.push((step, learn_hold));
        }
        if !named.is_empty() {
            let values: Vec<Value> = vec![Box::new(named.accounts), Box::new(named.holds)];
            reads.push((BoundStatement::new(&statements.lock_accounts, values), learn_account));
        }
        let files = NamedFiles::of(group);
        if !files.0.is_empty() {
            reads
                .push((BoundStatement::new(&statements.lock_files, files.values()), learn_nothing));
            reads.push((BoundStatement::new(&statements.read_files, files.values()), learn_file));
        }
        Self(reads)
    }
}

fn stream_names<'a>(appends: impl Iterator<Item = &'a PreparedAppend>) -> Vec<Value> {
    let names: BTreeSet<(i16, &str, &str)> = appends
        .map(|it| (shard_number(it.stream.shard()), it.stream.kind().as_str(), it.key.as_str()))
        .collect();
    vec![
        Box::new(names.iter().map(|name| name.0).collect::<Vec<_>>()),
        Box::new(names.iter().map(|name| name.1.to_owned()).collect::<Vec<_>>()),
        Box::new(names.iter().map(|name| name.2.to_owned()).collect::<Vec<_>>()),
    ]
}

/// Accounts and holds that a group's moves name.
#[derive(Default)]
struct NamedMoney {
    accounts: Vec<String>,
    holds: Vec<String>,
}

impl NamedMoney {
    fn of(group: &[&Prepared]) -> Self {
        let (mut accounts, mut holds) = (BTreeSet::new(), BTreeSet::new());
        for op in group.iter().flat_map(|batch| &batch.ledger) {
            match op {
                LedgerOp::Open { account, parent, .. } => {
                    accounts.insert(account);
                    accounts.extend(parent);
                }
                LedgerOp::SetLimit { account, .. }
                | LedgerOp::Admit { account }
                | LedgerOp::Charge { account, .. }
                | LedgerOp::Correct { account, .. } => drop(accounts.insert(account)),
                LedgerOp::Hold { hold, account, .. } | LedgerOp::Report { hold, account, .. } => {
                    accounts.insert(account);
                    holds.insert(hold);
                }
                LedgerOp::Settle { hold, .. } | LedgerOp::Release { hold } => {
                    holds.insert(hold);
                }
                LedgerOp::Learn { .. } => {}
            }
        }
        Self {
            accounts: accounts.into_iter().map(|id| id.as_str().to_owned()).collect(),
            holds: holds.into_iter().map(|id| id.as_str().to_owned()).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.holds.is_empty()
    }
}

/// Files that a group's batches require something of, in order, and whether nobody else may use
/// them meanwhile.
struct NamedFiles(BTreeMap<(String, String), bool>);

impl NamedFiles {
    fn of(group: &[&Prepared]) -> Self {
        let mut files = BTreeMap::new();
        for require in group.iter().flat_map(|batch| &batch.requires) {
            let (world, path) = require.file();
            let alone = files.entry((world.to_string(), path.to_string())).or_default();
            *alone |= matches!(require, Require::FileFree { .. });
        }
        Self(files)
    }

    fn values(&self) -> Vec<Value> {
        vec![
            Box::new(self.0.keys().map(|(world, _)| world.clone()).collect::<Vec<_>>()),
            Box::new(self.0.keys().map(|(_, path)| path.clone()).collect::<Vec<_>>()),
            Box::new(self.0.values().copied().collect::<Vec<_>>()),
        ]
    }
}

fn learn_nothing(_: &mut Known, _: &Row) -> Result<(), StoreError> {
    Ok(())
}

fn learn_file(known: &mut Known, row: &Row) -> Result<(), StoreError> {
    let (world, path) =
        (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
    let runs: Option<Vec<String>> = row.try_get(3).map_err(from_postgres)?;
    let state = FileState {
        here: row.try_get(2).map_err(from_postgres)?,
        used_by: runs.map(|runs| runs.into_iter().collect()),
    };
    known.files.insert((world, path), state);
    Ok(())
}

pub(super) fn learn_shard(known: &mut Known, row: &Row) -> Result<(), StoreError> {
    let number = |at: usize| -> Result<u64, StoreError> {
        Ok(row.try_get::<_, i64>(at).map_err(from_postgres)?.cast_unsigned())
    };
    let shard: i16 = row.try_get(0).map_err(from_postgres)?;
    let mac: &[u8] = row.try_get(5).map_err(from_postgres)?;
    let state = ShardState {
        epoch: number(1)?,
        commit_no: number(2)?,
        streams_made: number(3)?,
        audit_n: number(4)?,
        audit_mac: mac.try_into().map_err(|_| corrupt("the head of a chain is damaged"))?,
    };
    known.shards.insert(ShardId(u8::try_from(shard).unwrap_or(u8::MAX)), state);
    Ok(())
}

fn stream_of(row: &Row) -> Result<StreamId, StoreError> {
    let (kind, key): (&str, &str) =
        (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
    StreamId::parse(kind, key)
        .map_err(|error| corrupt(format!("the stream {key:?} has a damaged name: {error}")))
}

fn learn_stream(known: &mut Known, row: &Row) -> Result<(), StoreError> {
    let stream = stream_of(row)?;
    let seq: i64 = row.try_get(3).map_err(from_postgres)?;
    let place =
        StreamPlace { id: row.try_get(2).map_err(from_postgres)?, seq: seq.cast_unsigned() };
    let summary: Option<String> = row.try_get(4).map_err(from_postgres)?;
    if let Some(summary) = summary {
        known.summaries.insert(stream.clone(), summary);
    }
    let open = row.try_get(5).map_err(from_postgres)?;
    known.streams.insert(stream, StreamState { place, open });
    Ok(())
}

fn learn_row(known: &mut Known, row: &Row) -> Result<(), StoreError> {
    let rows = known.rows.entry(stream_of(row)?).or_default();
    rows.push((row.try_get(2).map_err(from_postgres)?, row.try_get(3).map_err(from_postgres)?));
    Ok(())
}

fn learn_claim(known: &mut Known, row: &Row) -> Result<(), StoreError> {
    let text = |at: usize| -> Result<String, StoreError> {
        Ok(from_text(row.try_get(at).map_err(from_postgres)?))
    };
    known.claims.insert((text(0)?, text(1)?), text(2)?);
    Ok(())
}

fn learn_hold(known: &mut Known, row: &Row) -> Result<(), StoreError> {
    let (id, account): (&str, &str) =
        (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
    let amount: Whole = row.try_get(2).map_err(from_postgres)?;
    let reported: Whole = row.try_get(3).map_err(from_postgres)?;
    let hold = OpenHold {
        account: account_id(account)?,
        amount: amount.saturated(),
        reported: reported.saturated(),
    };
    let id =
        HoldId::new(id).map_err(|error| corrupt(format!("a stored hold is damaged: {error}")))?;
    known.holds.insert(id, hold);
    Ok(())
}

fn learn_account(known: &mut Known, row: &Row) -> Result<(), StoreError> {
    let id: &str = row.try_get(0).map_err(from_postgres)?;
    known.accounts.insert(account_id(id)?, to_account(row)?);
    Ok(())
}

/// The account in a row that begins with its id.
pub(crate) fn to_account(row: &Row) -> Result<Account, StoreError> {
    let parent: Option<&str> = row.try_get(1).map_err(from_postgres)?;
    let limit: Option<Whole> = row.try_get(2).map_err(from_postgres)?;
    let (held, spent): (Whole, Whole) =
        (row.try_get(3).map_err(from_postgres)?, row.try_get(4).map_err(from_postgres)?);
    Ok(Account {
        parent: parent.map(account_id).transpose()?,
        limit: limit.map(Whole::saturated),
        held: held.saturated(),
        spent: spent.saturated(),
    })
}

fn account_id(text: &str) -> Result<AccountId, StoreError> {
    AccountId::new(text).map_err(|error| corrupt(format!("a stored account is damaged: {error}")))
}
