//! How firmly providers can be fenced in on this machine, and whether that is enough.

use std::time::Duration;

use wharf_launcher::ProcessLauncher;
use wharf_ports::launcher::{FenceReport, Launcher};
use wharf_vocab::{Keeping, SandboxLevel};

use super::Check;
use crate::settings::Settings;

const NAME: &str = "sandbox";
const LIMITS: &str = "limits";
/// How long the machine may take to be tried.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries what the machine can do. The process must be one that can become a shim.
pub(super) fn check(settings: Option<&Settings>) -> Vec<Check> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return vec![Check::warn(NAME, "the available sandbox is unknown")];
    };
    let tried = runtime.block_on(async {
        let launcher =
            ProcessLauncher::start(wharf_launcher::LauncherOptions { shim_program: None });
        let launcher = launcher.map_err(|error| error.to_string())?;
        let probe = tokio::time::timeout(PATIENCE, launcher.probe()).await;
        probe.map_err(|_| "it takes too long".to_owned())
    });
    match tried {
        Ok(achieved) => vec![verdict(&achieved, settings), limits(&achieved)],
        Err(why) => vec![Check::warn(NAME, format!("the machine cannot be tried: {why}"))],
    }
}

/// How each limit of a provider would be kept.
fn limits(achieved: &FenceReport) -> Check {
    let kept = |how: Keeping| {
        let is_so = |(name, kept): (&&'static str, &Keeping)| (*kept == how).then_some(*name);
        achieved.limits.iter().filter_map(is_so).collect::<Vec<_>>().join(", ")
    };
    let ways = [
        (Keeping::Kernel, "kept by the kernel"),
        (Keeping::Measured, "measured many times a second"),
        (Keeping::Unkept, "not kept here"),
    ];
    let parts = ways.iter().map(|(how, words)| (kept(*how), words));
    let parts = parts.filter(|(names, _)| !names.is_empty());
    let text = parts.map(|(names, words)| format!("{words}: {names}")).collect::<Vec<_>>();
    Check::ok(LIMITS, text.join("; "))
}

fn verdict(achieved: &FenceReport, settings: Option<&Settings>) -> Check {
    let level = achieved.level;
    let mut text = format!("{level} is available");
    for note in &achieved.notes {
        text.push_str("; ");
        text.push_str(note.trim_end_matches('.'));
    }
    let least = settings.and_then(|settings| settings.sandbox_min);
    let wanted = settings.map_or(SandboxLevel::Standard, |settings| settings.sandbox);
    if let Some(least) = least.filter(|least| level < *least) {
        return Check::fail(
            NAME,
            format!("{text}; no agent starts, because the minimum is {least}"),
        );
    }
    if level < wanted {
        return Check::warn(NAME, format!("{text}; the configuration asks for {wanted}"));
    }
    Check::ok(NAME, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Home;
    use crate::doctor::Verdict;

    #[test]
    fn how_each_limit_is_kept_is_told() {
        let mut achieved = FenceReport::at(SandboxLevel::Standard);
        achieved.limits = [
            ("memory_bytes", Keeping::Measured),
            ("open_files", Keeping::Kernel),
            ("processes", Keeping::Measured),
        ]
        .into();
        let expect = "kept by the kernel: open_files; \
                      measured many times a second: memory_bytes, processes";
        assert_eq!(limits(&achieved).text, expect);
    }

    #[test]
    fn what_can_be_had_is_measured_by_what_is_wanted() {
        let achieved = |level| {
            let notes = vec!["There is no Landlock.".to_owned()];
            FenceReport { notes, ..FenceReport::at(level) }
        };
        let check = verdict(&achieved(SandboxLevel::Standard), None);
        assert_eq!(check.verdict, Verdict::Ok);
        assert_eq!(check.text, "standard is available; There is no Landlock");
        assert_eq!(verdict(&achieved(SandboxLevel::Basic), None).verdict, Verdict::Warn);
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("wharf.toml"), "[agents]\nsandbox_min = \"standard\"\n")
            .expect("written");
        let home = Home::resolve(Some(dir.path().to_owned())).expect("a home");
        let settings = Settings::load(&home).expect("fits");
        let check = verdict(&achieved(SandboxLevel::Basic), Some(&settings));
        assert_eq!(check.verdict, Verdict::Fail);
    }
}
