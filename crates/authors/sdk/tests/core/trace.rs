//! Calls as spans.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::format::FmtSpan;
use wharf_sdk::layers::Trace;
use wharf_sdk::{Agent, Code, Fault, Scope, Tool};

/// What is written, for later.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics in here").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn k013_trace_tells_of_tool_agent_and_code_and_of_no_payload() {
    const SECRET: Tool<String, String> = Tool::new("secret", "Keeps a secret.");
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let subscriber = tracing::Dispatch::new(subscriber);
    // While there is one subscriber only, whoever comes to a place first decides for all threads
    // whether something is logged there, and other tests log nothing.
    let _other = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _quiet = tracing::dispatcher::set_default(&subscriber);
    let root = Scope::root();
    root.around_all(Trace::new());
    let keeper = Agent::<()>::new("keeper", "Keeps secrets.")
        .activate(&root, ())
        .tool(&SECRET, |text: String, _cx| async move {
            tracing::info!("inside");
            if text == "canary in" {
                Ok("canary out".to_owned())
            } else {
                Err(Fault::new(Code::ToolFailed, "canary fault"))
            }
        })
        .build()
        .expect("a good agent");
    SECRET.call(&keeper, "canary in".to_owned()).await.expect("it works");
    SECRET.call(&keeper, "canary again".to_owned()).await.expect_err("it fails");
    let written = String::from_utf8(written.0.lock().expect("nobody panics").clone());
    let written = written.expect("it is text");
    assert!(written.contains(r#"tool="secret" agent="keeper""#), "{written}");
    assert!(written.contains(r#"code="tool.failed""#), "{written}");
    assert_eq!(written.matches("inside").count(), 2, "{written}");
    assert!(!written.contains("canary"), "{written}");
}
