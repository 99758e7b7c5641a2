//! How a core fares, in lines for people.

use wharf_vocab::{ProviderState, Verdict};
use wharf_wire::rest_v1::Purge;

use super::{
    Asks, Disk, IllProvider, Money, ProviderCounts, RunCounts, StatusReport, TokenRights, used,
};
use crate::commands::{Output, Table};
use crate::{amount, moment, plain, table};

/// Tools that are named when some are quarantined.
const NAMED_MAX: usize = 3;

/// The whole status.
pub(super) fn text_of(status: &StatusReport, output: Output) -> String {
    let paint = output.out_paint();
    let mut table = Table::bare(output).keep_whole(&[0]).uncut(&[1]);
    let uptime = status.uptime_ms.map(|ms| format!(", up {}", moment::length_of(ms)));
    let core = format!("{}, version {}", status.url, status.version);
    table.row(["core", &format!("{core}{}", uptime.unwrap_or_default())]);
    table.facts([
        ("token", status.token.as_ref().map(token)),
        ("runs", status.runs.as_ref().map(runs)),
        ("purges", status.purges.as_deref().and_then(purges)),
        ("asks", status.asks.as_ref().map(asks)),
        ("providers", status.providers.as_ref().map(providers)),
    ]);
    for ill in status.providers.iter().flat_map(|providers| &providers.ill) {
        table.row(["", &provider(ill)]);
    }
    table.facts([
        ("money", status.money.as_ref().map(money)),
        ("disk", status.disk.as_ref().and_then(disk)),
    ]);
    for finding in &status.findings {
        let what = if finding.verdict == Verdict::Fail { "fails" } else { "warning" };
        table.row([&finding.name, &format!("{what}: {}", finding.text)]);
    }
    if !status.not_shown.is_empty() {
        let left_out = format!("{}: this token may not see that", status.not_shown.join(", "));
        table.row(["left out", &left_out]);
    }
    let verdict = match status.well {
        true => paint.good("all is well"),
        false => paint.bad("not all is well"),
    };
    format!("{}{verdict}\n", table.text())
}

fn token(token: &TokenRights) -> String {
    let says_more = |label: &&str| !label.is_empty() && *label != token.token_id.as_str();
    let label = token.label.as_deref().filter(says_more);
    let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
    let verbs: Vec<_> = token.verbs.iter().map(|verb| verb.as_str()).collect();
    let worlds =
        token.worlds.as_ref().map_or("all worlds".to_owned(), |it| table::joined(it, ", "));
    let tools = token.tools.as_ref().map_or("all tools".to_owned(), |it| it.join(", "));
    let ends = token.expires_at.map(|at| format!("; it ends {}", moment::relative_to_now(at)));
    let person = if token.person { ", a person's own" } else { "" };
    format!(
        "{}{label}{person}: may {} in {worlds} with {tools}{}",
        token.token_id,
        verbs.join(", "),
        ends.unwrap_or_default()
    )
}

fn runs(runs: &RunCounts) -> String {
    let parts = [(runs.running, "running"), (runs.waiting, "waiting"), (runs.queued, "queued")];
    let some = parts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = some.map(|(count, word)| format!("{count} {word}")).collect();
    let open = if words.is_empty() { "none open".to_owned() } else { words.join(", ") };
    match runs.failed_24h {
        0 => open,
        failed => {
            format!("{open}; {failed} failed in 24 hours: wharf runs --status failed --since 24h")
        }
    }
}

/// Orders to remove runs that are under way; nothing if there are none.
fn purges(orders: &[Purge]) -> Option<String> {
    let count = orders.len();
    let removed: u64 = orders.iter().map(|order| order.purged).sum();
    let left: u64 = orders.iter().filter_map(|order| order.left).sum();
    let are = if count == 1 { "order is" } else { "orders are" };
    (count > 0).then(|| {
        format!("{count} {are} removing runs, {removed} gone, {left} left: wharf runs purge --list")
    })
}

fn asks(asks: &Asks) -> String {
    let Some(oldest) = asks.oldest_at else { return "none".to_owned() };
    let count = if asks.more { format!("more than {}", asks.open) } else { asks.open.to_string() };
    let waits = if asks.open == 1 { "waits" } else { "wait" };
    format!("{count} {waits}, the oldest from {}: wharf inbox", moment::relative_to_now(oldest))
}

