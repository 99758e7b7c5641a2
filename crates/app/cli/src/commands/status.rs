//! `wharf status`: how the core fares, as far as the token may see.

mod words;

use jiff::Zoned;
use serde::Serialize;
use wharf_client::{Client, RunFilter};
use wharf_vocab::{
    DateTime, GrantId, ProviderState, PurgeState, RunStatus, ToolState, Verb, Verdict, WorldId,
};
use wharf_wire::rest_v1::{Account, ConsoleSession, Diagnosis, Provider, Purge, System};

use crate::commands::{Context, Exit, Result};

/// Asks that are looked at; of more it is only said that there are more.
const ASKS_MAX: usize = 200;
/// How far back failed runs are counted.
const LATELY: &str = "24h";
/// An account that has used so many hundredths of its limit is nearly used up.
const NEARLY_USED: u64 = 80;
/// What the core's own diagnosis calls providers, which are told one by one here.
const PROVIDER_CHECKS: [&str; 3] = ["agents", "tool servers", "MCP servers"];

/// What `wharf status` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf status
  wharf status --json
  wharf status --url https://wharf.example.com --token \"$TOKEN\"

What the token may not see is left out and named. Exit code 0 if all is well, 1 if the core cannot
be reached, if one of its checks fails, or if a provider is unhealthy, crashed, drifted or about to
be started again.")]
pub(crate) struct StatusArgs {}

/// How a core fares. What is absent, the token may not see.
#[derive(Debug, Default, Serialize)]
struct StatusReport {
    url: String,
    /// Whether nothing is ill.
    well: bool,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<DateTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uptime_ms: Option<u64>,
    token: Option<TokenRights>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<RunCounts>,
    /// Orders to remove runs that are being carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    purges: Option<Vec<Purge>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asks: Option<Asks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    providers: Option<ProviderCounts>,
    /// What the core's own checks found that is not well.
    findings: Vec<StatusFinding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    money: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<Disk>,
    /// What the token may not see.
    not_shown: Vec<&'static str>,
}

/// Whom the token stands for, and what it permits.
#[derive(Debug, Serialize)]
struct TokenRights {
    token_id: GrantId,
    label: Option<String>,
    person: bool,
    verbs: Vec<Verb>,
    /// All when absent.
    worlds: Option<Vec<WorldId>>,
    /// All when absent.
    tools: Option<Vec<String>>,
    expires_at: Option<DateTime>,
}

/// Runs in progress, and how many failed lately.
#[derive(Debug, Default, Serialize)]
struct RunCounts {
    queued: u64,
    waiting: u64,
    running: u64,
    failed_24h: u64,
}

/// What waits for somebody.
#[derive(Debug, Serialize)]
struct Asks {
    open: usize,
    /// Whether there are more than were counted.
    more: bool,
    oldest_at: Option<DateTime>,
}

/// Providers, and which of them need somebody.
#[derive(Debug, Default, Serialize)]
struct ProviderCounts {
    known: usize,
    ill: Vec<IllProvider>,
    quarantined_tools: Vec<String>,
}

#[derive(Debug, Serialize)]
struct IllProvider {
    provider_id: String,
    kind: String,
    state: ProviderState,
    reason: Option<String>,
}

/// One of the core's own checks.
#[derive(Debug, Serialize)]
struct StatusFinding {
    name: String,
    verdict: Verdict,
    text: String,
}

/// What was spent, and which budgets are nearly used up.
#[derive(Debug, Serialize)]
struct Money {
    today_micro: u64,
    nearly_used: Vec<Account>,
}

#[derive(Debug, Serialize)]
struct Disk {
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
    database_bytes: Option<u64>,
}

/// Shows how the core fares.
pub(crate) async fn run(_: StatusArgs, context: &Context) -> Result<Exit> {
    let output = context.output;
    let status = StatusReport::ask(&context.client()?).await?;
    if output.is_json() {
        output.json(&status)?;
    } else {
        output.text(&words::text_of(&status, output))?;
    }
    Ok(if status.well { Exit::Done } else { Exit::Failed })
}

impl StatusReport {
    async fn ask(client: &Client) -> Result<Self> {
        let session = client.session().await?;
        let mut status = Self {
            url: client.base_url().to_owned(),
            version: session.version.clone(),
            token: Some(TokenRights::of(session)),
            ..Self::default()
        };
        let (system, runs, purges, asks, providers, doctor, money) = futures::join!(
            async { client.system().await },
            runs(client),
            purges(client),
            asks(client),
            providers(client),
            async { client.doctor().await },
            money(client),
        );
        if let Some(system) = status.seen("uptime and disk", system)? {
            status.take_system(&system);
        }
        status.runs = status.seen("runs", runs)?;
        status.purges = status.seen("orders to remove runs", purges)?;
        status.asks = status.seen("asks", asks)?;
        status.providers = status.seen("providers", providers)?;
        if let Some(doctor) = status.seen("the core's checks", doctor)? {
            status.findings = findings(doctor);
        }
        status.money = status.seen("money", money)?;
        status.well = status.is_well();
        Ok(status)
    }

