//! Creates a world, puts a file into it, runs a tool, follows it, and fetches the file again.
//!
//! Start a core with `wharf up`, then: `cargo run -p wharf-client --example lab`.

use std::io::Write as _;

use serde_json::json;
use wharf_client::{Client, FileFilter, LocalFile, Locator, RemoteFile, Update, rest_v1};

/// Everything against the core that `locator` finds.
pub(crate) async fn run(locator: Locator) -> wharf_client::Result<Vec<String>> {
    let client = Client::new(locator)?;
    let mut seen = Vec::new();

    // Runs: start one and wait, or follow its events. The request below carries an id, so that it
    // can be repeated safely if its answer gets lost.
    let run = client.runs().run("wharf/echo", json!({"text": "hello"})).await?;
    seen.push(format!("{} {}", run.tool, run.status));
    let request: rest_v1::CreateRun = serde_json::from_value(
        json!({"tool": "wharf/count", "inputs": {"n": 3}, "run_id": "three"}),
    )
    .expect("a request");
    let accepted = client.runs().submit(&request, |_| {}).await?;
    let mut follower = client.runs().follow(&accepted.run_id, None, 0);
    loop {
        // The other updates say that the core went away and that it came back.
        if let Update::Event(event) = follower.next().await?
            && let Some((run, _)) = event.end()
        {
            seen.push(format!("{} {}", run.tool, run.status));
            break;
        }
    }

    // Files: both ways are checked against a hash, and resumed if they were broken off.
    let world: rest_v1::CreateWorld =
        serde_json::from_value(json!({"world": "lab"})).expect("a world");
    client.worlds().create(&world).await?;
    let folder = std::env::temp_dir().join(format!("wharf-lab-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (sent, fetched) = (folder.join("sent.txt"), folder.join("fetched.txt"));
    std::fs::write(&sent, "some text").expect("written");
    let file = RemoteFile::new("lab", "/in/some.txt")?;
    client.worlds().upload(&file).send_file(&LocalFile::new(&sent)?, true).await?;
    let mut files =
        client.worlds().files(FileFilter { world: "lab".into(), ..FileFilter::default() });
    while let Some(found) = files.file().await? {
        seen.push(format!("{} {}", found.path, found.bytes));
    }
    let downloaded = client.worlds().download(&file).to_file(&fetched).await?;
    seen.push(format!("checked: {}", downloaded.checked));
    std::fs::remove_dir_all(&folder).expect("removed");

    // Errors carry the core's own code.
    let error = client.runs().get("no-such-run").await.expect_err("there is none");
    seen.push(error.code().to_owned());
    Ok(seen)
}

#[tokio::main]
#[cfg_attr(test, expect(dead_code, reason = "a test calls `run`"))]
async fn main() {
    let lines = match run(Locator::from_env()).await {
        Ok(lines) => lines.join("\n"),
        Err(error) => error.to_string(),
    };
    writeln!(std::io::stdout(), "{lines}").expect("somebody reads");
}
