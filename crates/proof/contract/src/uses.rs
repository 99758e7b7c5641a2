//! What batches require of files: that they are there, or that no run uses them.

use wharf_vocab::RunKey;

use super::Subject;
use super::desk::{Desk, claim, holds, key, opens, path, removes, run_key, writes};
use wharf_ports::{Batch, CommitError, Refusal, Require};

/// The batch that makes a run which reads a file of its world.
fn makes(desk: &Desk, run: &RunKey, at: &str) -> Batch {
    let here = Require::FileHere { world: run.world.clone(), path: path(at), run: run.run.clone() };
    Batch { requires: vec![here], ..desk.creates(run) }
}

/// The batch that removes a file of a run's world, if nobody uses it.
fn takes(desk: &Desk, run: &RunKey, at: &str) -> Batch {
    let free = Require::FileFree { world: run.world.clone(), path: path(at) };
    Batch { requires: vec![free], ..desk.tells(vec![removes(run, at)]) }
}

fn gone(run: &RunKey, at: &str) -> Refusal {
    Refusal::FileGone { world: run.world.clone(), path: path(at) }
}

fn in_use(run: &RunKey, at: &str) -> Refusal {
    Refusal::FileInUse { world: run.world.clone(), path: path(at) }
}

/// A file must be there when a run is made that reads it: written, not only read, in this world,
/// and not removed.
pub async fn s020_a_run_is_made_only_if_its_files_are_there(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (run, other) = (key("r"), run_key("other", "r"));
    desk.put(desk.tells(vec![writes(&other, "/a", 1), writes(&run, "/a/b", 1)])).await;
    assert_eq!(desk.refused(makes(&desk, &run, "/a")).await, gone(&run, "/a"));
    assert_eq!(desk.seq(&run).await, None);
    desk.put(desk.tells(vec![writes(&run, "/a", 1), removes(&run, "/a")])).await;
    assert_eq!(desk.refused(makes(&desk, &run, "/a")).await, gone(&run, "/a"));
    desk.put(desk.tells(vec![writes(&run, "/a", 2)])).await;
    let mut two = makes(&desk, &run, "/a");
    two.requires.extend(makes(&desk, &run, "/none").requires);
    assert_eq!(desk.refused(two).await, gone(&run, "/none"), "each of them");
    desk.put(makes(&desk, &run, "/a")).await;
    assert_eq!(desk.seq(&run).await, Some(2));
}

/// Until the last of its users is over, whatever is written to it meanwhile.
pub async fn s020_a_file_is_not_free_until_its_users_are_over(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (one, two, other) = (key("r-1"), key("r-2"), run_key("other", "r-1"));
    let all = vec![writes(&one, "/a", 1), writes(&one, "/b", 1), writes(&other, "/a", 1)];
    desk.put(desk.tells(all)).await;
    for run in [&one, &two, &other] {
        desk.put(makes(&desk, run, "/a")).await;
    }
    assert_eq!(desk.refused(takes(&desk, &one, "/a")).await, in_use(&one, "/a"));
    desk.put(desk.tells(vec![writes(&two, "/a", 3)])).await;
    desk.put(desk.ends(&one, 2)).await;
    assert_eq!(desk.refused(takes(&desk, &one, "/a")).await, in_use(&one, "/a"), "the second");
    desk.put(desk.ends(&two, 2)).await;
    desk.put(takes(&desk, &one, "/a")).await;
    assert_eq!(desk.refused(makes(&desk, &key("r-3"), "/a")).await, gone(&one, "/a"));
    assert_eq!(desk.refused(takes(&desk, &other, "/a")).await, in_use(&other, "/a"));
    // What is not there is free, and nobody used the other file.
    desk.put(takes(&desk, &one, "/none")).await;
    desk.put(takes(&desk, &one, "/b")).await;
    // A run that is over as soon as it is made uses nothing.
    desk.put(desk.tells(vec![writes(&one, "/c", 1)])).await;
    let mut short = makes(&desk, &key("r-4"), "/c");
    short.appends.extend(desk.ends(&key("r-4"), 2).appends);
    desk.put(short).await;
    desk.put(takes(&desk, &one, "/c")).await;
}

/// Batches of one call are decided one after the other, also where a file changes between them.
pub async fn s020_files_are_looked_at_in_the_order_of_batches(subject: Subject) {
    let desk = Desk::open(subject).await;
    let [one, two, three] = ["r-1", "r-2", "r-3"].map(key);
    let refused = |refusal| Err(CommitError::Refused(refusal));
    let put = || desk.tells(vec![writes(&one, "/a", 1)]);
    let call = vec![
        makes(&desk, &one, "/a"),
        put(),
        makes(&desk, &one, "/a"),
        takes(&desk, &one, "/a"),
        desk.ends(&one, 2),
        takes(&desk, &one, "/a"),
        makes(&desk, &two, "/a"),
        put(),
        makes(&desk, &three, "/a"),
    ];
    let told = desk.commit(call).await;
    let wanted = [
        refused(gone(&one, "/a")),
        Ok(()),
        Ok(()),
        refused(in_use(&one, "/a")),
        Ok(()),
        Ok(()),
        refused(gone(&one, "/a")),
        Ok(()),
        Ok(()),
    ];
    assert_eq!(told, wanted);
    assert_eq!(desk.refused(takes(&desk, &one, "/a")).await, in_use(&one, "/a"));
    desk.put(desk.ends(&three, 2)).await;
    desk.put(takes(&desk, &one, "/a")).await;
}

/// Whatever a batch is refused for, it uses nothing; and whoever asks for what was made before is
/// told so, even if a file has gone since.
pub async fn s020_a_refused_batch_uses_nothing_and_a_repeat_is_told_first(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (one, two) = (key("r-1"), key("r-2"));
    desk.put(desk.tells(vec![writes(&one, "/a", 1)])).await;
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(1))])).await;
    let mut poor = makes(&desk, &one, "/a");
    poor.ledger.push(holds("h", "world:w", 2));
    assert!(matches!(desk.refused(poor).await, Refusal::Funds(_)));
    let mut first = desk.creates(&one);
    first.claims.push(claim("s", "k", "r-1"));
    desk.put(first).await;
    desk.put(takes(&desk, &one, "/a")).await;
    let refusal = desk.refused(makes(&desk, &one, "/a")).await;
    assert!(matches!(refusal, Refusal::Exists { .. }), "{refusal:?}");
    let mut again = makes(&desk, &two, "/a");
    again.claims.push(claim("s", "k", "r-2"));
    assert_eq!(desk.refused(again).await, Refusal::Claimed(claim("s", "k", "r-1")));
}

/// Of a run that reads a file and somebody who removes it at once, one comes first.
pub async fn s020_a_file_is_either_read_or_removed(subject: Subject) {
    let desk = Desk::open(subject).await;
    for n in 0..20 {
        let (run, at) = (key(&format!("r-{n}")), format!("/f-{n}"));
        desk.put(desk.tells(vec![writes(&run, &at, 1)])).await;
        let (made, removed) = tokio::join!(
            desk.commit(vec![makes(&desk, &run, &at)]),
            desk.commit(vec![takes(&desk, &run, &at)])
        );
        let told = (&made[0], &removed[0]);
        let was_gone = Err(CommitError::Refused(gone(&run, &at)));
        let was_used = Err(CommitError::Refused(in_use(&run, &at)));
        assert!(told == (&Ok(()), &was_used) || told == (&was_gone, &Ok(())), "{told:?}");
    }
}
