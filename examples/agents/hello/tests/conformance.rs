//! The reference agent, judged by the suite that judges every agent.

use std::path::Path;
use std::time::Duration;

use wharf_conformance::{Options, Verdict, run};

#[tokio::test]
async fn the_reference_agent_keeps_every_requirement() {
    let options = Options {
        dir: Path::new(env!("CARGO_MANIFEST_DIR")).to_owned(),
        heartbeat: Duration::from_millis(500),
        reply: Duration::from_secs(30),
        // Tests run on machines that do other things meanwhile.
        slack: Duration::from_secs(3),
        ..Options::default()
    };
    let command = vec![env!("CARGO_BIN_EXE_hello-agent").to_owned()];
    let report = run(command, options).await.expect("the agent starts");
    assert!(report.passed(), "{report}");
    let left_out = |verdict: &Verdict| matches!(verdict, Verdict::NotApplicable(_));
    let left_out = report.rows().iter().filter(|row| left_out(&row.verdict));
    // It reports no cost; everything else came up.
    assert_eq!(left_out.map(|row| row.number).collect::<Vec<_>>(), [165], "{report}");
}