fn providers(providers: &ProviderCounts) -> String {
    let ill = match providers.ill.len() {
        0 => "none is ill".to_owned(),
        1 => "1 is ill".to_owned(),
        ill => format!("{ill} are ill"),
    };
    let mut text = format!("{} known, {ill}", providers.known);
    let changed = &providers.quarantined_tools;
    if !changed.is_empty() {
        let mut names: Vec<&str> = changed.iter().take(NAMED_MAX).map(String::as_str).collect();
        if changed.len() > NAMED_MAX {
            names.push("…");
        }
        text.push_str(&format!("; changed tools ({}): wharf tools diff", names.join(", ")));
    }
    text
}

fn provider(ill: &IllProvider) -> String {
    let state = ill.state.as_str().replace('_', " ");
    let reason = ill.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let see = match ill.kind.as_str() {
        "agent" if is_drifted(ill) => format!(" (wharf agents show {})", ill.provider_id),
        "tool_server" if is_drifted(ill) => format!(" (wharf tools show {})", ill.provider_id),
        "mcp_server" if is_drifted(ill) => format!(" (wharf mcp show {})", ill.provider_id),
        "agent" => format!(" (wharf agents logs {})", ill.provider_id),
        "tool_server" => format!(" (wharf tools logs {})", ill.provider_id),
        "mcp_server" => format!(" (wharf mcp logs {})", ill.provider_id),
        _ => String::new(),
    };
    plain::line(&format!("{} is {state}{}{see}", ill.provider_id, reason.trim_end_matches('.')))
}

/// Whether it ended because of its files, of which its log says nothing.
fn is_drifted(ill: &IllProvider) -> bool {
    ill.state == ProviderState::Drifted
}

fn money(money: &Money) -> String {
    let mut text = format!("{} today", amount::dollars(money.today_micro));
    for account in &money.nearly_used {
        let (limit, used) = (account.limit_micro.unwrap_or(0), used(account).unwrap_or(0));
        let limit = amount::dollars(limit);
        text.push_str(&format!("; {} has used {used}% of {limit}", account.account));
    }
    text
}

fn disk(disk: &Disk) -> Option<String> {
    let database =
        disk.database_bytes.map(|size| format!("; the database has {}", amount::about(size)));
    let (free, total) = (amount::about(disk.free_bytes?), amount::about(disk.total_bytes?));
    Some(format!("{free} free of {total}{}", database.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::status::{ProviderCounts, StatusFinding};
    use serde_json::json;
    use wharf_vocab::ProviderState;

    fn order(purged: u64, left: u64) -> Purge {
        let order = json!({"purge_id": "1", "state": "running", "worlds": ["lab"], "status": [],
            "until": "2026-01-01T00:00:00Z", "ordered_at": "2026-01-02T00:00:00Z",
            "ordered_by": "owner", "purged": purged, "kept": 0, "left": left});
        serde_json::from_value(order).expect("an order")
    }

    #[test]
    fn orders_to_remove_runs_are_shown_while_there_are_some() {
        assert_eq!(purges(&[]), None);
        let one = "1 order is removing runs, 3 gone, 9 left: wharf runs purge --list";
        assert_eq!(purges(&[order(3, 9)]).as_deref(), Some(one));
        let two = purges(&[order(3, 9), order(1, 1)]).expect("two");
        assert!(two.starts_with("2 orders are removing runs, 4 gone, 10 left"), "{two}");
    }

    #[test]
    fn whatever_needs_somebody_names_a_command() {
        let crashed = IllProvider {
            provider_id: "dev.example.crash".into(),
            kind: "agent".into(),
            state: ProviderState::BackingOff,
            reason: Some("exit code 1: no model found.".into()),
        };
        let changed = vec!["a/b".to_owned()];
        let status = StatusReport {
            url: "http://127.0.0.1:7420".into(),
            runs: Some(RunCounts { running: 2, failed_24h: 3, ..RunCounts::default() }),
            asks: Some(Asks { open: 0, more: false, oldest_at: None }),
            providers: Some(ProviderCounts {
                known: 4,
                ill: vec![crashed],
                quarantined_tools: changed,
            }),
            findings: vec![StatusFinding {
                name: "disk space".into(),
                verdict: Verdict::Warn,
                text: "little is left".into(),
            }],
            not_shown: vec!["money"],
            ..StatusReport::default()
        };
        let text = text_of(&status, Output::new(false));
        for part in [
            "2 running; 3 failed in 24 hours: wharf runs --status failed --since 24h\n",
            "asks        none\n",
            "4 known, 1 is ill; changed tools (a/b): wharf tools diff\n",
            "dev.example.crash is backing off: exit code 1: no model found \
             (wharf agents logs dev.example.crash)\n",
            "disk space  warning: little is left\n",
            "money: this token may not see that\n",
            "not all is well\n",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
    }
}
