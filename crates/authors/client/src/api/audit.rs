//! The audit: the newest records first, or all of them in the order in which they were written.

use serde_json::Value;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_wire::rest_v1::{AuditRecord, Page};

use crate::call::Call;
use crate::client::Client;
use crate::error::Result;

/// Which records to read; `*` at the end of a text stands for whatever follows.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditFilter<'a> {
    /// Only records of this actor, such as `owner` or `g-1*`.
    pub actor: Option<&'a str>,
    /// Only records of this event, such as `run.*`.
    pub event: Option<&'a str>,
    /// Only records about this, such as `run:default/r-1`.
    pub subject: Option<&'a str>,
    /// Only records at or after this time: an RFC 3339 time, or an age such as `7d`.
    pub since: Option<&'a str>,
    /// Only records before this time, written like `since`.
    pub until: Option<&'a str>,
}

impl AuditFilter<'_> {
    fn narrow<T>(&self, call: Call<T>) -> Call<T> {
        call.query("actor", self.actor)
            .query("event", self.event)
            .query("subject", self.subject)
            .query("since", self.since)
            .query("until", self.until)
    }
}

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

    /// Hands every record after number `after` that fits to `take`, page by page and as the core
    /// wrote them.
    pub async fn each_after<E: From<crate::Error>>(
        &self,
        after: u64,
        filter: &AuditFilter<'_>,
        mut take: impl FnMut(Vec<Value>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut cursor = None::<String>;
        loop {
            let call = filter.narrow(self.after(after, PAGE_ITEMS_MAX));
            let page = call.query("cursor", cursor.as_deref()).raw().await?;
            let (items, next) = taken_apart(page);
            take(items)?;
            match next {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The newest `count` records that fit as the core wrote them, oldest first.
    pub async fn newest(&self, count: u32, filter: &AuditFilter<'_>) -> Result<Vec<Value>> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let (mut records, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let limit = (count - records.len()).min(PAGE_ITEMS_MAX).to_string();
            let call = filter.narrow(self.0.read_at::<Value>(&["v1", "audit"]));
            let call = call.query("order", Some("desc")).query("limit", Some(&limit));
            let (items, next) = taken_apart(call.query("cursor", cursor.as_deref()).await?);
            records.extend(items);
            match next {
                // A page may be short, or empty, although there is more.
                Some(next) if records.len() < count => cursor = Some(next),
                _ => break,
            }
        }
        records.truncate(count);
        records.reverse();
        Ok(records)
    }

    /// A record's number.
    #[must_use]
    pub fn number(record: &Value) -> u64 {
        record.get("id").and_then(Value::as_u64).unwrap_or(0)
    }
}

/// The items of a page, and where the next one begins.
fn taken_apart(mut page: Value) -> (Vec<Value>, Option<String>) {
    let next = page.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
    match page.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => (items, next),
        _ => (Vec::new(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Request, Scripted, ScriptedClient as _};
    use serde_json::json;

    fn parameter<'a>(request: &'a Request, key: &str) -> Option<&'a str> {
        let (_, query) = request.line.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    }

    /// Answers like a core whose audit holds these numbers, and that gives out two at a time.
    fn answer(request: &Request, ids: &[u64]) -> Reply {
        let number = |key| parameter(request, key).and_then(|text| text.parse::<u64>().ok());
        let newest_first = parameter(request, "order") == Some("desc");
        let mut ids = ids.to_vec();
        if newest_first {
            ids.reverse();
        }
        let begin = number("cursor").or(number("after"));
        let fits = |id: &u64| {
            begin.is_none_or(|begin| if newest_first { *id < begin } else { *id > begin })
        };
        let fitting: Vec<u64> = ids.into_iter().filter(fits).collect();
        let limit = number("limit").and_then(|limit| usize::try_from(limit).ok()).expect("a limit");
        let shown = &fitting[..fitting.len().min(limit).min(2)];
        let next = (fitting.len() > shown.len()).then(|| shown.last()).flatten();
        let items: Vec<_> = shown.iter().map(|id| json!({"id": id})).collect();
        let next = next.map(ToString::to_string);
        Reply::Json(200, json!({"items": items, "next_cursor": next}))
    }

    async fn newest_of(ids: Vec<u64>, count: u32) -> Vec<u64> {
        let mut scripted = Scripted::new();
        scripted.start(move |request| answer(request, &ids)).await;
        let filter = AuditFilter::default();
        let records = scripted.client().audit().newest(count, &filter).await.expect("read");
        records.iter().map(Audit::number).collect()
    }

    #[tokio::test]
    async fn the_newest_are_given_oldest_first() {
        assert_eq!(newest_of((1..=100).collect(), 3).await, [98, 99, 100]);
        assert_eq!(newest_of(vec![], 3).await, [0_u64; 0]);
        assert_eq!(newest_of(vec![5, 900, 9_000], 2).await, [900, 9_000]);
        assert_eq!(newest_of(vec![5, 900, 9_000], 9).await, [5, 900, 9_000]);
    }

    #[tokio::test]
    async fn what_is_wanted_is_asked_of_the_core() {
        let mut scripted = Scripted::new();
        scripted.start(|request| answer(request, &[4, 5, 6, 7])).await;
        let filter = AuditFilter { event: Some("run.*"), since: Some("7d"), ..Default::default() };
        let (client, mut seen) = (scripted.client(), Vec::new());
        let take = |records: Vec<Value>| {
            seen.extend(records.iter().map(Audit::number));
            Ok::<_, crate::Error>(())
        };
        client.audit().each_after(4, &filter, take).await.expect("read");
        assert_eq!(seen, [5, 6, 7]);
        let lines: Vec<_> = scripted.seen().into_iter().map(|request| request.line).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("event=run.*&since=7d")), "{lines:?}");
    }
}
