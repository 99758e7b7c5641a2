//! Progress and log messages.

use serde_json::json;
use wharf_domain::{Level, Progress};

use crate::peers::{peer, progress, start, words};

#[tokio::test]
async fn m065_progress_rises_and_logs_are_lines() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "").await;
        let run = start(&stage, "advance", json!({})).await;
        assert_eq!(words(&stage, &run).await, "advanced");
        let told = progress(&stage, &run).await;
        let told: Vec<_> = told
            .into_iter()
            .map(|piece| match piece {
                Progress::Phase { phase, fraction } => (phase, fraction),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            ("at 10".to_owned(), Some(0.1)),
            ("at 50".to_owned(), Some(0.5)),
            ("at 100".to_owned(), Some(1.0)),
            (String::new(), None),
        ];
        assert_eq!(told, expected, "values that fall are left out");

        let run = start(&stage, "talk", json!({})).await;
        assert_eq!(words(&stage, &run).await, "talked");
        let told = progress(&stage, &run).await;
        let line = |level, text: &str| Progress::Log { level, text: text.to_owned() };
        let first = line(Level::Warn, "peer: two lines[2J");
        assert_eq!(told, [first, line(Level::Debug, "peer: {\"a\":1}")]);
    }
}
