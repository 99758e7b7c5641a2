//! How firmly providers can be fenced in on this machine, and whether that is enough.

use std::time::Duration;

use wharf_engine::launcher::{Achieved, Launcher};
use wharf_launcher::ProcessLauncher;
use wharf_vocab::SandboxLevel;

use super::Check;
use crate::settings::Settings;

const NAME: &str = "sandbox";
/// How long the machine may take to be tried.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tries what the machine can do. The process must be one that can become a shim.
pub(super) fn check(settings: Option<&Settings>) -> Check {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return Check::warn(NAME, "how firmly agents can be fenced in cannot be told");
    };
    let tried = runtime.block_on(async {
        let launcher = ProcessLauncher::start(wharf_launcher::Options { shim_program: None });
        let launcher = launcher.map_err(|error| error.to_string())?;
        let probe = tokio::time::timeout(PATIENCE, launcher.probe()).await;
        probe.map_err(|_| "it takes too long".to_owned())
    });
    match tried {
        Ok(achieved) => verdict(&achieved, settings),
        Err(why) => Check::warn(NAME, format!("the machine cannot be tried: {why}")),
    }
}

fn verdict(achieved: &Achieved, settings: Option<&Settings>) -> Check {
    let level = achieved.level;
    let mut text = format!("{level} can be had");
    for note in &achieved.notes {
        text.push_str("; ");
        text.push_str(note.trim_end_matches('.'));
    }
    let least = settings.and_then(|settings| settings.sandbox_min);
    let wanted = settings.map_or(SandboxLevel::Standard, |settings| settings.sandbox);
    if let Some(least) = least.filter(|least| level < *least) {
        return Check::fail(NAME, format!("{text}; no agent starts, because {least} is the least"));
    }
    if level < wanted {
        return Check::warn(NAME, format!("{text}; {wanted} is wanted"));
    }
    Check::ok(NAME, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Home;
    use crate::doctor::Verdict;

    #[test]
    fn what_can_be_had_is_measured_by_what_is_wanted() {
        let achieved = |level| Achieved { level, notes: vec!["There is no Landlock.".to_owned()] };
        let check = verdict(&achieved(SandboxLevel::Standard), None);
        assert_eq!(check.verdict, Verdict::Ok);
        assert_eq!(check.text, "standard can be had; There is no Landlock");
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
