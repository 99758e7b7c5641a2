//! The suite every artifact store must pass: what the port promises, case by case.
//!
//! [`object_store_contract!`](crate::object_store_contract) makes one test of each case for any
//! store, [`object_address_contract!`](crate::object_address_contract) those for a store whose
//! addresses can be used over HTTP. Cases may share one store: each has a world of its own.

mod addresses;
mod basics;
mod lists;
mod uploads;
mod versions;

use std::any::Any;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use wharf_vocab::B3;

pub use addresses::{
    a_missing_object_is_not_found_over_http, a_refused_put_tells_why_even_when_its_body_is_large,
    ranges_are_answered_over_http, t032_a_put_by_address_cannot_read_another_key,
    t032_an_address_ends_with_its_lifetime, t032_an_address_is_good_for_its_key_only,
    t032_an_address_is_good_for_its_method_only, t032_an_address_reads_and_writes_its_key,
    t032_changed_parameters_are_refused, t032_nothing_is_answered_without_a_signature,
};
pub use basics::{
    a_body_of_another_length_is_refused, a_body_that_breaks_off_changes_nothing,
    a_body_with_another_hash_is_refused, a_copy_is_an_object_of_its_own,
    a_large_object_comes_back_in_pieces, a_range_gives_just_its_bytes,
    an_empty_object_is_an_object, an_object_comes_back_as_it_went_in,
    many_writers_of_one_key_leave_one_of_their_objects, t037_what_is_not_there_is_none,
    what_is_removed_is_gone, writing_again_replaces_the_whole,
};
pub use lists::{
    a_list_in_pages_is_whole_whatever_keys_are_called, a_list_is_paged_in_order,
    a_list_shows_one_world_or_run,
};
pub use uploads::{
    a_sweep_ends_old_uploads_and_nothing_else, an_upload_given_up_is_gone,
    an_upload_of_another_hash_leaves_nothing, an_upload_that_is_unknown_is_not_found,
    parts_become_one_object, parts_may_come_in_any_order_and_twice,
};
pub use versions::{
    a_sweep_leaves_versions_that_somebody_is_bound_to,
    a_version_is_read_as_it_was_seen_or_not_at_all,
    t032_an_address_of_a_version_shows_nothing_else,
};

use wharf_ports::{ByteStream, ObjectError, ObjectErrorKind, ObjectInfo, ObjectStore, PutObject};

/// A store to be held to the contract.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// A world that nobody else uses.
    pub world: String,
    /// Uses addresses as a tool does, where they lead somewhere.
    pub client: Option<Arc<dyn PlainClient>>,
    /// Whether replaced versions stay until others than the core clear them away.
    pub keeps_all_versions: bool,
    /// What must live as long as the store, such as its folder.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// A client that knows HTTP and nothing of S3.
pub trait PlainClient: Send + Sync {
    /// Sends a request and takes its whole answer, or says why there is none.
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Answer, String>>;
}

/// A request of a plain client.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Its method.
    pub method: &'static str,
    /// Where it goes.
    pub url: String,
    /// Its headers beyond those of any client.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Bytes,
}

/// An answer to a plain client.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Bytes,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Subject {
    fn key(&self, path: &str) -> String {
        format!("{}/{path}", self.world)
    }

    async fn write(&self, path: &str, bytes: &[u8]) -> ObjectInfo {
        let put = put(self.key(path), Some(bytes));
        self.store.put(put, body(bytes)).await.expect("written")
    }

    async fn read(&self, path: &str) -> Option<Bytes> {
        let found = self.store.get(self.key(path), None).await.expect("answered")?;
        Some(collect(found.stream).await)
    }

    /// Says what a client that must be there was answered.
    async fn send(&self, request: Request) -> Answer {
        let client = self.client.as_ref().expect("a client");
        client.send(request).await.expect("answered")
    }

    async fn get_at(&self, url: &str) -> Answer {
        self.send(Request { method: "GET", url: url.to_owned(), ..Request::default() }).await
    }

    async fn put_at(&self, url: &str, bytes: &'static [u8]) -> Answer {
        let body = Bytes::from_static(bytes);
        self.send(Request { method: "PUT", url: url.to_owned(), body, ..Request::default() }).await
    }
}

