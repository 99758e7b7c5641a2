//! Reads the audit, which is only given out forward from a record's number.

use serde_json::Value;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_wire::rest_v1::Page;

use crate::client::Client;
use crate::failure::Result;

/// The records after number `after`, and whether there are more.
pub(super) async fn after(client: &Client, after: u64, limit: usize) -> Result<(Vec<Value>, bool)> {
    let (after, limit) = (after.to_string(), limit.min(PAGE_ITEMS_MAX).to_string());
    let query = [("after", Some(after.as_str())), ("limit", Some(limit.as_str()))];
    let page: Page<Value> = client.get(&["v1", "audit"], &query).await?;
    let more = page.next_cursor.is_some() && !page.items.is_empty();
    Ok((page.items, more))
}

/// A record's number.
pub(super) fn id(record: &Value) -> u64 {
    record.get("id").and_then(Value::as_u64).unwrap_or(0)
}

/// The newest `count` records, oldest first.
///
/// Records are only given out forward, so the end is searched for by halves: a few dozen small
/// requests instead of reading the whole audit.
pub(super) async fn newest(client: &Client, count: u32) -> Result<Vec<Value>> {
    let mut back = u64::from(count);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let end = last_id(client).await?;
    loop {
        let from = end.saturating_sub(back);
        let mut records = Vec::new();
        let mut at = from;
        loop {
            let (items, more) = after(client, at, PAGE_ITEMS_MAX).await?;
            at = items.last().map_or(at, id);
            records.extend(items);
            if !more {
                break;
            }
        }
        // Numbers may have holes, so that further back must be looked.
        if records.len() >= count || from == 0 {
            let surplus = records.len().saturating_sub(count);
            return Ok(records.split_off(surplus));
        }
        back = back.saturating_mul(4);
    }
}

/// The number of the newest record; 0 if there is none.
async fn last_id(client: &Client) -> Result<u64> {
    let (mut known, mut beyond) = (0, 1);
    while let Some(found) = first_after(client, beyond - 1).await? {
        known = found;
        beyond = found.saturating_mul(2).saturating_add(1);
    }
    // There is a record at `known` and none from `beyond` on.
    while beyond - known > 1 {
        let middle = known + (beyond - known) / 2;
        match first_after(client, middle - 1).await? {
            Some(found) if found < beyond => known = found,
            // A record that has come up since then lies beyond; it is found by the reading.
            _ => beyond = middle,
        }
    }
    Ok(known)
}

async fn first_after(client: &Client, number: u64) -> Result<Option<u64>> {
    Ok(after(client, number, 1).await?.0.first().map(id))
}
