//! Durable tools that are tried: killed and repeated at every step, in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use wharf_sdk::trial::{TrialCore, try_durable};
use wharf_sdk::{Code, Cx, Fault, Scope, Tool, tool};

const FETCH: Tool<String, usize> = Tool::new("fetch", "Reads a page.").at("web/fetch");
const WALK: Tool<Vec<String>, Vec<usize>> = Tool::new("walk", "Takes steps.").durable(true);

/// Reads pages in all the ways there are.
#[tool(durable = true)]
async fn read(pages: Vec<String>, cx: Cx) -> Result<Vec<usize>, Fault> {
    let first = cx.step("fetch", &FETCH, "a".to_owned()).await?;
    let dice: usize = cx.local("dice", async || Ok(40)).await?;
    let (left, right) = tokio::join!(
        cx.step("left", &FETCH, "bb".to_owned()),
        cx.step("right", &FETCH, "ccc".to_owned()),
    );
    let many = cx.each("many", &FETCH, pages).at_once(3).await?;
    let mut all = vec![first, dice, left?, right?];
    all.extend(many);
    all.push(cx.step("many", &FETCH, String::new()).await?);
    Ok(all)
}

/// A walk under way.
type Walked = BoxFuture<'static, Result<Vec<usize>, Fault>>;

fn core() -> (TrialCore, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let core = TrialCore::new().tool(&FETCH, move |url| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(url.len())
    });
    (core, calls)
}

fn pages(count: usize) -> Vec<String> {
    (0..count).map(|n| "x".repeat(n)).collect()
}

#[tokio::test]
async fn f022_f024_f029_a_durable_tool_is_killed_and_repeated_at_every_step() {
    let (core, calls) = core();
    let tried = try_durable(&READ, pages(5), &core).await.expect("it finds its steps");
    assert_eq!(tried.output, [1, 40, 2, 3, 0, 1, 2, 3, 4, 0]);
    let named = |name: &str| tried.steps.iter().any(|step| step == name);
    assert!(named("dice#1") && named("many#5") && named("many#6"), "{:?}", tried.steps);
    // Each step has a point before and one after it, and a value one more.
    assert_eq!((tried.steps.len(), tried.kills), (10, 21));
    // Each run of it does each of its nine calls once; two runs are not killed.
    assert_eq!(calls.load(Ordering::Relaxed), 9 * (tried.kills + 2));
}

#[tokio::test]
async fn f025_f029_code_that_changes_its_mind_is_found() {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let changes: [fn(Cx) -> Walked; 3] = [
        // Other arguments, whatever the code makes of the error.
        |cx| {
            Box::pin(async move {
                let turn = TURN.fetch_add(1, Ordering::Relaxed);
                let _ = cx.step("a", &FETCH, "x".repeat(turn)).await;
                Ok(vec![])
            })
        },
        // Another output.
        |cx| {
            Box::pin(async move {
                cx.step("a", &FETCH, String::new()).await?;
                Ok(vec![TURN.fetch_add(1, Ordering::Relaxed)])
            })
        },
        // A step that is new when it is repeated.
        |cx| {
            Box::pin(async move {
                let name = format!("a{}", TURN.fetch_add(1, Ordering::Relaxed));
                Ok(vec![cx.step(name, &FETCH, String::new()).await?])
            })
        },
    ];
    for change in changes {
        let root = Scope::root();
        root.provide(&WALK, move |_, cx| change(cx)).expect("provided");
        let (core, _) = core();
        let fault = try_durable(&WALK, vec![], &core.within(&root)).await.expect_err("noticed");
        assert!(fault.is(Code::StepDiverged), "{fault}");
    }
}

#[tokio::test]
async fn f024_f029_each_gives_its_first_fault_and_a_name_is_used_once_at_a_time() {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let core = TrialCore::new().tool(&FETCH, |url| {
        LAST.fetch_add(usize::from(url == "last"), Ordering::Relaxed);
        if url == "none" { Err(Fault::new(Code::ToolFailed, "No such page.")) } else { Ok(1) }
    });
    let given = ["a", "none", "b", "last"].map(str::to_owned).to_vec();
    let fault = try_durable(&READ, given, &core).await.expect_err("a page is not there");
    assert_eq!(fault.message, "No such page.");
    assert!(LAST.load(Ordering::Relaxed) > 0, "the others are done all the same");
    let root = Scope::root();
    let twice = |_, cx: Cx| async move {
        let each = || cx.each("a", &FETCH, pages(2));
        let (one, other) = (each(), each());
        tokio::try_join!(one.into_future(), other.into_future()).map(|(one, _)| one)
    };
    root.provide(&WALK, twice).expect("provided");
    let fault = try_durable(&WALK, vec![], &core.within(&root)).await.expect_err("at once");
    assert!(fault.is(Code::StepInUse) && fault.message.contains("`each`"), "{fault}");
}

#[tokio::test]
async fn f023_f029_the_clock_is_moved_by_hand() {
    const WHEN: Tool<(), u64> = Tool::new("when", "Tells the time.").durable(true);
    let core = TrialCore::new();
    let since = |moment: SystemTime| {
        moment.duration_since(SystemTime::UNIX_EPOCH).expect("after it").as_secs()
    };
    let began = since(core.now());
    core.move_clock(Duration::from_secs(90));
    let root = Scope::root();
    let mover = core.clone();
    let when = move |(), cx: Cx| {
        let mover = mover.clone();
        async move {
            let first = since(cx.now().await?);
            mover.move_clock(Duration::from_secs(3600));
            Ok(since(cx.now().await?) - first)
        }
    };
    root.provide(&WHEN, when).expect("provided");
    let tried = try_durable(&WHEN, (), &core.clone().within(&root)).await.expect("as before");
    assert_eq!((tried.output, since(core.now()) > began + 90), (3600, true));
    assert_eq!(tried.steps, ["wharf.now#1", "wharf.now#2"]);
}
