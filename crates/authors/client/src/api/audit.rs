//! The audit, which the core gives out only forward from a record's number.

use serde_json::Value;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_wire::rest_v1::{AuditRecord, Page};

use crate::call::Call;
use crate::client::Client;
use crate::error::Result;

/// The audit, as [`Client::audit`] gives it.
#[derive(Debug, Clone, Copy)]
pub struct Audit<'a>(pub(super) &'a Client);

impl Audit<'_> {
    /// At most so many records after number `after`.
    pub fn after(&self, after: u64, limit: usize) -> Call<Page<AuditRecord>> {
        let (after, limit) = (after.to_string(), limit.min(PAGE_ITEMS_MAX).to_string());
        let call = self.0.read_at(&["v1", "audit"]);
        call.query("after", Some(&after)).query("limit", Some(&limit))
    }

    /// The records after number `after` as the core wrote them, and whether there are more.
    pub async fn records(&self, after: u64, limit: usize) -> Result<(Vec<Value>, bool)> {
        let page = self.after(after, limit).raw().await?;
        let items = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let more = page.get("next_cursor").is_some_and(|next| !next.is_null());
        Ok((items.clone(), more && !items.is_empty()))
    }

    /// The newest `count` records as the core wrote them, oldest first.
    ///
    /// Records are given out only forward, so the end is searched for by halves: a few dozen
    /// small requests instead of reading the whole audit.
    pub async fn newest(&self, count: u32) -> Result<Vec<Value>> {
        let mut back = u64::from(count);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let end = self.last_number().await?;
        loop {
            let from = end.saturating_sub(back);
            let mut records = Vec::new();
            let mut at = from;
            loop {
                let (items, more) = self.records(at, PAGE_ITEMS_MAX).await?;
                at = items.last().map_or(at, Self::number);
                records.extend(items);
                if !more {
                    break;
                }
            }
            // Numbers may have gaps, and then the search goes further back.
            if records.len() >= count || from == 0 {
                let surplus = records.len().saturating_sub(count);
                return Ok(records.split_off(surplus));
            }
            back = back.saturating_mul(4);
        }
    }

    /// A record's number.
    #[must_use]
    pub fn number(record: &Value) -> u64 {
        record.get("id").and_then(Value::as_u64).unwrap_or(0)
    }

    /// The number of the newest record; 0 if there is none.
    async fn last_number(&self) -> Result<u64> {
        let (mut known, mut beyond) = (0, 1);
        while let Some(found) = self.first_after(beyond - 1).await? {
            known = found;
            beyond = found.saturating_mul(2).saturating_add(1);
        }
        // There is a record at `known` and none from `beyond` on.
        while beyond - known > 1 {
            let middle = known + (beyond - known) / 2;
            match self.first_after(middle - 1).await? {
                Some(found) if found < beyond => known = found,
                // A record that was written since then lies beyond; reading finds it.
                _ => beyond = middle,
            }
        }
        Ok(known)
    }

    async fn first_after(&self, number: u64) -> Result<Option<u64>> {
        Ok(self.records(number, 1).await?.0.first().map(Self::number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Request, Scripted, ScriptedClient as _};
    use serde_json::json;

    /// Answers like a core whose audit holds these numbers.
    fn answer(request: &Request, ids: &[u64]) -> Reply {
        let number = |key: &str| -> u64 {
            let (_, query) = request.line.split_once('?').expect("a query");
            let pair = query.split('&').find_map(|pair| pair.strip_prefix(key));
            pair.expect("the parameter").parse().expect("a number")
        };
        let (after, limit) = (number("after="), number("limit="));
        let limit = usize::try_from(limit).expect("small");
        let fitting: Vec<_> = ids.iter().filter(|id| **id > after).collect();
        let items: Vec<_> = fitting.iter().take(limit).map(|id| json!({"id": id})).collect();
        let next = (fitting.len() > limit).then_some("more");
        Reply::Json(200, json!({"items": items, "next_cursor": next}))
    }

    async fn newest_of(ids: Vec<u64>, count: u32) -> (Vec<u64>, usize) {
        let mut scripted = Scripted::new();
        scripted.start(move |request| answer(request, &ids)).await;
        let records = scripted.client().audit().newest(count).await.expect("read");
        (records.iter().map(Audit::number).collect(), scripted.seen().len())
    }

    #[tokio::test]
    async fn the_end_is_found_in_few_requests() {
        let (ids, requests) = newest_of((1..=100_000).collect(), 3).await;
        assert_eq!(ids, [99_998, 99_999, 100_000]);
        assert!(requests < 50, "{requests} requests");
    }

    #[tokio::test]
    async fn holes_and_short_audits_give_what_there_is() {
        assert_eq!(newest_of(vec![], 3).await.0, [0_u64; 0]);
        assert_eq!(newest_of(vec![1], 3).await.0, [1]);
        assert_eq!(newest_of(vec![5, 900, 9_000], 2).await.0, [900, 9_000]);
        assert_eq!(newest_of(vec![5, 900, 9_000], 9).await.0, [5, 900, 9_000]);
        let many: Vec<u64> = (1..=450).collect();
        assert_eq!(newest_of(many.clone(), 1_000).await.0, many);
    }
}
