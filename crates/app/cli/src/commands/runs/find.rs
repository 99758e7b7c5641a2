//! Finds the run that a typed id, or the beginning of one, means: in the world that was named, or
//! in all that the token may see.

use wharf_client::{Client, RunFilter};
use wharf_vocab::{Code, RunId};
use wharf_wire::rest_v1::Run;

use crate::commands::{CliError, Result};
use crate::plain;

/// Runs that are looked at when the beginning of an id fits several.
const LOOKED_AT_MAX: usize = 200;
/// Runs that are named when it is not clear which is meant.
const NAMED_MAX: usize = 8;
/// The world that needs no name.
pub(crate) const DEFAULT_WORLD: &str = "default";

/// A run and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundRun {
    pub(crate) run_id: String,
    /// Its world; the default one where none is known.
    pub(crate) world: Option<String>,
    /// Whether it was over when it was looked up.
    pub(crate) was_over: bool,
}

impl FoundRun {
    /// What names the run in a command.
    pub(crate) fn typed(&self) -> String {
        named(&self.run_id, self.world.as_deref().unwrap_or(DEFAULT_WORLD))
    }

    pub(crate) fn of(run: &Run) -> Self {
        let (run_id, world) = (run.run_id.to_string(), Some(run.world.to_string()));
        Self { run_id, world, was_over: run.status.is_terminal() }
    }
}

/// What names a run in a command, with its world if that is not the usual one.
pub(crate) fn named(run: &str, world: &str) -> String {
    match world {
        DEFAULT_WORLD => plain::line(run),
        other => format!("{} --world {}", plain::line(run), plain::line(other)),
    }
}

/// The run that was typed, also as `WORLD/RUN`.
pub(crate) async fn find(client: &Client, typed: &str, world: Option<&str>) -> Result<FoundRun> {
    let (typed, world) = match (typed.split_once('/'), world) {
        (Some((named, run)), None) => (run, Some(named)),
        _ => (typed, world),
    };
    if typed.is_empty() {
        return Err(CliError::usage("type the id of a run, or its beginning"));
    }
    // A whole id is looked up first: in the usual world it needs no search.
    if RunId::new(typed).is_ok() {
        match client.runs().get(typed).world(world).await {
            Ok(run) => return Ok(FoundRun::of(&run)),
            Err(error) if is_elsewhere(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let begun = |world| RunFilter { world, id_prefix: Some(typed), ..RunFilter::default() };
    let runs = match client.runs().list(&begun(world)).first(LOOKED_AT_MAX).await {
        Ok((runs, _)) => runs,
        // Whoever may not look may still name a run as a whole.
        Err(error) if error.is(Code::PermissionDenied) => {
            let world = world.map(str::to_owned);
            return Ok(FoundRun { run_id: typed.to_owned(), world, was_over: false });
        }
        Err(error) => return Err(error.into()),
    };
    let found: Vec<FoundRun> = runs.iter().map(FoundRun::of).collect();
    if let Some(found) = pick(typed, &found)? {
        return Ok(found.clone());
    }
    let elsewhere = match world {
        Some(_) => client.runs().list(&begun(None)).first(1).await.map(|(runs, _)| runs),
        None => Ok(Vec::new()),
    };
    Err(not_found(typed, world, elsewhere.unwrap_or_default().first()))
}

/// Whether the run may be in another world than the one that was looked into.
fn is_elsewhere(error: &wharf_client::Error) -> bool {
    [Code::RunNotFound, Code::PermissionDenied, Code::WorldNotFound]
        .into_iter()
        .any(|code| error.is(code))
}

/// The one that is meant among those whose id begins so.
fn pick<'a>(typed: &str, found: &'a [FoundRun]) -> Result<Option<&'a FoundRun>> {
    let whole: Vec<&FoundRun> = found.iter().filter(|found| found.run_id == typed).collect();
    let fitting = if whole.is_empty() { found.iter().collect() } else { whole };
    match fitting.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let names = several.iter().take(NAMED_MAX).map(|found| found.typed());
            let mut names: Vec<String> = names.collect();
            if several.len() > NAMED_MAX {
                names.push(format!("and {} more", several.len() - NAMED_MAX));
            }
            let names = names.join(", ");
            Err(CliError::usage(format!("{typed} is ambiguous: {names}; type one of them")))
        }
    }
}

fn not_found(typed: &str, world: Option<&str>, elsewhere: Option<&Run>) -> CliError {
    let typed = plain::line(typed);
    let message = match (world, elsewhere) {
        (None, _) => {
            format!(
                "There is no run {typed} in any world that this token may see; list runs with: wharf runs"
            )
        }
        (Some(world), None) => {
            format!(
                "There is no run {typed} in the world {}; list runs with: wharf runs",
                plain::line(world)
            )
        }
        (Some(world), Some(run)) => {
            let there = FoundRun::of(run).typed();
            format!("There is no run {typed} in the world {}; type: {there}", plain::line(world))
        }
    };
    CliError::new(Code::RunNotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(id: &str, world: &str) -> FoundRun {
        FoundRun { run_id: id.to_owned(), world: Some(world.to_owned()), was_over: false }
    }

    #[test]
    fn a_unique_beginning_is_enough_and_a_whole_id_wins() {
        let runs = [found("r1", "lab"), found("r10", "lab"), found("s1", "rest")];
        assert_eq!(pick("s", &runs[2..]), Ok(Some(&runs[2])));
        assert_eq!(pick("r1", &runs[..2]), Ok(Some(&runs[0])));
        assert_eq!(pick("t", &[]), Ok(None));
    }

    #[test]
    fn what_may_mean_several_names_them_as_they_can_be_typed() {
        let runs = [found("r1", "lab"), found("r1", "default")];
        let failure = pick("r1", &runs).expect_err("two worlds have it");
        let expect = "r1 is ambiguous: r1 --world lab, r1; type one of them";
        assert_eq!((failure.message(), failure.exit().number()), (expect, 2));
        let many: Vec<_> = (0..20).map(|n| found(&format!("r{n}"), "default")).collect();
        let failure = pick("r", &many).expect_err("twenty");
        assert!(failure.message().contains("r7, and 12 more;"), "{failure:?}");
    }
}