/// A put of bytes that are known, or of which nothing is.
fn put(key: String, known: Option<&[u8]>) -> PutObject {
    PutObject {
        key,
        media_type: "text/plain".to_owned(),
        bytes: known.map(|bytes| bytes.len() as u64),
        b3: known.map(hash),
    }
}

fn hash(bytes: &[u8]) -> B3 {
    B3::parse(blake3::hash(bytes).to_hex().as_str()).expect("a hash")
}

fn body(bytes: &[u8]) -> ByteStream {
    pieces(bytes, 70_000)
}

/// A body in pieces of this size.
fn pieces(bytes: &[u8], size: usize) -> ByteStream {
    let pieces: Vec<_> =
        bytes.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    stream::iter(pieces).boxed()
}

/// A body that fails behind some bytes.
fn broken(bytes: &[u8]) -> ByteStream {
    let error = ObjectError::new(ObjectErrorKind::Interrupted, "the sender went away");
    body(bytes).chain(stream::iter([Err(error)])).boxed()
}

async fn collect(stream: ByteStream) -> Bytes {
    let all = stream.try_fold(BytesMut::new(), |mut all, piece| async move {
        all.extend_from_slice(&piece);
        Ok(all)
    });
    all.await.expect("read").freeze()
}

/// Bytes that repeat nowhere near.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = Vec::with_capacity(bytes + 8);
    while noise.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}

/// Makes one `tokio` test of each case; the argument is an `async fn() -> objects::Subject`.
#[macro_export]
macro_rules! object_store_contract {
    ($make:path) => {
        $crate::object_contract_cases! { $make =>
            an_object_comes_back_as_it_went_in
            an_empty_object_is_an_object
            t037_what_is_not_there_is_none
            a_range_gives_just_its_bytes
            writing_again_replaces_the_whole
            a_body_of_another_length_is_refused
            a_body_with_another_hash_is_refused
            a_body_that_breaks_off_changes_nothing
            a_large_object_comes_back_in_pieces
            a_copy_is_an_object_of_its_own
            what_is_removed_is_gone
            many_writers_of_one_key_leave_one_of_their_objects
            a_list_is_paged_in_order
            a_list_in_pages_is_whole_whatever_keys_are_called
            a_list_shows_one_world_or_run
            parts_become_one_object
            parts_may_come_in_any_order_and_twice
            an_upload_of_another_hash_leaves_nothing
            an_upload_given_up_is_gone
            an_upload_that_is_unknown_is_not_found
            a_sweep_ends_old_uploads_and_nothing_else
            a_version_is_read_as_it_was_seen_or_not_at_all
            a_sweep_leaves_versions_that_somebody_is_bound_to
        }
    };
}

/// Makes one `tokio` test of each case that needs a client; the argument is an
/// `async fn() -> objects::Subject` with one.
#[macro_export]
macro_rules! object_address_contract {
    ($make:path) => {
        $crate::object_contract_cases! { $make =>
            t032_an_address_reads_and_writes_its_key
            t032_an_address_of_a_version_shows_nothing_else
            t032_an_address_is_good_for_its_method_only
            t032_an_address_is_good_for_its_key_only
            t032_an_address_ends_with_its_lifetime
            t032_changed_parameters_are_refused
            t032_nothing_is_answered_without_a_signature
            t032_a_put_by_address_cannot_read_another_key
            ranges_are_answered_over_http
            a_missing_object_is_not_found_over_http
            a_refused_put_tells_why_even_when_its_body_is_large
        }
    };
}

/// Makes the tests of the two above.
#[doc(hidden)]
#[macro_export]
macro_rules! object_contract_cases {
    ($make:path => $($case:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::objects::$case($make().await).await;
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_memory::MemoryObjects;
    use wharf_ports::SystemClock;

    async fn memory() -> Subject {
        let store = Arc::new(MemoryObjects::new(Arc::new(SystemClock)));
        Subject {
            store,
            world: "w".to_owned(),
            client: None,
            keeps_all_versions: false,
            keep: Box::new(()),
        }
    }

    crate::object_store_contract!(memory);
}
