//! A real S3 server, one for all tests of this program.

use std::sync::{Arc, OnceLock};

use wharf_artifacts::S3Options;
use wharf_testkit::seaweed::{BUCKET, Seaweed};

use crate::support::{self, Client};

pub(crate) use wharf_testkit::seaweed::{KEY_ID, SECRET};

/// The server, started by whoever needs it first. It ends with the process.
pub(crate) fn server() -> Arc<Seaweed> {
    static SERVER: OnceLock<Arc<Seaweed>> = OnceLock::new();
    Arc::clone(SERVER.get_or_init(|| {
        // A runtime of the caller's must not be blocked from within.
        let started = std::thread::spawn(|| Arc::new(Seaweed::start()));
        started.join().expect("SeaweedFS starts")
    }))
}

/// Options for a corner of the bucket that no other test uses.
pub(crate) fn options() -> S3Options {
    let mut options = S3Options::new(&server().endpoint, BUCKET, KEY_ID, SECRET);
    options.prefix = Some(support::world());
    options
}

/// A client for this server.
pub(crate) fn client() -> Arc<Client> {
    Arc::new(Client::new())
}