    /// What was answered; nothing, and a word about it, where the token may not look.
    fn seen<T>(
        &mut self,
        what: &'static str,
        answer: wharf_client::Result<T>,
    ) -> Result<Option<T>> {
        match answer {
            Ok(seen) => Ok(Some(seen)),
            Err(error) if error.is(wharf_vocab::Code::PermissionDenied) => {
                self.not_shown.push(what);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn take_system(&mut self, system: &System) {
        self.started_at = Some(system.started_at);
        self.uptime_ms = Some(system.uptime_ms);
        self.disk = Some(Disk {
            free_bytes: system.disk_free_bytes,
            total_bytes: system.disk_total_bytes,
            database_bytes: system.database_bytes,
        });
    }

    fn is_well(&self) -> bool {
        let failed = self.findings.iter().any(|finding| finding.verdict == Verdict::Fail);
        !failed && self.providers.as_ref().is_none_or(|providers| providers.ill.is_empty())
    }
}

impl TokenRights {
    fn of(session: ConsoleSession) -> Self {
        Self {
            token_id: session.grant,
            label: session.label,
            person: session.person,
            verbs: session.verbs,
            worlds: session.worlds,
            tools: session.tools,
            expires_at: session.expires_at,
        }
    }
}

async fn runs(client: &Client) -> wharf_client::Result<RunCounts> {
    let count = async |status: RunStatus, since: Option<&str>| {
        let filter = RunFilter { status: &[status], since, ..RunFilter::default() };
        client.runs().count(&filter).await.map(|count| count.count)
    };
    Ok(RunCounts {
        queued: count(RunStatus::Queued, None).await?,
        waiting: count(RunStatus::Waiting, None).await?,
        running: count(RunStatus::Running, None).await?,
        failed_24h: count(RunStatus::Failed, Some(LATELY)).await?,
    })
}

/// The orders that are being carried out.
async fn purges(client: &Client) -> wharf_client::Result<Vec<Purge>> {
    let mut orders = client.runs().purges().await?.items;
    orders.retain(|order| order.state == PurgeState::Running);
    Ok(orders)
}

async fn asks(client: &Client) -> wharf_client::Result<Asks> {
    let (asks, more) = client.inbox().list().first(ASKS_MAX).await?;
    let oldest_at = asks.iter().map(|ask| ask.created_at).min();
    Ok(Asks { open: asks.len(), more, oldest_at })
}

async fn providers(client: &Client) -> wharf_client::Result<ProviderCounts> {
    let known: Vec<Provider> = client.providers().list().all().await?;
    let tools = client.tools().list().all().await?;
    let quarantined = tools.into_iter().filter(|tool| tool.state == ToolState::Quarantined);
    Ok(ProviderCounts {
        quarantined_tools: quarantined.map(|tool| tool.tool_id.to_string()).collect(),
        known: known.len(),
        ill: known.into_iter().filter(is_ill).map(IllProvider::of).collect(),
    })
}

/// Whether a provider that should be up is not well.
fn is_ill(provider: &Provider) -> bool {
    use ProviderState::{BackingOff, Crashed, Drifted, Unhealthy};
    matches!(provider.state, BackingOff | Crashed | Drifted | Unhealthy)
}

impl IllProvider {
    fn of(provider: Provider) -> Self {
        let Provider { provider_id, kind, state, reason, .. } = provider;
        Self { provider_id, kind, state, reason }
    }
}

fn findings(doctor: Diagnosis) -> Vec<StatusFinding> {
    let told = |name: &str| PROVIDER_CHECKS.contains(&name);
    let checks = doctor.checks.into_iter();
    checks
        .filter(|check| check.verdict != Verdict::Ok && !told(&check.name))
        .map(|check| StatusFinding { name: check.name, verdict: check.verdict, text: check.text })
        .collect()
}

async fn money(client: &Client) -> wharf_client::Result<Money> {
    // The day begins where the reader is.
    let midnight = Zoned::now().start_of_day().map(|day| day.timestamp().to_string());
    let since = midnight.unwrap_or_else(|_| LATELY.to_owned());
    let costs = client.costs().query("since", Some(&since)).await?;
    let mut accounts = client.accounts().all().await?;
    accounts.retain(|account| used(account).is_some_and(|used| used >= NEARLY_USED));
    Ok(Money { today_micro: costs.total_micro, nearly_used: accounts })
}

/// How many hundredths of its limit an account has spent or set aside.
fn used(account: &Account) -> Option<u64> {
    let limit = account.limit_micro?;
    let gone = account.spent_micro.saturating_add(account.held_micro);
    let hundredths = (u128::from(gone) * 100).checked_div(u128::from(limit)).unwrap_or(100);
    Some(u64::try_from(hundredths).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn account(limit: Option<u64>, spent: u64, held: u64) -> Account {
        serde_json::from_value(json!({"account": "world:lab", "world": "lab",
            "limit_micro": limit, "spent_micro": spent, "held_micro": held}))
        .expect("an account")
    }

    #[test]
    fn an_account_is_used_by_what_is_spent_and_held() {
        assert_eq!(used(&account(Some(1_000), 500, 300)), Some(80));
        assert_eq!(used(&account(Some(1_000), 1_500, 0)), Some(150));
        assert_eq!(used(&account(None, 500, 0)), None);
        assert_eq!(used(&account(Some(0), 0, 0)), Some(100), "nothing may be spent at all");
        assert_eq!(used(&account(Some(1), u64::MAX, 0)), Some(u64::MAX));
    }

    #[test]
    fn a_warning_is_shown_and_only_a_failure_is_an_illness() {
        let check =
            |name: &str, verdict: &str| json!({"name": name, "verdict": verdict, "text": "x"});
        let doctor = |verdict: &str| -> Diagnosis {
            let checks = [check("disk", verdict), check("agents", "warn"), check("core", "ok")];
            serde_json::from_value(json!({"status": verdict, "version": "1", "checks": checks}))
                .expect("a diagnosis")
        };
        let status = |verdict| StatusReport {
            findings: findings(doctor(verdict)),
            ..StatusReport::default()
        };
        assert_eq!(status("warn").findings.len(), 1, "providers are told one by one");
        assert!(status("warn").is_well());
        assert!(!status("fail").is_well());
    }
}
