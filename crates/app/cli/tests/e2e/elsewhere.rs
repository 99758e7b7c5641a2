//! Homes whose database and files are in real servers: what runs once more with
//! `WHARF_TESTS_STORE=postgres` finds nothing else different.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use wharf_testkit::seaweed::{BUCKET, KEY_ID, SECRET, Seaweed};

/// The variable that says where homes keep what they hold.
const VARIABLE: &str = "WHARF_TESTS_STORE";

/// What a new home's configuration says of its store and its files, and the secret of the latter;
/// `None` if they are at home.
pub(crate) fn settings() -> Option<(String, &'static str)> {
    static FILES: LazyLock<Seaweed> = LazyLock::new(Seaweed::start);
    static HOMES: AtomicU64 = AtomicU64::new(0);
    let wanted = std::env::var(VARIABLE).ok()?;
    assert_eq!(wanted, "postgres", "{VARIABLE} can only be postgres");
    let server = wharf_postgres::shared().expect("these tests need PostgreSQL 15 or newer");
    let (url, endpoint) = (server.database(), &FILES.endpoint);
    let number = HOMES.fetch_add(1, Ordering::Relaxed);
    let settings = format!(
        "[store]\nurl = \"{url}\"\n[artifacts]\nkind = \"s3\"\nendpoint = \"{endpoint}\"\n\
         bucket = \"{BUCKET}\"\nprefix = \"home-{number}/\"\nkey_id = \"{KEY_ID}\"\n\
         secret_file = \"s3.secret\"\n"
    );
    Some((settings, SECRET))
}
